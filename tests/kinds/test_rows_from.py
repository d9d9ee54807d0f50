"""A count's releases stand in for the expected rows of another job, for nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from streamdp import wiring
from streamdp.cli import cli
from streamdp.config import load
from streamdp.errors import ConfigurationError
from streamdp.kinds.configured import RowsFromJob
from streamdp.log import close
from streamdp.types import Batch, Json, Row

CONFIG = """
store: {path: store.db}
privacy: {unit: flight, caps: {batch: 3, lifetime: 90}}
sources:
  trips: {path: "demo:flights.parquet",
          batches: {column: date, every: 1d, start: 2013-01-01, end: 2013-01-05}}
releases:
  traffic: {kind: statistics, source: trips, epsilon: 1,
            measures: {n: count, late: {count: {sql: departure_delay > 9}}}}
  long: {kind: quantiles, source: trips, column: air_time, quantiles: [0.5], resolution: 1,
         bounds: [0, 1000], guess: {location: 120, scale: 60}, expected_rows: 20000, epsilon: 0.1,
         rows_from: {job: traffic, measure: n}}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    yield tmp_path
    close()


def rows(smoothed: float, lower: float, **group: str) -> tuple[Row, ...]:
    """A released count."""
    return ({**group, "measure": "n", "smoothed": smoothed, "smoothed_lower": lower},)


def said(*arguments: str) -> list[Json]:
    result = CliRunner().invoke(cli, [*arguments, "--json"])
    assert result.exit_code == 0, (result.output, result.exception)
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_intervals_and_plans_follow_what_was_counted(home: Path) -> None:
    """Twenty times too many expected: after the first day, intervals are as wide as they should."""
    (before,) = (row for row in said("plan") if row.get("job") == "long")
    ran = CliRunner().invoke(cli, ["run", "--once"])
    assert ran.exit_code == 0, (ran.output, ran.exception)
    widths = [
        release["rows"][0]["upper"] - release["rows"][0]["lower"]
        for release in sorted(said("releases", "long"), key=lambda each: str(each["batch"]))
    ]
    assert min(widths[1:]) > 3 * widths[0]
    assert {release["epsilon"] for release in said("releases", "long")} == {0.1}
    (after,) = (row for row in said("plan") if row.get("job") == "long")
    assert after["rank_error_95"] > 3 * before["rank_error_95"]


def test_a_kind_expects_what_is_known_and_costs_the_same(home: Path) -> None:
    """Two digits of the smoothed count; nothing of one that noise hides, or that is not there."""
    configuration = load(home / "config.yaml")
    kind = wiring.release_kind(configuration, "long")
    assert isinstance(kind, RowsFromJob)
    batch = Batch("trips", "2013-01-03", 1_357_171_200, 1_357_257_600)
    late: Row = {"measure": "late", "smoothed": 50.0, "smoothed_lower": 45.0}
    cases: list[tuple[dict[str, tuple[Row, ...]], int]] = [
        ({}, 20_000),
        ({"traffic": rows(914.0, 890.0)}, 910),
        ({"traffic": rows(914.0, 100.0)}, 20_000),
        ({"traffic": rows(-3.0, 0.0)}, 20_000),
        ({"traffic": (late,)}, 20_000),
    ]
    for past, expected in cases:
        told = kind.informed(past)
        assert told.expected_rows == expected  # type: ignore[attr-defined]
        assert told.signature() == kind.signature()
        plans = [each.plan(each.init(), batch) for each in (kind, told)]
        events = [{**plan.event, "prior": "", "drawn": 0} for plan in plans]
        assert events[0] == events[1]
        assert plans[0].query == plans[1].query


def test_each_group_expects_its_own_count(home: Path) -> None:
    """Where both jobs have the same groups."""
    text = CONFIG.replace("traffic: {", "traffic: {by: carrier, groups: [AA, UA], ")
    (home / "config.yaml").write_text(text.replace("long: {", "long: {by: carrier, groups: [UA], "))
    kind = wiring.release_kind(load(home / "config.yaml"), "long")
    assert isinstance(kind, RowsFromJob)
    past = (*rows(90.0, 80.0, carrier="AA"), *rows(162.0, 150.0, carrier="UA"))
    told = kind.informed({"traffic": past})
    assert told._of(("UA",)).expected_rows == 160  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("job: traffic", "job: trafic", "no release that counts"),
        ("job: traffic", "job: long", "no release that counts"),
        ("measure: n", "measure: late", "does not count all records"),
        ("measure: n", "measure: m", "does not count all records"),
        ("column: air_time", "column: air_time, where: carrier = 'AA'", "counts other records"),
        ("expected_rows: 20000, ", "", "needs expected_rows"),
        (
            "traffic: {",
            "traffic: {rows_from: {job: long, measure: n}, expected_rows: 3, ",
            "take no",
        ),
    ],
)
def test_a_count_of_something_else_is_refused(home: Path, old: str, new: str, words: str) -> None:
    """At its line, before anything runs."""
    (home / "config.yaml").write_text(CONFIG.replace(old, new, 1))
    with pytest.raises(ConfigurationError, match=words):
        load(home / "config.yaml")
