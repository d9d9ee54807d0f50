"""Priors of several quantiles at once: quantiles of one batch move together.

The measure of an ordered tuple o is

    μ(o) = w_0·Π_j robust_j(o_j) + Σ_c w_c·Π_j bump_cj(o_j),

robust priors of each quantile alone, and a mixture of shapes: component c believes that quantile j
lies within a few widths of its centre, so the data choose one component instead of m values. A draw
takes a bump as a point at its centre; its width tells how well values that were drawn fit it.
Any positive measure is a valid base measure, so privacy does not depend on any of it.
"""

from __future__ import annotations

import functools
import hashlib
import math
from dataclasses import dataclass, replace

import numpy as np

from streamdp.types import FloatArray, Json, Prior

_LEAST = -500.0
"""ln of the least weight of a component, so that nothing becomes impossible, and sums of weights
stay short numbers: values far from every narrow shape would leave e^-10^12 to the nearest."""

_NEGLIGIBLE = -40.0
"""ln of the weight, of the largest, below which releases have ruled a shape out."""


@dataclass(frozen=True, slots=True, eq=False)
class Shapes:
    """Weighted products of bumps.

    Args:
        log_weights: ln w_c, shape (components,).
        centres: In the unit of the column, non-decreasing along the targets, shape
            (components, m).
        widths: Positive, same shape.
    """

    log_weights: FloatArray
    centres: FloatArray
    widths: FloatArray

    def log_densities(self, targets: list[int], values: FloatArray) -> FloatArray:
        """ln of weight times density of each component at values of some targets."""
        widths = self.widths[:, targets]
        offsets = np.abs(values - self.centres[:, targets]) / widths
        log_sech = math.log(2.0) - offsets - np.log1p(np.exp(-2.0 * offsets))
        logs = 2.0 * log_sech - np.log(2.0 * widths)
        return np.asarray(self.log_weights + logs.sum(axis=1))

    def kept(self, log_weights: FloatArray) -> Shapes:
        """The components that new weights do not rule out; one at least."""
        kept = log_weights >= min(_NEGLIGIBLE, float(log_weights.max()))
        weights = np.maximum(log_weights[kept], _LEAST)
        return Shapes(weights, self.centres[kept], self.widths[kept])

    @functools.lru_cache(maxsize=16)  # noqa: B019
    def describe(self) -> Json:
        """How many, and the digest of weights, centres and widths; found once, never changed."""
        return {
            "components": len(self.log_weights),
            "sha256": digest_of(self.log_weights, self.centres, self.widths),
        }


def digest_of(*numbers: FloatArray) -> str:
    """SHA-256 of arrays, the same on every machine."""
    digest = hashlib.sha256()
    for each in numbers:
        digest.update(np.ascontiguousarray(each, dtype="<f8").tobytes())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class JointPrior:
    """Robust priors, one a quantile, and perhaps shapes beside them.

    Equal ones are one key: what was found for a prior once holds for all releases that it begins.

    Args:
        robust: Full support; shape (m,).
        shapes: Weighted products of bumps.
        robust_weight: w_0; weights need not sum to one.
        log_bump_mass: ln of the mass of a bump.

    Raises:
        ValueError: robust_weight is not positive.
    """

    robust: tuple[Prior, ...]
    shapes: Shapes | None = None
    robust_weight: float = 1.0
    log_bump_mass: float = 0.0

    def __post_init__(self) -> None:
        if not self.robust_weight > 0.0:
            raise ValueError("robust_weight must be positive: only it reaches every point")

    def given(self, released: dict[int, float], width: float) -> JointPrior:
        """The prior of all targets once some are released: weights by Bayes' rule.

        Depends on releases alone, so it is fixed before the next draw touches the data.

        Args:
            released: Values of targets.
            width: Of a cell; densities are masses of a cell around a value.
        """
        if self.shapes is None or not released:
            return self
        targets, values = list(released), np.array(list(released.values()))
        robust = math.log(self.robust_weight)
        for target, value in released.items():
            edges = np.array([value - width / 2.0]), np.array([value + width / 2.0])
            robust += float(self.robust[target].log_mass(*edges)[0]) - math.log(width)
        logs = self.shapes.log_densities(targets, values) + self.log_bump_mass * len(targets)
        peak = max(robust, float(logs.max()))
        weight = math.exp(max(robust - peak, _LEAST))
        return replace(self, shapes=self.shapes.kept(logs - peak), robust_weight=weight)

    def describe(self) -> Json:
        """Return the prior's parameters; the ledger stores their digest."""
        return {
            "family": "joint",
            "robust": [prior.describe() for prior in self.robust],
            "robust_weight": self.robust_weight,
            "shapes": [] if self.shapes is None else [self.shapes.describe()],
        }
