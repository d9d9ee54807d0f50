"""A job: one configured release of every batch of one source."""

from __future__ import annotations

from dataclasses import dataclass

from streamdp.answers.closed import RollupTerms
from streamdp.types import Backend, Charging, ReleaseKind, Source


@dataclass(frozen=True, slots=True)
class Job:
    """A configured release, as the engine runs it.

    Args:
        name: Key of the release in the configuration.
        scope: Whose budget it spends: the source and its unit, never the job.
        source: Which batches there are.
        backend: Where their records are.
        kind: What is published of each.
        charging: What that costs a unit.
        sinks: Names of the sinks it goes to.
        window: How many batches it asks at once.
        rollups: What is rolled up of its releases; None for nothing.
    """

    name: str
    scope: str
    source: Source
    backend: Backend
    kind: ReleaseKind
    charging: Charging
    sinks: tuple[str, ...]
    window: int = 1
    rollups: RollupTerms | None = None

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The jobs that release: itself, as a gate has those that it lets release."""
        return (self,)
