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

SIZES = (0.01, 0.03, 0.1, 0.3)
"""Standard deviations τ of the experts' mean losses, which lie in [0, 1]."""

_JITTER = 1e-8


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
class _Belief:
    """One prior in coordinates where the noise is white and the prior diagonal."""

    whiten: FloatArray
    restore: FloatArray
    variances: FloatArray

    def evidence_and_mean(self, mean: FloatArray, noise: float) -> tuple[float, FloatArray]:
        seen = self.whiten @ mean
        total = self.variances + noise
        evidence = -0.5 * float(np.sum(seen * seen / total + np.log(total)))
        return evidence, self.restore @ (self.variances / total * seen)


@dataclass(frozen=True, slots=True, eq=False)
class Leader:
    """Weights from a posterior over mean losses; made once for public parameters.

    Args:
        beliefs: The grid of priors.
        experts: How many there are.
    """

    beliefs: tuple[_Belief, ...]
    experts: int

    @classmethod
    def of(cls, kernels: Sequence[FloatArray], noise: FloatArray) -> Leader:
        """A leader for experts of these likenesses under this noise.

        Args:
            kernels: Correlations between experts, each of shape (k, k).
            noise: Covariance C of one release's losses, shape (k, k).
        """
        experts = len(noise)
        contrasts = _contrasts(experts)
        white = np.linalg.cholesky(contrasts.T @ noise @ contrasts + _JITTER * np.eye(experts - 1))
        inverse = np.linalg.inv(white)
        beliefs = []
        for kernel in kernels:
            alike = contrasts.T @ (kernel + _JITTER * np.eye(experts)) @ contrasts
            variances, axes = np.linalg.eigh(inverse @ alike @ inverse.T)
            whiten, restore = axes.T @ inverse @ contrasts.T, contrasts @ white @ axes
            beliefs += [_Belief(whiten, restore, size**2 * variances.clip(0.0)) for size in SIZES]
        return cls(tuple(beliefs), experts)

    def weights(self, seen: Moments | None) -> FloatArray:
        """All weight on the expert that leads; the same for all before anything was seen."""
        if seen is None:
            return np.full(self.experts, 1.0 / self.experts)
        found = [belief.evidence_and_mean(seen.mean, seen.noise) for belief in self.beliefs]
        evidence = np.array([each for each, _ in found])
        shares = np.exp(evidence - evidence.max())
        mean = (shares / shares.sum()) @ np.array([mean for _, mean in found])
        weights = np.zeros(self.experts)
        weights[int(mean.argmin())] = 1.0
        return weights


def _contrasts(experts: int) -> FloatArray:
    """An orthonormal basis of the vectors that sum to nought, shape (k, k - 1)."""
    centred = np.eye(experts) - 1.0 / experts
    return np.asarray(np.linalg.svd(centred)[0][:, : experts - 1])
