"""A release kind that expects as many records as another job's releases say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streamdp.kinds.spec import RowCount
from streamdp.types import (
    Batch,
    Column,
    Entropy,
    ExpectsRows,
    Json,
    Outcome,
    Plan,
    ReleaseKind,
    Row,
)


@dataclass(frozen=True, slots=True)
class Counted:
    """A kind, and where it is told how many records a batch has.

    Args:
        of: The kind, as it is while nothing was counted.
        job: Whose releases count.
        count: Reads the records of each group off a release of that job.

    Privacy: what the kind is told follows from a release of an earlier batch, so the privacy loss
    of both is that of their adaptive composition, the sum of their prices. Question and price stay
    those of `of` (`types.ExpectsRows`).
    """

    of: ExpectsRows
    job: str
    count: RowCount

    @property
    def name(self) -> str:
        """That of the kind."""
        return self.of.name

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the kind."""
        return self.of.columns

    @property
    def jobs(self) -> tuple[str, ...]:
        """The job that counts."""
        return (self.job,)

    def informed(self, past: Mapping[str, tuple[Row, ...]]) -> ReleaseKind:
        """The kind for one batch, told what was counted before it."""
        if self.job not in past:
            return self.of
        return self.of.expecting(self.count(past[self.job]))

    def signature(self) -> Json:
        """That of the kind: states are kept whatever is counted."""
        return self.of.signature()

    def init(self) -> Json:
        """That of the kind."""
        return self.of.init()

    def plan(self, state: Json, batch: Batch) -> Plan:
        """As long as nothing was counted."""
        return self.of.plan(state, batch)

    def draw(self, plan: Plan, statistic: Any, entropy: Entropy) -> Outcome:
        """As long as nothing was counted."""
        return self.of.draw(plan, statistic, entropy)

    def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
        """As long as nothing was counted."""
        return self.of.learn(state, plan, outcome)

    def publish(self, state: Json, outcome: Outcome) -> Outcome:
        """As long as nothing was counted."""
        return self.of.publish(state, outcome)
