"""A job, one configured release of every batch of one source, and what it works with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from streamdp.answers.closed import RollupTerms
from streamdp.types import (
    Backend,
    Batch,
    Charging,
    Clock,
    Entropy,
    Json,
    Log,
    ReleaseKind,
    Skipped,
    Source,
)

if TYPE_CHECKING:
    from streamdp.store.sqlite import SqliteStore


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


@dataclass(slots=True)
class Rolled:
    """Memory of a process of what is rolled up; all of it follows from the store.

    Args:
        newest: By job, the newest release after which nothing was left to roll up.
        without: Job, step, period and releases of which no row has a value.
    """

    newest: dict[str, str] = field(default_factory=dict)
    without: set[tuple[str, str, str, str]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class EngineContext:
    """Store, entropy, clock and log of a release.

    Args:
        told: Inputs of each source that this process has logged as skipped.
        taught: By job, the newest learner that began and what measurements taught it.
        rolled: What this process knows of rollups.
        rested: By task, until when it rests as this process has logged.
    """

    store: SqliteStore
    entropy: Entropy
    clock: Clock
    log: Log
    told: set[tuple[str, Skipped]] = field(default_factory=set)
    taught: dict[str, tuple[str, Json]] = field(default_factory=dict)
    rolled: Rolled = field(default_factory=Rolled)
    rested: dict[str, int] = field(default_factory=dict)


class HasSource(Protocol):
    """A job or a gate: something that is done to every batch of a source."""

    @property
    def name(self) -> str:
        """Key in the configuration."""
        ...

    @property
    def source(self) -> Source:
        """The source whose batches it is about."""
        ...

    @property
    def scope(self) -> str:
        """Name of the source whose budget pays."""
        ...


@runtime_checkable
class HasContent(Protocol):
    """A source whose batches are files, which can be told from their replacements."""

    def content_digest(self, batch: Batch) -> bytes:
        """Digest of the content of a batch; private."""
        ...


@runtime_checkable
class Skips(Protocol):
    """A source of files, which does not read all that its pattern finds."""

    def skipped(self) -> tuple[Skipped, ...]:
        """Inputs that the source does not read now, and why; they follow from public facts."""
        ...


@runtime_checkable
class Connected(Protocol):
    """A backend that holds a connection to a server."""

    def close(self) -> None:
        """Close the connection."""
        ...


@runtime_checkable
class HoldsRecords(Protocol):
    """A backend that keeps copies of a batch from its check until they are not needed any more."""

    def let_go(self) -> None:
        """Delete the copies."""
        ...


@runtime_checkable
class GivesUp(Protocol):
    """A sink that stops trying a delivery some day, and leaves it to a person."""

    attempts: int
    """Attempts of one delivery before the sink gives up."""
