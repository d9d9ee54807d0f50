"""Forecasts of other jobs as experts: their numbers, their losses, and what is refused."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from streamdp.config import load
from streamdp.errors import ConfigurationError
from streamdp.kinds.experts.forecasts import Forecast
from streamdp.kinds.experts.kind import Experts
from streamdp.mechanisms.quantile_tree.simulation import PublicEntropy
from streamdp.types import ReadsReleases, Row
from streamdp.wiring import records, release_kind
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
        backend = records({"x": [0.0, 28.0, 99.0]}, "x")
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
        (BODY, ", by: [city], groups: [a, b]", "whole batch"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, body: str, extra: str, what: str) -> None:
    """With the reason, before anything is planned."""
    with pytest.raises(ConfigurationError) as refusal:
        made(tmp_path, body, extra)
    assert what in str(refusal.value)
