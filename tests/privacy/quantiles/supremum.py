"""The largest privacy loss over all priors, from the production law under one prior.

Given the releases above it, a node draws P(o) ∝ μ(o)·w(o) with w from the batch alone. Between
neighbours

    ln P(o)/P'(o) = ln w(o)/w'(o) - ln Σμw/Σμw',

so over all priors μ the largest value is the *range* of ln w/w' over the region, reached when
nearly all of μ sits on the point of the other end. The law under a level prior gives w up to a
constant for each release above; each node's conditional law follows from the joint law of the
release, and the loss of a release is the sum over its nodes. With one grain a cell the released
cells are all there is, and the supremum is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from tests.privacy.quantiles.neighbours import Records, log_ratio

Cells = tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """One draw of a tree: the targets drawn together, given those released above it."""

    targets: tuple[int, ...]
    above: tuple[int, ...] = ()


@dataclass(frozen=True)
class Worst:
    """The release and the priors' favourite cells that lose most."""

    loss: float
    released: Cells = ()
    favourites: Cells = ()
    pair: tuple[Records, Records] = ((), ())


def supremum(
    mine: Mapping[Cells, Fraction], other: Mapping[Cells, Fraction], parts: tuple[Part, ...]
) -> Worst:
    """Largest |loss| over releases and priors, from the laws of two neighbours."""
    best = Worst(0.0)
    for first, second in ((mine, other), (other, mine)):
        losses = [_node_losses(first, second, part) for part in parts]
        for released in first:
            terms = [
                _excess(loss, part, released) for loss, part in zip(losses, parts, strict=True)
            ]
            total = sum(excess for excess, _ in terms)
            if total > best.loss:
                best = Worst(total, released, _favourites(parts, [low for _, low in terms]))
    return best


NodeLosses = dict[Cells, dict[Cells, float]]


def _node_losses(
    mine: Mapping[Cells, Fraction], other: Mapping[Cells, Fraction], part: Part
) -> NodeLosses:
    """ln P(o | above)/P'(o | above) up to a constant, by released and drawn cells."""
    marginals: list[dict[tuple[Cells, Cells], Fraction]] = [{}, {}]
    for marginal, law in zip(marginals, (mine, other), strict=True):
        for released, probability in law.items():
            key = _cells(part.above, released), _cells(part.targets, released)
            marginal[key] = marginal.get(key, Fraction(0)) + probability
    losses: NodeLosses = {}
    for (above, drawn), probability in marginals[0].items():
        loss = _signed(probability, marginals[1].get((above, drawn), Fraction(0)))
        losses.setdefault(above, {})[drawn] = loss
    return losses


def _cells(targets: tuple[int, ...], released: Cells) -> Cells:
    return tuple(released[target] for target in targets)


def _excess(losses: NodeLosses, part: Part, released: Cells) -> tuple[float, Cells]:
    """Loss of this node's draw above the least it could have had, and where that is."""
    here = losses[_cells(part.above, released)]
    lowest = min(here, key=here.__getitem__)
    return here[_cells(part.targets, released)] - here[lowest], lowest


def _favourites(parts: tuple[Part, ...], lowest: list[Cells]) -> Cells:
    by_target = {
        target: cell
        for part, cells in zip(parts, lowest, strict=True)
        for target, cell in zip(part.targets, cells, strict=True)
    }
    return tuple(by_target[target] for target in sorted(by_target))


def _signed(mine: Fraction, other: Fraction) -> float:
    size = log_ratio(mine, other)
    return size if mine >= other else -size
