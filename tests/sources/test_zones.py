"""Windows in a time zone: no moment is lost or doubled, whatever its clocks ever did."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamdp.config.loader import load
from streamdp.errors import ConfigurationError
from streamdp.learning import features
from streamdp.sources.windows import DAY, WindowSource
from streamdp.types import Batch, CellQuery, Grid
from streamdp.zones import zones

BERLIN = "Europe/Berlin"


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def windows(zone: str, start: str, days: int, *, every: int = 1) -> list[Batch]:
    first = at(start)
    cut = WindowSource("s", first, every * DAY, first + days * DAY, zone=ZoneInfo(zone))
    return list(cut.batches(2**33))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(zones()),
    st.dates(date(1970, 1, 2), date(2039, 12, 1)),
    st.sampled_from([1, 1, 1, 7]),
)
def test_windows_of_any_zone_follow_each_other(zone: str, start: date, every: int) -> None:
    """None is empty, none overlaps or leaves a gap; each begins with its own local day."""
    found = windows(zone, start.isoformat(), 28, every=every)
    for earlier, later in pairwise(found):
        assert earlier.start is not None
        assert earlier.start < (earlier.end or 0) == later.start
        assert earlier.key < later.key
    for each in found:
        shown = datetime.fromtimestamp(each.start or 0, ZoneInfo(zone))
        before = datetime.fromtimestamp((each.start or 0) - 1, ZoneInfo(zone))
        assert shown.date().isoformat() == each.key
        assert before.date() < shown.date() or before.hour == 23
    assert found[-1].end == windows(zone, (start + timedelta(28)).isoformat(), every)[0].start


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        (BERLIN, "2026-03-29", 23),
        (BERLIN, "2026-10-25", 25),
        ("Australia/Lord_Howe", "2026-04-05", 24.5),
        ("America/Sao_Paulo", "2018-11-04", 23),
        ("America/New_York", "2026-06-01", 24),
    ],
)
def test_a_day_has_the_hours_of_its_zone(zone: str, day: str, hours: float) -> None:
    """Also where clocks go forward at midnight, so that the day begins at one."""
    (found,) = windows(zone, day, 1)
    assert (found.end or 0) - (found.start or 0) == hours * 3600


def test_a_day_that_never_was_is_no_window() -> None:
    """Samoa went from the 29th to the 31st of December 2011."""
    keys = [each.key for each in windows("Pacific/Apia", "2011-12-28", 5)]
    assert keys == ["2011-12-28", "2011-12-29", "2011-12-31", "2012-01-01"]


def test_features_follow_the_clocks_of_the_zone() -> None:
    """A Monday in Auckland begins on a Sunday in UTC, and is a Monday."""
    (monday,) = windows("Pacific/Auckland", "2026-06-01", 1)
    assert datetime.fromtimestamp(monday.start or 0, UTC).weekday() == 6
    assert features.weekday(monday) == (0.0,) * 6
    assert features.calendar(monday) == (0.0,) * 6
    assert features.holidays({date(2026, 6, 1)})(monday)[0] == 1.0


def configured(folder: Path, batches: dict[str, Any], types: str) -> Any:
    path = folder / "config.yaml"
    whole: dict[str, Any] = {
        "store": {"path": "s.db"},
        "privacy": {"unit": "a row", "caps": {"batch": 1, "lifetime": 10}},
        "sources": {"s": {"path": "x.csv", "types": {"at": types}, "batches": batches}},
    }
    release: dict[str, Any] = {"kind": "quantiles", "source": "s", "column": "x"}
    release |= {"quantiles": "median", "resolution": 1, "guess": {"location": 1, "scale": 1}}
    whole["releases"] = {"middle": release | {"epsilon": 1, "schedule": {"on": "batch"}}}
    path.write_text(yaml.safe_dump(whole))
    return load(path).sources["s"]


@pytest.mark.parametrize("zone", [BERLIN, "America/New_York", "UTC"])
@pytest.mark.parametrize("kind", ["timestamp", "date"])
def test_every_record_is_in_one_window(tmp_path: Path, zone: str, kind: str) -> None:
    """Instants by the hour around a change of clocks; dates in the window of their own day."""
    first = datetime(2026, 3, 28, tzinfo=UTC)
    moments = [first + timedelta(hours=hour) for hour in range(24 * 4)]
    days = [first + timedelta(days=day) for day in range(5)]
    text = [f"{each:%Y-%m-%d}" for each in days]
    if kind == "timestamp":
        text = [f"{each:%Y-%m-%dT%H:%M:%S}" for each in moments]
    (tmp_path / "x.csv").write_text("\n".join(["at,x", *(f"{each},1" for each in text)]) + "\n")
    cut = {"column": "at", "every": "1d", "start": "2026-03-27", "end": "2026-04-03"}
    section = configured(tmp_path, cut | {"timezone": zone}, kind)
    engine, query = section.backend(), CellQuery("x", Grid(Fraction(1), 0, 9))
    counts = {
        each.key: int(engine.answer(query, each).counts.sum())
        for each in section.source("s").batches(2**33)
    }
    assert sum(counts.values()) == len(text)
    if kind == "date":
        assert {key for key, count in counts.items() if count} == set(text)
        assert set(counts.values()) == {0, 1}
    else:
        changes = {BERLIN: ("2026-03-29", 23), "America/New_York": ("2026-03-29", 24)}
        key, hours = changes.get(zone, ("2026-03-29", 24))
        assert counts[key] == hours


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"every": "1h"}, "windows are whole days"),
        ({"start": "2026-01-01T06:00:00"}, "windows are whole days"),
        ({"timezone": "Europe/Berlinn"}, "did you mean 'Europe/Berlin'"),
    ],
)
def test_what_a_zone_cannot_cut_is_refused(
    tmp_path: Path, changed: dict[str, str], words: str
) -> None:
    """With the key's line, before anything is opened."""
    cut = {"column": "at", "every": "1d", "start": "2026-01-01", "timezone": BERLIN}
    with pytest.raises(ConfigurationError, match=words):
        configured(tmp_path, cut | changed, "timestamp")
