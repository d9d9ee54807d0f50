"""The shapes one believes in with bounds or a guess alone: shift, scale and profile unknown.

A profile z_j is the quantile function of a standard law at the targets; a component puts the
quantiles at a + b·z_j. Shifts a are spaced by a share of b and scales b fall geometrically, so
some component lies near any data of the profile. Each profile, then each scale, then each shift
has an equal share of the weight.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from streamdp.priors.joint import JointPrior, Shapes
from streamdp.types import FloatArray, Prior

REACH = 8.0
"""Guessed scales to either side of the guess within which there are shapes."""

ROBUST_WEIGHT = 0.05
"""Share of the robust priors: the error is at most ln(1/share)/c worse than with them alone."""


STEP, RATIO, WIDTH = 0.1, 1.12, 0.02
"""Distance of neighbouring shifts in scales, quotient of neighbouring scales, and width of a bump
in scales. Many components of one point a target each err less than fewer that are wider."""

LOG_SCALES, WIDEST = (0.25, 3.0), 0.3
"""Least and largest b of positive columns, and the largest width of their bumps, as logarithms."""

LINEAR = ("normal", "logistic", "right", "left")
"""Profiles of any column."""

LOGARITHMIC = ("normal", "logistic")
"""Profiles of the logarithm of a positive column."""


def profile(quantiles: tuple[Fraction, ...], name: str) -> FloatArray:
    """Quantiles of a standard law at the targets, shape (m,).

    `normal` and `logistic` have variance one; `right` is exponential, `left` its mirror image.

    Raises:
        ValueError: Another name.
    """
    share = np.array([float(quantile) for quantile in quantiles])
    match name:
        case "normal":
            return np.array([NormalDist().inv_cdf(each) for each in share.tolist()])
        case "logistic":
            return np.asarray(np.log(share / (1.0 - share)) * (math.sqrt(3.0) / math.pi))
        case "right":
            return np.asarray(-np.log(1.0 - share) - math.log(2.0))
        case "left":
            return np.asarray(np.log(share) + math.log(2.0))
    raise ValueError(f"no profile is called {name!r}")


def tukey(shares: FloatArray, tail: FloatArray) -> FloatArray:
    """Quantiles of Tukey's laws, (p^t - (1 - p)^t)/t; for t = 0, ln p/(1 - p)."""
    logs = np.log(shares), np.log1p(-shares)
    power = np.where(tail == 0.0, 1.0, tail)
    curved = (np.exp(power * logs[0]) - np.exp(power * logs[1])) / power
    return np.asarray(np.where(tail == 0.0, logs[0] - logs[1], curved))


def linear_shapes(
    standard: FloatArray,
    shifts: tuple[float, float],
    scales: tuple[float, float],
) -> Shapes:
    """Components a + b·z, a in `shifts`, b in `scales`, equal weights by scale, then by shift.

    Args:
        standard: z, shape (m,).
        shifts: Least and largest a.
        scales: Least and largest b, positive.
    """
    levels = 1 + math.ceil(math.log(scales[1] / scales[0]) / math.log(RATIO) - 1e-9)
    parts = []
    for level in range(levels):
        scale, (lower, upper) = scales[1] * RATIO**-level, shifts
        count = max(1, round((upper - lower) / (STEP * scale)))
        at = lower + (np.arange(count) + 0.5) * ((upper - lower) / count)
        centres = at[:, None] + scale * standard
        widths = np.full(centres.shape, WIDTH * scale)
        parts.append(Shapes(np.full(count, -math.log(count)), centres, widths))
    return _mixed(parts)


def _mixed(parts: Sequence[Shapes]) -> Shapes:
    """All components of some shapes that have equal shares of the weight."""
    weights = np.concatenate([part.log_weights for part in parts]) - math.log(len(parts))
    centres = np.concatenate([part.centres for part in parts])
    return Shapes(weights, centres, np.concatenate([part.widths for part in parts]))


def log_shapes(standard: FloatArray, values: tuple[float, float]) -> Shapes:
    """Components exp(a + b·z) for positive columns, e^a in `values`."""
    logs = linear_shapes(standard, (math.log(values[0]), math.log(values[1])), LOG_SCALES)
    centres = np.exp(np.minimum(logs.centres, 700.0))
    return replace(logs, centres=centres, widths=centres * np.minimum(logs.widths, WIDEST))


@functools.lru_cache(maxsize=16)
def shapes_from_bounds(
    quantiles: tuple[Fraction, ...], lower: float, upper: float, resolution: float
) -> Shapes:
    """All profiles, shifted over the bounds, with scales from a 40th to a quarter of them.

    A column that is not negative, and of bounds a thousand cells apart, has logarithmic profiles
    too.
    """
    width = upper - lower
    scales = (width / 40.0, width / 4.0)
    groups = [linear_shapes(profile(quantiles, name), (lower, upper), scales) for name in LINEAR]
    if lower >= 0.0 and upper > 1000.0 * max(lower, resolution):
        values = (max(lower, resolution), upper)
        groups += [log_shapes(profile(quantiles, name), values) for name in LOGARITHMIC]
    return _mixed(groups)


@functools.lru_cache(maxsize=16)
def shapes_from_guess(quantiles: tuple[Fraction, ...], location: float, scale: float) -> Shapes:
    """All linear profiles within 8 scales of the location, at a quarter to four times the scale."""
    shifts = (location - REACH * scale, location + REACH * scale)
    scales = (scale / 4.0, scale * 4.0)
    return _mixed([linear_shapes(profile(quantiles, name), shifts, scales) for name in LINEAR])


def with_shapes(robust: tuple[Prior, ...], shapes: Shapes) -> JointPrior:
    """Shapes, kept robust by the priors of each quantile with a share of `ROBUST_WEIGHT`."""
    return JointPrior(robust, shapes, ROBUST_WEIGHT / (1.0 - ROBUST_WEIGHT))
