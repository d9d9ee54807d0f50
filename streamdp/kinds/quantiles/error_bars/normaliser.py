"""Normaliser of a joint draw under many batches: what it was likely to show in any case.

The root of a tree of joint nodes draws o_1 ≤ ... ≤ o_k of a batch with distribution function F with

    P(o | F) = μ(o)·Π_j K(F(o_{j+1}) - F(o_j) - Δ_j)/Z(F),    K(x) = e^(-κ·|x|),

κ the sharpness times the records, μ robust priors and shapes. Where no tuple that μ likes fits a
batch well, the draw follows μ, and released values that lie as μ has them say little: Z is small
for such a batch.

Z depends on a batch by the mass that μ has between its quantiles. The robust part is a chain over
levels of F: matrices of K between parts of equal size, the same for all batches, and masses of the
parts, which differ. A shape is one tuple. Of many shapes, some of equal weight stand for all.

References:
    Rabiner 1989 (the forward algorithm).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from streamdp.mechanisms.quantile_tree.exponential import CLIP
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.types import FloatArray

PARTS = 24
"""Parts of equal numbers of records that a batch is cut into."""

END = 1e-4
"""Share of the records beyond which a part's outer end is not looked for."""

SHAPES = 1000
"""Shapes that stand for all."""

FAINT, LEAST = -700.0, 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class RootNormaliser:
    """Sums up the law of a root's joint draw.

    Args:
        tree: What draws.
        prior: μ.
        strength: κ.
    """

    tree: QuantileTree
    prior: JointPrior
    strength: float

    @classmethod
    def of(cls, tree: QuantileTree, prior: JointPrior, rows: int) -> Self:
        """Return that of a tree of joint nodes, for batches of so many records."""
        root = tree.nodes()[0]
        return cls(tree, prior, float(tree.levels()[0].sharpness(root.quantiles)) * rows)

    def log_totals(
        self,
        quantiles: Callable[[FloatArray], FloatArray],
        levels: FloatArray,
    ) -> FloatArray:
        """Return ln Z of each batch, shape (i,).

        Args:
            quantiles: Values of the batches at some levels, shape (i, l) of shape (l,).
            levels: Of the batches at `points`, shape (i, p).
        """
        robust = math.log(self.prior.robust_weight) + self._robust(quantiles)
        shapes = self.prior.shapes
        if shapes is None:
            return robust
        weights, count = np.logaddexp.reduce(shapes.log_weights), len(self.tree.nodes()[0].targets)
        tuples = levels.reshape(len(levels), -1, count)
        ends = np.zeros((*tuples.shape[:2], 1)), np.ones((*tuples.shape[:2], 1))
        shares = np.diff(np.concatenate((ends[0], tuples, ends[1]), axis=2))
        logs = self._log_kernel(shares, self._wanted()).sum(axis=2)
        logs += weights - math.log(tuples.shape[1]) + self.tree.log_bump_mass * count
        return np.asarray(np.logaddexp(robust, np.logaddexp.reduce(logs, axis=1)))

    def points(self) -> FloatArray:
        """Return the values at which levels of batches are looked at, shape (p,)."""
        if self.prior.shapes is None:
            return np.empty(0)
        shapes, targets = self.prior.shapes, list(self.tree.nodes()[0].targets)
        sums = np.cumsum(np.exp(shapes.log_weights - shapes.log_weights.max()))
        taken = sums.searchsorted((np.arange(SHAPES) + 0.5) / SHAPES * sums[-1])
        return np.asarray(shapes.centres[taken][:, targets].ravel())

    def _robust(self, quantiles: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return ln of the total of the robust priors; values in one part are ordered by half."""
        cuts = np.linspace(0.0, 1.0, PARTS + 1)
        levels = np.concatenate(([0.0], (cuts[1:] + cuts[:-1]) / 2.0, [1.0]))
        grid, half = self.tree.grid, float(self.tree.grid.resolution) / 2.0
        low, high = grid.value(grid.lower) - half, grid.value(grid.upper) + half
        inner = quantiles(cuts.clip(END, 1.0 - END)).clip(low, high)
        edges = np.pad(inner, ((0, 0), (1, 1)), constant_values=((0.0, 0.0), (low, high)))
        ends, masses = (edges[:, :-1].ravel(), edges[:, 1:].ravel()), {}
        for prior in {self.prior.robust[target] for target in self.tree.nodes()[0].targets}:
            logs = np.maximum(prior.log_mass(*ends), FAINT)
            masses[prior] = np.exp(logs).reshape(len(edges), -1)
        first, *between, last = self._wanted().tolist()
        away, total = levels - levels[:, None], np.zeros(len(edges))
        sums = np.exp(self._log_kernel(levels, first))
        for place, target in enumerate(self.tree.nodes()[0].targets):
            if place:
                step = np.triu(np.exp(self._log_kernel(away, between[place - 1])))
                sums = sums @ (step - np.diag(np.diag(step)) / 2.0)
            sums = np.maximum(sums * masses[self.prior.robust[target]], LEAST)
            whole = sums.sum(axis=1)
            total, sums = total + np.log(whole), sums / whole[:, None]
        return np.asarray(total + np.log(sums @ np.exp(self._log_kernel(1.0 - levels, last))))

    def _wanted(self) -> FloatArray:
        """Return Δ_0 ... Δ_k."""
        return np.diff([0.0, *map(float, self.tree.nodes()[0].quantiles), 1.0])

    def _log_kernel(self, shares: FloatArray, wanted: FloatArray | float) -> FloatArray:
        """Return ln K of shares of the records between two values."""
        return np.asarray(np.maximum(-self.strength * np.abs(shares - wanted), -CLIP))
