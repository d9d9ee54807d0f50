"""Noise at a price: discrete Laplace for epsilon, discrete Gaussian for rho."""

from __future__ import annotations

from streamdp.mechanisms.additive_noise import AdditiveNoise
from streamdp.mechanisms.gaussian_noise import GaussianNoise
from streamdp.privacy.price import Price
from streamdp.types import NoiseLaw

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
