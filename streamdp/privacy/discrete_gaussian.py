"""Noise on the integers of the discrete Gaussian law, exactly as it is written.

Discrete Laplace noise is proposed and accepted with a coin of bias e^-x, x rational: there is no
logarithm, no floating-point number and no rounding, whatever the variance.

References:
    Canonne, Kamath & Steinke 2020, algorithm 3 (the sampler), theorem 4 (its privacy) and
    corollary 9 (its variance is at most σ²).
"""

from __future__ import annotations

import math
from fractions import Fraction

from streamdp.privacy.discrete_laplace import discrete_laplace
from streamdp.privacy.exponential_coins import exponential_coin
from streamdp.types import Entropy

_SAME = 50
"""σ² beyond which the variance is σ² to the last bit of a floating-point number."""


def discrete_gaussian(squared: Fraction, entropy: Entropy) -> int:
    """An integer z with P(z) in proportion to e^(-z²/(2σ²)).

    With t = floor(σ) + 1, z is proposed in proportion to e^(-|z|/t) and accepted with chance
    e^(-(|z| - σ²/t)²/(2σ²)): the product is e^(-z²/(2σ²)) times a constant.

    Args:
        squared: σ², positive, exact; not its root.
        entropy: Source of chance; how much is used depends on chance and σ² alone.

    Privacy: vectors of integers with independent noise are Δ²/(2σ²)-zCDP, Δ the largest Euclidean
    distance between those of neighbours.
    """
    top, bottom = squared.numerator, squared.denominator
    step = math.isqrt(top // bottom) + 1
    whole = 2 * top * bottom * step**2
    while True:
        proposed = discrete_laplace(Fraction(step), entropy)
        part = (abs(proposed) * step * bottom - top) ** 2
        if exponential_coin(part, whole, entropy):
            return proposed


def discrete_gaussian_variance(squared: Fraction) -> float:
    """Variance of the noise of a σ²: Σ z²·e^(-z²/(2σ²)) / Σ e^(-z²/(2σ²)), at most σ²."""
    sigma2 = float(squared)
    if sigma2 > _SAME:
        return sigma2
    weights = {z: math.exp(-z * z / (2.0 * sigma2)) for z in range(1, 400)}
    second = 2.0 * sum(z * z * weight for z, weight in weights.items())
    return min(second / (1.0 + 2.0 * sum(weights.values())), sigma2)
