"""Releases of statistics: their largest loss over tiny neighbours, and mistakes that lose more.

Noise is replaced by a recorder, so that production itself says which integers it hides and behind
which scale. Discrete Laplace noise moves the law of an integer by a factor of at most
e^(distance/scale), and by exactly that for some outcome (`test_discrete_laplace`); Gaussian noise
of σ² loses distance²/(2σ²) of rho (`gaussian`). Draws are independent, so the loss of a pair of
neighbours is the sum over all integers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

from streamdp.kinds.statistics.kind import Statistics
from streamdp.kinds.statistics.measures.counts import Count
from streamdp.kinds.statistics.measures.moments import Moment, MomentOf
from streamdp.kinds.statistics.measures.protocol import Measure
from streamdp.mechanisms import noise as noise_module
from streamdp.mechanisms.noise import AdditiveNoise, GaussianNoise
from streamdp.privacy.filters import Measure as MeasureOfLoss
from streamdp.privacy.price import Price
from streamdp.types import Batch, Dimension, Entropy, Grid, Neighbours, Plan
from tests.contract.memory.engine import MemoryBackend

PURE, CONCENTRATED = Price(Fraction(1)), Price(Fraction(1, 50), "rho")
BATCH = Batch("s", "b")
TEXTS, NUMBERS, GROUPS = ("a", "z", None), (-9, -2, 0, 1, 3, 9, None), ("g", "h", "none")

Record = tuple[Any, Any, Any]
"""A text, a number and a group."""


@dataclass(frozen=True)
class Case:
    """Measures under a relation.

    Args:
        name: As it stands in the rows.
        measures: Of the release.
        neighbours: Relation of one record.
        grouped: Whether it is released of two public groups.
        tight: Whether some pair of neighbours loses all of the price.
        price: Of the release.
    """

    name: str
    measures: tuple[Measure, ...]
    neighbours: Neighbours = "add-remove"
    grouped: bool = False
    tight: bool = True
    price: Price = PURE

    def __str__(self) -> str:
        return f"{self.name} {self.neighbours} {self.price.measure}"

    def kind(self) -> Statistics:
        """The production kind, the price shared evenly."""
        share = Fraction(1, len(self.measures))
        by, groups = (("g",), (("g",), ("h",))) if self.grouped else ((), ((),))
        shares = (share,) * len(self.measures)
        return Statistics(self.measures, shares, self.price, self.neighbours, by=by, groups=groups)


def moment(which: Moment, centre: int = 0, reach: int = 4) -> MomentOf:
    """A moment of the numbers, clipped closer than they lie."""
    return MomentOf(f"a {which}", which, "x", Grid(Fraction(1), -8, 8), (centre, reach))


COUNT = Count("count")
LISTED = Count("listed", Dimension("t", values=("a",), other=True, nulls="cell"))
ONE = Count("one", Dimension("t", values=("a",)), condition=True)
CUT = Count("cut", Dimension("x", cuts=(-1.0, 2.0)))
POSITIVE = MomentOf("a sum", "sum", "x", Grid(Fraction(1), 2, 8), (5, 3))
"""A record without a number adds less than any bound says."""

CASES = (
    Case("count", (COUNT,)),
    Case("histogram of texts", (LISTED,)),
    Case("histogram of numbers", (CUT,)),
    Case("count of a condition", (ONE,)),
    Case("sum", (moment("sum"),)),
    Case("mean", (moment("mean", 1),)),
    Case("variance", (moment("variance", -1),)),
    Case("all together", (COUNT, LISTED, moment("mean"), moment("variance"))),
    Case("groups", (COUNT, CUT, moment("mean")), grouped=True),
    Case("count", (COUNT,), "substitute", tight=False),
    Case("count of a condition", (ONE,), "substitute"),
    Case("histogram of texts", (LISTED,), "substitute"),
    Case("histogram of numbers", (CUT,), "substitute"),
    Case("sum", (moment("sum"),), "substitute", tight=False),
    Case("sum of positive numbers", (POSITIVE,), "substitute", tight=False),
    Case("mean", (moment("mean", 1),), "substitute", tight=False),
    Case("variance", (moment("variance", -1),), "substitute", tight=False),
)

CASES_IN_RHO = tuple(replace(case, price=CONCENTRATED) for case in CASES)


def largest_loss(case: Case, most: int = 1) -> float:
    """Over all neighbours of at most so many other records, over the price.

    Integers of a batch are sums over its records (`test_integers_add_up`), so the other records
    cancel, and none or one of them is enough.
    """
    grouped = GROUPS if case.grouped else ("g",)
    records = list(itertools.product(TEXTS, NUMBERS, grouped))
    hidden = {each: hides(case.kind(), each) for each in _batches(records, most)}
    worst = Fraction(0)
    for rest in _batches(records, most - 1):
        found = [hidden[(*rest, record)] for record in records]
        if case.neighbours == "add-remove":
            pairs = [(each, hidden[rest]) for each in found]
        else:
            pairs = list(itertools.combinations(found, 2))
        worst = max([worst, *(loss_between(case.price.measure, *pair) for pair in pairs)])
    return float(worst / case.price.amount)


def _batches(records: Sequence[Record], most: int) -> Iterator[tuple[Record, ...]]:
    for size in range(most + 1):
        yield from itertools.product(records, repeat=size)


Hidden = tuple[tuple[int, Fraction], ...]
"""Integers and the scales of their noise."""

_NAMES = {"epsilon": "laplace", "rho": "gaussian"}


def hides(kind: Statistics, records: Sequence[Record]) -> Hidden:
    """What production hides of a batch."""
    columns = {name: [each[i] for each in records] for i, name in enumerate("txg")}
    plan = kind.plan(kind.init(), BATCH)
    return hidden(kind, plan, MemoryBackend(columns).answer(plan.query, BATCH))


def hidden(kind: Statistics, plan: Plan, statistic: Any) -> Hidden:
    """What production hides of an answer."""
    measure = kind.price.measure
    found: list[tuple[int, Fraction]] = []

    def recorded(scale: Fraction, entropy: Entropy) -> int:
        scales.append(scale)
        return 0

    module = noise_module
    form: Any = GaussianNoise if measure == "rho" else AdditiveNoise
    draw = form.draw
    scales: list[Fraction] = []

    def watched(noise: Any, values: Any, entropy: Entropy) -> tuple[int, ...]:
        drawn: tuple[int, ...] = draw(noise, values, entropy)
        found.extend(zip(drawn, scales, strict=True))
        scales.clear()
        return drawn

    with (
        patch.object(module, f"discrete_{_NAMES[measure]}", recorded),
        patch.object(form, "draw", watched),
    ):
        kind.draw(plan, statistic, _No())
    return tuple(found)


class _No:
    """No chance is asked for where noise is recorded."""

    def bits(self, count: int) -> int:
        raise AssertionError


def loss_between(measure: MeasureOfLoss, mine: Hidden, other: Hidden) -> Fraction:
    """What two batches lose, in one measure."""
    pairs = [(abs(a - b), scale) for (a, scale), (b, _) in zip(mine, other, strict=True)]
    if measure == "rho":
        return sum((distance**2 / (2 * squared) for distance, squared in pairs), Fraction(0))
    return sum((distance / scale for distance, scale in pairs), Fraction(0))
