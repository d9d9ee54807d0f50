"""Priors of several quantiles at once: quantiles of one batch move together.

The measure of an ordered tuple o is

    μ(o) = w_0·Π_j robust_j(o_j) + Σ_c w_c·Π_j bump(o_j; centre_cj, width_cj),

robust priors of each quantile alone, and a mixture of shapes: component c believes that quantile j
lies within a few widths of its centre, so the data choose one component instead of m values.
Any positive measure is a valid base measure, so privacy does not depend on any of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.types import FloatArray, Json, Prior

REACH = 3.0
"""Widths to either side of its centre that a bump covers."""

NODES = 8
"""Points of a bump, evenly spaced; each stands for its share of the bump."""


@dataclass(frozen=True, slots=True, eq=False)
class Shapes:
    """Weighted products of bumps.

    A bump is discrete: `NODES` points over ±`REACH` widths, with logistic weights.

    Args:
        log_weights: ln w_c, shape (components,).
        centres: In the unit of the column, non-decreasing along the targets, shape
            (components, m).
        widths: Positive, same shape.
    """

    log_weights: FloatArray
    centres: FloatArray
    widths: FloatArray

    def points(self) -> FloatArray:
        """Values of the points, shape (components, m, NODES)."""
        return np.asarray(self.centres[..., None] + self.widths[..., None] * offsets())

    def only(self, targets: tuple[int, ...]) -> Shapes:
        """The shapes of some of the targets."""
        chosen = list(targets)
        return Shapes(self.log_weights, self.centres[:, chosen], self.widths[:, chosen])

    def describe(self) -> Json:
        """Weights, centres and widths."""
        return {
            "log_weights": self.log_weights.tolist(),
            "centres": self.centres.tolist(),
            "widths": self.widths.tolist(),
        }


@dataclass(frozen=True, slots=True, eq=False)
class JointPrior:
    """Robust priors, one a quantile, and perhaps shapes beside them.

    Args:
        robust: Full support; shape (m,).
        shapes: Weighted products of bumps.
        robust_weight: w_0; weights need not sum to one.
    """

    robust: tuple[Prior, ...]
    shapes: Shapes | None = None
    robust_weight: float = 1.0

    def only(self, targets: tuple[int, ...]) -> JointPrior:
        """The prior of some of the targets."""
        if len(targets) == len(self.robust):
            return self
        shapes = self.shapes.only(targets) if self.shapes else None
        return JointPrior(tuple(self.robust[j] for j in targets), shapes, self.robust_weight)

    def describe(self) -> Json:
        """Its parameters; the ledger stores their digest."""
        return {
            "family": "joint",
            "robust": [prior.describe() for prior in self.robust],
            "robust_weight": self.robust_weight,
            "shapes": self.shapes.describe() if self.shapes else None,
        }


def offsets() -> FloatArray:
    """Points of a bump of centre 0 and width 1."""
    return np.asarray((np.arange(NODES) + 0.5) * (2.0 * REACH / NODES) - REACH)


def log_bump() -> FloatArray:
    """ln of their weights, sech² of the offset, summing to one."""
    density = np.cosh(offsets()) ** -2.0
    return np.asarray(np.log(density / density.sum()))
