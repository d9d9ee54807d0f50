"""The store that the engine works with: each method is one transaction."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from sqlite_utils import Database

from streamdp import __version__
from streamdp.errors import ConfigurationError, LockedError, StoreError
from streamdp.privacy.amounts import epsilon_text
from streamdp.privacy.filters import Caps
from streamdp.store import archive, claims, ledger, outbox, refusals, runs
from streamdp.store.anchor import Anchor, default_anchor
from streamdp.store.claims import Overlap
from streamdp.store.database import transaction
from streamdp.store.gates import GateRuns
from streamdp.store.known_time import keep_time
from streamdp.store.opening import open_store
from streamdp.store.pauses import paused_jobs
from streamdp.store.standing import charges_after, state_of
from streamdp.types import Batch, Charge, Delivery, Json, Learned, Release, Reservation, Run


class SqliteStore:
    """Ledger, archive, learners and outbox, written by one process at a time.

    Every opening for work raises the store's epoch; a process that was suspended while another
    took over finds its own epoch outdated inside the transaction, and writes nothing.
    """

    def __init__(self, database: Database, anchor: Anchor, longest_step: int | None = None) -> None:
        self.database = database
        self.gates = GateRuns(database, self.transaction)
        self._anchor, self._longest_step = anchor, longest_step
        (self._epoch,) = database.execute("SELECT epoch FROM instance").fetchone()

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

    def close(self) -> None:
        """Give connection and anchor back."""
        self.database.close()
        self._anchor.close()

    def declare(
        self, scopes: Iterable[str], unit: str, neighbours: str, caps: Caps, now: int
    ) -> list[str]:
        """Bind scopes to unit, neighbours and caps, all or none; returns those whose caps fell.

        Raises:
            ConfigurationError: The configuration says other than the ledger, or asks for more.
        """
        about = {"unit": unit, "neighbours": neighbours}
        with self.transaction():
            return [scope for scope in scopes if self._bind(scope, about, caps, now)]

    def _bind(self, scope: str, about: dict[str, str], caps: Caps, now: int) -> bool:
        """Bind one scope; whether its caps fell."""
        declared = ledger.declaration_of(self.database, scope)
        if declared is None:
            ledger.set_caps(self.database, scope, caps, {**about, "by": "first use"}, now)
            return False
        _refuse_other_meaning(scope, about, declared)
        in_force = ledger.caps_of(self.database, scope)
        _refuse_higher_caps(scope, caps, in_force)
        if caps != in_force:
            ledger.set_caps(self.database, scope, caps, {**about, "by": "configuration"}, now)
        return caps != in_force

    def claim(self, data: Mapping[str, Json], overlap: Overlap, now: int) -> None:
        """Bind sources to the data they read, or hold that they still read it.

        Raises:
            ConfigurationError: A source reads what belongs to another's budget, or other data.
        """
        with self.transaction():
            claims.claim(self.database, data, overlap, now)

    def move_source(self, source: str, data: Json, overlap: Overlap, about: Json, now: int) -> None:
        """Let a source read its data in another place, by a person's word.

        Raises:
            ConfigurationError: The data belongs to another's budget.
        """
        with self.transaction():
            claims.move(self.database, source, data, overlap, about, now)

    def add_batches(self, batches: Iterable[tuple[Batch, bytes | None]], now: int) -> None:
        """Write new batches down, each with the digest of its content if it is a file.

        Raises:
            ClockError: The clock has jumped; nothing was sealed.
        """
        with self.transaction():
            keep_time(self.database, now, self._longest_step)
            for batch, digest in batches:
                archive.add_batch(self.database, batch, digest, now)

    def keyed_digest(self, content: bytes) -> bytes:
        """A digest only this store can form: a plain one would tell who holds the same data."""
        (key,) = self.database.execute("SELECT digest_key FROM instance").fetchone()
        return hmac.new(key, content, hashlib.sha256).digest()

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

    def learned(self, job: str) -> Learned | None:
        """The newest state of a job's learner."""
        return archive.latest_learned(self.database, job)

    def reserve(self, scope: str, job: str, batch: Batch, charge: Charge, now: int) -> Reservation:
        """Spend a charge, durably, before data is touched.

        Raises:
            BudgetExhaustedError: A cap refuses; nothing was spent.
            StoreError: It could not be written; nothing was spent.
        """
        with self.transaction():
            if archive.is_released(self.database, job, batch):
                raise StoreError(f"{job} has already released {batch.key}")
            return ledger.reserve(self.database, scope, job, batch, charge, now)

    def pass_over(self, scope: str, job: str, batch: str, cap: str, now: int) -> None:
        """Remember that a cap has refused a batch."""
        with self.transaction():
            refusals.pass_over(self.database, scope, job, batch, cap, now)

    def passed_over(self, scope: str) -> frozenset[tuple[str, str]]:
        """Jobs or gates, and batches refused to them under the caps in force."""
        return refusals.passed_over(self.database, scope)

    def burn(self, reservation: Reservation, now: int) -> None:
        """The charge stays spent and there will be no release for it."""
        with self.transaction():
            ledger.settle(self.database, reservation, now)

    def open_run(self, scope: str, job: str, charge: Charge, now: int) -> Run:
        """Spend a charge for all batches that a gate will ever test; it stays open.

        Raises:
            BudgetExhaustedError: A cap over the lifetime refuses; nothing was spent.
        """
        with self.transaction():
            return runs.open_run(self.database, scope, job, charge, now)

    def join_run(self, run: Run, batch: Batch, now: int) -> None:
        """Count an open run against a batch before it is tested; once for each batch.

        Raises:
            BudgetExhaustedError: A cap refuses; the batch must not be tested.
        """
        with self.transaction():
            runs.join_run(self.database, run, batch, now)

    def close_run(self, run: Run, now: int) -> None:
        """End a run; its charge stays spent."""
        with self.transaction():
            runs.close_run(self.database, run, now)

    def open_run_of(self, job: str) -> Run | None:
        """The run of a job that is open, after a restart too."""
        return runs.open_run_of(self.database, job)

    def commit(
        self, reservation: Reservation, release: Release, learned: Learned, sinks: Iterable[str]
    ) -> None:
        """Charge, release, learner state and outbox: all or nothing.

        Raises:
            StoreError: It could not be written, or the learner has moved on; the charge is open
                and will be burnt.
        """
        now = release.released_at
        with self.transaction():
            latest = archive.latest_learned(self.database, release.job)
            if learned.version != (latest.version if latest else 0) + 1:
                raise StoreError(f"the learner of {release.job} was changed meanwhile")
            archive.add_release(self.database, release, reservation.seq, __version__)
            archive.add_learned(self.database, release.job, learned, release.id)
            outbox.post(self.database, release.id, sinks, now)
            seal = archive.seal_of(self.database, release.id)
            ledger.settle(self.database, reservation, now, release.id, seal)

    def burns_in_a_row(self, scope: str, job: str) -> tuple[int, int]:
        """How many charges of a job were burnt since its last release, and when the last was.

        A charge that a crash cut off names no job; it counts for all of its scope.
        """
        return ledger.burns_in_a_row(self.database, scope, job)

    def recover(self, now: int) -> tuple[Reservation, ...]:
        """Burn the charges that a dead process left open."""
        with self.transaction():
            left = ledger.open_reservations(self.database)
            for reservation in left:
                ledger.settle(self.database, reservation, now)
        return left

    def due_deliveries(
        self, now: int, sinks: Collection[str]
    ) -> Iterator[tuple[Delivery, Release]]:
        """Deliveries to these sinks to try now, with their releases, read one by one.

        What is handed out is published: the anchor first learns that its commit is certain.
        """
        deliveries = outbox.due(self.database, now, sinks)
        if deliveries:
            self._anchor.confirm(state_of(self.database))
        for delivery in deliveries:
            yield delivery, archive.release_of(self.database, delivery.release_id)

    def confirm(
        self,
        delivered: Iterable[Delivery],
        failed: Iterable[Delivery],
        dead: Iterable[Delivery],
        now: int,
    ) -> None:
        """Write down how deliveries ended."""
        with self.transaction():
            outbox.delivered(self.database, delivered, now)
            outbox.failed(self.database, failed, now)
            outbox.died(self.database, dead, now)

    def paused(self) -> frozenset[str]:
        """Names of paused jobs."""
        return paused_jobs(self.database)

    def accept_time(self, now: int, by: str) -> None:
        """Follow a clock that has jumped, by a person's word."""
        with self.transaction():
            keep_time(self.database, now, None)
            ledger.note(self.database, {"what": "clock accepted", "by": by}, now)

    def beat(self, pid: int, now: int) -> int:
        """Sign of life: tells a dead daemon from an idle one; returns how far the clock is behind.

        Raises:
            ClockError: The clock has jumped.
        """
        with self.transaction():
            behind = keep_time(self.database, now, self._longest_step)
            self.database.execute("UPDATE instance SET pid = ?, heartbeat_at = ?", [pid, now])
        return behind

    def stopped(self, now: int) -> None:
        """The daemon went on purpose."""
        with self.transaction():
            self.database.execute("UPDATE instance SET pid = NULL, stopped_at = ?", [now])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction that only the newest holder of the store may commit.

        What it adds to the ledger is in the anchor, on the disk, before it is committed.
        """
        with transaction(self.database):
            base = state_of(self.database)
            if base.epoch != self._epoch:
                raise LockedError(
                    "another process has taken this store over",
                    hint="this one was suspended or its lock was lost: stop it",
                )
            yield
            target = state_of(self.database)
            if target != base:
                self._anchor.intend(base, target, charges_after(self.database, base.seq))


def _refuse_other_meaning(scope: str, wanted: dict[str, str], declared: Json) -> None:
    for name, value in wanted.items():
        if declared[name] != value:
            raise ConfigurationError(
                f"the ledger of {scope} was opened with {name} {declared[name]!r},"
                f" the configuration says {value!r}",
                hint="what was spent was spent in those terms: keep them, or begin a new store",
            )


def _refuse_higher_caps(scope: str, caps: Caps, in_force: Caps) -> None:
    for limit in caps.above(in_force):
        raise ConfigurationError(
            f"the configuration allows {scope} more than the ledger's {limit.name} cap of"
            f" {epsilon_text(limit.nano)} {limit.measure}",
            where="privacy.caps",
            hint="a cap is not raised or dropped by an edit: `streamdp cap` writes it into the"
            " ledger, with your name and reason",
        )
