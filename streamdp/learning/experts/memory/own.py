"""Moves of quantiles beside the common ones: as samples vary, and each quantile alone.

Ranks of n records vary about those of their law like a Brownian bridge: neighbours alike, with
covariance min(p, q) - p·q over n. Where records are equal or laws have gaps, quantiles move alone.
The variance of either kind is learned from releases, since batches are no samples of one law.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from streamdp.learning.experts.belief.density import Usual
from streamdp.types import FloatArray

FIRST_OWN, LEAST_OWN, MOST_OWN = (0.02, 0.014), (0.002, 0.004), 0.2
"""Deviation of a quantile, in ranks, as samples vary and alone: believed at first, and bounds."""


def first_own() -> FloatArray:
    """Variances of both kinds before any release, in squared ranks, shape (2,)."""
    return np.square(FIRST_OWN)


def own_covariances(variances: FloatArray, targets: FloatArray, usual: Usual) -> FloatArray:
    """Covariance of the quantiles by either kind, in values, shape (2, m, m).

    Args:
        variances: Of either kind, shape (2,).
        targets: Shape (m,).
        usual: How a batch looks.
    """
    each = usual.in_values(variances[:, None, None] * _kinds(tuple(targets.tolist()))[0])
    each[1] += np.eye(len(targets)) * (usual.resolution / 4.0) ** 2
    return each


def whitened(covariances: FloatArray, targets: FloatArray, density: FloatArray) -> FloatArray:
    """Variances in the directions of either kind that are independent, in squared ranks.

    Args:
        covariances: In values, one a kind, shape (2, ..., m, m).
        targets: Shape (m,).
        density: At each quantile, shape (m,).

    Returns:
        Shape (2, ..., m).
    """
    apart = _kinds(tuple(targets.tolist()))[1] * density
    apart = apart.reshape(2, *[1] * (covariances.ndim - 3), *apart.shape[1:])
    return np.asarray(((apart @ covariances) * apart).sum(axis=-1))


@lru_cache(maxsize=64)
def _kinds(targets: tuple[float, ...]) -> tuple[FloatArray, FloatArray]:
    """Covariances of either kind, of mean variance one, and what makes their parts independent."""
    each = np.array(targets)
    bridge = np.minimum.outer(each, each) - np.outer(each, each)
    kinds = np.array([bridge * (len(each) / np.trace(bridge)), np.eye(len(each))])
    apart = np.asarray(np.linalg.inv(np.linalg.cholesky(kinds)))
    kinds.flags.writeable = apart.flags.writeable = False
    return kinds, apart
