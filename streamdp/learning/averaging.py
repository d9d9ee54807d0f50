"""Filters that know the public features beside filters that do not, weighed by Bayes.

A coefficient that has nothing to explain costs accuracy while it is learned, and more so where
releases say little; a level without features cannot follow what they explain. So both are kept.
Each learns from every release as if it were alone, and the release's evidence moves weight from one
to the other; a share of it always returns. First beliefs of coefficients are wide, which speaks
against them until they explain something.

References:
    Hoeting, Madigan, Raftery & Volinsky 1999 (model averaging); Herbster & Warmuth 1998.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from streamdp.learning.belief import Belief
from streamdp.learning.filters import Filters
from streamdp.learning.update import Posterior, posterior
from streamdp.types import FloatArray, Json

SHARE = 0.01
"""Weight that is spread over both after each release."""


@dataclass(frozen=True, slots=True)
class Averaging:
    """Filters and how far they are trusted; without features there is one of them.

    Args:
        parts: Those without features first.
        trust: Positive weights that sum to one, shape (parts,).
    """

    parts: tuple[Filters, ...]
    trust: FloatArray

    @classmethod
    def even(cls, *parts: Filters) -> Self:
        """Parts that are trusted alike."""
        return cls(parts, np.full(len(parts), 1.0 / len(parts)))

    def to_json(self) -> Json:
        """Exact; without features that of the filters."""
        if len(self.parts) == 1:
            return self.parts[0].to_json()
        level, informed = self.parts
        return level.to_json() | {"informed": informed.to_json(), "trust": self.trust.tolist()}

    @classmethod
    def from_json(cls, state: Json) -> Self:
        """The inverse of `to_json`; also of states whose only filters knew the features."""
        first = Filters.from_json(state)
        if "informed" in state:
            informed = Filters.from_json(state["informed"])
            return cls((first, informed), np.array(state["trust"], dtype=np.float64))
        if first.level_only:
            return cls.even(first)
        return cls.even(first.with_features(0), first.without_last())

    def with_features(self, count: int) -> Self:
        """The same with another number of features: levels stay, other coefficients start anew."""
        if len(self.parts) == 2 and count > 0:
            return replace(self, parts=(self.parts[0], self.parts[1].with_features(count)))
        level = self.parts[0]
        informed = (level.without_last().with_features(count),) if count else ()
        return self.even(level, *informed)

    def recovered(self, span: float) -> Self:
        """Filters whose coefficients are further off than the grid is wide start anew.

        Nobody trusts them by then, so that no release draws them back.
        """
        if len(self.parts) == 1:
            return self
        level, informed = self.parts
        off = informed.coefficients.copy()
        off[:, :, 0] -= level.coefficients[0, :, 0]
        if informed.finite() and np.abs(off).max() <= span:
            return self
        return replace(self, parts=(level, level.without_last().with_features(off.shape[2] - 1)))

    def lead(self) -> int:
        """Which part is trusted most; the first where they are even."""
        return int(self.trust.argmax())

    def inputs(self, features: FloatArray) -> list[FloatArray]:
        """What each part is told of a batch's features, shape (1 + d,), a 1 first."""
        return [features[: part.coefficients.shape[2]] for part in self.parts]

    def forecast(self, features: FloatArray) -> Belief:
        """What all believe together before a release."""
        each = [p.forecast(f) for p, f in zip(self.parts, self.inputs(features), strict=True)]
        if len(each) == 1:
            return each[0]
        logs = [belief.log_weights for belief in each]
        sums = [np.logaddexp.reduce(weights) for weights in logs]
        trusted = zip(logs, sums, np.log(self.trust), strict=True)
        return Belief(
            np.concatenate([weights - total + trust for weights, total, trust in trusted]),
            np.concatenate([belief.means for belief in each]),
            np.concatenate([belief.covariances for belief in each]),
        )

    def posteriors(self, before: Belief, belief: Belief) -> list[Posterior]:
        """What each part believes after a release."""
        pairs = zip(self._split(before), self._split(belief), strict=True)
        return [posterior(*pair) for pair in pairs]

    def trusted(self, belief: Belief) -> FloatArray:
        """The trust in each part after a release."""
        ends = self._ends()
        weights = np.array([each.sum() for each in np.split(belief.weights(), ends)])
        return np.asarray((1.0 - SHARE) * weights + SHARE / len(self.parts))

    def _split(self, belief: Belief) -> list[Belief]:
        whole = belief.log_weights, belief.means, belief.covariances
        split = (np.split(each, self._ends()) for each in whole)
        return [Belief(*part) for part in zip(*split, strict=True)]

    def _ends(self) -> list[int]:
        return [self.parts[0].log_weights.size] if len(self.parts) == 2 else []


def averaged(each: list[Posterior], trust: FloatArray) -> Posterior:
    """The experts of all parts as one panel."""
    if len(each) == 1:
        return each[0]
    names = [field.name for field in fields(Posterior)]
    joined = {name: np.concatenate([getattr(part, name) for part in each]) for name in names}
    shares = [part.weights * share for part, share in zip(each, trust, strict=True)]
    return Posterior(**joined | {"weights": np.concatenate(shares)})
