"""Noise at a price: discrete Laplace for epsilon, discrete Gaussian for rho.

A vector of integers of L1 sensitivity Δ at a price of ε is released as

    released_i = value_i + z_i,   P(z) in proportion to e^(-|z|·ε/Δ),   variance 2q/(1 - q)²,

with q = e^(-ε/Δ), and one of Euclidean sensitivity Δ at a price of ρ as

    released_i = value_i + z_i,   P(z) in proportion to e^(-z²/(2σ²)),   σ² = Δ²/(2ρ).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from streamdp.privacy.draws import (
    discrete_gaussian,
    discrete_gaussian_variance,
    discrete_laplace,
    discrete_laplace_variance,
)
from streamdp.privacy.events import pure, zero_concentrated
from streamdp.privacy.price import Price
from streamdp.types import Entropy, Json, NoiseLaw


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


_SUMMED = 1e4
"""The largest σ² whose reach is summed from the law; beyond it the normal law's is taken."""


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Noise for a vector of integers.

    Args:
        rho: Price of the whole vector.
        sensitivity: The most that neighbours' vectors differ, summed over their entries.
        entries: Between how many entries that sum is divided evenly, at worst: an entry differs by
            at most sensitivity/entries, and at most so many differ.
    """

    rho: Fraction
    sensitivity: int
    entries: int = 1

    gaussian: ClassVar[bool] = True

    @property
    def squared(self) -> Fraction:
        """σ²: Δ² is sensitivity²/entries."""
        return Fraction(self.sensitivity**2, self.entries) / (2 * self.rho)

    @property
    def variance(self) -> float:
        """Variance of the noise of one entry."""
        return discrete_gaussian_variance(self.squared)

    def reach(self, level: float) -> int:
        """The least w with P(|z| <= w) >= level.

        >>> GaussianNoise(Fraction(1, 200), 1).reach(0.9)
        16
        """
        squared = float(self.squared)
        if squared > _SUMMED:
            from scipy.special import ndtri

            return math.ceil(float(ndtri((1.0 + level) / 2.0)) * math.sqrt(squared))
        most = math.ceil(40.0 * math.sqrt(squared)) + 1
        weights = [math.exp(-z * z / (2.0 * squared)) for z in range(most)]
        total, found = 2.0 * math.fsum(weights) - 1.0, 1.0
        for reach in range(1, most):
            if found >= level * total:
                return reach - 1
            found += 2.0 * weights[reach]
        return most

    def event(self) -> Json:
        """The event of the vector."""
        return zero_concentrated(self.rho)

    def draw(self, values: Iterable[int], entropy: Entropy) -> tuple[int, ...]:
        """The vector with independent noise on each entry.

        Privacy: vectors of neighbours are at most Δ apart in Euclidean distance, so their Rényi
        divergence of every order α is at most αΔ²/(2σ²) = αρ: ρ-zCDP (Canonne, Kamath & Steinke
        2020, theorem 4). The law is exact (`discrete_gaussian`).
        """
        return tuple(value + discrete_gaussian(self.squared, entropy) for value in values)


Noise = AdditiveNoise | GaussianNoise


def noise_at(price: Price, sensitivity: int, entries: int = 1) -> Noise:
    """Noise for a vector of integers.

    Args:
        price: Of the whole vector, for one record.
        sensitivity: The most that neighbours' vectors differ, summed over their entries.
        entries: Between how many entries that sum is divided evenly, at worst. Only Gaussian noise
            gains by it.
    """
    if price.measure == "rho":
        return GaussianNoise(price.amount, sensitivity, entries)
    return AdditiveNoise(price.amount, sensitivity)


def law_of(noise: Noise) -> NoiseLaw:
    """The law of the noise, as a measurement keeps it."""
    if isinstance(noise, GaussianNoise):
        return NoiseLaw("rho", noise.rho, noise.sensitivity, noise.entries)
    return NoiseLaw("epsilon", noise.epsilon, noise.sensitivity)


def noise_of(law: NoiseLaw) -> Noise:
    """The noise of a measurement.

    >>> from fractions import Fraction
    >>> round(noise_of(NoiseLaw("epsilon", Fraction(1, 10))).variance, 3)
    199.833
    """
    return noise_at(Price(law.amount, law.measure), law.sensitivity, law.entries)
