"""How far a prior may pull draws away from a batch: out of it, or off records that are equal.

The law of ranks takes the prior's mass per rank as even. A narrow batch has hardly any of it, and
so has a single cell in which many records lie: a draw then pays in ranks what it gains in mass. An
independent draw that is off by r pays strength·r, a joint one twice that; k draws of a joint node
that leave together pay once, and gain k times.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

import numpy as np

from streamdp.mechanisms.quantile_tree.tree import Node, QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.types import BoolArray, FloatArray, Grid, Prior

LOST = -math.log(0.05)
"""ln 20: distance to the end of a batch, in units of noise, at which one draw in twenty lies
outside if the prior has as much mass there as in the batch."""

NARROW = 7.0
"""ln of how much more of it a prior may have outside: a batch may be a thousand times as narrow."""

THIN = 4.0
"""Times as thin that a batch may be between two released values as if it were even there."""

FAINT = -700.0
"""ln of the least mass of a stretch."""


@functools.lru_cache(maxsize=64)
def outside(tree: QuantileTree, rows: int) -> tuple[BoolArray, BoolArray]:
    """Which released values may lie below all records of a batch, and which above.

    Args:
        tree: What drew them.
        rows: Expected number of records, public.

    Returns:
        Arrays that cannot be written to: they are found once for a tree.
    """
    m = len(tree.quantiles)
    targets = [float(quantile) for quantile in tree.quantiles]
    below, above = np.zeros(m, dtype=bool), np.zeros(m, dtype=bool)
    for node, paid in draw_strengths(tree, rows):
        joint = tree.node == "joint"
        for place, target in enumerate(node.targets):
            before, after = (place + 1, len(node.targets) - place) if joint else (1, 1)
            if node.left < 0 or below[node.left]:
                below[target] = paid * targets[target] < LOST + before * NARROW
            if node.right == m or above[node.right]:
                above[target] = paid * (1.0 - targets[target]) < LOST + after * NARROW
            below[target] |= node.right < m and below[node.right]
            above[target] |= node.left >= 0 and above[node.left]
    below.flags.writeable = above.flags.writeable = False
    return below, above


def off_atoms(tree: QuantileTree, prior: JointPrior, rows: int, values: FloatArray) -> FloatArray:
    """Ends of intervals that reach to values at which many records seem to lie; shape (2, m).

    A released value seems to be such a one if it is 0, or an end of the grid, or was released
    twice: of a fine grid, chance alone hardly draws it. How many records lie there is not known.
    A draw may be pulled off it as far as its noise reaches. Draws that may be push those on that
    are drawn between them and others.

    Args:
        tree: What drew the values.
        prior: What they were drawn from.
        rows: Expected number of records, public.
        values: Released, non-decreasing.

    Returns:
        No bound (∞, -∞) where an interval needs not reach.
    """
    grid = tree.grid
    targets = np.array([float(quantile) for quantile in tree.quantiles])
    found = np.array([np.full(len(values), np.inf), np.full(len(values), -np.inf)])
    piles = {0.0, grid.value(grid.lower), grid.value(grid.upper)}
    for atom, count in zip(*np.unique(values, return_counts=True), strict=True):
        if count < 2 and float(atom) not in piles:
            continue
        gains = np.array([_gain(prior, grid, float(atom)) for prior in prior.robust])
        reach = _reach(tree, rows, gains, np.ones(len(values), dtype=bool))
        low, high = _left(values, targets, reach), _right(values, targets, reach)
        above = _reach(tree, rows, gains, (values >= atom) & (low <= atom))
        below = _reach(tree, rows, gains, (values <= atom) & (high >= atom))
        low = np.maximum(_left(values, targets, above), atom)
        high = np.minimum(_right(values, targets, below), atom)
        found[0] = np.where((values >= atom) & (above > 0.0), np.minimum(found[0], low), found[0])
        found[1] = np.where((values <= atom) & (below > 0.0), np.maximum(found[1], high), found[1])
    return found


def _gain(prior: Prior, grid: Grid, atom: float) -> float:
    """ln of how much more mass a prior has on the grid than in the cell of a value."""
    half = float(grid.resolution) / 2.0
    edges = np.array([grid.value(grid.lower) - half, atom - half])
    whole, cell = prior.log_mass(edges, np.array([grid.value(grid.upper) + half, atom + half]))
    return max(float(max(whole, FAINT) - max(cell, FAINT)), 0.0)


def _left(values: FloatArray, targets: FloatArray, reach: FloatArray) -> FloatArray:
    """Return lower bounds of the quantiles if every rank is too high by `reach`.

    No farther than the released value that surely lies left of them; -∞ where there is none.
    """
    straight = np.interp(targets - THIN * reach, targets, values)
    sure = targets.searchsorted(targets - reach + 1e-12) - 1
    return np.where(sure < 0, -np.inf, np.maximum(straight, values[sure.clip(0)]))


def _right(values: FloatArray, targets: FloatArray, reach: FloatArray) -> FloatArray:
    """Return upper bounds of the quantiles if every rank is too low by `reach`."""
    return -_left(-values[::-1], 1.0 - targets[::-1], reach[::-1])[::-1]


def _reach(tree: QuantileTree, rows: int, gains: FloatArray, pulled: BoolArray) -> FloatArray:
    """Ranks that each draw may be off, if some are pulled for what ln of mass they gain; (m,)."""
    m = len(tree.quantiles)
    reach = {-1: 0.0, m: 0.0}
    for node, paid in draw_strengths(tree, rows):
        targets = list(node.targets)
        own = np.where(pulled[targets], gains[targets] + LOST, 0.0)
        if tree.node == "joint" and own.any():
            own = np.full(len(own), gains[targets][pulled[targets]].sum() + LOST)
        inherited = max(reach[node.left], reach[node.right])
        for target, each in zip(targets, own.tolist(), strict=True):
            reach[target] = inherited + each / paid
    return np.array([reach[target] for target in range(m)])


def draw_strengths(tree: QuantileTree, rows: int) -> Iterator[tuple[Node, float]]:
    """Nodes, parents first, with what a draw pays for being off by the whole batch."""
    levels, times = tree.levels(), 2.0 if tree.node == "joint" else 1.0
    for node in tree.nodes():
        yield node, times * float(levels[node.level].sharpness(node.quantiles)) * rows
