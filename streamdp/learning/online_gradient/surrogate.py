"""The surrogate of a prior's quality: -ln of the mass it gives to an interval.

For a location-scale family with log-concave density, θ = location/scale and φ = 1/scale, the loss
of the interval [a, b] is jointly convex in (θ, φ): it is censored regression. For m quantiles the
loss is ln Σ_i exp U_i, convex too.

References:
    Pratt 1981; Burridge 1981 (convexity); Khodak et al. 2023, section 4 (the surrogate).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.types import FloatArray


@dataclass(frozen=True, slots=True)
class SurrogateLoss:
    """Losses of m quantiles and their gradients, each of shape (m,)."""

    value: FloatArray
    by_theta: FloatArray
    by_phi: FloatArray

    def gradient(self) -> FloatArray:
        """Gradient of ln Σ_i exp U_i by θ and by φ, shape (m, 2): the worst quantiles lead."""
        shares = np.exp(self.value - self.value.max())
        shares /= shares.sum()
        return np.asarray(np.column_stack((self.by_theta, self.by_phi)) * shares[:, None])


def laplace(
    theta: FloatArray, phi: FloatArray, lower: FloatArray, upper: FloatArray
) -> SurrogateLoss:
    """U for a Laplace prior and intervals [lower, upper], lower < upper; all of shape (m,).

    With offset u = φ(a + b)/2 - θ and radius r = φ(b - a)/2 the mass is e^-|u|·sinh r outside the
    interval and 1 - e^-r·cosh u inside.
    """
    offset, radius = phi * (lower + upper) / 2.0 - theta, phi * (upper - lower) / 2.0
    size, sign = np.abs(offset), np.sign(offset)
    outside = size >= radius
    inner = np.minimum(size, radius)
    near, far = np.exp(inner - radius), np.exp(-inner - radius)
    rest = np.maximum(-np.expm1(inner - radius) / 2.0 - np.expm1(-inner - radius) / 2.0, 1e-300)
    log_sinh = radius + np.log(-np.expm1(-2.0 * radius) / 2.0)
    value = np.where(outside, size - log_sinh, -np.log(rest))
    by_offset = sign * np.where(outside, 1.0, (near - far) / 2.0 / rest)
    by_radius = np.where(outside, -1.0 / np.tanh(radius), -(near + far) / 2.0 / rest)
    by_phi = by_offset * (lower + upper) / 2.0 + by_radius * (upper - lower) / 2.0
    return SurrogateLoss(value, -by_offset, by_phi)
