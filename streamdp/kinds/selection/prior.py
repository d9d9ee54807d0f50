"""A prior over candidates learned from past choices.

The score of candidate i, in units of the exponent, is believed to be θ_i: a batch is then chosen
with p_i ∝ μ_i·e^(θ_i), μ the prior it was drawn under. After candidate j is released,

    θ ← θ + η·K·(1[j] - p),        μ = (1 - λ)·softmax(θ) + λ/|C|,

a step up the log-likelihood of the choice. A draw that only echoes its prior moves nothing on
average, since then its expectation is p. K smooths over parameters of rules that are alike: what is
learned of one threshold is learned of its neighbours.

Reads releases alone: post-processing, no privacy cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from streamdp.types import FloatArray

STEP = 1.0
"""η, for every release."""

ROBUST_WEIGHT = 0.05
"""λ: share of the uniform law, so that no candidate is ever ruled out."""

GUESSED = 4.0
"""θ of a publicly guessed candidate before any release; by K, those that are alike have a part."""

LIKENESS = 0.125
"""Width of K along a parameter, as a share of its values."""


@dataclass(frozen=True, slots=True, eq=False)
class ChoicePrior:
    """Law of the next choice before the batch is looked at.

    Args:
        shape: Values of each parameter of a grid of rules; of a list, its length.
        ordered: Whether neighbours along each axis are alike.
    """

    shape: tuple[int, ...]
    ordered: bool

    def start(self, guess: int | None = None) -> FloatArray:
        """θ before any release, shape (candidates,).

        Args:
            guess: A candidate that is publicly thought to be about the best.
        """
        scores = np.zeros(int(np.prod(self.shape)))
        if guess is not None:
            scores[guess] = GUESSED
        return self._smooth(scores.reshape(self.shape)).reshape(-1)

    def log_prior(self, scores: FloatArray) -> FloatArray:
        """ln μ of each candidate."""
        weights = np.exp(scores - scores.max())
        share = weights / weights.sum()
        return np.asarray(np.log((1.0 - ROBUST_WEIGHT) * share + ROBUST_WEIGHT / len(share)))

    def observe(self, scores: FloatArray, chosen: Sequence[int]) -> FloatArray:
        """θ after a release of one candidate, or of several in the order of their draws."""
        logits = self.log_prior(scores) + scores
        moved = np.zeros(self.shape)
        for number, winner in enumerate(chosen):
            left = logits.copy()
            left[list(chosen[:number])] = -np.inf
            law = np.exp(left - left.max())
            surprise = -law / law.sum()
            surprise[winner] += 1.0
            moved += self._smooth(surprise.reshape(self.shape))
        moved_scores = scores + STEP * moved.reshape(-1)
        return np.asarray(moved_scores - moved_scores.mean())

    def _smooth(self, surprise: FloatArray) -> FloatArray:
        if not self.ordered:
            return surprise
        for axis, size in enumerate(self.shape):
            places = np.arange(size) / (LIKENESS * size)
            kernel = np.exp(-0.5 * (places[:, None] - places) ** 2)
            surprise = np.moveaxis(np.moveaxis(surprise, axis, -1) @ kernel, -1, axis)
        return surprise


def virtual_records(log_prior: FloatArray, exponent: Fraction) -> list[int]:
    """Public integers added to the scores so that the draw follows the prior: ln(μ)/c, rounded.

    Args:
        log_prior: ln μ of each candidate.
        exponent: c of the mechanism.
    """
    return [round(float(each) / float(exponent)) for each in log_prior]
