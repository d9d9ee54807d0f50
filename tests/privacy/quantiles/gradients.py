"""Releases that buy a gradient: their largest loss over neighbours, and mistakes that lose more.

The tree's law is enumerated as everywhere; its largest loss over priors is that of `supremum`. The
noise on gradients is replaced by a recorder, so that production itself says which integers it would
hide and behind which scale. The law of an integer under discrete Laplace noise moves by exactly its
distance over the scale (`test_discrete_laplace`), and draws are independent: losses of a pair of
neighbours add up.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

from streamdp.kinds.grouped import Grouped
from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.learning.online_gradient.point_gradient import PrivateGradient
from streamdp.mechanisms import noise as noise_module
from streamdp.mechanisms.quantile_tree import noisy_gradient
from streamdp.mechanisms.quantile_tree.noisy_gradient import UNITS, NoisyGradient
from streamdp.mechanisms.quantile_tree.sharpness import Relation
from streamdp.types import Batch, CellCounts, Entropy, Json, Plan, UnitBound
from tests.privacy.quantiles.law import forking, law_of
from tests.privacy.quantiles.neighbours import counts_of, level, pairs, unit_grid
from tests.privacy.quantiles.supremum import Part, supremum

CELLS, BATCH = 3, Batch("s", "b", 0, 86_400)
HALF = (Fraction(1, 2),)
GROUPS = (("JFK",), ("LGA",))
EPSILON = Fraction(1)

Statistics = tuple[CellCounts, ...]
"""One for each group."""


def released(
    share: str = "1/2",
    relation: Relation = "add-remove",
    rows: int = 1,
    groups: int = 1,
    narrow: bool = False,
) -> Quantiles:
    """A median of three cells; the guess lies in the middle, one scale from both ends.

    A narrow prior has gradients far above norm one.
    """
    scale = 0.01 if narrow else 1.0
    learner = PrivateGradient(
        level(CELLS), 0.5, (1.0, scale), 0.01, scale / 10, gradient_share=Fraction(share)
    )
    about: Json = {"relation": relation, "unit_rows": rows, "groups": groups}
    return Quantiles("x", HALF, EPSILON / rows, unit_grid(CELLS), learner, **about)


def loss(kind: Quantiles | Grouped, pair: tuple[Statistics, Statistics]) -> float:
    """Largest loss of a release on two batches, over its epsilon."""
    plan = kind.plan(kind.init(), BATCH)
    one, parts = (kind.of, plan.mechanism) if isinstance(kind, Grouped) else (kind, (plan,))
    assert isinstance(one, Quantiles)
    lost = sum(_loss_of_part(one, *each) for each in zip(parts, *pair, strict=True))
    return lost / float(EPSILON)


def _loss_of_part(kind: Quantiles, plan: Plan, mine: CellCounts, other: CellCounts) -> float:
    laws, hidden = [], []
    for statistic in (mine, other):
        scales: list[Fraction] = []
        with forking(1), _recorded(scales):
            laws.append(law_of(lambda e, s=statistic: _cells(kind.draw(plan, s, e))))  # type: ignore[misc]
            scales.clear()
            told = kind.draw(plan, statistic, _First()).auxiliary
        assert len(told) == len(scales) > 0
        hidden.append(
            [(round(each * UNITS), scale) for each, scale in zip(told, scales, strict=True)]
        )
    moved = sum(
        Fraction(abs(unit - another)) / scale
        for (unit, scale), (another, _) in zip(*hidden, strict=True)
    )
    return supremum(laws[0], laws[1], (Part((0,)),)).loss + float(moved)


def _cells(outcome: Json) -> tuple[int, ...]:
    return tuple(int(row["value"]) for row in outcome.rows)


class _First:
    """Entropy of zeros: takes the first way everywhere."""

    def bits(self, count: int) -> int:
        return 0

    def answer(self, answers: Json) -> Json:
        return answers[0][0]


@contextmanager
def _recorded(scales: list[Fraction]) -> Iterator[None]:
    """No noise is added; the scales that were asked for are kept."""

    def silent(scale: Fraction, entropy: Entropy) -> int:
        scales.append(scale)
        return 0

    with patch.object(noise_module, "discrete_laplace", silent):
        yield


def neighbours(relation: Relation = "add-remove") -> Iterator[tuple[Statistics, Statistics]]:
    """All of up to three records."""
    for mine, other in pairs(relation, CELLS, 3):
        yield (counts_of(mine),), (counts_of(other),)


def units_in_groups() -> Iterator[tuple[Statistics, Statistics]]:
    """A unit of two records, wherever they lie in two groups of one, or both in one group."""
    without = (counts_of((2,)),) * 2
    for one, other in itertools.product(range(CELLS), repeat=2):
        yield without, (counts_of((one, 2)), counts_of((other, 2)))
        yield without, (counts_of((one, other, 2)), without[1])


def units() -> Iterator[tuple[Statistics, Statistics]]:
    """A unit of two records in one batch."""
    for others in ((), (2,), (2, 2)):
        for own in itertools.combinations_with_replacement(range(CELLS), 2):
            yield (counts_of(others),), (counts_of((*others, *own)),)


@dataclass(frozen=True)
class Bought:
    """A release that buys a gradient, and the neighbours it is enumerated on."""

    name: str
    kind: Quantiles | Grouped
    pairs: Callable[[], Iterator[tuple[Statistics, Statistics]]]
    least: float

    @property
    def bound(self) -> UnitBound | None:
        """Of a unit's records."""
        kind = self.kind.of if isinstance(self.kind, Grouped) else self.kind
        assert isinstance(kind, Quantiles)
        return UnitBound("plane", kind.unit_rows) if kind.unit_rows > 1 else None

    @property
    def relation(self) -> Relation:
        """Neighbours."""
        return self.kind.neighbours if isinstance(self.kind, Grouped) else self.kind.relation

    def largest_loss(self) -> float:
        """Over its epsilon."""
        return max(loss(self.kind, pair) for pair in self.pairs())


RECORD = Bought("gradient 1/2", released(), neighbours, 0.99)
NARROW = Bought("gradient 1/2, narrow prior", released(narrow=True), neighbours, 0.5)
GROUPED = Bought(
    "gradient 1/2, units of 2 in 2 groups",
    Grouped(released(rows=2, groups=2), ("o",), GROUPS),
    units_in_groups,
    0.99,
)
BOUGHT = (
    RECORD,
    NARROW,
    Bought("gradient 1/10", released("1/10"), neighbours, 0.99),
    Bought(
        "gradient 1/2, substitute",
        released(relation="substitute"),
        lambda: neighbours("substitute"),
        0.99,
    ),
    Bought("gradient 1/2, units of 2", released(rows=2), units, 0.99),
    GROUPED,
)


@dataclass(frozen=True)
class GradientMutant:
    """A mistake and where it shows."""

    name: str
    mutation: Callable[[], Any]
    bought: Bought = RECORD

    def loss(self) -> float:
        """Largest loss of the mutant, over epsilon."""
        with self.mutation():
            return self.bought.largest_loss()


def _drawn_twice() -> Any:
    """Two draws, one price."""
    real = NoisyGradient.draw

    def twice(self: NoisyGradient, statistic: CellCounts, entropy: Entropy) -> tuple[float, ...]:
        return real(self, statistic, entropy) + real(self, statistic, entropy)

    return patch.object(NoisyGradient, "draw", twice)


def _tree_at_full_epsilon() -> Any:
    def tree(self: Quantiles) -> Any:
        return self.form.tree(self.quantiles, self.epsilon, self.grid, self.relation)

    return patch.object(Quantiles, "tree", tree)


def _not_split_over_groups() -> Any:
    """As if a unit's records were all in one group."""
    real = Quantiles._gradient
    return patch.object(
        Quantiles,
        "_gradient",
        lambda self, state, features: real(replace(self, groups=1), state, features),
    )


def _not_clipped() -> Any:
    return patch.object(
        noisy_gradient, "clipped", lambda gradient: [int(each * UNITS) for each in gradient]
    )


GRADIENT_MUTANTS = (
    GradientMutant(
        "sensitivity of one gradient, not two",
        lambda: patch.object(noisy_gradient, "SENSITIVITY", UNITS),
    ),
    GradientMutant("gradient not clipped", _not_clipped, NARROW),
    GradientMutant("gradient drawn twice at one price", _drawn_twice),
    GradientMutant("tree at the whole epsilon", _tree_at_full_epsilon),
    GradientMutant("gradients of groups not split", _not_split_over_groups, GROUPED),
)
