"""Streams of two batches: what pairs of them lose, over what the claim says of their steps.

A batch is a multiset of a few records. Two streams are as many steps apart in a batch as records
come and go there; under `substitute` one that comes in another's place is a single step. All pairs
of batches are enumerated, so all pairs of streams are: records that are replaced, that move from
one batch to the other, and several at once.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np

from streamdp.kinds.statistics.measures.protocol import Allowance
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.privacy import accountants as counting
from streamdp.privacy.filters import Measure as MeasureOfLoss
from streamdp.privacy.price import Price
from streamdp.types import CellCounts, FloatArray, IntArray, Neighbours
from tests.kinds.experts import worlds as experts
from tests.privacy.noise import statistics
from tests.privacy.quantiles.law import forking, law_of
from tests.privacy.quantiles.neighbours import counts_of, nearly_sure, unit_grid

Batch = tuple[Any, ...]
"""Sorted records."""

RELATIONS: tuple[Neighbours, ...] = ("add-remove", "substitute")


def steps_between(one: Batch, other: Batch, relation: Neighbours) -> int:
    """Steps from one batch to the other."""
    gone = sum((Counter(one) - Counter(other)).values())
    came = sum((Counter(other) - Counter(one)).values())
    return max(gone, came) if relation == "substitute" else gone + came


def batches_of(records: Sequence[Any], most: int = 2) -> Iterator[Batch]:
    """All batches of up to so many records."""
    for size in range(most + 1):
        yield from itertools.combinations_with_replacement(records, size)


@dataclass(frozen=True)
class Case:
    """A release of each of two batches, drawn apart.

    Args:
        name: Of what is released.
        relation: That the release is priced for.
        measure: Of its price.
        records: That a batch may hold.
        hides: What noise hides of a batch.
        loss: Largest loss between two of these, over the price of one release.
        moved: Least ratio of some pair of streams in which one record changes its batch.
    """

    name: str
    relation: Neighbours
    measure: MeasureOfLoss
    records: Sequence[Any]
    hides: Callable[[Batch], Any]
    loss: Callable[[Any, Any], float]
    moved: float = 0.0

    def __str__(self) -> str:
        return f"stream of {self.name}, {self.relation}, {self.measure}"

    def worst(self) -> dict[int, float]:
        """Largest loss of one batch by the steps in it."""
        found: dict[int, float] = {}
        hidden = {batch: self.hides(batch) for batch in batches_of(self.records)}
        for one, other in itertools.product(hidden, repeat=2):
            apart = steps_between(one, other, self.relation)
            found[apart] = max(found.get(apart, 0.0), self.loss(hidden[one], hidden[other]))
        return found

    def ratio(self) -> float:
        """Largest loss of two streams over what their steps may lose."""
        worst = self.worst()
        return max(
            (worst[first] + worst[second]) / self.claim(first, second)
            for first, second in itertools.product(worst, repeat=2)
            if first or second
        )

    def ratio_of_a_move(self) -> float:
        """The same of a record that leaves one batch and enters the other."""
        empty = self.hides(())
        out_and_in = max(self.loss(empty, self.hides((record,))) for record in self.records)
        return 2 * out_and_in / self.claim(1, 1)

    def claim(self, first: int, second: int) -> float:
        """Where each batch may lose one."""
        return float(counting.loss_of_steps([(first, 1), (second, 1)], self.measure))


RECORDS = (("a", -9, "g"), ("a", 3, "g"), ("z", 9, "g"), ("z", 1, "h"))
POSITIVE = (("a", 2, "g"), ("z", 9, "g"))


def _statistics(case: statistics.Case, moved: float) -> Case:
    measure = case.price.measure

    def hides(batch: Batch) -> statistics.Hidden:
        return statistics.hides(case.kind(), batch)

    def loss(one: statistics.Hidden, other: statistics.Hidden) -> float:
        return float(statistics.loss_between(measure, one, other) / case.price.amount)

    records = POSITIVE if case.measures == (statistics.POSITIVE,) else RECORDS
    return Case(case.name, case.neighbours, measure, records, hides, loss, moved)


def _all_statistics() -> Iterator[Case]:
    made = (
        (statistics.Case("counts", (statistics.COUNT,)), 1.0),
        (statistics.Case("histograms", (statistics.CUT,)), 0.5),
        (statistics.Case("sums", (statistics.POSITIVE,)), 0.9),
        (statistics.Case("means", (statistics.moment("mean", 1),)), 0.2),
    )
    prices = (statistics.PURE, statistics.CONCENTRATED)
    for (case, least), relation, price in itertools.product(made, RELATIONS, prices):
        moved = least if relation == "substitute" else 1.0
        yield _statistics(replace(case, neighbours=relation, price=price), moved)


def _of_experts(relation: Neighbours) -> Case:
    kind = experts.experts(experts.ACTIONS, relation)
    parts = [experts.parts(kind.losses, each) for each in experts.statistics(kind.losses)]
    scale = float(kind.noise().scale)

    def hides(batch: Batch) -> IntArray:
        return sum((parts[each] for each in batch), np.zeros_like(parts[0]))

    def loss(one: IntArray, other: IntArray) -> float:
        return float(abs(one - other).sum()) / scale / float(kind.epsilon)

    records = (0, 13, len(parts) - 1)
    moved = 0.5 if relation == "substitute" else 1.0
    return Case("losses of actions", relation, "epsilon", records, hides, loss, moved)


@dataclass(frozen=True)
class Quantiles:
    """Streams of two batches with one quantile each; the second prior follows from the first draw.

    Args:
        target: The quantile, as text.
        relation: Neighbours.
        moved: Least ratio of some record that changes its batch.
    """

    target: str
    relation: Neighbours
    moved: float = 0.0
    cells: int = 3
    most: int = 4

    def __str__(self) -> str:
        return f"stream of quantiles {self.target}, {self.relation}, epsilon"

    def ratio(self) -> float:
        """Largest ratio of all pairs of streams."""
        apart, _, loss = self._losses()
        ratios = (
            float(loss[at].max()) / counting.loss_of_steps([(first, 1), (second, 1)], "epsilon")
            for first, second in itertools.product(set(apart.tolist()), repeat=2)
            if first or second
            for at in [np.ix_(apart == first, apart == second)]
        )
        return max(ratios)

    def ratio_of_a_move(self) -> float:
        """The same of pairs that are one record out in one batch, and one in in the other."""
        apart, grown, loss = self._losses()
        out, into = (apart == 1) & (grown == -1), (apart == 1) & (grown == 1)
        claim = counting.loss_of_steps([(1, 1), (1, 1)], "epsilon")
        return float(loss[np.ix_(out, into)].max()) / claim

    def _losses(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Of all pairs of batches: steps, records more; and the loss of pairs of such pairs.

        The loss of two streams is the largest |ln p/p′ of the first draw + ln p/p′ of the second|,
        whose prior is nearly sure of the cell behind the one that was drawn first.
        """
        every = list(batches_of(range(self.cells), self.most))
        pairs = list(itertools.product(every, repeat=2))
        apart = np.array([steps_between(one, other, self.relation) for one, other in pairs])
        grown = np.array([len(other) - len(one) for one, other in pairs])
        logs = self._logs(every)
        change = (logs[:, :, None] - logs[:, None]).reshape(self.cells, len(pairs), self.cells)
        worst = np.zeros((len(pairs), len(pairs)))
        for sure, drawn in itertools.product(range(self.cells), repeat=2):
            then = change[(drawn + 1) % self.cells]
            for end in (then.max(axis=1), then.min(axis=1)):
                worst = np.maximum(worst, abs(change[sure, :, drawn][:, None] + end))
        return apart, grown, worst

    def _logs(self, every: Sequence[Batch]) -> FloatArray:
        """Log of the law of a release, by the cell its prior is nearly sure of, batch, and cell."""
        grid, target = unit_grid(self.cells), (Fraction(self.target),)
        tree = QuantileTree(target, Fraction(1), grid, relation=self.relation)
        logs = np.empty((self.cells, len(every), self.cells))
        with forking(1):
            for sure, (at, batch) in itertools.product(range(self.cells), enumerate(every)):
                prior = JointPrior((nearly_sure(sure, self.cells),))
                counts = counts_of(batch)

                def draw(entropy: Any, of: CellCounts = counts, by: JointPrior = prior) -> int:
                    return tree.draw(of, by, entropy)[0]

                law = law_of(draw)
                logs[sure, at] = [math.log(law[cell]) for cell in range(self.cells)]
        return logs


CASES: tuple[Case | Quantiles, ...] = (
    *_all_statistics(),
    *map(_of_experts, RELATIONS),
    Quantiles("1/2", "add-remove", 0.99),
    Quantiles("3/4", "add-remove", 0.83),
    Quantiles("1/2", "substitute", 0.49),
    Quantiles("3/4", "substitute", 0.62),
)


@dataclass(frozen=True)
class Mutant:
    """A mistake of the claim, or of a mechanism, that moved or several records show."""

    name: str
    case: Case | Quantiles
    changed: Callable[[], AbstractContextManager[Any]]

    def loss(self) -> float:
        """Over the claim."""
        with self.changed():
            return self.case.ratio()


def _of_one_batch(batches: Any, measure: MeasureOfLoss) -> int:
    return max(_right([each], measure) for each in batches)


def _added(batches: Any, measure: MeasureOfLoss) -> int:
    return _right(batches, "epsilon")


_right = counting.loss_of_steps
_noise = Allowance.noise


def _of_public_size(self: Allowance, *about: Any, **more: Any) -> Any:
    """Hardly any noise on counts of all records: replaced ones do not change them."""
    price = Price(self.price.amount * 1000, self.price.measure)
    return _noise(replace(self, price=price), *about, **more)


def _case(name: str) -> Case | Quantiles:
    return next(each for each in CASES if str(each) == name)


def _claims(wrong: Any) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: patch.object(counting, "loss_of_steps", wrong)


MUTANTS = (
    Mutant(
        "a record that changes its batch is one step",
        _case("stream of counts, substitute, epsilon"),
        _claims(_of_one_batch),
    ),
    Mutant(
        "a record that changes its batch is one step, in rho",
        _case("stream of counts, substitute, rho"),
        _claims(_of_one_batch),
    ),
    Mutant(
        "a record that changes its batch is one step",
        _case("stream of quantiles 3/4, substitute, epsilon"),
        _claims(_of_one_batch),
    ),
    Mutant(
        "a record that changes its batch is one step",
        _case("stream of losses of actions, substitute, epsilon"),
        _claims(_of_one_batch),
    ),
    Mutant(
        "steps of one batch add up in rho",
        _case("stream of counts, add-remove, rho"),
        _claims(_added),
    ),
    Mutant(
        "the number of records is public",
        _case("stream of counts, substitute, epsilon"),
        lambda: patch.object(Allowance, "noise", _of_public_size),
    ),
)
