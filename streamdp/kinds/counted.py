"""A release kind that expects as many records as another job's releases say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamdp.kinds.spec import RowCount
from streamdp.types import (
    Batch,
    Column,
    Entropy,
    ExpectsRows,
    Explains,
    HasParts,
    History,
    Json,
    Lesson,
    Measurement,
    Measures,
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
        """Name of the kind that is informed."""
        return self.of.name

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the kind that is informed."""
        return self.of.columns

    @property
    def jobs(self) -> tuple[str, ...]:
        """The job whose releases count the rows."""
        return (self.job,)

    def informed(self, past: Mapping[str, tuple[Row, ...]]) -> ReleaseKind:
        """The kind for one batch, told what was counted before it."""
        if self.job not in past:
            return self.of
        return self.of.expecting(self.count(past[self.job]))

    def signature(self) -> Json:
        """Signature of the kind that is informed: states are kept whatever is counted."""
        return self.of.signature()

    def init(self) -> Json:
        """Initial state of the kind that is informed."""
        return self.of.init()

    def plan(self, state: Json, batch: Batch) -> Plan:
        """The plan under the configured rows, used until something was counted."""
        return self.of.plan(state, batch)

    def draw(self, plan: Plan, statistic: Any, entropy: Entropy) -> Outcome:
        """The draw under the configured rows, used until something was counted."""
        return self.of.draw(plan, statistic, entropy)

    def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
        """The next state under the configured rows, used until something was counted."""
        return self.of.learn(state, plan, outcome)

    def measured(self, plan: Plan, outcome: Outcome) -> tuple[Measurement, ...]:
        """Return what the kind that is informed measured."""
        return self.of.measured(plan, outcome) if isinstance(self.of, Measures) else ()

    def replayed(self, state: Json, batch: Batch, measurements: tuple[Measurement, ...]) -> Json:
        """Return the state after a release, as far as the kind that is informed learns of it."""
        if not isinstance(self.of, Measures):
            return None
        return self.of.replayed(state, batch, measurements)

    def lessons(self, history: History) -> Sequence[Lesson]:
        """Return what the kind that is informed has learned."""
        return self.of.lessons(history) if isinstance(self.of, Explains) else ()

    def parts(self) -> tuple[str, ...]:
        """Return the parts of the kind that is informed."""
        return self.of.parts() if isinstance(self.of, HasParts) else ("",)

    def part(self, name: str, history: History) -> tuple[object, History]:
        """Return the kind of one part, and its history."""
        return self.of.part(name, history) if isinstance(self.of, HasParts) else (self.of, history)

    def publish(self, state: Json, outcome: Outcome) -> Outcome:
        """The outcome under the configured rows, used until something was counted."""
        return self.of.publish(state, outcome)
