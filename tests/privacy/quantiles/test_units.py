"""A unit with several records, in one group or in several, loses no more than what is charged."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import pytest

from streamdp.kinds.charging import UnitCharging
from streamdp.kinds.grouped import Grouped
from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.learning.learner import Fixed
from streamdp.privacy.events import epsilon_of
from streamdp.types import Batch, Charge, Json, UnitBound
from tests.privacy.quantiles.law import Law, forking, law_of
from tests.privacy.quantiles.neighbours import Records, counts_of, log_ratio, nearly_sure, unit_grid

CELLS, ROWS, BATCH = 3, 3, Batch("s", "b", 0, 86_400)
GROUPS = (("JFK",), ("LGA",))
EPSILON = Fraction(1)


def quantiles(favourite: int, rows: int) -> Quantiles:
    """A median of cells under a prior that is nearly sure of one of them."""
    learner = Fixed((nearly_sure(favourite, CELLS),))
    half, price = (Fraction(1, 2),), EPSILON / rows
    return Quantiles("x", half, price, unit_grid(CELLS), learner, smooth=False, unit_rows=rows)


def charge_of(kind: Quantiles | Grouped, rows: int = ROWS) -> Charge:
    return UnitCharging(UnitBound("plane", rows)).charge(kind.plan(kind.init(), BATCH))


def losses(kind: Quantiles | Grouped, pairs: Sequence[tuple[Json, Json]]) -> Iterator[float]:
    """Largest log-ratio over releases of each pair of statistics, both ways."""
    plan = kind.plan(kind.init(), BATCH)
    for pair in pairs:
        with forking(1):
            one, other = (
                law_of(lambda e, s=statistic: _values(kind.draw(plan, s, e)))  # type: ignore[misc]
                for statistic in pair
            )
        yield _loss(one, other)


def _values(outcome: Json) -> tuple[float, ...]:
    return tuple(row["value"] for row in outcome.rows)


def _loss(one: Law[tuple[float, ...]], other: Law[tuple[float, ...]]) -> float:
    return max(abs(log_ratio(one[value], other[value])) for value in one)


def with_unit(others: Records) -> Iterator[tuple[Records, Records]]:
    """A batch without and with a unit of three records, wherever they lie."""
    for own in itertools.combinations_with_replacement(range(CELLS), ROWS):
        yield others, tuple(sorted((*others, *own)))


HIGH: Records = (2,) * 6
"""Their median lies far right: records on the left move all ranks by the most there is."""

OTHERS: tuple[Records, ...] = ((), (0, 2), (0,) * 6, HIGH)


def worst_of_one(kind_of: Quantiles) -> float:
    pairs = [
        (counts_of(without), counts_of(having))
        for others in OTHERS
        for without, having in with_unit(others)
    ]
    return max(losses(kind_of, pairs))


def worst_of_groups(kind_of: Grouped) -> float:
    """The unit's records in every split over two groups."""
    without = (counts_of(HIGH),) * 2
    pairs = []
    for split in range(ROWS + 1):
        for own in itertools.combinations_with_replacement(range(CELLS), ROWS):
            parts = own[:split], own[split:]
            having = tuple(counts_of(tuple(sorted((*HIGH, *part)))) for part in parts)
            pairs.append((without, having))
    return max(losses(kind_of, pairs))


def test_a_unit_of_three_records_loses_the_charge_and_hardly_less() -> None:
    """The plan charges epsilon; the worst unit loses nearly that, and never more."""
    kinds = [quantiles(favourite, ROWS) for favourite in range(CELLS)]
    charged = epsilon_of(charge_of(kinds[0]).event)
    assert charged == EPSILON
    worst = max(map(worst_of_one, kinds))
    assert 0.95 <= worst <= charged


@pytest.mark.long
def test_a_draw_at_the_whole_epsilon_is_caught() -> None:
    """The same unit under a tree that was not split loses about three times the charge."""
    kinds = [quantiles(favourite, 1) for favourite in range(CELLS)]
    assert max(map(worst_of_one, kinds)) > 2 * EPSILON


@pytest.mark.long
def test_records_of_a_unit_in_several_groups_lose_the_charge_together() -> None:
    """However three records lie in two groups: at most epsilon, charged once."""
    kinds = [Grouped(quantiles(favourite, ROWS), ("o",), GROUPS) for favourite in range(CELLS)]
    charge = charge_of(kinds[0])
    assert charge.epsilon_nano == 10**9
    assert charge.event["type"] == "group"
    worst = max(map(worst_of_groups, kinds))
    assert 0.95 <= worst <= EPSILON


def test_a_bound_for_each_group_alone_is_caught() -> None:
    """Three records in each of two groups, as a bound of each group would let in: too much."""
    kinds = [Grouped(quantiles(favourite, ROWS), ("o",), GROUPS) for favourite in range(CELLS)]
    having = counts_of((1, 1, 1, *HIGH))
    pair = ((counts_of(HIGH),) * 2, (having,) * 2)
    assert max(max(losses(kind, [pair])) for kind in kinds) > 1.5 * EPSILON


def test_rho_of_a_unit_is_that_of_a_group() -> None:
    """k records at epsilon/k: k squared times the rho of one, as much as one draw at epsilon."""
    single = charge_of(quantiles(0, 1), 1).rho_nano
    several = charge_of(quantiles(0, ROWS)).rho_nano
    assert math.isclose(several, single, rel_tol=1e-6)


def test_groups_are_refused_where_a_record_may_change_its_group() -> None:
    """Substitution may take a record out of one group and put one into another."""
    with pytest.raises(ValueError, match="add-remove"):
        Grouped(quantiles(0, 1), ("o",), GROUPS, "substitute")
