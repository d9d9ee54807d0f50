"""Forecasts of other jobs as experts: their numbers, their losses, and what is refused."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from streamdp.backends.duckdb.records import backend_of_records
from streamdp.config import load
from streamdp.errors import ConfigurationError
from streamdp.kinds.experts.forecasts import Forecast
from streamdp.kinds.experts.kind import Experts
from streamdp.kinds.grouped import Grouped
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.types import ReadsReleases, Row
from streamdp.wiring import release_kind
from tests.kinds.experts.worlds import BATCH

HEAD = """
store: {path: store.db}
privacy: {unit: trip, caps: {batch: 3, lifetime: 30}}
sources:
  trips: {path: trips.parquet, batches: {column: at, every: 1d, start: 2024-01-01}}
releases:
  median: {kind: quantiles, source: trips, epsilon: 0.5, column: x, quantiles: [0.5],
           resolution: 1, bounds: [0, 99]}
  best: {kind: experts, source: trips, epsilon: 0.5, expected_rows: 3, experts: BODY EXTRA}
"""
MEDIAN = "job: median, row: {quantile: 0.5}"
BODY = (
    "{forecasts: {raw: {MEDIAN}, smooth: {MEDIAN, column: smoothed}},"
    " loss: 'abs(x - {value}) / 10'}"
)
ROWS: tuple[Row, ...] = (
    {"quantile": 0.1, "value": 1.0},
    {"quantile": 0.5, "value": -5.0, "smoothed": 30.25},
)


def made(folder: Path, body: str = BODY, extra: str = "") -> Experts:
    path = folder / "config.yaml"
    text = HEAD.replace("BODY", body).replace("MEDIAN", MEDIAN).replace("EXTRA", extra)
    path.write_text(text)
    kind = release_kind(load(path), "best")
    assert isinstance(kind, Experts)
    return kind


def test_a_forecast_is_a_number_of_a_row() -> None:
    """Of the row that is named; of none where there is no number."""
    named = Forecast("median", (("quantile", 0.5),), "value")
    assert named.of(ROWS) == -5.0
    assert named.of(ROWS[:1]) is None
    assert Forecast("median", (), "value").of(ROWS) == 1.0
    assert Forecast("median", (), "smoothed").of(ROWS) == 30.25
    for odd in (float("nan"), float("inf"), "text", None):
        assert Forecast("median", (), "value").of([{"value": odd}]) is None


def test_losses_are_those_of_the_forecasts_and_cost_the_same(tmp_path: Path) -> None:
    """Of three records; what exceeds one counts as one; without a forecast a half."""
    kind = replace(made(tmp_path), epsilon=Fraction(10**6))
    assert isinstance(kind, ReadsReleases)
    assert kind.jobs == ("median",)
    told = kind.informed({"median": ROWS})
    for each, expected, numbers in (
        (kind, [0.5, 0.5], [None, None]),
        (told, [(0.5 + 1 + 1) / 3, (1 + 0.225 + 1) / 3], [-5.0, 30.25]),
    ):
        plan = each.plan(kind.init(), BATCH)
        backend = backend_of_records({"x": [0.0, 28.0, 99.0]}, "x")
        backend.check(plan.query, BATCH)
        drawn = kind.draw(plan, backend.answer(plan.query, BATCH), PublicEntropy("losses"))
        assert [row["loss"] for row in drawn.rows] == pytest.approx(expected, abs=0.004)
        assert [row["forecast"] for row in drawn.rows] == numbers
    assert told.plan(kind.init(), BATCH).event == kind.plan(kind.init(), BATCH).event
    assert told.columns == kind.columns


@pytest.mark.parametrize(
    ("body", "extra", "what"),
    [
        (BODY.replace("{value}", "3"), "", "write {value}"),
        (BODY.replace("MEDIAN", "job: mean", 1), "", "no other release"),
        (BODY.replace("MEDIAN", "job: best", 1), "", "no other release"),
        (BODY.replace("smoothed", "smooth"), "", "no column 'smooth'"),
        (BODY.replace("MEDIAN", "job: median, row: {x: 1}"), "", "no column 'x'"),
        (BODY.replace("abs(x", "sum(x"), "", "reads other records"),
        (BODY, f", by: [city], groups: [{', '.join(f'g{n}' for n in range(251))}]", "too many"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, body: str, extra: str, what: str) -> None:
    """With the reason, before anything is planned."""
    with pytest.raises(ConfigurationError) as refusal:
        made(tmp_path, body, extra)
    assert what in str(refusal.value)


BY_CITY = """
store: {path: store.db}
privacy: {unit: trip, caps: {batch: 3, lifetime: 30}}
sources:
  trips: {path: trips.parquet, batches: {column: at, every: 1d, start: 2024-01-01}}
releases:
  median: {kind: quantiles, source: trips, epsilon: 0.5, column: x, quantiles: [0.5],
           resolution: 1, bounds: [0, 99], by: [city], groups: [a, b]}
  mean: {kind: statistics, source: trips, epsilon: 0.5,
         measures: {m: {mean: x, resolution: 1, bounds: [0, 99]}}}
  best: {kind: experts, source: trips, epsilon: 0.5, expected_rows: 3, by: [city], groups: [a, b],
         experts: {forecasts: {own: {job: median, row: {quantile: 0.5}}, all: {job: mean}},
                   loss: 'abs(x - {value}) / 10'}}
"""


def by_city(folder: Path) -> Grouped:
    """A forecast by city and one of all, judged by city, at a price with next to no noise."""
    path = folder / "config.yaml"
    path.write_text(BY_CITY)
    kind = release_kind(load(path), "best")
    assert isinstance(kind, Grouped)
    assert isinstance(kind.of, Experts)
    return replace(kind, of=replace(kind.of, epsilon=Fraction(10**6)))


def test_each_group_is_judged_by_its_own_forecasts_from_one_scan(tmp_path: Path) -> None:
    """A forecast of a release by groups is that of the group; one of all records is of all."""
    kind = by_city(tmp_path)
    median: tuple[Row, ...] = tuple(
        {"city": city, "quantile": 0.5, "value": value} for city, value in (("a", 3.0), ("b", 5.0))
    )
    told = kind.informed({"median": median, "mean": ({"measure": "m", "value": 9.0},)})
    plan = told.plan(kind.init(), BATCH)
    backend = backend_of_records({"x": [1.0, 4.0, 9.0], "city": ["a", "b", "b"]}, "x")
    backend.check(plan.query, BATCH)
    drawn = told.draw(plan, backend.answer(plan.query, BATCH), PublicEntropy("groups"))
    rows = told.publish(told.learn(kind.init(), plan, drawn), drawn).rows
    named = [(row["city"], row["action"], row["forecast"]) for row in rows]
    assert named == [("a", "own", 3.0), ("a", "all", 9.0), ("b", "own", 5.0), ("b", "all", 9.0)]
    of_records = [[0.2], [0.8], [0.1, 0.4], [0.5, 0.0]]
    expected = [0.5 + sum(loss - 0.5 for loss in each) / 3 for each in of_records]
    assert [row["loss"] for row in rows] == pytest.approx(expected, abs=1e-3)
    assert plan.event == kind.plan(kind.init(), BATCH).event


def test_groups_that_are_told_the_same_ask_once(tmp_path: Path) -> None:
    """Four losses where forecasts differ, two where none is known yet."""
    kind = by_city(tmp_path)
    rows: tuple[Row, ...] = ({"city": "a", "quantile": 0.5, "value": 3.0},)
    counts = [
        len(each.plan(kind.init(), BATCH).query.terms)  # type: ignore[union-attr]
        for each in (kind, kind.informed({}), kind.informed({"median": rows}))
    ]
    assert counts == [2, 2, 4]
