"""The store that the engine works with: each method is one transaction.

`StoreSession` is that of the one process that works on it: opened, fenced off, alive, closed.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from operator import eq
from pathlib import Path
from threading import RLock, local
from typing import Self

from streamdp.database import Database
from streamdp.errors import StoreError, StreamdpError
from streamdp.store import archive, measurements, outbox, problems, rollups
from streamdp.store.anchor import Anchor, charges_after, default_anchor, state_of
from streamdp.store.clock_guard import accept, keep_time, require_followed
from streamdp.store.database import beside, transaction, truncate_log
from streamdp.store.gates import GateRuns
from streamdp.store.ledger import ledger, renames, source_binding
from streamdp.store.ledger.ledger import Terms, bind
from streamdp.store.ledger.source_binding import Overlap
from streamdp.store.problems import paused_jobs
from streamdp.store.verified_open import open_store, taken_over
from streamdp.types import (
    Batch,
    Belongs,
    Charge,
    Delivery,
    Failure,
    Json,
    Learned,
    MeasuredRelease,
    Measurement,
    NewNames,
    Release,
    Reservation,
)
from streamdp.version import __version__


class StoreSession:
    """Database and anchor, and the transaction that only their newest holder may commit.

    Every opening for work raises the store's epoch; a process that was suspended while another
    took over finds its own epoch outdated inside the transaction, and writes nothing.

    Several threads may use it: each has a connection of its own, and one writes at a time.
    """

    def __init__(self, database: Database, anchor: Anchor, longest_step: int | None = None) -> None:
        self._first, self._spare, self._own = database, list[Database](), local()
        self._own.database = database
        self._turn = RLock()
        self._anchor, self._longest_step = anchor, longest_step
        (self._epoch,) = database.execute("SELECT epoch FROM instance").fetchone()
        self._erased = truncate_log(database)

    @classmethod
    def open(
        cls,
        path: Path,
        now: int,
        anchor: Path | None = None,
        longest_step: int | None = None,
    ) -> Self:
        """Open for work: migrate, verify all that is remembered and the anchor, take a new epoch.

        Args:
            path: The SQLite file; made if there is none and no anchor knows of one.
            now: POSIX time.
            anchor: The anchor's file, by default beside the store.
            longest_step: Seconds that the clock may be ahead of the last time the store knew when
                it seals batches or gives a sign of life; None for any.

        Raises:
            StoreError: The file cannot be used.
            LockedError: Another process writes to the anchor right now.
            IntegrityError: The store is damaged, altered, newer than this streamdp, or does not
                stand where its anchor was left.
        """
        return cls(*open_store(path, anchor or default_anchor(path), now), longest_step)

    @property
    def database(self) -> Database:
        """The connection of the calling thread, which sees what was committed.

        Raises:
            StoreError: It cannot be opened.
        """
        found: Database | None = getattr(self._own, "database", None)
        if found is None:
            found = self._spare.pop() if self._spare else beside(self._first)
            self._own.database = found
        return found

    def leave(self) -> None:
        """Give the connection of the calling thread to the next one that comes."""
        found: Database | None = getattr(self._own, "database", None)
        if found is not None and found is not self._first:
            del self._own.database
            self._spare.append(found)

    def close(self) -> None:
        """Close the connections and the anchor."""
        for each in (*self._spare, self._first):
            each.close()
        self._anchor.close()

    def beat(self, pid: int | None, now: int) -> int:
        """Write a heartbeat; return by how many seconds the clock is behind.

        Raises:
            ClockError: The clock has jumped.
        """
        with self.transaction():
            behind = keep_time(self.database, now, self._longest_step)
            self.database.execute("UPDATE instance SET pid = ?, heartbeat_at = ?", [pid, now])
        if not self._erased:
            self.erase()
        return behind

    def erase(self) -> None:
        """Overwrite what was deleted in the write-ahead log too.

        Where a reader holds the log, the next sign of life tries again.
        """
        self._erased = truncate_log(self.database)

    def stopped(self, now: int) -> None:
        """Note that the daemon stopped on purpose."""
        with self.transaction():
            self.database.execute("UPDATE instance SET pid = NULL, stopped_at = ?", [now])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction that only the newest holder of the store may commit.

        What it adds to the ledger is in the anchor, on the disk, before it is committed.
        """
        with self._turn, transaction(self.database):
            base = state_of(self.database)
            if base.epoch != self._epoch:
                raise taken_over()
            yield
            target = state_of(self.database)
            if target != base:
                self._anchor.intend(base, target, charges_after(self.database, base.seq))


def bind_all(
    database: Database,
    terms: Mapping[str, Terms],
    now: int,
    data: Mapping[str, Json],
    overlap: Overlap,
) -> list[str]:
    """`SqliteStore.declare`, inside a transaction of the caller."""
    source_binding.claim(database, data, overlap, now)
    return [scope for scope, each in terms.items() if bind(database, scope, each, now)]


class SqliteStore(StoreSession):
    """Ledger, archive, learners and outbox, written by one process at a time."""

    def __init__(self, database: Database, anchor: Anchor, longest_step: int | None = None) -> None:
        super().__init__(database, anchor, longest_step)
        self.gates = GateRuns(lambda: self.database, self.transaction, self.erase)
        self._in_flight: set[int] = set()
        self._left = self._epoch

    def declare(
        self,
        terms: Mapping[str, Terms],
        now: int,
        data: Mapping[str, Json] | None = None,
        overlap: Overlap = eq,
    ) -> list[str]:
        """Bind sources to what they read and to their terms, all or none.

        Args:
            terms: Of each scope.
            now: POSIX time.
            data: What each source reads.
            overlap: Whether two of these can mean the same records.

        Returns:
            Those whose caps fell.

        Raises:
            ConfigurationError: A source reads what belongs to another's budget, or other data than
                before; or the configuration says other than the ledger, or asks for more.
        """
        with self.transaction():
            source_binding.release_unspent(self.database, terms.keys())
            return bind_all(self.database, terms, now, data or {}, overlap)

    def move_source(self, source: str, data: Json, overlap: Overlap, about: Json, now: int) -> None:
        """Bind a source to the new place of its data, by an operator's decision.

        Raises:
            ConfigurationError: The data belongs to another's budget.
        """
        with self.transaction():
            source_binding.move(self.database, source, data, overlap, about, now)

    def rename_job(
        self, job: str, was: str, source: str, signature: Json, about: Json, now: int
    ) -> int:
        """Let a job go on with the past of another name, by an operator's decision.

        Returns:
            How many releases it has.

        Raises:
            ConfigurationError: The two are not one job.
        """
        with self.transaction():
            learned = archive.latest_learned(self.database, was)
            return renames.rename(self.database, job, was, source, learned, signature, about, now)

    def rename_within(
        self, job: str, names: NewNames, signature: Json, about: Json, now: int
    ) -> int:
        """Let a job go on in other names of groups, columns, measures, by an operator's decision.

        Returns:
            How many releases taught what it goes on with.

        Raises:
            ConfigurationError: More than the names has changed.
        """
        with self.transaction():
            learned = archive.latest_learned(self.database, job)
            return renames.rename_within(self.database, job, names, learned, signature, about, now)

    def bind_origins(
        self, scope: str, batch: str, origins_: Collection[str], now: int
    ) -> dict[str, Belongs]:
        """Bind files and tables to a budget, from the moment they are first seen.

        Returns:
            Those that belong to another source or batch.
        """
        known = source_binding.belongings(self.database, origins_)
        if len(known) < len(origins_):
            with self.transaction():
                return source_binding.bind_origins(self.database, scope, batch, origins_, now)
        return source_binding.foreign(known, scope, batch)

    def belongings(self, origins_: Iterable[str]) -> dict[str, Belongs]:
        """Source and batch that known origins belong to."""
        return source_binding.belongings(self.database, origins_)

    def let_go(self, owner: Belongs) -> bool:
        """Free a batch's files if nothing was charged for it; whether they are free."""
        with self.transaction():
            return source_binding.release_batch(self.database, owner)

    def arrivals(self, source: str) -> dict[str, bytes]:
        """State of the files of batches when they were last read whole."""
        return source_binding.arrivals(self.database, source)

    def keep_arrival(self, batch: Batch, state: bytes) -> None:
        """Keep the state of a batch's files."""
        with self.transaction():
            source_binding.keep_arrival(self.database, batch.source, batch.key, state)

    def report_problems(
        self, about: str, wrong: Mapping[str, StreamdpError], now: int
    ) -> tuple[str, ...]:
        """Write down all that is wrong with batches, and forget what no longer is.

        Returns:
            Keys of batches whose problem is new.
        """
        found = {key: problems.of(about, key, error, now) for key, error in wrong.items()}
        if problems.known(self.database, about) == {key: each.says for key, each in found.items()}:
            return ()
        with self.transaction():
            return problems.replace(self.database, about, found)

    def report_problem(self, about: str, batch: str, error: StreamdpError, now: int) -> bool:
        """Write one problem down; whether it is new."""
        problem = problems.of(about, batch, error, now)
        if problems.known(self.database, about).get(batch) == problem.says:
            return False
        with self.transaction():
            problems.report(self.database, problem)
        return True

    def settle_problem(self, about: str, batch: str) -> None:
        """Forget a problem that is solved."""
        known = problems.known(self.database, about)
        if batch in known:
            self.keep_problems(about, known.keys() - {batch})

    def keep_problems(self, about: str, batches: Collection[str]) -> None:
        """Forget all problems of a job or gate but those of these batches."""
        solved = problems.known(self.database, about).keys() - batches
        if solved:
            with self.transaction():
                for batch in solved:
                    problems.settle(self.database, about, batch)

    def require_time(self, now: int) -> None:
        """Require a time that the clock may show, before anybody counts windows up to it.

        Raises:
            ClockError: The clock has jumped.
        """
        require_followed(self.database, now, self._longest_step)

    def add_batches(self, batches: Iterable[tuple[Batch, bytes | None]], now: int) -> None:
        """Write new batches down, each with the digest of its content if it is a file.

        What comes while the clock is behind has come at the last time that is known: caps over
        time count files by it.

        Raises:
            ClockError: The clock has jumped; nothing was sealed.
        """
        with self.transaction():
            behind = keep_time(self.database, now, self._longest_step)
            for batch, digest in batches:
                archive.add_batch(self.database, batch, digest, now + behind)

    def keyed_digest(self, content: bytes) -> bytes:
        """A digest under the store's own key: a plain one would tell who holds the same data."""
        return hmac.digest(self._digest_key, content, hashlib.sha256)

    @cached_property
    def _digest_key(self) -> bytes:
        (key,) = self.database.execute("SELECT digest_key FROM instance").fetchone()
        return bytes(key)

    def digest_of(self, batch: Batch) -> bytes | None:
        """The digest under which a batch was written down."""
        return archive.digest_of(self.database, batch)

    def known_batches(self, source: str) -> dict[str, tuple[int | None, int | None]]:
        """Keys that were written down, with first second and end of their windows."""
        return archive.known_batches(self.database, source)

    def released_batches(self, job: str, source: str) -> frozenset[str]:
        """Keys that a job has released."""
        return archive.released_batches(self.database, job, source)

    def last_release(self, job: str) -> Release | None:
        """The newest release of a job."""
        return archive.last_release(self.database, job)

    def release_before(
        self, job: str, batch: Batch, made_before: str | None = None
    ) -> Release | None:
        """The newest release of a job that was of records before a batch.

        Args:
            job: Whose.
            batch: Whose records came later.
            made_before: Id of a release; later ones do not count.
        """
        return archive.release_before(self.database, job, batch, made_before)

    def measured(self, job: str) -> Iterator[MeasuredRelease]:
        """The releases of a job that have measurements, in the order in which they were made."""
        return measurements.measured_in_turn(self.database, job)

    def learned(self, job: str) -> Learned | None:
        """The newest state of a job's learner."""
        return archive.latest_learned(self.database, job)

    def reserve(
        self,
        scope: str,
        job: str,
        batch: Batch,
        charge: Charge,
        now: int,
        others: Sequence[Batch] = (),
    ) -> Reservation:
        """Spend a charge, durably, before data is touched.

        Args:
            scope: Whose budget.
            job: Who spends it.
            batch: Whose records are read.
            charge: The price.
            now: POSIX time.
            others: Batches that are read in the same question, against which it counts too.

        Raises:
            BudgetExhaustedError: A cap refuses; nothing was spent.
            StoreError: It could not be written; nothing was spent.
        """
        with self._turn:  # nobody recovers between the commit and the note of it
            with self.transaction():
                if archive.is_released(self.database, job, batch):
                    raise StoreError(f"{job} has already released {batch.key}")
                database = self.database
                reservation = ledger.reserve(database, scope, job, batch, charge, now, others)
            self._in_flight.add(reservation.seq)
        return reservation

    def pass_over(self, scope: str, job: str, batch: str, cap: str, now: int) -> None:
        """Remember that a cap has refused a batch."""
        with self.transaction():
            ledger.pass_over(self.database, scope, job, batch, cap, now)

    def passed_over(self, scope: str, job: str) -> frozenset[tuple[str, str]]:
        """A job or gate, and batches refused to it under the caps in force."""
        return ledger.passed_over(self.database, scope, job)

    def burn(self, reservation: Reservation, now: int) -> None:
        """Settle a charge without a release; it stays spent."""
        try:
            with self.transaction():
                ledger.settle(self.database, reservation, now)
        finally:
            self._in_flight.discard(reservation.seq)

    def commit(
        self,
        reservation: Reservation,
        release: Release,
        learned: Learned,
        sinks: Iterable[str],
        measured: Iterable[Measurement] = (),
    ) -> None:
        """Commit charge, release, measurements, learner state and outbox: all or nothing.

        Raises:
            StoreError: It could not be written, or the learner has moved on; the charge is open
                and will be burnt.
        """
        now = release.released_at
        with self.transaction():
            if learned.version != archive.newest_version(self.database, release.job) + 1:
                raise StoreError(f"the learner of {release.job} was changed meanwhile")
            archive.add_release(self.database, release, reservation.seq, __version__)
            measurements.add_measurements(self.database, reservation.seq, measured)
            archive.add_learned(self.database, release.job, learned, reservation.seq)
            outbox.post(self.database, release.id, sinks, now)
            seal = archive.seal_of(self.database, release.id)
            ledger.settle(self.database, reservation, now, release.id, seal)
        self._in_flight.discard(reservation.seq)

    def burns_in_a_row(self, scope: str, job: str) -> tuple[int, int]:
        """How many questions of a job failed since its last release, and when the last did."""
        return ledger.burns_in_a_row(self.database, scope, job)

    def deaths_in_a_row(self, scope: str, job: str) -> tuple[int, int, int]:
        """Deaths that burnt a charge of a job: in a row, of its last batch, and the last's time."""
        return ledger.deaths_in_a_row(self.database, scope, job)

    def recover(self, now: int) -> tuple[Reservation, ...]:
        """Burn the charges that a dead process left open, and those whose burning failed.

        Notices of gates that it held are due; those of series that run are not.
        """
        with self.transaction():
            held = outbox.held(self.database, now)
            due = [each for each in held if each not in self.gates.holding]
            outbox.let_go(self.database, due, now)
            found = ledger.open_reservations(self.database)
            left = tuple(each for each in found if each.seq not in self._in_flight)
            for reservation in left:
                ledger.settle(self.database, reservation, now, died=True)
        return left

    def abandon(self, now: int) -> tuple[Reservation, ...]:
        """Burn all open charges, and let no thread that still works commit anything any more."""
        with self._turn:
            self._in_flight.clear()
            self.gates.holding.clear()
            left = self.recover(now)
            self._left, self._epoch = self._epoch, -1
        return left

    def note_stop(self, now: int) -> None:
        """Note that the daemon stopped on purpose, beside threads that were abandoned."""
        with self._turn:
            self._epoch = self._left
            self.stopped(now)
            self._epoch = -1

    def due_deliveries(
        self, now: int, sinks: Collection[str], most: int | None = None
    ) -> Iterator[tuple[Delivery, Release]]:
        """Deliveries to these sinks to try now, at most so many, with their releases, one by one.

        What is handed out is published: the anchor first learns that its commit is certain.
        """
        deliveries = outbox.due(self.database, now, sinks, most)
        if deliveries:
            with self.transaction():
                self._anchor.confirm(state_of(self.database))
        for delivery in deliveries:
            yield delivery, archive.release_of(self.database, delivery.release_id)

    def confirm(self, delivered: Iterable[Delivery], failed: Iterable[Failure], now: int) -> None:
        """Write down how deliveries ended."""
        with self.transaction():
            outbox.delivered(self.database, delivered, now)
            outbox.failed(self.database, failed, now)

    def released_windows(self, job: str) -> tuple[tuple[int, int, str], ...]:
        """Windows and ids of all releases of a job that are of windows, in order of time."""
        return rollups.released(self.database, job)

    def measured_between(self, job: str, since: int, until: int) -> tuple[MeasuredRelease, ...]:
        """The releases of a job whose windows lie in a range, in order of time."""
        return measurements.select_measurements(self.database, job, since, until)

    def rolled_up(self, job: str) -> rollups.Made:
        """The newest revision of each period that was rolled up, and what it was made of."""
        return rollups.made(self.database, job)

    def add_rollup(
        self, rollup: Release, step: str, revision: int, made_of: str, sinks: Iterable[str]
    ) -> bool:
        """Write a rollup with what sinks are owed of it, once; whether it is new.

        Args:
            rollup: In the form of a release.
            step: Of what it is one.
            revision: Of its period.
            made_of: Digest of the releases of its batches.
            sinks: That get it.
        """
        with self.transaction():
            return rollups.add(self.database, rollup, step, revision, made_of, list(sinks))

    @property
    def name(self) -> str:
        """The store's own name, which it keeps in copies."""
        return str(self.database.execute("SELECT store_id FROM instance").fetchone()[0])

    def paused(self) -> frozenset[str]:
        """Names of paused jobs."""
        return paused_jobs(self.database)

    def accept_time(self, now: int, by: str) -> None:
        """Accept a clock that has jumped, by an operator's decision.

        Raises:
            ClockError: It shows a time that the store knew to be past before it was ahead.
        """
        with self.transaction():
            accept(self.database, now, by)
