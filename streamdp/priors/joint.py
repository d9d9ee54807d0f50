"""Priors of several quantiles at once: quantiles of one batch move together.

The measure of an ordered tuple o is

    μ(o) = w_0·Π_j robust_j(o_j) + Σ_c w_c·Π_j bump(o_j; centre_cj, width_cj),

robust priors of each quantile alone, and a mixture of shapes: component c believes that quantile j
lies within a few widths of its centre, so the data choose one component instead of m values.
Any positive measure is a valid base measure, so privacy does not depend on any of it.
"""

from __future__ import annotations

import functools
import hashlib
import math
from dataclasses import dataclass, replace

import numpy as np

from streamdp.types import FloatArray, Json, Prior

REACH = 3.0
"""Widths to either side of its centre that a bump covers."""

_LEAST = -500.0
"""ln of the least weight of the robust component, so that nothing becomes impossible."""

_NEGLIGIBLE = -40.0
"""ln of the weight, of the largest, below which releases have ruled a shape out."""


@dataclass(frozen=True, slots=True, eq=False)
class Shapes:
    """Weighted products of bumps.

    A bump is discrete: `nodes` points, evenly spaced over ±`REACH` widths, with logistic weights;
    each point stands for its share of the bump.

    Args:
        log_weights: ln w_c, shape (components,).
        centres: In the unit of the column, non-decreasing along the targets, shape
            (components, m).
        widths: Positive, same shape.
        nodes: Points of a bump.
        log_mass: ln of the mass of a bump.
    """

    log_weights: FloatArray
    centres: FloatArray
    widths: FloatArray
    nodes: int = 1
    log_mass: float = 0.0

    def points(self) -> FloatArray:
        """Values of the points, shape (components, m, nodes)."""
        return np.asarray(self.centres[..., None] + self.widths[..., None] * self.offsets())

    def offsets(self) -> FloatArray:
        """Points of a bump of centre 0 and width 1."""
        return np.asarray((np.arange(self.nodes) + 0.5) * (2.0 * REACH / self.nodes) - REACH)

    def log_bump(self) -> FloatArray:
        """ln of their weights, sech² of the offset, summing to e^`log_mass`."""
        density = np.cosh(self.offsets()) ** -2.0
        return np.asarray(np.log(density / density.sum()) + self.log_mass)

    def log_densities(self, targets: list[int], values: FloatArray) -> FloatArray:
        """ln of weight times density of each component at values of some targets."""
        widths = self.widths[:, targets]
        offsets = np.abs(values - self.centres[:, targets]) / widths
        log_sech = math.log(2.0) - offsets - np.log1p(np.exp(-2.0 * offsets))
        logs = 2.0 * log_sech - np.log(2.0 * widths) + self.log_mass
        return np.asarray(self.log_weights + logs.sum(axis=1))

    def kept(self, log_weights: FloatArray) -> Shapes:
        """The components that new weights do not rule out; one at least."""
        kept = log_weights >= min(_NEGLIGIBLE, float(log_weights.max()))
        return replace(
            self,
            log_weights=log_weights[kept],
            centres=self.centres[kept],
            widths=self.widths[kept],
        )

    def weighted(self, log_weight: float) -> Shapes:
        """All components with their weights times e^log_weight."""
        return replace(self, log_weights=self.log_weights + log_weight)

    def only(self, targets: tuple[int, ...]) -> Shapes:
        """The shapes of some of the targets."""
        chosen = list(targets)
        return replace(self, centres=self.centres[:, chosen], widths=self.widths[:, chosen])

    @functools.lru_cache(maxsize=16)  # noqa: B019
    def describe(self) -> Json:
        """How many, and the digest of weights, centres and widths; found once, never changed."""
        return {
            "components": len(self.log_weights),
            "nodes": self.nodes,
            "log_mass": self.log_mass,
            "sha256": digest_of(self.log_weights, self.centres, self.widths),
        }


def digest_of(*numbers: FloatArray) -> str:
    """SHA-256 of arrays, the same on every machine."""
    digest = hashlib.sha256()
    for each in numbers:
        digest.update(np.ascontiguousarray(each, dtype="<f8").tobytes())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class JointPrior:
    """Robust priors, one a quantile, and perhaps shapes beside them.

    Args:
        robust: Full support; shape (m,).
        shapes: Groups of weighted products of bumps.
        robust_weight: w_0; weights need not sum to one.

    Raises:
        ValueError: robust_weight is not positive.
    """

    robust: tuple[Prior, ...]
    shapes: tuple[Shapes, ...] = ()
    robust_weight: float = 1.0

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
        if not self.shapes or not released:
            return self
        targets, values = list(released), np.array(list(released.values()))
        robust = math.log(self.robust_weight)
        for target, value in released.items():
            edges = np.array([value - width / 2.0]), np.array([value + width / 2.0])
            robust += float(self.robust[target].log_mass(*edges)[0]) - math.log(width)
        logs = [group.log_densities(targets, values) for group in self.shapes]
        peak = max(robust, *(float(each.max()) for each in logs))
        groups = tuple(
            group.kept(each - peak) for group, each in zip(self.shapes, logs, strict=True)
        )
        return replace(self, shapes=groups, robust_weight=math.exp(max(robust - peak, _LEAST)))

    def with_bumps_of(self, log_mass: float) -> JointPrior:
        """The same with another mass of each bump."""
        if all(group.log_mass == log_mass for group in self.shapes):
            return self
        return replace(
            self, shapes=tuple(replace(group, log_mass=log_mass) for group in self.shapes)
        )

    def only(self, targets: tuple[int, ...]) -> JointPrior:
        """The prior of some of the targets."""
        if len(targets) == len(self.robust):
            return self
        shapes = tuple(group.only(targets) for group in self.shapes)
        return JointPrior(tuple(self.robust[j] for j in targets), shapes, self.robust_weight)

    def describe(self) -> Json:
        """Its parameters; the ledger stores their digest."""
        return {
            "family": "joint",
            "robust": [prior.describe() for prior in self.robust],
            "robust_weight": self.robust_weight,
            "shapes": [group.describe() for group in self.shapes],
        }
