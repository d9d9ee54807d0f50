"""Baselines: no learning, and the last release."""

from __future__ import annotations

from dataclasses import dataclass

from streamdp.learning.learner import Features, Learner, Observation
from streamdp.priors.shapes import robust_laplaces
from streamdp.types import Json, Prior

RATE = 0.1
"""Weight of the newest change in the running mean of absolute changes."""


@dataclass(frozen=True, slots=True)
class Fixed(Learner):
    """No learning: the same priors before every release.

    Args:
        first: One prior a quantile.
    """

    first: tuple[Prior, ...]

    def describe(self) -> Json:
        """Name the learner; it has no state that depends on more."""
        return {"learner": "none"}

    def init(self) -> Json:
        """Return no state."""
        return {}

    def priors(self, state: Json, count: int, features: Features = ()) -> tuple[Prior, ...]:
        """The first priors."""
        return self.first

    def observe(self, state: Json, seen: Observation) -> Json:
        """Return no state."""
        return {}


@dataclass(frozen=True, slots=True)
class LastRelease(Learner):
    """Prior of quantile j: (1 - λ)·Laplace(last value, mean absolute change) + λ·robust.

    The mean change is at first the scale of the guess, and never below the resolution.

    Args:
        robust: Prior that holds when the past misleads.
        robust_weight: λ in (0, 1].
        scale: First guess of how far a quantile moves between releases.
        resolution: Width of a cell, in the same unit.
        first: Priors before any release, shape (m,); by default the robust one.
    """

    robust: Prior
    robust_weight: float
    scale: float
    resolution: float
    first: tuple[Prior, ...] | None = None

    def describe(self) -> Json:
        """Public parameters a state depends on."""
        return {"learner": "last-release", "scale": self.scale, "resolution": self.resolution}

    def init(self) -> Json:
        """Return the state before any release."""
        return {"values": [], "changes": []}

    def priors(self, state: Json, count: int, features: Features = ()) -> tuple[Prior, ...]:
        """One prior for each of `count` quantiles, from the releases alone."""
        if not state["values"]:
            return self.first or (self.robust,) * count
        scales = [max(change, self.resolution) for change in state["changes"]]
        return robust_laplaces(state["values"], scales, self.robust, self.robust_weight)

    def observe(self, state: Json, seen: Observation) -> Json:
        """The state after one more release."""
        values = seen.values
        if not state["values"]:
            return {"values": list(values), "changes": [self.scale] * len(values)}
        moves = [abs(new - old) for new, old in zip(values, state["values"], strict=True)]
        changes = [
            (1.0 - RATE) * change + RATE * move
            for change, move in zip(state["changes"], moves, strict=True)
        ]
        return {"values": list(values), "changes": changes}
