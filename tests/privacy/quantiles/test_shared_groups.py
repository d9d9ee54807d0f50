"""Groups that are told what was drawn of other groups lose no more than what is charged."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, cast

import pytest

from streamdp.kinds.grouped import Grouped
from streamdp.kinds.quantiles.kind import QuantilePlan, Quantiles
from streamdp.learning.learner import DrawnPlan, Fixed
from streamdp.learning.mixture.mixture import BayesianMixture
from streamdp.mechanisms.histograms import Histograms
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import Cauchy
from streamdp.privacy.price import Price
from streamdp.simulation.comparison import chance
from streamdp.types import Batch, CellCounts, Entropy, Json, Outcome, Plan
from tests.privacy.noise.histograms import noisy_law
from tests.privacy.quantiles.law import Law, forking, law_of
from tests.privacy.quantiles.neighbours import Records, counts_of, log_ratio, nearly_sure, unit_grid

CELLS, RECORDS, BATCH = 3, 3, Batch("s", "b", 0, 86_400)
GROUPS = (("JFK",), ("LGA",))
EPSILON = Fraction(1)
MEDIAN = (Fraction(1, 2),)
Pair = tuple[tuple[CellCounts, ...], tuple[CellCounts, ...]]


class Follower(Quantiles):
    """A median whose prior is nearly sure of the cell that was drawn of the group before."""

    def told(self, plan: Plan, shown: tuple[Any, ...]) -> Plan:
        if not shown:
            return plan
        mechanism: QuantilePlan = plan.mechanism
        assert isinstance(mechanism.release_plan, DrawnPlan)
        release_plan = replace(
            mechanism.release_plan, prior=JointPrior((nearly_sure(shown[-1], CELLS),))
        )
        return replace(plan, mechanism=replace(mechanism, release_plan=release_plan))

    def shown(self, plan: Plan, outcome: Outcome) -> tuple[Any, ...]:
        return (int(outcome.rows[0]["value"] or 0),)


class Leaking(Follower):
    """A mutant: what it shows to other groups is the truth of its own."""

    def draw(self, plan: Plan, statistic: CellCounts, entropy: Entropy) -> Outcome:
        outcome = Quantiles.draw(self, plan, statistic, entropy)
        mean = round(float(statistic.cells @ statistic.counts) / max(statistic.counts.sum(), 1))
        return Outcome(outcome.rows, mean)

    def shown(self, plan: Plan, outcome: Outcome) -> tuple[Any, ...]:
        return (outcome.auxiliary,)


class LargestFirst(Grouped):
    """A mutant: groups are drawn in the order of today's counts."""

    def draw(self, plan: Plan, statistic: Sequence[Any], entropy: Entropy) -> Outcome:
        first, second = (each.counts.sum() for each in statistic)
        if first >= second:
            return Grouped.draw(self, plan, statistic, entropy)
        groups, inner = self.groups[::-1], plan.mechanism[::-1]
        drawn = replace(self, groups=groups).draw(
            replace(plan, mechanism=inner), statistic[::-1], entropy
        )
        return Outcome(tuple(sorted(drawn.rows, key=lambda row: str(row["o"]))))


def followers(kind: type[Quantiles] = Follower) -> Iterator[Quantiles]:
    """One for each cell that the first prior is nearly sure of."""
    for favourite in range(CELLS):
        learner = Fixed((nearly_sure(favourite, CELLS),))
        yield kind("x", MEDIAN, EPSILON, unit_grid(CELLS), learner, smooth=False)


def neighbours(most: int = RECORDS) -> Iterator[Pair]:
    """Batches of two groups, without one record of either and with it."""
    batches = [
        records
        for size in range(most + 1)
        for records in itertools.combinations_with_replacement(range(CELLS), size)
    ]
    others: tuple[Records, ...] = ((), (1,), (0, 2), (2, 2, 2))
    for records, other, cell in itertools.product(batches, others, range(CELLS)):
        one, more = counts_of(records), counts_of(tuple(sorted((*records, cell))))
        still = counts_of(other)
        yield (one, still), (more, still)
        yield (still, one), (still, more)


def loss(kind: Grouped, state: Json, pairs: Iterator[Pair], enough: float = math.inf) -> float:
    """Largest log-ratio of the laws of all rows of neighbours, both ways, or the first enough."""
    plan, known = kind.plan(state, BATCH), dict[bytes, Law[tuple[float, ...]]]()

    def law(statistic: tuple[CellCounts, ...]) -> Law[tuple[float, ...]]:
        key = b"|".join(each.cells.tobytes() + each.counts.tobytes() for each in statistic)
        if key not in known:
            known[key] = law_of(lambda entropy: _values(kind.draw(plan, statistic, entropy)))
        return known[key]

    worst = 0.0
    with forking(1):
        for pair in pairs:
            one, other = map(law, pair)
            worst = max(worst, *(abs(log_ratio(one[value], other[value])) for value in one))
            if worst > enough:
                break
    return worst


def _values(outcome: Outcome) -> tuple[float, ...]:
    return tuple(float(row["value"] or 0) for row in outcome.rows)


@pytest.mark.long
def test_a_group_that_is_sure_of_what_was_drawn_before_costs_no_more() -> None:
    """The second prior hangs on the first draw alone: at most epsilon together, and nearly that."""
    worst = max(loss(Grouped(one, ("o",), GROUPS), {}, neighbours()) for one in followers())
    assert 0.95 <= worst <= EPSILON


def test_a_prior_from_the_records_of_the_group_before_is_caught() -> None:
    """What is drawn of the second group then says what is in the first."""
    kinds = [Grouped(one, ("o",), GROUPS) for one in followers(Leaking)]
    most = 2 * float(EPSILON)
    assert any(loss(kind, {}, neighbours(), most) > most for kind in kinds)


def test_an_order_by_the_records_of_the_batch_is_caught() -> None:
    """One record more turns the order round, and with it who is told of whom."""
    kinds = [LargestFirst(one, ("o",), GROUPS) for one in followers()]
    most = 2 * float(EPSILON)
    assert any(loss(kind, {}, neighbours(), most) > most for kind in kinds)


def learned(measure: str) -> tuple[Grouped, Json]:
    """Experts after some releases of two groups, which then move together."""
    grid = unit_grid(CELLS)
    tree, guess = QuantileTree(MEDIAN, EPSILON, grid), (1.0, 1.0)
    robust, counts = Cauchy(*guess), (Histograms(Price(EPSILON), grid),)
    about = tree, robust, 0.05, guess, 30, (tree, JointPrior((robust,)))
    learner = BayesianMixture(*about, counts if measure == "counts" else ())
    one = Quantiles("x", MEDIAN, EPSILON, grid, learner, expected_rows=30, smooth=False)
    kind = Grouped(one, ("o",), GROUPS)
    state, entropy = kind.init(), chance(0)
    for day in range(6):
        plan = kind.plan(state, BATCH)
        same = counts_of((day % CELLS,) * 30)
        state = kind.learn(state, plan, kind.draw(plan, (same, same), entropy))
    return kind, state


def second(kind: Grouped, state: Json, cell: int) -> QuantilePlan:
    """How the second group is released where all of the first lie in one cell."""
    plan = kind.plan(state, BATCH)
    first = kind.of.draw(plan.mechanism[0], counts_of((cell,) * 30), chance(1))
    shown = kind.of.shown(plan.mechanism[0], first)  # type: ignore[attr-defined]
    told: Plan = kind.of.told(plan.mechanism[1], shown)  # type: ignore[attr-defined]
    return cast("QuantilePlan", told.mechanism)


@pytest.mark.long
def test_experts_that_know_the_other_groups_of_a_day_cost_no_more() -> None:
    """The production learner, where the second group's prior follows from the first draw."""
    kind, state = learned("quantiles")
    priors = [second(kind, state, cell).release_plan.prior.describe() for cell in (0, 2)]  # type: ignore[union-attr]
    assert priors[0] != priors[1]
    assert loss(kind, state, neighbours(1)) <= EPSILON


def test_experts_that_cut_where_the_other_groups_lie_cost_no_more() -> None:
    """Cuts of the second group follow from the noisy counts of the first."""
    kind, state = learned("counts")
    cuts = [tuple(second(kind, state, cell).release_plan.next_cuts(())) for cell in (0, 2)]  # type: ignore[union-attr]
    assert cuts[0] != cuts[1]
    plan = kind.plan(state, BATCH)

    def law(first: Records, other: Records) -> dict[Any, float]:
        statistic = counts_of(first), counts_of(other)

        def draw(entropy: Entropy) -> tuple[Any, ...]:
            outcome = kind.draw(plan, statistic, entropy)
            counted = tuple(each.outcome.auxiliary for each in outcome.auxiliary)
            return _values(outcome), counted

        return noisy_law(draw, range(2))

    worst = 0.0
    for records in ((0,), (2,)):
        for pair in (((), (1,)), (records, (1,))), (((1,), ()), ((1,), records)):
            one, more = (law(*each) for each in pair)
            ratios = [abs(math.log(one[seen] / more[seen])) for seen in one.keys() & more.keys()]
            worst = max(worst, *ratios)
    assert 0.99 <= worst <= EPSILON + 1e-9
