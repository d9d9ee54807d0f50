"""The store, as the engine uses it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from streamdp.errors import StreamdpError
from streamdp.types import (
    Answer,
    Batch,
    Belongs,
    Charge,
    Delivery,
    Failure,
    GateRun,
    Json,
    Learned,
    MeasuredRelease,
    Measurement,
    Release,
    Reservation,
    Run,
    Skipped,
    Source,
)

Window = tuple[int | None, int | None]
"""First second of a batch and the second after its last; None and None for a file."""


class GateMemory(Protocol):
    """Memory of gates; `store.gates.GateRuns` says what each method promises."""

    def open_run(self, gate: str) -> GateRun | None:
        """The run of a gate that is open, if one is."""
        ...

    def waits(self, gate: str) -> bool:
        """Whether a gate must be re-armed by a person."""
        ...

    def losses_in_a_row(self, gate: str) -> tuple[int, int]:
        """Runs that were lost since the last answer, and when."""
        ...

    def accepted(self, gate: str) -> int:
        """The number of acceptances of a gate."""
        ...

    def answers(self, gate: str, source: str) -> Mapping[str, bool]:
        """Keys of the batches a gate has answered for, and its words."""
        ...

    def arm(
        self, scope: str, gate: str, charge: Charge, terms: Json, hidden: Json, now: int
    ) -> GateRun:
        """Charge a run and keep its threshold."""
        ...

    def use_test(self, run: Run, batch: Batch, now: int) -> int:
        """Use up a test for a batch, before it is read."""
        ...

    def leave_out(self, run: Run) -> None:
        """Leave a test out that ended before its draw."""
        ...

    def answer(self, run: Run, answer: Answer, now: int) -> None:
        """Write an answer and all that follows from it, to be seen from its slot on."""
        ...

    def tell(self, notices: Sequence[str], now: int) -> None:
        """Let sinks have the notices of answers whose slot is over."""
        ...

    def end(self, run: Run, how: str, waits: bool, now: int) -> None:
        """End a run without an acceptance."""
        ...


class EngineStore(Protocol):
    """Memory with transactions; `store.sqlite.SqliteStore` says what each method promises."""

    def require_time(self, now: int) -> None:
        """Refuse a clock that has jumped ahead."""
        ...

    def add_batches(self, batches: Iterable[tuple[Batch, bytes | None]], now: int) -> None:
        """Store batches that are new, with the digests of their files."""
        ...

    def keyed_digest(self, content: bytes) -> bytes:
        """A digest under the store's own key."""
        ...

    def digest_of(self, batch: Batch) -> bytes | None:
        """The digest a batch was written down under."""
        ...

    def bind_origins(
        self, scope: str, batch: str, origins: Collection[str], now: int
    ) -> Mapping[str, Belongs]:
        """Bind files and tables to a budget; return those already bound to another."""
        ...

    def belongings(self, origins: Iterable[str]) -> Mapping[str, Belongs]:
        """Source and batch that each known file or table belongs to."""
        ...

    def let_go(self, owner: Belongs) -> bool:
        """Free a batch's files if nothing was charged for it; whether they are free."""
        ...

    def arrivals(self, source: str) -> Mapping[str, bytes]:
        """The kept state of the files of batches, by batch key."""
        ...

    def keep_arrival(self, batch: Batch, state: bytes) -> None:
        """Keep the state of a batch's files."""
        ...

    def report_problems(
        self, about: str, wrong: Mapping[str, StreamdpError], now: int
    ) -> tuple[str, ...]:
        """Write down all that is wrong with batches; keys of those where this is new."""
        ...

    def report_problem(self, about: str, batch: str, error: StreamdpError, now: int) -> bool:
        """Write one problem down; whether it is new."""
        ...

    def settle_problem(self, about: str, batch: str) -> None:
        """Forget a problem that is solved."""
        ...

    def keep_problems(self, about: str, batches: Collection[str]) -> None:
        """Forget all problems of a job or gate but those of these batches."""
        ...

    def known_batches(self, source: str) -> Mapping[str, Window]:
        """Keys that were written down, with their windows."""
        ...

    def released_batches(self, job: str, source: str) -> frozenset[str]:
        """Keys that a job has released."""
        ...

    @property
    def gates(self) -> GateMemory:
        """Runs and answers of gates."""
        ...

    def last_release(self, job: str) -> Release | None:
        """The newest release of a job."""
        ...

    def release_before(
        self, job: str, batch: Batch, made_before: str | None = None
    ) -> Release | None:
        """The newest release of a job that was of records before a batch."""
        ...

    def measured(self, job: str) -> Iterator[MeasuredRelease]:
        """The releases of a job that have measurements, in the order in which they were made."""
        ...

    def learned(self, job: str) -> Learned | None:
        """The newest state of a job's learner."""
        ...

    def reserve(
        self,
        scope: str,
        job: str,
        batch: Batch,
        charge: Charge,
        now: int,
        others: Sequence[Batch] = (),
    ) -> Reservation:
        """Spend a charge before data is touched; it counts against other batches read with it."""
        ...

    def pass_over(self, scope: str, job: str, batch: str, cap: str, now: int) -> None:
        """Remember that a cap has refused a batch."""
        ...

    def passed_over(self, scope: str, job: str) -> frozenset[tuple[str, str]]:
        """Return the (job or gate, batch) pairs that the caps in force have refused."""
        ...

    def burn(self, reservation: Reservation, now: int) -> None:
        """Settle a charge without a release."""
        ...

    def commit(
        self,
        reservation: Reservation,
        release: Release,
        learned: Learned,
        sinks: Iterable[str],
        measured: Iterable[Measurement] = (),
    ) -> None:
        """Settle a charge with its release, measurements, learner state and outbox."""
        ...

    def burns_in_a_row(self, scope: str, job: str) -> tuple[int, int]:
        """Charges of a job burnt since its last release, and when the last was."""
        ...

    def deaths_in_a_row(self, scope: str, job: str) -> tuple[int, int, int]:
        """Deaths of the process with a charge of a job since its last release, and the last's."""
        ...

    def recover(self, now: int) -> tuple[Reservation, ...]:
        """Burn what a dead process left open."""
        ...

    def due_deliveries(
        self, now: int, sinks: Collection[str], most: int | None = None
    ) -> Iterable[tuple[Delivery, Release]]:
        """Deliveries to these sinks to try now."""
        ...

    def confirm(
        self,
        delivered: Iterable[Delivery],
        failed: Iterable[Failure],
        now: int,
    ) -> None:
        """Write down how deliveries ended."""
        ...

    @property
    def name(self) -> str:
        """The store's own name."""
        ...

    def released_windows(self, job: str) -> tuple[tuple[int, int, str], ...]:
        """Windows and ids of the releases of a job, in order of time."""
        ...

    def measured_between(self, job: str, since: int, until: int) -> tuple[MeasuredRelease, ...]:
        """The releases of a job whose windows lie in a range."""
        ...

    def rolled_up(self, job: str) -> Mapping[tuple[str, str], tuple[int, str]]:
        """Return the newest revision of each step and period, and what it was made of."""
        ...

    def add_rollup(
        self, rollup: Release, step: str, revision: int, made_of: str, sinks: Iterable[str]
    ) -> bool:
        """Write a rollup with what sinks are owed, once; whether it is new."""
        ...

    def paused(self) -> frozenset[str]:
        """Names of paused jobs."""
        ...


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
