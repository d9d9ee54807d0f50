"""Public features cost nothing where they explain nothing, and pay where they do."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.kinds.quantiles.truth import rank_errors
from streamdp.learning.averaging import SHARE, Averaging
from streamdp.learning.experts import ExpertMixture
from streamdp.learning.features import weekday
from streamdp.learning.filters import Filters
from streamdp.learning.opening import Opening
from streamdp.mechanisms.choice import CANDIDATES
from streamdp.mechanisms.simulation import PublicEntropy
from streamdp.mechanisms.tree import QuantileTree
from streamdp.priors.families import Cauchy
from streamdp.priors.shapes import shapes_from_guess
from streamdp.types import Batch, CellCounts, FloatArray, Grid, Json

TARGETS = tuple(Fraction(i, 10) for i in range(1, 10))
ROWS, GUESS, DAY = 900, (0.0, 200.0), 86_400
GRID = Grid(Fraction(1), -1_000_000, 1_000_000)


def quantiles(epsilon: str, form: str) -> Quantiles:
    """As the product makes it: experts that open under broad shapes of a form."""
    robust = (Cauchy(*GUESS),) * len(TARGETS)
    binary = QuantileTree(TARGETS, Fraction(epsilon), GRID)
    experts = ExpertMixture(binary, robust[0], 0.05, GUESS, ROWS)
    prior = CANDIDATES[form].prior(robust, shapes_from_guess(TARGETS, *GUESS))
    opening = Opening(experts, CANDIDATES[form].tree(TARGETS, binary.epsilon, GRID), prior)
    return Quantiles("x", TARGETS, binary.epsilon, GRID, experts, opening=opening)


LITTLE = quantiles("1/10", "tree of 4, shapes")
MUCH = quantiles("1/2", "joint, shapes")

Feature = Callable[[Batch], tuple[float, ...]]


def constant(batch: Batch) -> tuple[float, ...]:
    return (1.0,)


def weekend(batch: Batch) -> float:
    return float(sum(weekday(batch)[4:]))


def days(count: int, place: Callable[[Batch], float]) -> list[tuple[Batch, CellCounts]]:
    """Normal records of spread 100 around a place that is the batch's."""
    chance = np.random.default_rng(11)
    batches = [Batch("s", str(day), day * DAY, (day + 1) * DAY) for day in range(count)]
    records = [np.rint(chance.normal(place(each), 100.0, ROWS)) for each in batches]
    counted = [np.unique(each.astype(np.int64), return_counts=True) for each in records]
    return [(b, CellCounts(*each)) for b, each in zip(batches, counted, strict=True)]


def released(
    feature: Feature | None, stream: list[tuple[Batch, CellCounts]], kind: Quantiles = LITTLE
) -> tuple[FloatArray, Json]:
    """Rank errors of each day, shape (days, m), and the last state."""
    kind, entropy = replace(kind, features=feature), PublicEntropy("averaging")
    state, errors = kind.init(), []
    for batch, counts in stream:
        plan = kind.plan(state, batch)
        outcome = kind.draw(plan, counts, entropy)
        cells = np.array([round(float(row["value"] or 0)) for row in outcome.rows])
        errors.append(rank_errors(counts, TARGETS, cells))
        state = json.loads(json.dumps(kind.learn(state, plan, outcome)))
    return np.array(errors), state


@pytest.fixture(scope="module")
def alike() -> list[tuple[Batch, CellCounts]]:
    """Days that never move, under a guess that is twice too wide."""
    return days(60, lambda batch: 0.0)


@pytest.fixture(scope="module")
def unaided(alike: list[tuple[Batch, CellCounts]]) -> float:
    """Their mean largest error without features."""
    return float(released(None, alike)[0].max(axis=1).mean())


@pytest.mark.parametrize("feature", [constant, weekday])
def test_a_feature_that_explains_nothing_costs_nothing(
    feature: Feature, alike: list[tuple[Batch, CellCounts]], unaided: float
) -> None:
    """The largest error stays what it is without the feature; levels alone stay in the lead."""
    errors, state = released(feature, alike)
    assert errors.max(axis=1).mean() < 1.15 * unaided
    assert Averaging.from_json(state).lead() == 0
    assert Averaging.from_json(state).trust.min() >= SHARE / 2


def test_a_feature_that_explains_the_stream_is_trusted() -> None:
    """Weekends lie five spreads lower: who knows them leads, and the error is far smaller."""
    stream = days(70, lambda batch: -500.0 * weekend(batch))
    errors, state = released(weekday, stream)
    levels, _ = released(None, stream, replace(LITTLE, opening=None))
    assert Averaging.from_json(state).lead() == 1
    assert errors[20:].mean() < 0.75 * levels[20:].mean()


def test_a_guess_wrong_by_a_thousand_scales_is_found_with_features() -> None:
    """Broad shapes do not reach there, so they are left as soon as a release lies outside."""
    errors, _ = released(weekday, days(20, lambda batch: 1000.0 * GUESS[1]), MUCH)
    assert errors[10:].mean() < 0.05


def test_what_leaves_the_reach_of_broad_shapes_is_found() -> None:
    """Places leap, so broad shapes are drawn from, until all lies far from them."""
    places = np.random.default_rng(1).normal(0.0, 400.0, 30)
    places[15:] = 500.0 * GUESS[1]
    errors, _ = released(constant, days(30, lambda batch: places[int(batch.key)]), MUCH)
    assert errors[:15].mean() < 0.05
    assert errors[25:].mean() < 0.05


def test_a_state_of_filters_that_all_knew_the_features_is_read_on() -> None:
    """What was learned of coefficients stays; levels alone start from its levels."""
    experts = LITTLE.learner
    assert isinstance(experts, ExpertMixture)
    old = Filters.start(experts.targets, np.linspace(-100.0, 100.0, 9), 100.0, 0, 1.0)
    old = old.with_features(2)
    old = replace(old, releases=30, coefficients=old.coefficients + 3.0)
    known = experts.known(json.loads(json.dumps(old.to_json())), 2)
    assert (known.parts[1].coefficients == old.coefficients[:-1]).all()
    assert (known.parts[0].coefficients == old.coefficients[:, :, :1]).all()
    assert np.isfinite(known.forecast(np.array([1.0, 0.5, -0.5])).log_weights).all()


def test_without_features_the_state_is_that_of_the_filters_alone() -> None:
    """Nothing is kept, nor read, of features that are not there."""
    _, state = released(None, days(3, lambda batch: 0.0))
    filters = Filters.from_json(state)
    assert state.keys() - filters.to_json().keys() == {"point", "deviation", "opening"}


def test_a_state_with_features_survives_json_and_stays_small() -> None:
    """What is read back is what was written; twenty kilobytes at most for six features."""
    _, state = released(weekday, days(10, lambda batch: 0.0))
    again = Averaging.from_json(json.loads(json.dumps(state)))
    assert again.to_json() == {key: state[key] for key in again.to_json()}
    assert len(json.dumps(state)) < 24_000


@pytest.mark.parametrize("off", [1e9, 1e152, np.inf, np.nan])
def test_filters_that_ran_off_start_anew(off: float) -> None:
    """Coefficients that no grid holds are forgotten; those in bounds stay as they are."""
    experts = LITTLE.learner
    assert isinstance(experts, ExpertMixture)
    level = Filters.start(experts.targets, np.linspace(-100.0, 100.0, 9), 100.0, 0, 1.0)
    informed = level.without_last().with_features(2)
    informed.coefficients[1, 3, 2] = 50.0
    known = Averaging.even(level, informed)
    assert known.recovered(1e6) is known
    informed.coefficients[1, 3, 2] = off
    again = known.recovered(1e6).parts[1]
    assert (again.coefficients[:, :, 1:] == 0.0).all()
    assert again.drifts.max() < np.inf
