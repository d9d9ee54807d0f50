"""Base of release kinds that publish integers of a batch with noise, and learn nothing.

Such a kind says what it asks, which integers the answer holds, by how much one record changes them,
and which rows they make. Its price, its draw, its expected error and its study follow from that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from streamdp.kinds.charging import least_price
from streamdp.kinds.study import Study
from streamdp.mechanisms.noise import Noise, noise_at
from streamdp.privacy.events import sequence
from streamdp.privacy.price import Price
from streamdp.types import Batch, Column, Entropy, FloatArray, Json, Outcome, Plan, Query, Row

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class AdditiveKind(ABC):
    """A release kind without a state; subclasses are frozen dataclasses with fields of their own.

    Args:
        price: Of one record.
    """

    price: Price

    name: ClassVar[str]
    columns: ClassVar[tuple[Column, ...]]

    sensitivity: ClassVar[int] = 1
    """The most that one record changes the integers, summed over them: subclasses vouch for it."""

    @abstractmethod
    def question(self) -> Query:
        """The question to a batch, always the same."""

    @abstractmethod
    def integers(self, statistic: Any) -> Sequence[int]:
        """The integers of an answer, always as many. Private; total."""

    @abstractmethod
    def rows(self, integers: Sequence[int]) -> tuple[Row, ...]:
        """The rows that noisy integers make; total."""

    @property
    def noise(self) -> Noise:
        """Noise of each integer."""
        return noise_at(self.price, self.sensitivity)

    def signature(self) -> Json:
        """Empty: nothing is learned that could be of other parameters."""
        return {}

    def init(self) -> Json:
        """The empty state."""
        return {}

    def plan(self, state: Json, batch: Batch) -> Plan:
        """The question, and the price of its noise."""
        noise = "gaussian" if self.price.measure == "rho" else "laplace"
        event = self.noise.event() | {"sensitivity": self.sensitivity}
        return Plan(self.question(), sequence([event], mechanism=f"discrete-{noise}"), self.noise)

    def draw(self, plan: Plan, statistic: Any, entropy: Entropy) -> Outcome:
        """The rows of noisy integers.

        Privacy: the vector of integers moves by `sensitivity` at most for one record, so its noise
        costs `price` (`AdditiveNoise.draw`, `GaussianNoise.draw`); the rows follow from it.
        """
        return Outcome(self.rows(plan.mechanism.draw(self.integers(statistic), entropy)))

    def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
        """The state as it was: nothing is learned."""
        return state

    def publish(self, state: Json, outcome: Outcome) -> Outcome:
        """The rows as they were drawn."""
        return outcome


class AdditiveAccuracy:
    """The error that 95 % of noisy integers stay within."""

    def expected(self, kind: AdditiveKind) -> Mapping[str, float | None]:
        """The error that 95 % of the integers stay within."""
        return {"error_95": float(kind.noise.reach(LEVEL))}

    def price_for(self, kind: AdditiveKind, error: float) -> Price | None:
        """Price for one record at which the reach is so small."""
        return least_price(
            lambda price: noise_at(price, kind.sensitivity).reach(LEVEL),
            error,
            kind.price.measure,
        )


class AdditiveStudy(Study):
    """The distance of each published value from what the records say; on tables alone."""

    def truth(self, kind: AdditiveKind, statistic: Any) -> Outcome:
        """The rows of the integers without noise."""
        return Outcome(kind.rows(kind.integers(statistic)))

    def errors(self, kind: AdditiveKind, statistic: Any, outcome: Outcome) -> FloatArray:
        """Errors of every value of every row, row by row."""
        names = [column.name for column in kind.columns if column.role == "value"]
        exact = self.truth(kind, statistic)
        released, true = (
            np.array([row[name] for row in each.rows for name in names], dtype=np.float64)
            for each in (outcome, exact)
        )
        errors: FloatArray = np.abs(released - true)
        return errors
