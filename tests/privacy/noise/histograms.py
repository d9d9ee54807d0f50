"""Histograms on public cuts: their largest loss over tiny neighbours, and mistakes that lose more.

Production draws whole releases of several stages. Where it asks for noise it forks: each integer of
a window has the share that `ways` finds for it in the sampler. So the law has every outcome whose
noise lies in the window, with its cuts, and what a later stage cuts follows from noisy counts.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar, cast
from unittest.mock import patch

from streamdp.kinds.charging import UnitCharging
from streamdp.mechanisms import histograms
from streamdp.mechanisms import noise as noise_module
from streamdp.mechanisms.histograms import Histogram, Histograms
from streamdp.mechanisms.noise import noise_at
from streamdp.mechanisms.quantile_tree.sharpness import Relation
from streamdp.privacy import draws as laplace_module
from streamdp.privacy.draws import discrete_laplace
from streamdp.privacy.events import rho_of
from streamdp.privacy.price import Price
from streamdp.types import CellCounts, CellQuery, Charge, Entropy, Plan, UnitBound
from tests.privacy.noise.gaussian import production_law
from tests.privacy.quantiles.neighbours import Records, counts_of, pairs, unit_grid
from tests.privacy.ways import coin, even_again, law_of

Outcome = tuple[Histogram, ...]
Law = dict[Outcome, float]
T = TypeVar("T")

CELLS, MOST = 3, 2
"""Of the grid, and records of the larger neighbour."""

ORDERS = (1.01, 1.25, 2.0, 3.0)
"""Of Rényi losses; at whole ones Gaussian noise meets its bound."""

PURE, RHO = Price(Fraction(1)), Price(Fraction(1, 2), "rho")
WHOLE, HALVES, UNEVEN = (Fraction(1),), (Fraction(1, 2),) * 2, (Fraction(1, 4), Fraction(3, 4))


def middle(stages: Outcome) -> Iterable[int]:
    """A cut, then another that follows from where noise says that most records lie."""
    if not stages:
        return (0,)
    left, right = stages[-1].counts
    return (1,) if right > left else (0,)


def unruly(stages: Outcome) -> Iterable[int]:
    """Cuts that are out of order, equal and outside, or none at all, as the noise has it."""
    if not stages:
        return (7, -3)
    return () if stages[-1].counts[0] > 0 else (1, 1, 0)


def failing(stages: Outcome) -> Iterable[int]:
    """No cuts at all: an error, or none that is a number, as the noise has it."""
    if not stages:
        return (0,)
    left, right = stages[-1].counts
    return [cast(int, math.nan)] if left > right else [(0, 1)[right]]


def every(stages: Outcome) -> Iterable[int]:
    """A bin for each cell."""
    return range(CELLS)


@dataclass(frozen=True)
class Case:
    """Histograms of tiny batches.

    Args:
        next_cuts: Where they cut.
        price: Of the release.
        shares: Of its stages.
        relation: Neighbours.
        window: Noise of at most so much is followed.
        rows: The most records of one unit; neighbours are units added or removed.
    """

    next_cuts: Callable[[Outcome], Iterable[int]]
    price: Price = PURE
    shares: tuple[Fraction, ...] = HALVES
    relation: Relation = "add-remove"
    window: int = 2
    rows: int = 1

    def __str__(self) -> str:
        stages = "+".join(map(str, self.shares))
        unit = "" if self.rows == 1 else f", units of {self.rows}"
        return f"histograms {self.next_cuts.__name__}, {stages} of {self.price.measure}{unit}"

    def plan(self) -> Histograms:
        """The production mechanism."""
        price = self.price.of_record(self.rows)
        return Histograms(price, unit_grid(CELLS), self.shares, self.relation)

    def charge(self) -> Charge:
        """What production books."""
        plan = Plan(CellQuery("x", unit_grid(CELLS)), self.plan().event(), None)
        return UnitCharging(UnitBound("u", self.rows) if self.rows > 1 else None).charge(plan)

    def largest_loss(self) -> float:
        """Over all neighbours, both ways; of rho over all orders. Over the price."""
        return self._largest(self._loss) / float(self.price.amount)

    def largest_rho(self) -> float:
        """The same of Rényi losses, also of a price in epsilon; over the rho that is booked."""
        return self._largest(_concentrated) / float(rho_of(self.charge().event))

    def _largest(self, loss: Callable[[Law, Law], float]) -> float:
        plan = self.plan()
        laws: dict[Any, Law] = {}
        worst = 0.0
        for pair in self._neighbours():
            for records in pair:
                if records not in laws:
                    laws[records] = law(plan, counts_of(records), self.next_cuts, self.window)
            one, other = (laws[records] for records in pair)
            worst = max(worst, loss(one, other), loss(other, one))
        return worst

    def _neighbours(self) -> Iterator[tuple[Records, Records]]:
        if self.rows == 1:
            yield from pairs(self.relation, CELLS, MOST)
            return
        for size in range(1, self.rows + 1):
            for unit in itertools.combinations_with_replacement(range(CELLS), size):
                yield from (((), unit), ((1,), tuple(sorted((1, *unit)))))

    def _loss(self, one: Law, other: Law) -> float:
        if self.price.measure == "rho":
            return _concentrated(one, other)
        shared = [math.log(share / other[seen]) for seen, share in one.items() if seen in other]
        return max(shared, default=math.inf)


def _concentrated(one: Law, other: Law) -> float:
    return max(renyi(one, other, order) / order for order in ORDERS)


def renyi(one: Law, other: Law, order: float) -> float:
    """D_order(one ‖ other) over what both can be in their windows; infinite if that is nothing."""
    shared = [(share, other[seen]) for seen, share in one.items() if seen in other]
    if not shared:
        return math.inf
    total = math.fsum(mine**order * yours ** (1.0 - order) for mine, yours in shared)
    return math.log(total) / (order - 1.0)


@functools.cache
def noise_law(gaussian: bool, scale: Fraction) -> dict[int, float]:
    """P(z), of the sampler as it is."""
    if gaussian:
        return production_law(scale)
    below = patch.object(laplace_module, "exactly_below", even_again)
    with below, patch.object(laplace_module, "exponential_coin", coin):
        return law_of(lambda walk: discrete_laplace(scale, walk))


def law(
    plan: Histograms,
    batch: CellCounts,
    next_cuts: Callable[[Outcome], Iterable[int]],
    window: int,
) -> Law:
    """P(outcome) of all outcomes whose noise lies in the window."""
    noise = range(-window, window + 1)
    return noisy_law(lambda entropy: plan.draw(batch, next_cuts, entropy), noise)


def noisy_law(draw: Callable[[Any], T], noise: Sequence[int]) -> dict[T, float]:
    """P(outcome) of all outcomes of a draw whose noise is among these integers."""
    found: dict[T, float] = {}
    waiting: list[tuple[int, ...]] = [()]
    with _forking():
        while waiting:
            run = _Run(waiting.pop())
            try:
                drawn = draw(run)
            except _ForkError:
                waiting += [(*run.path, z) for z in noise]
            else:
                found[drawn] = found.get(drawn, 0.0) + run.share
    return found


class _ForkError(Exception):
    """More noise is asked for than the path says."""


class _Run:
    """Noise as a path says, and its probability."""

    def __init__(self, path: tuple[int, ...]) -> None:
        self.path, self.share, self._place = path, 1.0, 0

    def noise(self, gaussian: bool, scale: Fraction) -> int:
        if self._place == len(self.path):
            raise _ForkError
        drawn = self.path[self._place]
        self._place += 1
        self.share *= noise_law(gaussian, scale)[drawn]
        return drawn

    def bits(self, count: int) -> int:
        raise AssertionError("chance that is no noise")


@contextmanager
def _forking() -> Iterator[None]:
    def laplace(scale: Fraction, entropy: Any) -> int:
        return int(entropy.noise(False, scale))

    def gaussian(squared: Fraction, entropy: Any) -> int:
        return int(entropy.noise(True, squared))

    with ExitStack() as stack:
        stack.enter_context(patch.object(noise_module, "discrete_laplace", laplace))
        stack.enter_context(patch.object(noise_module, "discrete_gaussian", gaussian))
        yield


CASES = (
    *(
        replace(case, relation=relation)
        for relation in ("add-remove", "substitute")
        for case in (
            Case(every, shares=WHOLE),
            Case(middle),
            Case(middle, shares=UNEVEN),
            Case(unruly, window=1),
            Case(failing, window=1),
            Case(middle, RHO, WHOLE, window=6),
        )
    ),
    Case(middle, rows=2),
    Case(middle, RHO, WHOLE, window=12, rows=2),
)

IN_RHO = Case(middle, Price(Fraction(1), "rho"), window=5)
"""Two stages; slower, as Rényi losses need the tails of every count."""


@dataclass(frozen=True)
class Mutant:
    """A mistake.

    Args:
        name: What is wrong.
        changed: Puts it in place.
        case: Where it shows.
    """

    name: str
    changed: Callable[[], AbstractContextManager[Any]]
    case: Case

    def loss(self) -> float:
        """Over the price."""
        with self.changed():
            return self.case.largest_loss()


def _priced_as_addition() -> Any:
    def noise(self: Histograms, stage: int) -> Any:
        return noise_at(self.price.share(self.shares[stage]), 1)

    return patch.object(Histograms, "noise", noise)


def _whole_each() -> Any:
    def noise(self: Histograms, stage: int) -> Any:
        changed = 2 if self.relation == "substitute" else 1
        return noise_at(self.price, changed, changed)

    return patch.object(Histograms, "noise", noise)


def _counted(changed: Callable[[list[int]], list[int]]) -> Any:
    real = histograms.exact_counts

    def counts(statistic: CellCounts, cuts: tuple[int, ...]) -> list[int]:
        return changed(real(statistic, cuts))

    return patch.object(histograms, "exact_counts", counts)


def _cumulative() -> Any:
    return _counted(lambda counts: [sum(counts[: end + 1]) for end in range(len(counts))])


def _with_the_cut_twice() -> Any:
    def counts(statistic: CellCounts, cuts: tuple[int, ...]) -> list[int]:
        held = dict(zip(statistic.cells.tolist(), statistic.counts.tolist(), strict=True))
        edges = (-1, *cuts, CELLS)
        return [
            sum(count for cell, count in held.items() if low <= cell <= high)
            for low, high in itertools.pairwise(edges)
        ]

    return patch.object(histograms, "exact_counts", counts)


def _cut_at_records() -> Any:
    """Cuts that no record lies at are left out."""
    real = Histograms.draw

    def draw(self: Histograms, statistic: CellCounts, next_cuts: Any, entropy: Entropy) -> Any:
        held = set(statistic.cells.tolist())
        return real(self, statistic, lambda drawn: held & {*next_cuts(drawn)}, entropy)

    return patch.object(Histograms, "draw", draw)


def _empty_bins_without_noise() -> Any:
    real = noise_module.AdditiveNoise.draw

    def draw(self: Any, values: Iterable[int], entropy: Entropy) -> tuple[int, ...]:
        return tuple(real(self, [value], entropy)[0] if value else 0 for value in values)

    return patch.object(noise_module.AdditiveNoise, "draw", draw)


def _told_exactly() -> Any:
    """The second stage cuts where the exact counts of the first say."""
    real = Histograms.draw

    def draw(self: Histograms, statistic: CellCounts, next_cuts: Any, entropy: Entropy) -> Any:
        def exactly(drawn: Outcome) -> Iterable[int]:
            exact = (histograms.exact_counts(statistic, stage.cuts) for stage in drawn)
            told = zip(drawn, map(tuple, exact), strict=True)
            cuts: Iterable[int] = next_cuts(tuple(replace(each, counts=now) for each, now in told))
            return cuts

        return real(self, statistic, exactly, entropy)

    return patch.object(Histograms, "draw", draw)


def _unit_as_a_record() -> Any:
    return patch.object(Price, "of_record", lambda self, rows: self)


_MOVED = Case(middle, relation="substitute")

MUTANTS = (
    Mutant("a record that moves priced as one that is added", _priced_as_addition, _MOVED),
    Mutant(
        "a record that moves priced as one that is added, in rho",
        _priced_as_addition,
        Case(middle, RHO, WHOLE, "substitute", window=6),
    ),
    Mutant("a unit priced as a record", _unit_as_a_record, Case(middle, rows=2)),
    Mutant("each stage at the whole price", _whole_each, Case(middle)),
    Mutant("counts up to a cut in place of bins", _cumulative, Case(every, shares=WHOLE)),
    Mutant("a record at a cut in both bins", _with_the_cut_twice, Case(middle)),
    Mutant("cuts where records lie", _cut_at_records, Case(every, shares=WHOLE)),
    Mutant("no noise on empty bins", _empty_bins_without_noise, Case(middle, shares=WHOLE)),
    Mutant("cuts that follow from exact counts", _told_exactly, Case(middle)),
)
