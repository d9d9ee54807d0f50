"""What the engine asks of tasks, and of sources, backends and sinks that can do more."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from streamdp.types import Batch, Skipped, Source


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
