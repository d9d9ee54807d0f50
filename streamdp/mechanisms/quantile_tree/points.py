"""The public points a joint draw may fall on: quantiles of the robust prior, or every fine point.

They depend on the prior and the grid alone. Each stands for the stretch up to the next one. Shapes
have points of their own.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streamdp.mechanisms.quantile_tree.exponential import BaseMeasure
from streamdp.mechanisms.quantile_tree.grains import GRAINS
from streamdp.priors.joint import Shapes
from streamdp.types import FloatArray, Grid, IntArray, Prior

LEAST_POINTS, MOST_POINTS = 2**13, 2**15
"""Points aimed at for many targets and for few; a grid of fewer fine points is used whole."""

WORK = 2**17
"""Points times targets aimed at between them."""

MANY = 1000
"""Components above which points are kept for the next draw: fewer are left by a release."""

_FAN = 2


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Public points.

    Args:
        points: Fine points, strictly increasing, the grid's first among them; shape (p,).
        log_masses: ln of the prior's mass of [points[i], points[i + 1]) for each target,
            shape (m, p).
    """

    points: IntArray
    log_masses: FloatArray


@functools.lru_cache(maxsize=64)
def public_points(priors: tuple[Prior, ...], grid: Grid) -> Points:
    """Points whose stretches have about a p-th of the mean prior's mass, p = `aimed_at`.

    A stretch above its share is halved, down to cells; a cell above its share is cut in up
    to GRAINS levels. So there are fewer than 4p for one prior, beside those of three cells: at
    zero and at the ends of the grid, where clipped records lie, many records are often equal, and
    a draw that cannot cut them leaves them. These have all levels.
    """
    distinct, aimed = tuple(dict.fromkeys(priors)), aimed_at(len(priors))
    piles = np.array([grid.lower, min(max(0, grid.lower), grid.upper), grid.upper], dtype=np.int64)
    edges = np.unique(np.concatenate((piles, piles + 1)))
    while True:
        shares = aimed * _mean_shares(distinct, grid, edges)
        widths = np.diff(edges)
        fine = widths.sum() * GRAINS <= aimed
        crowded = (widths > 1) & ((shares > 1.0) | fine)
        if not crowded.any():
            break
        parts = np.where(crowded, np.minimum(_FAN, widths), 1)
        offset = _ramp(parts)
        inner = np.repeat(edges[:-1], parts) + np.repeat(widths, parts) * offset // np.repeat(
            parts, parts
        )
        edges = np.append(inner, edges[-1])
    wanted = np.exp2(np.ceil(np.log2(np.clip(shares, 1.0, GRAINS))))
    wanted[np.isin(edges[:-1], piles)] = GRAINS
    levels = np.where(widths == 1, GRAINS if fine else wanted, 1).astype(np.int64)
    points = np.repeat(edges[:-1], levels) * GRAINS + _ramp(levels) * np.repeat(
        GRAINS // levels, levels
    )
    share = {prior: BaseMeasure(prior, grid).between(edges) - np.log(levels) for prior in distinct}
    masses = np.stack([np.repeat(share[prior], levels) for prior in priors])
    return Points(points, masses)


@dataclass(frozen=True, slots=True, eq=False)
class ShapePoints:
    """Public points of shapes: many components share one.

    Args:
        points: Fine points, shape (targets, components).
        distinct: The same, strictly increasing, shape (p,).
        which: Index in them of each point, shape (targets, components).
    """

    points: IntArray
    distinct: IntArray
    which: npt.NDArray[np.int32]


def shape_points(shapes: Shapes, targets: tuple[int, ...], grid: Grid) -> ShapePoints:
    """Centres of some targets; found once for shapes that many releases begin with.

    A centre to the left of the one before it takes its place: prices of joint draws hold for
    ordered tuples, whatever centres a prior has.
    """
    if len(shapes.log_weights) < MANY:
        return _shape_points.__wrapped__(shapes, targets, grid)
    return _shape_points(shapes, targets, grid)


@functools.lru_cache(maxsize=16)
def _shape_points(shapes: Shapes, targets: tuple[int, ...], grid: Grid) -> ShapePoints:
    lower, upper = grid.lower * GRAINS, (grid.upper + 1) * GRAINS - 1
    fine = np.floor((shapes.centres.T[list(targets)] / float(grid.resolution) + 0.5) * GRAINS)
    points = np.clip(fine, lower, upper).astype(np.int64)
    np.maximum.accumulate(points, out=points)
    distinct, which = np.unique(points, return_inverse=True)
    return ShapePoints(points, distinct, which.reshape(points.shape).astype(np.int32))


def aimed_at(targets: int) -> int:
    """Number of points a joint draw of so many targets can afford.

    Fewer would do for the noise, but then a cell that holds many equal records has no levels.
    """
    return min(max(WORK // targets, LEAST_POINTS), MOST_POINTS)


def _mean_shares(priors: tuple[Prior, ...], grid: Grid, edges: IntArray) -> FloatArray:
    """Mean over priors of the share of each stretch in the grid's mass."""
    mass = np.exp([BaseMeasure(prior, grid).between(edges) for prior in priors])
    return np.asarray((mass / mass.sum(axis=1, keepdims=True)).mean(axis=0))


def _ramp(lengths: IntArray) -> IntArray:
    """0 ... l - 1 for each length, one after the other."""
    starts = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(math.fsum(lengths)) - np.repeat(starts, lengths)).astype(np.int64)
