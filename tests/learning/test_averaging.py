"""Public features cost nothing where they explain nothing, and pay where they do."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

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
from streamdp.releases.quantiles import Quantiles
from streamdp.simulation.truth import rank_errors
from streamdp.types import Batch, CellCounts, FloatArray, Grid, Json

TARGETS = tuple(Fraction(i, 10) for i in range(1, 10))
EPSILON, ROWS, GUESS, DAY = Fraction(1, 10), 900, (0.0, 200.0), 86_400
GRID = Grid(Fraction(1), -1_000_000, 1_000_000)
FORM = CANDIDATES["tree of 4, shapes"]
ROBUST = (Cauchy(*GUESS),) * len(TARGETS)
EXPERTS = ExpertMixture(QuantileTree(TARGETS, EPSILON, GRID), ROBUST[0], 0.05, GUESS, ROWS)
OPENING = Opening(
    EXPERTS,
    FORM.tree(TARGETS, EPSILON, GRID),
    FORM.prior(ROBUST, shapes_from_guess(TARGETS, *GUESS)),
)
LEVELS = Quantiles("x", TARGETS, EPSILON, GRID, EXPERTS, opening=OPENING)

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
    feature: Feature | None, stream: list[tuple[Batch, CellCounts]]
) -> tuple[FloatArray, Json]:
    """Rank errors of each day, shape (days, m), and the last state."""
    kind, entropy = replace(LEVELS, features=feature), PublicEntropy("averaging")
    state, errors = kind.init(), []
    for batch, counts in stream:
        plan = kind.plan(state, batch)
        outcome = kind.draw(plan, counts, entropy)
        cells = np.array([round(float(row["value"] or 0)) for row in outcome.rows])
        errors.append(rank_errors(counts, TARGETS, cells))
        state = json.loads(json.dumps(kind.learn(state, plan, outcome)))
    return np.array(errors), state


@pytest.mark.parametrize("feature", [constant, weekday])
def test_a_feature_that_explains_nothing_costs_nothing(feature: Feature) -> None:
    """Days are alike and the guess is twice too wide: errors are those without the feature."""
    stream = days(60, lambda batch: 0.0)
    (with_it, state), (without, _) = released(feature, stream), released(None, stream)
    assert with_it.max(axis=1).mean() < 1.1 * without.max(axis=1).mean()
    assert Averaging.from_json(state).lead() == 0


def test_a_feature_that_explains_the_stream_is_trusted() -> None:
    """Weekends lie five spreads lower: whoever knows them leads, and errs less."""
    stream = days(60, lambda batch: -500.0 * weekend(batch))
    (with_it, state), (without, _) = released(weekday, stream), released(None, stream)
    assert with_it[20:].mean() < 0.9 * without[20:].mean()
    assert Averaging.from_json(state).trust[1] > 0.9


def test_a_guess_wrong_by_a_thousand_scales_is_found_with_features() -> None:
    """Broad shapes do not reach there, so they are not drawn from."""
    errors, _ = released(weekday, days(24, lambda batch: 1000.0 * GUESS[1]))
    assert errors[10:].mean() < 0.1


def test_what_leaves_the_reach_of_the_shapes_is_found() -> None:
    """Places leap, so broad shapes are drawn from, until all lies far from them."""
    chance = np.random.default_rng(1).normal(0.0, 400.0, 40)
    far = 500.0 * GUESS[1]
    errors, _ = released(constant, days(40, lambda b: chance[int(b.key)] + far * (int(b.key) > 17)))
    assert errors[:17].mean() < 0.1
    assert errors[28:].mean() < 0.2


def test_trust_returns() -> None:
    """However bad a part was, it keeps a share of the weight."""
    _, state = released(weekday, days(40, lambda batch: 0.0))
    trust = Averaging.from_json(state).trust
    assert trust.min() >= SHARE / 2
    assert trust.sum() == pytest.approx(1.0)


def test_a_state_of_filters_that_all_knew_the_features_is_read_on() -> None:
    """What was learned of coefficients stays; levels alone start from its levels."""
    old = Filters.start(EXPERTS.targets, np.linspace(-100.0, 100.0, 9), 100.0, 2, 1.0)
    old = replace(old, releases=30, coefficients=old.coefficients + 3.0)
    known = EXPERTS.known(json.loads(json.dumps(old.to_json())), 2)
    assert (known.parts[1].coefficients == old.coefficients).all()
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
