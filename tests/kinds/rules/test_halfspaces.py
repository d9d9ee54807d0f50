"""Halfspaces over features cut at public values: which records meet them, learned as experts."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdp.backends.duckdb.records import backend_of_records
from streamdp.config import load
from streamdp.errors import ConfigurationError
from streamdp.kinds.experts.kind import Experts
from streamdp.kinds.experts.losses import RuleLosses
from streamdp.kinds.rules.rules import Feature, Halfspaces, RuleErrors
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.types import TableCounts
from streamdp.wiring import release_kind
from tests.kinds.experts.worlds import BATCH

XS, YS = (Fraction(-1), Fraction(1, 2), Fraction(2)), (Fraction(0), Fraction(5))
WEIGHTS, THRESHOLDS = (Fraction(-1), Fraction(0), Fraction(3, 2)), (Fraction(-1), Fraction(1, 2))
HALFSPACES = Halfspaces(
    (Feature("x", "x", XS, (Fraction(1),)), Feature("y", "y", YS, WEIGHTS)), THRESHOLDS
)
NUMBERS = st.sampled_from([None, -3.0, -1.0, 0.0, 0.5, 1.9, 2.0, 7.0])


def counted_as(value: float, values: tuple[Fraction, ...]) -> Fraction:
    return max((each for each in values if each <= value), default=values[0])


def cell(value: float | None, values: tuple[Fraction, ...]) -> int:
    if value is None:
        return len(values) + 1
    return int(np.searchsorted([float(each) for each in values], value, side="right"))


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=12))
def test_records_meet_the_halfspaces_of_what_they_count_as(
    batch: list[tuple[float | None, float | None]],
) -> None:
    """Below the first value, on values and between them; nulls meet none."""
    counts = np.zeros((5, 4), dtype=np.int64)
    for x, y in batch:
        counts[cell(x, XS), cell(y, YS)] += 1
    known = [(x, y) for x, y in batch if x is not None and y is not None]
    expected = [
        sum(counted_as(x, XS) + w * counted_as(y, YS) >= t for x, y in known)
        for w, t in itertools.product(WEIGHTS, THRESHOLDS)
    ]
    assert HALFSPACES.over_matching(counts).tolist() == expected


def test_parameters_are_weights_that_vary_and_the_threshold() -> None:
    """In the order of all scores; the gate of a rule finds its place again."""
    assert [column.name for column in HALFSPACES.columns()] == ["weight_y", "at_least"]
    rows = [dict(each) for each in HALFSPACES.candidates()]
    assert rows[1] == {"weight_y": -1.0, "at_least": 0.5}
    errors = RuleErrors(HALFSPACES, "late")
    assert [errors.number(row) for row in rows] == list(range(6))


HEAD = """
store: {path: store.db}
privacy: {unit: trip, caps: {batch: 1, lifetime: 10}}
sources:
  trips: {path: trips.parquet, batches: {column: at, every: 1d, start: 2024-01-01}}
releases:
  line: {kind: experts, source: trips, epsilon: 1, expected_rows: 6, action: average, experts: BODY}
"""
BODY = (
    "{halfspaces: {features: {x: {from: 0, to: 4}, late_by: {sql: y / 2, from: 0, to: 4,"
    " weights: [-1, 1]}}, at_least: {from: -2, to: 2}}, label: late}"
)


def line(folder: Path, body: str = BODY) -> Experts:
    path = folder / "config.yaml"
    path.write_text(HEAD.replace("BODY", body))
    kind = release_kind(load(path), "line")
    assert isinstance(kind, Experts)
    return kind


def test_halfspaces_are_experts_at_the_price_of_thresholds(tmp_path: Path) -> None:
    """One record changes one integer by one, and losses are errors on the records of a batch."""
    kind = line(tmp_path)
    assert isinstance(kind.losses, RuleLosses)
    assert kind.noise().scale == Fraction(10, 9)
    exact = Experts(kind.losses, Fraction(10**6), 6)
    plan = exact.plan(exact.init(), BATCH)
    batch = {"x": [0, 1, 2, 3, 4, 2], "y": [0, 2, 4, 6, 0, 8], "late": [True] * 5 + [False]}
    backend = backend_of_records(batch, "x")
    backend.check(plan.query, BATCH)
    counts = backend.answer(plan.query, BATCH)
    assert isinstance(counts, TableCounts)
    drawn = exact.draw(plan, counts, PublicEntropy("line"))
    expected = [
        sum((x + w * y / 2 >= t) != late for x, y, late in zip(*batch.values(), strict=True)) / 6
        for w, t in itertools.product((-1, 1), range(-2, 3))
    ]
    assert [row["loss"] for row in drawn.rows] == pytest.approx(expected, abs=1e-3)


def test_the_average_of_experts_is_the_nearest_rule(tmp_path: Path) -> None:
    """Parameter by parameter; what has all weight is its own average."""
    rules = line(tmp_path).losses
    assert isinstance(rules, RuleLosses)
    for number, weights in enumerate(np.eye(10)):
        assert rules.average(weights) == number
    assert rules.average(np.array([0, 0, 0, 0, 0, 0.4, 0, 0, 0, 0.6])) == 7


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("[-1, 1]", "[1, 1]", "listed twice"),
        ("from: -2, to: 2", "from: 0, to: 900", "2 to 500"),
        ("x: {from: 0, to: 4}", "x: {from: 0, to: 900}", "cells"),
        ("y / 2", "sum(y)", "reads other records"),
        (BODY, "{losses: {a: x, b: y}}", "average needs rules"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, old: str, new: str, what: str) -> None:
    """With the reason, before anything is planned."""
    with pytest.raises(ConfigurationError) as refusal:
        line(tmp_path, BODY.replace(old, new))
    assert what in str(refusal.value)
