"""Location-scale families and the uniform, each known by the log mass of an interval.

A mass is a function of the standardised ends alone, so a stretch weighs what its parts weigh.
Masses are formed without a difference of two distribution functions, which is 0 beyond 37 scales
of a Laplace: every `log_mass` is accurate to a relative 1e-12 at a thousand scales and beyond.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from streamdp.types import FloatArray, Json

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
