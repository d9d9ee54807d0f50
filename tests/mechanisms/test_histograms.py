"""Histograms on public cuts count what lies between them, whatever a batch and its cuts are."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from streamdp.mechanisms.histograms import Histogram, Histograms, exact_counts, within
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.mechanisms.quantile_tree.sharpness import Relation
from streamdp.privacy.accountants import rho_of_epsilon
from streamdp.privacy.events import epsilon_of, rho_of
from streamdp.privacy.price import Price
from streamdp.types import CellCounts, Grid
from tests.privacy.quantiles.neighbours import counts_of

GRID = Grid(Fraction(1), -4, 9)
HALVES = (Fraction(1, 2), Fraction(1, 2))
BATCHES = {
    "empty": counts_of(()),
    "one record": counts_of((9,)),
    "all at one cell": counts_of((3,) * 50),
    "the ends": counts_of((-4, -4, 9)),
    "spread": counts_of((-4, -1, 0, 0, 3, 8, 9)),
    "as many as an integer holds": CellCounts(
        np.array([-4, 3, 9]), np.array([2**62, 2**61, 2**61 - 1])
    ),
}
CUTS: tuple[tuple[int, ...], ...] = ((), (-4,), (8,), (-4, 8), (0, 1, 2, 3), tuple(range(-4, 9)))


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("cuts", CUTS, ids=str)
def test_a_bin_holds_the_records_above_one_cut_and_up_to_the_next(
    name: str, cuts: tuple[int, ...]
) -> None:
    """Every record is in one bin."""
    batch = BATCHES[name]
    records = list(zip(batch.cells.tolist(), batch.counts.tolist(), strict=True))
    edges = (GRID.lower - 1, *cuts, GRID.upper)
    wanted = [
        sum(count for cell, count in records if low < cell <= high) for low, high in pairwise(edges)
    ]
    assert exact_counts(batch, cuts) == wanted
    assert sum(wanted) == sum(count for _, count in records)


@pytest.mark.parametrize(
    ("asked", "used"),
    [
        ((), ()),
        ((2, 2, 2), (2,)),
        ((5, -1, 3), (-1, 3, 5)),
        ((9, 10, 2**70), (8,)),
        ((-(2**70), -4), (-4,)),
        (np.array([1, 7]), (1, 7)),
    ],
    ids=str,
)
def test_cuts_are_put_in_order_and_into_the_grid(asked: Sequence[int], used: object) -> None:
    """Whatever follows from noisy counts can be cut at."""
    assert within(GRID, asked) == used
    assert within(Grid(Fraction(1), 3, 3), asked) == ()


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("price", [Price(Fraction(50)), Price(Fraction(2000), "rho")], ids=str)
def test_each_stage_sees_the_stages_before_it(price: Price, relation: Relation) -> None:
    """At a price that buys hardly any noise, the second stage cuts where the first says."""
    told: list[tuple[Histogram, ...]] = []

    def next_cuts(stages: tuple[Histogram, ...]) -> Sequence[int]:
        told.append(stages)
        return (0,) if not stages else (2, 3)

    plan = Histograms(price, GRID, HALVES, relation)
    drawn = plan.draw(BATCHES["all at one cell"], next_cuts, PublicEntropy("stages"))
    assert told == [(), drawn[:1]]
    assert drawn[0] == Histogram((0,), (0, 50))
    assert drawn[1] == Histogram((2, 3), (0, 50, 0))


@pytest.mark.parametrize("error", [ValueError, KeyError, ZeroDivisionError, RuntimeError])
def test_cuts_that_fail_are_those_of_the_stage_before(error: type[Exception]) -> None:
    """A release does not end by counts that nobody has seen; before the first there are none."""

    def next_cuts(stages: tuple[Histogram, ...]) -> Sequence[int]:
        if len(stages) == failing:
            raise error
        return (0, 2)

    plan, failing = Histograms(Price(Fraction(50)), GRID, HALVES), 1
    drawn = plan.draw(BATCHES["all at one cell"], next_cuts, PublicEntropy("stages"))
    assert [stage.cuts for stage in drawn] == [(0, 2), (0, 2)]
    failing = 0
    with pytest.raises(error):
        plan.draw(BATCHES["all at one cell"], next_cuts, PublicEntropy("stages"))


@pytest.mark.parametrize("shares", [(), (Fraction(1, 2),), (Fraction(0), Fraction(1))], ids=str)
def test_shares_are_of_a_whole(shares: tuple[Fraction, ...]) -> None:
    """Others would cost something else than the price."""
    with pytest.raises(ValueError, match="shares"):
        Histograms(Price(Fraction(1)), GRID, shares)


@pytest.mark.parametrize(("relation", "moves"), [("add-remove", 1), ("substitute", 2)])
def test_the_event_costs_the_price(relation: Relation, moves: int) -> None:
    """In the measure it is given in; a record that moves is two draws of half the epsilon."""
    pure, rho = Price(Fraction(1, 10)), Price(Fraction(1, 50), "rho")
    one = Histograms(pure, GRID, HALVES, relation).event()
    assert epsilon_of(one) == pure.amount
    assert rho_of(one) == 2 * moves * rho_of_epsilon(pure.amount / 2 / moves)
    other = Histograms(rho, GRID, HALVES, relation).event()
    assert epsilon_of(other) is None
    assert rho_of(other) == rho.amount
