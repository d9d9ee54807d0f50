"""YAML is read as it is written, and the demo is a good configuration."""

from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from streamdp.config import json_schema, load
from streamdp.errors import ConfigurationError
from streamdp.kinds.quantiles.section import QuantilesSection
from streamdp.sections.document import parse
from streamdp.sections.schedules import Schedule, next_times

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12:30", "12:30"),
        ("010", "010"),
        ("yes", "yes"),
        ("2013-01-01", "2013-01-01"),
        ("1e-3", 0.001),
        ("'5'", "5"),
        ("true", True),
        ("~", None),
    ],
)
def test_plain_values_are_not_guessed(text: str, value: object) -> None:
    """What YAML 1.1 would turn into something else stays what was written."""
    assert parse(f"a: {text}", "f").value == {"a": value}


@pytest.mark.parametrize("text", ["a: " + "[" * 2000, "a: " + "{b: " * 2000, "a: " + "7" * 5000])
def test_what_has_no_end_is_refused(text: str) -> None:
    """Nesting that a parser cannot follow, and a number that Python does not read."""
    with pytest.raises(ConfigurationError, match=r"nested too deeply|has 5000 characters"):
        parse(text, "f")


def test_the_demo_loads_and_is_shipped() -> None:
    """One file: at the top of the project and in the package."""
    configuration = load(ROOT / "config.yaml", {})
    release = configuration.releases["air_time"]
    assert isinstance(release, QuantilesSection)
    assert release.quantiles == tuple(Fraction(j, 10) for j in range(1, 10))
    assert release.epsilon == Fraction(1, 10)
    assert configuration.store.path == ROOT / "streamdp.db"
    assert Path(configuration.sources["flights"].path).is_file()
    shipped = ROOT / "streamdp" / "demo" / "config.yaml"
    assert shipped.read_text() == (ROOT / "config.yaml").read_text()


def test_the_schema_knows_every_section() -> None:
    """Editors are told of all sections."""
    known = {
        "store",
        "privacy",
        "sources",
        "releases",
        "gates",
        "sinks",
        "log",
        "alerts",
        "backup",
        "reports",
        "web",
    }
    assert set(json_schema()["properties"]) == known


@pytest.mark.parametrize(
    ("cron", "first"),
    [
        ("0 6 * * *", "2024-01-01T06:00"),
        ("0 0 * * 0", "2024-01-07T00:00"),
        ("0 0 * * 7", "2024-01-07T00:00"),
        ("0 0 * * 2-4", "2024-01-02T00:00"),
        ("0 0 29 2 *", "2024-02-29T00:00"),
        ("*/20 * * * *", "2024-01-01T00:20"),
    ],
)
def test_cron_fires_when_cron_would(cron: str, first: str) -> None:
    """Sunday is 0 and 7; 1 January 2024 was a Monday."""
    after = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp())
    (found,) = next_times(Schedule(cron=cron), after, 1)
    assert datetime.fromtimestamp(found, UTC).strftime("%Y-%m-%dT%H:%M") == first


def test_intervals_do_not_depend_on_when_they_start() -> None:
    """A restart does not move the times of an interval."""
    schedule = Schedule(every="1h")  # type: ignore[arg-type]
    assert next_times(schedule, 1_700_000_000, 3) == next_times(schedule, 1_700_001_000, 3)
