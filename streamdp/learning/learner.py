"""What a release kind asks of a learner: pure functions over past releases and public features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from streamdp.priors.joint import JointPrior
from streamdp.types import Json, Prior

Features = tuple[float, ...]
"""Public numbers of one batch (`learning.features`)."""


@dataclass(frozen=True, slots=True)
class Smoothed:
    """A quantile as all releases so far show it: a point, and an interval of about 90 %."""

    point: float
    lower: float
    upper: float


class Learner(Protocol):
    """Makes priors of past releases; has no argument for data."""

    def describe(self) -> Json:
        """Public parameters a state depends on."""
        ...

    def init(self) -> Json:
        """The state before the first release."""
        ...

    def priors(
        self, state: Json, count: int, features: Features = ()
    ) -> tuple[Prior, ...] | JointPrior:
        """Priors of `count` quantiles of the next batch."""
        ...

    def learn(self, state: Json, values: tuple[float, ...], features: Features = ()) -> Json:
        """The state after one more release."""
        ...

    def smoothed(self, state: Json) -> tuple[Smoothed, ...]:
        """What is believed of each quantile of the last batch; nothing if no more than it says."""
        ...
