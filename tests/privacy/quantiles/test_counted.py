"""Releases that count records and infer quantiles, enumerated with all that they leave behind.

A release is its rows, the measurements that are kept of it, and the state after it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from streamdp.kinds.quantiles.kind import QuantilePlan, Quantiles
from streamdp.kinds.quantiles.section import QuantilesSection
from streamdp.kinds.quantiles.spec import build
from streamdp.kinds.spec import BuildContext
from streamdp.learning.learner import CountedPlan
from streamdp.learning.mixture.mixture import BayesianMixture
from streamdp.mechanisms.histograms import Histogram, Histograms, exact_counts
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import Cauchy
from streamdp.privacy.events import epsilon_of, rho_of
from streamdp.privacy.price import Price
from streamdp.simulation.comparison import chance
from streamdp.types import Batch, CellCounts, Entropy, Json, Measurement, Outcome, Plan
from tests.privacy.noise.histograms import noisy_law
from tests.privacy.quantiles.neighbours import counts_of, unit_grid

EPSILON = Fraction(1)
CELLS = 4
TARGETS = tuple(Fraction(index, 5) for index in range(1, 5))
BATCH = Batch("s", "2024-03-01")
SURE = 1e-6
"""Robust weight of a learner that is nearly sure of itself: the worst for privacy."""

NOISE = range(2)
"""Of each count, that is followed: a record more is within it."""

Records = tuple[int, ...]

NEIGHBOURS: tuple[tuple[Records, Records], ...] = (
    *(((), (cell,)) for cell in range(CELLS)),
    ((0, 3), (0, 0, 3)),
    ((1, 1), (1, 1, 3)),
)

APART, TOGETHER = (0, 0, 1, 1, 2, 2, 3, 3), (2,) * 8
"""Records of past batches, ten times each: of many cuts, and of one or two."""


def kind(robust_weight: float = SURE, *, made: Callable[..., Quantiles] = Quantiles) -> Quantiles:
    """Four quantiles, over four cells; a first release of its own tree."""
    grid, robust = unit_grid(CELLS), Cauchy(1.0, 1.0)
    tree = QuantileTree(TARGETS, EPSILON, grid)
    first = replace(tree, branching=4), JointPrior((robust,) * len(TARGETS))
    counts = (Histograms(Price(EPSILON), grid),)
    learner = BayesianMixture(tree, robust, robust_weight, (1.0, 1.0), 3, first, counts)
    return made("x", TARGETS, EPSILON, grid, learner, expected_rows=3)


def learned(made: Quantiles, records: Records, releases: int) -> Json:
    """The state after releases of batches that were all alike."""
    state, entropy = made.init(), chance(3)
    for _ in range(releases):
        plan = made.plan(state, BATCH)
        state = made.learn(state, plan, made.draw(plan, counts_of(records * 10), entropy))
    return state


def whole(made: Quantiles, state: Json, plan: Plan, records: Records) -> dict[str, float]:
    """Probability of rows, measurements and next state, over the noise that is followed."""
    statistic = counts_of(records)

    def draw(entropy: Entropy) -> str:
        outcome = made.draw(plan, statistic, entropy)
        told = [
            [each.terms.to_json(), each.cells, each.numbers, each.given]
            for each in made.measured(plan, outcome)
        ]
        rows = [dict(row) for row in outcome.rows]
        return json.dumps([rows, told, made.learn(state, plan, outcome)])

    return noisy_law(draw, NOISE)


def largest_loss(made: Quantiles, state: Json) -> float:
    """Over neighbours, both ways; infinite where what one can release the other never does.

    Of noise that is followed, counts of both neighbours meet; where no outcome is in common,
    something else than counts tells them apart.
    """
    plan = made.plan(state, BATCH)
    worst = 0.0
    laws = {each: whole(made, state, plan, each) for pair in NEIGHBOURS for each in pair}
    for pair in NEIGHBOURS:
        one, other = (laws[each] for each in pair)
        ratios = [abs(math.log(one[seen] / other[seen])) for seen in one.keys() & other.keys()]
        worst = max(worst, max(ratios, default=math.inf))
    return worst


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("records", "releases"), [(APART, 3), (TOGETHER, 1), (TOGETHER, 6)])
def test_what_is_counted_and_inferred_loses_no_more_than_epsilon(
    records: Records, releases: int
) -> None:
    """From beliefs that are nearly sure too; and the whole price is reached."""
    made = kind()
    state = learned(made, records, releases)
    plan = made.plan(state, BATCH)
    assert isinstance(plan.mechanism.release_plan, CountedPlan)
    assert epsilon_of(plan.event) == EPSILON
    assert 0.99 <= largest_loss(made, state) <= EPSILON + 1e-9


def test_cuts_follow_from_the_state_and_not_from_the_batch() -> None:
    """Other releases before, other cuts; whatever the records of the batch, the planned ones."""
    made = kind()
    cuts: list[tuple[int, ...]] = []
    for past in (APART, TOGETHER):
        plan = made.plan(learned(made, past, 12), BATCH)
        drawn = {
            made.draw(plan, counts_of(records), chance(seed)).auxiliary[0].cuts
            for seed, records in enumerate(((), (0,) * 50, (3,) * 50, (0, 1, 2, 3)))
        }
        assert len(drawn) == 1
        cuts += drawn
    assert len(set(cuts)) == 2


def _with_cuts(plan: Plan, cut: Callable[[], Iterable[int]]) -> Plan:
    mechanism: QuantilePlan = plan.mechanism
    assert isinstance(mechanism.release_plan, CountedPlan)
    release_plan = replace(mechanism.release_plan, next_cuts=lambda stages: cut())
    return replace(plan, mechanism=replace(mechanism, release_plan=release_plan))


class CutAtTheRecords(Quantiles):
    """A mistake: cuts lie at the batch's own quantiles."""

    def draw(self, plan: Plan, statistic: CellCounts, entropy: Entropy) -> Outcome:
        middle = [int(cell) for cell in statistic.cells[:1]]
        return Quantiles.draw(self, _with_cuts(plan, lambda: middle), statistic, entropy)


class DrawnWhereFew(Quantiles):
    """A mistake: a batch of few records is told as it is."""

    def draw(self, plan: Plan, statistic: CellCounts, entropy: Entropy) -> Outcome:
        outcome = Quantiles.draw(self, plan, statistic, entropy)
        few = bool(statistic.counts.sum() < 1)
        return Outcome(tuple({**row, "few": few} for row in outcome.rows), outcome.auxiliary)


class ReadWithTheRecords(Quantiles):
    """A mistake: the last quantile is that of the batch."""

    def draw(self, plan: Plan, statistic: CellCounts, entropy: Entropy) -> Outcome:
        outcome = Quantiles.draw(self, plan, statistic, entropy)
        mine = float(np.repeat(statistic.cells, statistic.counts).sum() % CELLS)
        rows = (*outcome.rows[:-1], {**outcome.rows[-1], "value": mine})
        return Outcome(rows, outcome.auxiliary)


class CountedTwice(tuple[Histogram, ...]):
    """Noisy counts, and how many records there are."""

    exactly: int


class KeepsTheTotal(Quantiles):
    """A mistake: the number of records without noise is kept beside the noisy counts."""

    def draw(self, plan: Plan, statistic: CellCounts, entropy: Entropy) -> Outcome:
        outcome = Quantiles.draw(self, plan, statistic, entropy)
        told = CountedTwice(outcome.auxiliary)
        told.exactly = int(statistic.counts.sum())
        return Outcome(outcome.rows, told)

    def measured(self, plan: Plan, outcome: Outcome) -> tuple[Measurement, ...]:
        first, *others = Quantiles.measured(self, plan, outcome)
        return (first, *others, Measurement(first.terms, (), (outcome.auxiliary.exactly,)))


class LearnsExactly(Quantiles):
    """A mistake: rows follow from noisy counts, and the learner is told the exact ones."""

    def draw(self, plan: Plan, statistic: CellCounts, entropy: Entropy) -> Outcome:
        outcome = Quantiles.draw(self, plan, statistic, entropy)
        exact = (
            Histogram(each.cuts, tuple(exact_counts(statistic, each.cuts)))
            for each in outcome.auxiliary
        )
        return Outcome(outcome.rows, tuple(exact))


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "mistake", [CutAtTheRecords, DrawnWhereFew, ReadWithTheRecords, KeepsTheTotal, LearnsExactly]
)
def test_mistakes_are_caught(mistake: Callable[..., Quantiles]) -> None:
    """What looks at the batch beside its noisy counts loses more than is charged."""
    wrong = kind(made=mistake)
    assert largest_loss(wrong, learned(kind(), TOGETHER, 6)) > 1.5 * EPSILON


def test_every_way_costs_the_same_epsilon_whatever_was_released() -> None:
    """The price is fixed before the first release; how a batch is drawn cannot change it."""
    made = kind()
    assert len(made.learner.mechanisms()) == 2
    assert {epsilon_of(each.event()) for each in made.learner.mechanisms()} == {EPSILON}
    states = [made.init(), *(learned(made, APART, count) for count in range(1, 4))]
    events = [made.plan(state, BATCH).event for state in states]
    assert {epsilon_of(event) for event in events} == {EPSILON}
    assert [event["drawn"] for event in events] == [0, 1, 1, 1]
    assert len({event["prior"] for event in events}) > 1
    assert all(event["events"] == events[0]["events"] for event in events)
    worst = max(rho_of(each.event()) for each in made.learner.mechanisms())
    assert {rho_of(event) for event in events} == {worst}


@pytest.mark.parametrize("count", [1, 3, 9])
@pytest.mark.parametrize("measure", ["counts", "quantiles"])
@pytest.mark.parametrize("neighbours", ["add-remove", "substitute"])
def test_the_ledger_names_the_way_that_is_drawn(count: int, measure: str, neighbours: Any) -> None:
    """As the configuration makes it: the first release, and one after it."""
    section = QuantilesSection.model_validate(
        {
            "kind": "quantiles",
            "source": "s",
            "column": "x",
            "epsilon": 1,
            "quantiles": [f"{index}/{count + 1}" for index in range(1, count + 1)],
            "resolution": 1,
            "bounds": [0, 100],
            "expected_rows": 100,
            "prior": {"learner": "mixture", "measure": measure},
        }
    )
    made = build(section, BuildContext(neighbours, 1, 1, "duckdb", None))  # type: ignore[arg-type]
    for releases in (0, 1):
        plan = made.plan(learned(made, APART, releases), BATCH)
        release_plan = plan.mechanism.release_plan
        mechanism = (
            release_plan.histograms if isinstance(release_plan, CountedPlan) else release_plan.tree
        )
        counts = measure == "counts" and count > 1
        assert isinstance(release_plan, CountedPlan) == (releases > 0 and counts)
        event = plan.event["events"][plan.event["drawn"]] if counts else plan.event
        assert event.items() >= mechanism.event().items()
        assert epsilon_of(plan.event) == 1
