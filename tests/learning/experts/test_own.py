"""Both kinds of own moves, against samples and against what they are defined as."""

from __future__ import annotations

import numpy as np

from streamdp.learning.experts.belief.density import Usual
from streamdp.learning.experts.memory.own import own_covariances, whitened

TARGETS = np.arange(1, 10) / 10
USUAL = Usual(np.linspace(0.5, 2.0, 9), np.eye(9), 0.0)


def test_samples_of_one_law_vary_as_the_first_kind_does() -> None:
    """Ranks of the deciles of 400 even records have its correlations, to what chance explains."""
    rng = np.random.default_rng(5)
    deciles = np.quantile(rng.random((4000, 400)), TARGETS, axis=1)
    kind = USUAL.in_ranks(own_covariances(np.array([1.0, 0.0]), TARGETS, USUAL))[0]
    sizes = np.sqrt(np.diag(kind))
    assert np.abs(np.corrcoef(deciles) - kind / sizes[:, None] / sizes).max() < 0.05
    ratios = np.diag(np.cov(deciles)) / np.diag(kind)
    assert ratios.std() < 0.05 * ratios.mean()


def test_either_kind_has_independent_parts_of_its_variance() -> None:
    """In its own directions each kind has the variance that it was given, and nothing between."""
    variances = np.array([0.04, 0.01])
    own = own_covariances(variances, TARGETS, USUAL)
    parts = whitened(own, TARGETS, USUAL.density)
    assert np.allclose(parts, variances[:, None])
    stacked = np.stack([own, 2.0 * own], axis=1)
    assert np.allclose(whitened(stacked, TARGETS, USUAL.density)[:, 1], 2.0 * parts)


def test_one_quantile_has_both_kinds_alike() -> None:
    """There is no neighbour to tell them by."""
    one = Usual(np.array([0.7]), np.eye(1), 0.0)
    own = own_covariances(np.array([0.02, 0.02]), np.array([0.5]), one)
    assert np.allclose(own[0], own[1])
