"""Plausible mistakes, each put in production's place, and the case that must expose it.

A mutant is caught when the exact largest loss of the mutated production code exceeds its charge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np

from streamdp.mechanisms.quantile_tree import (
    exponential,
    grains,
    joint,
    sharpness,
    spread,
    tree,
)
from streamdp.mechanisms.quantile_tree.exponential import BaseMeasure
from streamdp.mechanisms.quantile_tree.grains import Region
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from tests.privacy.quantiles.cases import Case, largest_loss

Mutation = Callable[[], Any]


@dataclass(frozen=True)
class Mutant:
    """A mistake and where it shows.

    Args:
        name: In the rows.
        mutation: Context manager that puts it in place.
        case: Small batches on which it must be caught.
        clip: Largest exponent while it is in place; small batches never reach the real one.
    """

    name: str
    mutation: Mutation
    case: Case
    clip: float = exponential.CLIP

    def real_loss(self) -> float:
        """Largest loss of production on the case."""
        return _of_production(self.case, self.clip)

    def loss(self) -> float:
        """Largest loss of the mutant."""
        with patch.object(exponential, "CLIP", self.clip), self.mutation():
            return largest_loss(self.case).loss


@cache
def _of_production(case: Case, clip: float) -> float:
    with patch.object(exponential, "CLIP", clip):
        return largest_loss(case).loss


def _floor_of_target() -> Any:
    """|floor(q·n) - rank|."""

    class Floored(exponential._Exponents):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self._rest = 0.0

    return patch.object(exponential, "_Exponents", Floored)


@contextmanager
def _scores_over_whole_batch() -> Iterator[None]:
    """Ranks and rows of the whole batch at every node, targets as configured."""

    class Whole(exponential._Exponents):
        def __init__(self, batch: Any, region: Region, *rest: Any) -> None:
            super().__init__(batch, Region(-(2**40), 2**40, 2**40), *rest)

    with patch.object(exponential, "_Exponents", Whole), _targets_not_rescaled():
        yield


@contextmanager
def _targets_not_rescaled() -> Iterator[None]:
    """Nodes aim at q instead of (q - q_left)/(q_right - q_left), as sharp as before."""
    real = QuantileTree._draw_node

    def draw_node(self: QuantileTree, node: tree.Node, *rest: Any) -> tuple[int, ...]:
        targets = tuple(self.quantiles[target] for target in node.targets)
        return real(self, replace(node, quantiles=targets), *rest)

    with patch.object(QuantileTree, "_draw_node", draw_node):
        yield


def _overlapping_children() -> Any:
    """A grain on a released point belongs to both sides."""
    real = Region.split

    def split(self: Region, points: tuple[int, ...]) -> tuple[Region, ...]:
        parts = real(self, points)
        wider = [replace(part, stop=part.stop + 1) for part in parts[:-1]]
        return (*wider, parts[-1])

    return patch.object(Region, "split", split)


def _sharpness_doubled() -> Any:
    """The factor two of the exponential mechanism forgotten."""
    real = sharpness.Level.sharpness

    def doubled(self: sharpness.Level, targets: tuple[Fraction, ...]) -> Fraction:
        return 2 * real(self, targets)

    return patch.object(sharpness.Level, "sharpness", doubled)


def _sharpness_of_median() -> Any:
    """R = 1, right for the median, at every quantile."""

    def of_median(targets: tuple[Fraction, ...], node: str) -> Fraction:
        return Fraction(len(targets))

    return patch.object(sharpness, "addition_range", of_median)


def _substitute_as_addition() -> Any:
    """A moved record priced like an added one."""

    def sharp(self: sharpness.Level, targets: tuple[Fraction, ...]) -> Fraction:
        return self.budget / sharpness.addition_range(targets, self.kind)

    return patch.object(sharpness.Level, "sharpness", sharp)


def _widest_gap() -> Any:
    """The joint range with the largest gap in place of the smallest: 4(1 - max Δ)."""

    def of_widest(targets: tuple[Fraction, ...], node: str) -> Fraction:
        return 4 * (1 - max(sharpness.gaps(targets)))

    return patch.object(sharpness, "addition_range", of_widest)


def _prior_cut_to_data() -> Any:
    """The prior renormalised over the range the data occupy."""
    real = exponential.draw_quantile

    def draw(batch: grains.Grains, region: Region, *rest: Any) -> int:
        inside = batch.cells[(batch.cells >= region.start) & (batch.cells < region.stop)]
        if len(inside):
            low, high = int(inside.min()), int(inside.max())
            region = Region(low, region.stop, min(high, region.last))
        return real(batch, region, *rest)

    return patch.object(tree, "draw_quantile", draw)


def _gap_masses_evened() -> Any:
    """Every gap between records gets the same mass: a prior that follows the data."""
    real = BaseMeasure.between

    def between(self: BaseMeasure, edges: Any) -> Any:
        return np.where(np.isfinite(real(self, edges)), 0.0, -np.inf)

    return patch.object(BaseMeasure, "between", between)


def _tails_dropped() -> Any:
    """Points beyond the clip get next to no weight instead of the clip's."""
    real = exponential._Exponents.at

    def at(self: Any, *points: Any) -> Any:
        costs = real(self, *points)
        return np.where(costs >= exponential.CLIP, 500.0, costs)

    return patch.object(exponential._Exponents, "at", at)


def _window_narrower_than_clip() -> Any:
    """Far cells take the rank of the gap beside them although their cost is not clipped yet."""

    def window(self: Any) -> tuple[int, int]:
        return int(self._middle) - 1, int(self._middle) + 2

    return patch.object(exponential._Exponents, "window", window)


def _rows_in_gap_not_rescaled() -> Any:
    """The joint cost's wanted gaps rounded down to whole records."""

    def gaps(targets: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
        return _FlooredGap.of(sharpness.gaps(targets))

    return patch.object(joint, "gaps", gaps)


class _FlooredGap(Fraction):
    """A share whose product with a number of rows is rounded down."""

    @classmethod
    def of(cls, shares: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
        return tuple(cls(share) for share in shares)

    def __mul__(self, other: Any) -> Any:
        return Fraction(int(super().__mul__(other)))


def _places_of_all_moved() -> Any:
    """One record more moves all others of its cell: to its end if they are odd in number."""

    def standing(count: int) -> tuple[Any, Any]:
        return np.array([(spread.LEVELS - 1) * (count % 2)]), np.array([count])

    return patch.object(spread, "standing", standing)


def _factorials_left_out() -> Any:
    """Targets between the same two places have the mass M^k in place of M^k/k!."""
    return patch.object(spread, "math", _WithoutFactorials)


class _WithoutFactorials:
    """The module `math` of whom all factorials are one."""

    log = staticmethod(math.log)

    @staticmethod
    def lgamma(_: float) -> float:
        return 0.0


def _places_of_whole_batch() -> Any:
    """Gaps wanted of whole records, as if ranks were not shares of n."""

    def gaps(targets: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
        return _FlooredGap.of(sharpness.gaps(targets))

    return patch.object(spread, "gaps", gaps)


MUTANTS = (
    Mutant("floor of q·n", _floor_of_target, Case("1/3", 4, 5, "tight")),
    Mutant(
        "scores over the whole batch",
        _scores_over_whole_batch,
        Case("1/4 1/2 3/4", 4, 4, "tight"),
    ),
    Mutant(
        "overlapping children on ties", _overlapping_children, Case("1/4 1/2 3/4", 4, 4, "tight")
    ),
    Mutant("sharpness doubled", _sharpness_doubled, Case("1/2", 3, 3, "tight")),
    Mutant(
        "sharpness doubled",
        _sharpness_doubled,
        Case("1/4 1/2 3/4", 4, 3, "tight", branching=4, node="joint"),
    ),
    Mutant(
        "sharpness of the median at every quantile",
        _sharpness_of_median,
        Case("1/3", 4, 4, "tight"),
    ),
    Mutant(
        "substitute priced as add/remove",
        _substitute_as_addition,
        Case("1/2", 3, 3, "tight", "substitute"),
    ),
    Mutant(
        "joint range of the widest gap",
        _widest_gap,
        Case("1/5 1/2", 4, 4, "tight", branching=3, node="joint"),
    ),
    Mutant("prior renormalised by data", _prior_cut_to_data, Case("1/2", 3, 2, "tight")),
    Mutant("gap masses evened", _gap_masses_evened, Case("1/2", 4, 3, "tight")),
    Mutant("clip without its bound", _tails_dropped, Case("1/2", 3, 5, "tight"), clip=1.0),
    Mutant(
        "window narrower than the clip",
        _window_narrower_than_clip,
        Case("1/2", 4, 6, "tight"),
    ),
    Mutant("target not rescaled", _targets_not_rescaled, Case("1/2 3/4", 4, 4, "tight")),
    Mutant(
        "joint gaps of whole records",
        _rows_in_gap_not_rescaled,
        Case("1/3 2/3", 4, 4, "tight", branching=3, node="joint"),
    ),
    Mutant(
        "places of all moved",
        _places_of_all_moved,
        Case("1/2", 3, 5, "loose", node="joint", spread=True),
    ),
    Mutant(
        "mass of several targets without its factorial",
        _factorials_left_out,
        Case("1/6 1/3 1/2 2/3 5/6", 2, 1, "loose", branching=6, node="joint", spread=True),
    ),
    Mutant(
        "places of whole records",
        _places_of_whole_batch,
        Case("1/3 2/3", 4, 4, "loose", branching=3, node="joint", spread=True),
    ),
)
