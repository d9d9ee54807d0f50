"""No learning: the same priors for every release."""

from __future__ import annotations

from dataclasses import dataclass

from streamdp.learning.learner import Features, Learner, Observation
from streamdp.types import Json, Prior


@dataclass(frozen=True, slots=True)
class Fixed(Learner):
    """The same priors before every release.

    Args:
        first: One prior a quantile.
    """

    first: tuple[Prior, ...]

    def describe(self) -> Json:
        """It has no state to depend on anything."""
        return {"learner": "none"}

    def init(self) -> Json:
        """Nothing."""
        return {}

    def priors(self, state: Json, count: int, features: Features = ()) -> tuple[Prior, ...]:
        """The first priors."""
        return self.first

    def observe(self, state: Json, seen: Observation) -> Json:
        """Nothing."""
        return {}
