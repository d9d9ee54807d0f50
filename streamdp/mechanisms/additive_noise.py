"""Integers with discrete Laplace noise: a vector of L1 sensitivity Δ at a price of ε.

    released_i = value_i + z_i,   P(z) in proportion to e^(-|z|·ε/Δ),   variance 2q/(1 - q)²,

with q = e^(-ε/Δ).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from streamdp.privacy.discrete_laplace import discrete_laplace, discrete_laplace_variance
from streamdp.privacy.events import pure
from streamdp.types import Entropy, Json


@dataclass(frozen=True, slots=True)
class AdditiveNoise:
    """Noise for a vector of integers.

    Args:
        epsilon: Price of the whole vector.
        sensitivity: The most that neighbours' vectors differ, summed over their entries.
    """

    epsilon: Fraction
    sensitivity: int

    gaussian: ClassVar[bool] = False

    @property
    def scale(self) -> Fraction:
        """Δ/ε."""
        return self.sensitivity / self.epsilon

    @property
    def variance(self) -> float:
        """Variance of the noise of one entry."""
        return discrete_laplace_variance(self.scale)

    def reach(self, level: float) -> int:
        """The least w with P(|z| <= w) >= level: P(|z| > w) = 2·q^(w + 1)/(1 + q).

        >>> AdditiveNoise(Fraction(1, 10), 1).reach(0.9)
        23
        """
        log_ratio = -1.0 / float(self.scale)
        beyond = math.log((1.0 - level) * (1.0 + math.exp(log_ratio)) / 2.0)
        return max(0, math.ceil(beyond / log_ratio - 1.0 - 1e-9))

    def event(self) -> Json:
        """The event of the vector."""
        return pure(self.epsilon)

    def draw(self, values: Iterable[int], entropy: Entropy) -> tuple[int, ...]:
        """The vector with independent noise on each entry.

        Privacy: vectors of neighbours differ by at most Δ in all, and the law of entry i moves by a
        factor of at most e^(|difference_i|·ε/Δ): pure ε. The law is exact (`discrete_laplace`).
        """
        return tuple(value + discrete_laplace(self.scale, entropy) for value in values)
