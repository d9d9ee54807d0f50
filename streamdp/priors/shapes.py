"""Priors for bounds or a guess alone: families of laws, and mixtures over shift, scale and profile.

A profile z_j is the quantile function of a standard law at the targets; a component puts the
quantiles at a + b·z_j. Shifts a are spaced by a share of b and scales b fall geometrically, so
some component lies near any data of the profile. Each profile, then each scale, then each shift
has an equal share of the weight.

A family is location-scale or the uniform, known by the log mass of an interval. A mass is a
function of the standardised ends alone, so a stretch weighs what its parts weigh. Masses are formed
without a difference of two distribution functions, which is 0 beyond 37 scales of a Laplace: every
`log_mass` is accurate to a relative 1e-12 at a thousand scales and beyond.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from statistics import NormalDist
from typing import ClassVar

import numpy as np

from streamdp.priors.joint import JointPrior, Shapes
from streamdp.types import FloatArray, Grid, Json, Prior

_LOG_2 = math.log(2.0)
_LOG_PI = math.log(math.pi)


@dataclass(frozen=True, slots=True)
class _Family:
    family: ClassVar[str]

    def describe(self) -> Json:
        """Name of the family, and its parameters."""
        return {"family": self.family, **asdict(self)}


@dataclass(frozen=True, slots=True)
class Uniform(_Family):
    """Constant density on [lower, upper]."""

    family = "uniform"
    lower: float
    upper: float

    def log_mass(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """ln of |[lower, upper) ∩ [self.lower, self.upper]| / (self.upper - self.lower)."""
        width = np.minimum(upper, self.upper) - np.maximum(lower, self.lower)
        with np.errstate(divide="ignore"):
            log_width = np.log(np.maximum(width, 0.0))
        return np.asarray(log_width - math.log(self.upper - self.lower))


@dataclass(frozen=True, slots=True)
class Cauchy(_Family):
    """Density 1/(π·scale·(1 + z²)), z = (x - location)/scale: the robust choice without bounds."""

    family = "cauchy"
    location: float
    scale: float

    def log_mass(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """ln of (arctan b - arctan a)/π = ln of atan2(b - a, 1 + a·b)/π, free of cancellation."""
        left = (lower - self.location) / self.scale
        right = (upper - self.location) / self.scale
        width = np.maximum(right - left, 0.0)
        with np.errstate(divide="ignore", over="ignore"):
            return np.log(np.arctan2(width, 1.0 + left * right)) - _LOG_PI


@dataclass(frozen=True, slots=True)
class HalfCauchy(_Family):
    """A Cauchy folded to the right of its location: for quantities that are not negative."""

    family = "half-cauchy"
    location: float
    scale: float

    def log_mass(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """ln of twice the Cauchy mass right of the location."""
        right = np.maximum(lower, self.location), np.maximum(upper, self.location)
        return Cauchy(self.location, self.scale).log_mass(*right) + _LOG_2


@dataclass(frozen=True, slots=True)
class Laplace(_Family):
    """Density exp(-|z|)/(2·scale), z = (x - location)/scale."""

    family = "laplace"
    location: float
    scale: float

    def log_mass(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """ln of the mass, by expm1 of the width from the end that is nearer to the location."""
        left = (lower - self.location) / self.scale
        right = (upper - self.location) / self.scale
        width = np.maximum(right - left, 0.0)
        near = np.maximum(np.maximum(left, -right), 0.0)
        with np.errstate(divide="ignore"):
            one_side = np.log(-np.expm1(-width)) - near
            below, above = np.minimum(left, 0.0), np.maximum(right, 0.0)
            both_sides = np.log(-np.expm1(below) - np.expm1(-above))
        straddles = (left < 0.0) & (right > 0.0)
        return np.asarray(np.where(straddles, both_sides, one_side)) - _LOG_2


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


@dataclass(frozen=True, slots=True)
class Mixture:
    """Σ_k w_k·prior_k.

    With weight λ on a robust prior, the error of a draw is at most (1/c)·ln(1/λ) worse than with
    the robust prior alone (Khodak et al. 2023, section 3.2).

    Args:
        weights: Positive, shape (k,); they need not sum to one.
        components: Priors, shape (k,).
    """

    weights: tuple[float, ...]
    components: tuple[Prior, ...]

    def log_mass(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """ln Σ_k w_k·mass_k of each interval."""
        terms = np.stack(
            [
                component.log_mass(lower, upper) + math.log(weight)
                for weight, component in zip(self.weights, self.components, strict=True)
            ]
        )
        peak = terms.max(axis=0)
        safe = np.where(np.isfinite(peak), peak, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.exp(terms - safe).sum(axis=0)) + safe)

    def describe(self) -> Json:
        """Weights and components."""
        return {
            "family": "mixture",
            "weights": list(self.weights),
            "components": [component.describe() for component in self.components],
        }


def robust_laplaces(
    locations: Iterable[float], scales: Iterable[float], robust: Prior, weight: float
) -> tuple[Prior, ...]:
    """Prior of each quantile: (1 - weight)·Laplace(location, scale) + weight·robust."""
    shares = (1.0 - weight, weight)
    return tuple(
        Mixture(shares, (Laplace(float(location), float(scale)), robust))
        for location, scale in zip(locations, scales, strict=True)
    )


SHARES = (0.05, 0.25, 0.75, 0.95)
"""Ends of the middle 90 % and 50 %."""

PARTS, STEPS = 64, 10
"""Parts that a stretch is cut into at once, and cuts: of the widest grid a ten-thousandth of a cell
is left. Masses of many stretches take a prior hardly longer than the mass of one."""


def band(prior: Prior, grid: Grid, shares: tuple[float, ...] = SHARES) -> FloatArray:
    """Return the quantiles of a prior that is restricted to the grid: its central intervals."""
    half = float(grid.resolution) / 2.0
    ends = grid.value(grid.lower) - half, grid.value(grid.upper) + half
    wanted = np.log(np.array(shares))
    low, width = np.full(len(shares), ends[0]), ends[1] - ends[0]
    whole = float(prior.log_mass(*(np.array([end]) for end in ends))[0])
    for _ in range(STEPS):
        width /= PARTS
        tried = low[:, None] + width * np.arange(1, PARTS)
        masses = prior.log_mass(np.full(tried.size, ends[0]), tried.ravel()).reshape(tried.shape)
        low = low + width * (masses - whole < wanted[:, None]).sum(axis=1)
    return np.asarray(low + width / 2.0)
