"""The default learner over whole streams: any batch is released, and streams are followed."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from streamdp.learning.learner import CountedPlan, Fixed, Observation
from streamdp.learning.mixture import averages
from streamdp.learning.mixture.memory import Memory
from streamdp.priors.shapes import Cauchy
from streamdp.simulation.comparison import chance
from streamdp.types import HARDLY_ANY, CellCounts, Grid
from tests.learning.mixture.worlds import (
    BATCH,
    DECILES,
    ROWS,
    WIDE,
    batch,
    cells_of,
    errors,
    kind,
    run,
    truth,
)

LISTS = {
    "one": (Fraction(1, 2),),
    "three": (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)),
    "29": tuple(Fraction(index, 30) for index in range(1, 30)),
    "tail": (Fraction(9, 10), Fraction(99, 100), Fraction(999, 1000)),
}
EMPTY = CellCounts(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
GRIDS = {
    "wide": WIDE,
    "one cell": Grid(Fraction(1), 3, 3),
    "two cells": Grid(Fraction(1), 0, 1),
    "far from the guess": Grid(Fraction(1), 10**8, 10**8 + 50),
}


def normal(
    count: int, location: float = 0.0, scale: float = 1.0, seed: int = 1
) -> list[CellCounts]:
    """Batches that stand still."""
    random = np.random.default_rng(seed)
    return [batch(random.normal(location, scale, ROWS)) for _ in range(count)]


@pytest.mark.parametrize("rows", [10, 500])
def test_the_first_release_is_that_of_a_learner_that_never_learns(rows: int) -> None:
    """To the bit, with the same chance."""
    (counts,) = normal(1, 3.0)
    made = kind(rows=rows)
    never = replace(made, learner=Fixed((Cauchy(0.0, 1.0),) * len(DECILES)))
    drawn = [one.draw(one.plan(one.init(), BATCH), counts, chance(5)) for one in (made, never)]
    values = [[row["value"] for row in outcome.rows] for outcome in drawn]
    assert values[0] == values[1]
    assert {row["origin"] for row in drawn[0].rows} == {"measured"}


@pytest.mark.thinned(2)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(10**4)])
@pytest.mark.parametrize("grid", GRIDS)
def test_any_batch_is_released(grid: str, epsilon: Fraction) -> None:
    """Sorted values in their intervals, in the grid; a state that goes on, and stays JSON."""
    made = kind(LISTS["tail"], epsilon, GRIDS[grid], rows=100)
    low, high = made.grid.lower, made.grid.upper
    ends = [
        CellCounts(np.array([each]), np.array([count]))
        for each, count in ((low, 100), (high, 1), (low, 2**40), ((low + high) // 2, 100))
    ]
    stream = [EMPTY, *ends, EMPTY]
    released, state = run(made, stream)
    for rows in released:
        values, lower, upper = (cells_of(made, rows, name) for name in ("value", "lower", "upper"))
        smoothed = cells_of(made, rows, "smoothed")
        assert (np.diff(values) >= 0).all()
        assert (np.diff(smoothed) >= 0).all()
        assert (lower <= values).all()
        assert (values <= upper).all()
        assert min(lower.min(), smoothed.min()) >= low
        assert max(upper.max(), smoothed.max()) <= high
    told = [each for each in stream[1:] if each.counts.sum() > 1]
    lasting = len(stream), 1 + len(told)
    assert state["releases"] in lasting, "a learner that was lost began anew"
    json.dumps(state, allow_nan=False)


@pytest.mark.parametrize("targets", LISTS)
def test_a_stream_that_stands_still_is_known_from_few_releases(targets: str) -> None:
    """Each later release errs about as the noise of counts does; its intervals hold the truth."""
    made, stream = kind(LISTS[targets], Fraction(1, 2)), normal(8)
    released, _ = run(made, stream)
    later = list(zip(released, stream, strict=True))[4:]
    off = np.mean([errors(made, rows, counts) for rows, counts in later])
    assert off < 6.0 / (0.5 * ROWS)
    held = [
        (cells_of(made, rows, "lower") <= truth(made, counts))
        & (truth(made, counts) <= cells_of(made, rows, "upper"))
        for rows, counts in later
    ]
    assert np.mean(held) >= 0.75


@pytest.mark.parametrize("scale", [1e2, 1e4])
def test_a_wrong_guess_is_recovered_from(scale: float) -> None:
    """Batches lie so many guessed scales away; the eighth release knows where."""
    made, stream = kind(), normal(8, scale)
    released, _ = run(made, stream)
    assert errors(made, released[-1], stream[-1]).mean() < 0.05


@pytest.mark.parametrize("scale", [1e-2, 1e3])
def test_a_wrong_scale_is_recovered_from(scale: float) -> None:
    """Batches are so many times as wide as guessed."""
    made, stream = kind(), normal(7, 0.0, scale)
    released, _ = run(made, stream)
    assert errors(made, released[-1], stream[-1]).mean() < 0.05


@pytest.mark.parametrize("shift", [5.0, 1e4])
def test_a_shift_of_level_is_followed(shift: float) -> None:
    """After five spreads at once, after ten thousand within nine releases."""
    made, stream = kind(), [*normal(5), *normal(9 if shift > 100.0 else 3, shift)]
    released, _ = run(made, stream)
    assert errors(made, released[-1], stream[-1]).mean() < 0.05


def test_equal_records_are_published_exactly() -> None:
    """Where most records are one value, quantiles within them are it, in all releases soon."""
    random = np.random.default_rng(2)
    stream = [
        batch(np.where(random.random(ROWS) < 0.6, 7.0, random.normal(7.0, 3.0, ROWS)))
        for _ in range(7)
    ]
    made = kind(epsilon=Fraction(2))
    released, _ = run(made, stream)
    for rows in released[4:]:
        assert [row["value"] for row in rows[3:6]] == [7.0] * 3


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**5), Fraction(1, 2)])
def test_what_is_learned_stays_small_and_survives_json(epsilon: Fraction) -> None:
    """Four kilobytes, and the same plan after it was read back."""
    made = kind(epsilon=epsilon)
    _, state = run(made, normal(12))
    text = json.dumps(state, allow_nan=False)
    assert len(text) <= 4_000
    cuts = []
    for each in (state, json.loads(text)):
        release_plan = made.plan(each, BATCH).mechanism.release_plan
        assert isinstance(release_plan, CountedPlan)
        cuts.append(list(release_plan.next_cuts(())))
    assert cuts[0] == cuts[1]


def test_a_state_that_is_not_finite_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A learner that overflows is no worse than one that has seen nothing."""
    made = kind()
    _, state = run(made, normal(2))
    release_plan = made.plan(state, BATCH).mechanism.release_plan
    monkeypatch.setattr(Memory, "finite", lambda memory: False)
    counted = release_plan.histograms.draw(normal(1)[0], release_plan.next_cuts, chance(1))
    assert (
        made.learner.observe(state, Observation((), release_plan=release_plan, counted=counted))
        == made.init()
    )


def test_the_robust_prior_keeps_its_weight_where_all_are_drawn() -> None:
    """Whatever was released, each quantile's prior has 0.05 of the robust one everywhere."""
    made = kind()
    _, state = run(replace(made, learner=made.learner.without_counts()), normal(4))
    edges = np.linspace(-1e4, 1e4, 101)
    floor = Cauchy(0.0, 1.0).log_mass(edges[:-1], edges[1:]) + np.log(0.05) - 1e-9
    priors = made.believed(state).robust
    near = [float(prior.log_mass(np.array([-3.0]), np.array([3.0]))[0]) for prior in priors]
    assert min(near) > np.log(0.15)
    assert all((prior.log_mass(edges[:-1], edges[1:]) >= floor).all() for prior in priors)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1)])
def test_an_empty_batch_says_nothing_and_changes_nothing(epsilon: Fraction) -> None:
    """Ends are those of the grid, values those of before, and the next release is as ever."""
    made = kind(epsilon=epsilon)
    usual = normal(16)
    before, state = run(made, usual[:14])
    (empty,), after = run(made, [EMPTY], state, seed=4)
    (nextday,), _ = run(made, usual[15:], after, seed=5)
    for row, last in zip(empty, before[-1], strict=True):
        assert row["flag"] == HARDLY_ANY
        assert row["records_lower"] == 0.0
        assert (row["lower"], row["upper"]) == (-1e6, 1e6)
        for name in ("value", "smoothed"):
            assert abs(float(row[name] or 0) - float(last[name] or 0)) < 0.5
        assert (row["smoothed_lower"], row["smoothed_upper"]) == (-1e6, 1e6)
    assert errors(made, nextday, usual[15]).mean() < 0.05
    for row in nextday:
        assert row["flag"] is None
        assert float(row["records_lower"] or 0) <= ROWS <= float(row["records_upper"] or 0)
        assert float(row["upper"] or 0) - float(row["lower"] or 0) < 3.0


def test_a_batch_of_few_records_is_a_small_sample() -> None:
    """Forty records of five hundred are within their interval, and move what is learned little."""
    made = kind(epsilon=Fraction(2))
    usual = normal(13)
    few = batch(np.random.default_rng(3).normal(0.0, 1.0, 40))
    _, state = run(made, usual[:12])
    (small,), after = run(made, [few], state, seed=4)
    (nextday,), _ = run(made, usual[12:], after, seed=5)
    assert all(row["flag"] is None for row in small)
    records = [cells_of(made, small[:1], f"records_{end}")[0] / 100 for end in ("lower", "upper")]
    assert records[0] <= 40 <= records[1]
    ends = [cells_of(made, small, name) for name in ("lower", "upper")]
    own = truth(made, few)
    assert ((ends[0] <= own) & (own <= ends[1])).mean() > 0.75
    assert errors(made, nextday, usual[12]).mean() < 0.04


@pytest.mark.long
def test_a_tail_that_nothing_measures_does_not_run_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of records that end in a pile the .99 quantile stays near it; by itself it goes far out."""
    targets = (Fraction(9, 10), Fraction(19, 20), Fraction(99, 100))
    made = kind(targets, rows=100, guess=(0.0, 3.0))
    random = np.random.default_rng(11)
    batches = [batch(random.gamma(2.0, 1.0, 100).clip(0.0, 3.0)) for _ in range(60)]

    def ninth_in_ten() -> float:
        rows = [row for seed in range(6) for row in run(made, batches, seed=seed)[0][-20:]]
        return float(np.quantile([float(row[-1]["value"] or 0) for row in rows], 0.9))

    assert ninth_in_ten() < 9.0
    monkeypatch.setattr(averages, "PULL", 0.0)
    assert ninth_in_ten() > 15.0
