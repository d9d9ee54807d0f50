"""Likelihood of one drawn quantile under a curve, by the law of the draw and the prior behind it.

The exponential mechanism draws a value o of a batch with distribution function F with

    P(o | F) = μ(o)·e^(-κ·|F(o) - q|)/Z(F),    Z(F) = ∫ e^(-κ·|F(x) - q|) dμ(x),

κ the sharpness times the records, μ the prior. Where most of μ lies on one side of a batch, or
outside of it, draws follow μ and say little: Z is small there. Without Z they would seem to confirm
the prior that they came from, and the next prior would follow them.

Under curve F_i and a bridge G of size s on it,

    E e^(-κ·|F(x) - q|) = K_s(F_i(x)),    K_s(l) = E e^(-κ·|l + s·√(l·(1 - l))·Normal - q|),

which depends on the level l alone. So Z is a sum over levels: of the mass that μ has between two
quantiles of the curve, times the mean of K_s between their levels. The likelihood of a curve and a
size is K_s(F_i(o))/Z. G at o is normal, cut by the same integrand: its moments follow with it.

References:
    Smith 2011 (exponential mechanism for quantiles).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from streamdp.mechanisms.quantile_tree.exponential import CLIP
from streamdp.types import FloatArray, Grid, Prior

STEPS = np.array([0, 0.125, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 9, 13, 18, 25, 35, 45.0])
"""Distances of levels from the quantile, in units of 1/κ, at which curves are looked at."""

EVEN = np.arange(21) / 20.0
"""Levels at which they are looked at besides."""

LEAST = 1e-300
"""Least total, and least variance that is told from none."""

_NORMAL = np.linspace(-5.0, 5.0, 101)
_WEIGHTS = np.exp(-0.5 * _NORMAL**2) / np.exp(-0.5 * _NORMAL**2).sum()


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """K_s and the moments of G given the draw, at levels of a curve.

    Args:
        levels: Increasing from 0 to 1, shape (l,).
        logs: ln K_s by size, shape (k, l).
        means: E[G | draw], same shape.
        left: Var[G | draw] over Var G, same shape.
    """

    levels: FloatArray
    logs: FloatArray
    means: FloatArray
    left: FloatArray

    def at(self, table: FloatArray, levels: FloatArray) -> FloatArray:
        """Look a table up at the levels of some curves, shape (i, k)."""
        return np.stack([np.interp(levels, self.levels, row) for row in table], axis=1)

    def between(self) -> FloatArray:
        """Return the mean of K_s below the first level, between each two, and above; (k, l + 1).

        Exponentials between two levels have the mean (b - a)/ln(b/a).
        """
        ends, rise = np.exp(self.logs), np.diff(self.logs, axis=1)
        flat = np.abs(rise) < 1e-6
        mean = np.where(flat, ends[:, 1:], np.diff(ends, axis=1) / np.where(flat, 1.0, rise))
        return np.concatenate((ends[:, :1], mean, ends[:, -1:]), axis=1)


@dataclass(frozen=True, slots=True)
class Draw:
    """One drawn quantile, and what it was drawn from.

    Args:
        cell: Where it was drawn, between two cells.
        quantile: q.
        sharpness: κ.
        prior: μ.
        grid: Public cells.
    """

    cell: float
    quantile: float
    sharpness: float
    prior: Prior
    grid: Grid

    def kernel(self, variances: FloatArray) -> Kernel:
        """Return K_s for some s²."""
        return _kernel(self.quantile, self.sharpness, tuple(variances.tolist()))

    def log_likelihoods(
        self, kernel: Kernel, levels: FloatArray, quantiles: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        """Return ln K_s(F_i(o))/Z of each curve and size, shape (i, k).

        Args:
            kernel: Of the sizes.
            levels: F_i(o), shape (i,).
            quantiles: Of the curves at some levels, in cells, shape (i, l).
        """
        cells = quantiles(kernel.levels).clip(self.grid.lower - 1, self.grid.upper)
        ends = float(self.grid.lower - 1), float(self.grid.upper)
        edges = np.pad(cells, ((0, 0), (1, 1)), constant_values=((0.0, 0.0), ends))
        values = (edges + 0.5) * float(self.grid.resolution)
        logs = self.prior.log_mass(values[:, :-1].ravel(), values[:, 1:].ravel())
        totals = np.exp(logs).reshape(len(cells), -1) @ kernel.between().T
        return np.asarray(kernel.at(kernel.logs, levels) - np.log(np.maximum(totals, LEAST)))


@functools.lru_cache(maxsize=64)
def _kernel(quantile: float, sharpness: float, variances: tuple[float, ...]) -> Kernel:
    """K_s at levels that are dense about the quantile, by sums over the normal law."""
    away = STEPS / sharpness
    levels = np.unique(np.concatenate((quantile - away, quantile + away, EVEN)).clip(0.0, 1.0))
    spread = np.sqrt(np.array(variances)[:, None] * levels * (1.0 - levels))
    moved = spread[..., None] * _NORMAL
    off = np.abs((levels[:, None] + moved).clip(0.0, 1.0) - quantile)
    each = np.exp(-np.minimum(sharpness * off, CLIP)) * _WEIGHTS
    total = each.sum(axis=2)
    means = (each * moved).sum(axis=2) / total
    left = (each * moved**2).sum(axis=2) / total - means**2
    left = (left / np.maximum(spread**2, LEAST)).clip(0.0, 1.0)
    return Kernel(levels, np.log(total), means, left)
