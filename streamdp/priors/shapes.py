"""The shapes one believes in with bounds or a guess alone: shift, scale and profile unknown.

A profile z_j is the quantile function of a standard law at the targets; a component puts the
quantiles at a + b·z_j. Shifts a are spaced by a share of b and scales b fall geometrically, so
some component lies near any data of the profile. Each profile, then each scale, then each shift
has an equal share of the weight.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from streamdp.priors.joint import JointPrior, Shapes
from streamdp.types import FloatArray, Prior

ROBUST_WEIGHT = 0.05
"""w_0: the error is at most ln(1/w_0)/c worse than with the robust priors alone."""

SHIFT_STEP = 0.2
"""Distance of neighbouring shifts, in scales."""

SCALE_RATIO = 1.25
"""Quotient of neighbouring scales."""

BUMP = 0.1
"""Width of a bump, in scales."""


def profile(quantiles: tuple[Fraction, ...], name: str) -> FloatArray:
    """Standard quantiles: `symmetric` is logistic, `right` and `left` exponential; shape (m,)."""
    share = np.array([float(quantile) for quantile in quantiles])
    if name == "symmetric":
        return np.asarray(np.log(share / (1.0 - share)) * (math.sqrt(3.0) / math.pi))
    if name == "right":
        return np.asarray(-np.log(1.0 - share) - math.log(2.0))
    return np.asarray(np.log(share) + math.log(2.0))


def linear_shapes(
    quantiles: tuple[Fraction, ...],
    lower: float,
    upper: float,
    largest: float,
    smallest: float,
    name: str = "symmetric",
) -> Shapes:
    """Components a + b·z over shifts in [lower, upper] and scales from `largest` to `smallest`."""
    standard = profile(quantiles, name)
    parts = [
        _components(shifts, scale, standard)
        for scale, shifts in _ladder(lower, upper, largest, smallest)
    ]
    return mixture_of(parts)


def log_shapes(
    quantiles: tuple[Fraction, ...],
    lower: float,
    upper: float,
    largest: float = 3.0,
    smallest: float = 0.25,
) -> Shapes:
    """Components exp(a + b·z) for positive columns: shifts and scales of the logarithm."""
    standard = profile(quantiles, "symmetric")
    parts = []
    for scale, shifts in _ladder(math.log(lower), math.log(upper), largest, smallest):
        logs = _components(shifts, scale, standard)
        centres = np.exp(np.minimum(logs.centres, 700.0))
        parts.append(Shapes(logs.log_weights, centres, centres * np.minimum(logs.widths, 0.3)))
    return mixture_of(parts)


def mixture_of(parts: list[Shapes]) -> Shapes:
    """All components of several shapes, each part with an equal share of the weight."""
    return Shapes(
        np.concatenate([part.log_weights for part in parts]) - math.log(len(parts)),
        np.concatenate([part.centres for part in parts]),
        np.concatenate([part.widths for part in parts]),
    )


def with_shapes(robust: tuple[Prior, ...], shapes: Shapes) -> JointPrior:
    """Shapes kept robust by the priors of each quantile."""
    log_weights = shapes.log_weights + math.log1p(-ROBUST_WEIGHT)
    weighted = Shapes(log_weights, shapes.centres, shapes.widths)
    return JointPrior(robust, weighted, ROBUST_WEIGHT)


def _ladder(
    lower: float, upper: float, largest: float, smallest: float
) -> list[tuple[float, FloatArray]]:
    levels = 1 + math.ceil(math.log(largest / smallest) / math.log(SCALE_RATIO))
    ladder = []
    for level in range(levels):
        scale = largest * SCALE_RATIO**-level
        count = max(1, round((upper - lower) / (SHIFT_STEP * scale)))
        steps = np.asarray(np.arange(count) + 0.5, dtype=np.float64)
        ladder.append((scale, lower + steps * ((upper - lower) / count)))
    return ladder


def _components(shifts: FloatArray, scale: float, standard: FloatArray) -> Shapes:
    centres = shifts[:, None] + scale * standard
    widths = np.full(centres.shape, BUMP * scale)
    return Shapes(np.full(len(shifts), -math.log(len(shifts))), centres, widths)
