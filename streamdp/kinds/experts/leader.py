"""Follow the expert that leads under a posterior: for losses that are mostly noise of known law.

The mean losses of k experts are believed Gaussian around a common level, with covariance
τ²·K_w: experts whose parameters are alike have losses that are alike. Released losses are the true
ones plus noise of a known covariance C. A grid of widths w and sizes τ is averaged by how well each
explains the released means. The weight goes to the expert of the least posterior mean.

Only contrasts between experts are looked at: what all experts lose together says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from streamdp.types import FloatArray

SIZES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Standard deviations τ of the experts' mean losses, in those of the noise of one release."""

_JITTER = 1e-8
"""Added to the diagonal of a matrix that may be singular, as a part of its size."""

_LEAST = 1e-12
"""Variance of noise between experts: where a price leaves next to none, it is taken to be this."""


class Moments(Protocol):
    """A weighted mean of released losses, and how much of their noise is left in it."""

    @property
    def mean(self) -> FloatArray:
        """Weighted mean of each expert's released losses, shape (k,)."""
        ...

    @property
    def noise(self) -> float:
        """Variance of the mean over that of one release."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Leader:
    """Weights from a posterior over mean losses; made once for public parameters.

    A likeness has coordinates of its own, where the noise is white and priors are diagonal. Each
    has a prior of each of `SIZES`.

    Args:
        whiten: Into these coordinates, shape (h, k - 1, k).
        restore: Back to losses but for their level, shape (h, k, k - 1).
        variances: Of the priors there, shape (h, s, k - 1).
    """

    whiten: FloatArray
    restore: FloatArray
    variances: FloatArray

    @property
    def experts(self) -> int:
        """How many there are."""
        return int(self.whiten.shape[2])

    @classmethod
    def of(cls, kernels: Sequence[FloatArray], noise: FloatArray) -> Leader:
        """A leader for experts of these likenesses under this noise.

        Args:
            kernels: Correlations between experts, each of shape (k, k).
            noise: Covariance C of one release's losses, shape (k, k).
        """
        experts = len(noise)
        contrasts = _contrasts(experts)
        between = contrasts.T @ noise @ contrasts
        variance = max(float(np.trace(between) / (experts - 1)), _LEAST)
        white = np.linalg.cholesky(between + _JITTER * variance * np.eye(experts - 1))
        inverse = np.linalg.inv(white)
        whiten, restore, spread = [], [], []
        for kernel in kernels:
            alike = contrasts.T @ (kernel + _JITTER * np.eye(experts)) @ contrasts
            variances, axes = np.linalg.eigh(inverse @ alike @ inverse.T)
            whiten += [axes.T @ inverse @ contrasts.T]
            restore += [contrasts @ white @ axes]
            spread += [variance * np.square(SIZES)[:, None] * variances.clip(0.0)]
        return cls(np.array(whiten), np.array(restore), np.array(spread))

    def weights(self, seen: Moments | None) -> FloatArray:
        """All weight on the expert that leads; the same for all before anything was seen."""
        if seen is None:
            return np.full(self.experts, 1.0 / self.experts)
        white = (self.whiten @ seen.mean)[:, None]
        total = self.variances + seen.noise
        evidence = -0.5 * (white * white / total + np.log(total)).sum(axis=2)
        shares = np.exp(evidence - evidence.max())
        shares /= shares.sum()
        return self.first((shares[:, :, None] * self.variances / total * white).sum(axis=1))

    def noise_of(self, differences: FloatArray) -> FloatArray:
        """Variance of the noise that a release has in differences of weighted losses.

        Args:
            differences: Weights that sum to nought, shape (m, k).
        """
        return np.asarray(np.square(differences @ self.restore[0]).sum(axis=1))

    def first(self, believed: FloatArray) -> FloatArray:
        """All weight on the expert of the least loss.

        Args:
            believed: Means in the coordinates of each likeness, by its weight; shape (h, k - 1).
        """
        losses = (self.restore @ believed[:, :, None])[:, :, 0].sum(axis=0)
        weights = np.zeros(self.experts)
        weights[int(losses.argmin())] = 1.0
        return weights


def _contrasts(experts: int) -> FloatArray:
    """An orthonormal basis of the vectors that sum to nought, shape (k, k - 1)."""
    centred = np.eye(experts) - 1.0 / experts
    return np.asarray(np.linalg.svd(centred)[0][:, : experts - 1])
