"""What the engine asks of a store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol, runtime_checkable

from streamdp.types import Batch, Charge, Delivery, Learned, Release, Reservation

Window = tuple[int | None, int | None]
"""First second of a batch and the second after its last; None and None for a file."""


class Store(Protocol):
    """Memory with transactions; `store.sqlite.SqliteStore` says what each method promises."""

    def add_batches(self, batches: Iterable[tuple[Batch, bytes | None]], now: int) -> None:
        """Write new batches down."""
        ...

    def keyed_digest(self, content: bytes) -> bytes:
        """A digest under the store's own key."""
        ...

    def digest_of(self, batch: Batch) -> bytes | None:
        """The digest a batch was written down under."""
        ...

    def known_batches(self, source: str) -> Mapping[str, Window]:
        """Keys that were written down, with their windows."""
        ...

    def released_batches(self, job: str, source: str) -> frozenset[str]:
        """Keys that a job has released."""
        ...

    def learned(self, job: str) -> Learned | None:
        """The newest state of a job's learner."""
        ...

    def reserve(self, scope: str, job: str, batch: Batch, charge: Charge, now: int) -> Reservation:
        """Spend a charge before data is touched."""
        ...

    def burn(self, reservation: Reservation, now: int) -> None:
        """Settle a charge without a release."""
        ...

    def commit(
        self, reservation: Reservation, release: Release, learned: Learned, sinks: Iterable[str]
    ) -> None:
        """Settle a charge with its release, learner state and outbox."""
        ...

    def burns_in_a_row(self, scope: str, job: str) -> tuple[int, int]:
        """Charges of a job burnt since its last release, and when the last was."""
        ...

    def recover(self, now: int) -> tuple[Reservation, ...]:
        """Burn what a dead process left open."""
        ...

    def due_deliveries(
        self, now: int, sinks: Collection[str]
    ) -> Iterable[tuple[Delivery, Release]]:
        """Deliveries to these sinks to try now."""
        ...

    def confirm(
        self,
        delivered: Iterable[Delivery],
        failed: Iterable[Delivery],
        dead: Iterable[Delivery],
        now: int,
    ) -> None:
        """Write down how deliveries ended."""
        ...

    def paused(self) -> frozenset[str]:
        """Names of paused jobs."""
        ...


@runtime_checkable
class HasContent(Protocol):
    """A source whose batches are files, which can be told from their replacements."""

    def content_digest(self, batch: Batch) -> bytes:
        """Digest of the content of a batch; private."""
        ...


@runtime_checkable
class Connected(Protocol):
    """A backend that holds a connection to a server."""

    def close(self) -> None:
        """End it."""
        ...


@runtime_checkable
class GivesUp(Protocol):
    """A sink that stops trying a delivery some day, and leaves it to a person."""

    attempts: int
    """How often it tries."""
