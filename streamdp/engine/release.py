"""The walk of one release: plan, reserve, evaluate, draw, learn, commit.

A learner begins where its signature is a new one: after an upgrade that changed it, or with another
list of quantiles. The job's measurements are replayed to it then, so that it knows what it would
know had it been there before. They are released and paid for, so what they teach costs nothing.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamdp.engine.draw import FAILURES, Ready, finish, get_ready
from streamdp.engine.ingest import bind_files, bind_tables, require_unaltered
from streamdp.engine.job import EngineContext, Job
from streamdp.errors import InternalError, StreamdpError, WaitingError, told_of_memory
from streamdp.types import (
    Batch,
    Charge,
    Entropy,
    Json,
    Learned,
    MeasuredRelease,
    Measures,
    Outcome,
    ReadsReleases,
    Release,
    ReleaseKind,
)

if TYPE_CHECKING:
    from streamdp.store.sqlite import SqliteStore

RELEASE_ID_BITS = 96


def prepare(job: Job, batch: Batch, around: EngineContext) -> Ready:
    """Plan a release and look whether its batch can be read; spends nothing, reads no records.

    Raises:
        SourceError: The batch cannot be read.
        AlteredBatchError: It is not the one that arrived.
    """
    with redact_errors(around.entropy):
        kind = informed(job.kind, batch, around.store)
        ready = get_ready(kind, _learned(job, around), batch, job.charging)
        if ready.restarted:
            around.log("learner.restarted", job=job.name, code="planning-failed")
        for part in batch.parts or (batch,):
            require_unaltered(job, part, around.store)
            bind_files(job, part, around.store, around.clock.now())
        job.backend.check(ready.query, batch)
        bind_tables(job, job.backend, batch, around.store, around.clock.now())
        return ready


def release_batch(job: Job, batch: Batch, ready: Ready, around: EngineContext) -> Release:
    """Release one prepared batch, once.

    Between `reserve` and `commit` any end but a commit burns the charge: the process may die at
    every line, and nobody can be made to draw twice for one price.

    Privacy: the charge is fixed by `plan` from public facts and durable before the batch is read.
    The batch reaches `draw` alone; `learn` has no data argument; the log gets names and amounts.
    All that is written has the time of the reservation, which says nothing of how long it took.

    Raises:
        BudgetExhaustedError: A cap refuses; nothing was spent or read.
        SourceError: The batch could not be read after all; the charge is burnt.
        InternalError: Anything else; the charge is burnt.
        StoreError: Reserving failed: nothing was spent. Committing failed: the charge is burnt.
    """
    charge = ready.charge
    with redact_errors(around.entropy):
        release_id = new_release_id(around.entropy)
    now = around.clock.now()
    *others, own = batch.parts or (batch,)
    reservation = around.store.reserve(job.scope, job.name, own, charge, now, others)
    about = {"job": job.name, "batch": batch.key}
    around.log("release.reserved", **about, epsilon_nano=charge.epsilon_nano)
    try:
        with redact_errors(around.entropy):
            statistic = job.backend.answer(ready.query, batch)
            done = finish(ready, statistic, around.entropy)
            if done.restarted:
                around.log("learner.restarted", job=job.name, code="learning-failed")
            measured = ready.measured(done.outcome)
            release = _record(release_id, job, batch, charge, done.published, now)
            around.store.commit(reservation, release, done.learned, job.sinks, measured)
    except BaseException:
        around.store.burn(reservation, now)
        around.log("release.burnt", **about, epsilon_nano=charge.epsilon_nano)
        raise
    around.log("release.committed", **about, release=release.id)
    return release


def new_release_id(entropy: Entropy) -> str:
    """A name that no other release has, and that tells nothing."""
    return f"{entropy.bits(RELEASE_ID_BITS):024x}"


def _learned(job: Job, around: EngineContext) -> Learned:
    """The newest learned state, or what measurements teach one of another signature."""
    signature = job.kind.signature()
    learned = around.store.learned(job.name)
    if learned is None:
        return Learned(0, signature, job.kind.init())
    if learned.signature != signature:
        return Learned(learned.version, signature, _taught(job, signature, learned, around))
    return learned


def _taught(job: Job, signature: Json, learned: Learned, around: EngineContext) -> Json:
    """The state of a learner that begins: what the measurements that are kept teach it."""
    about = json.dumps([learned.version, signature], sort_keys=True)
    if around.taught.get(job.name, ("", None))[0] != about:
        found = replayed(job, around.store, around.clock.now())
        around.taught[job.name] = about, found.state
        if found.releases:
            around.log("learner.replayed", job=job.name, releases=found.releases)
        else:
            around.log("learner.restarted", job=job.name, code="nothing-to-replay")
    return around.taught[job.name][1]


@contextmanager
def redact_errors(entropy: Entropy) -> Iterator[None]:
    """Replace foreign exceptions: their text, and their causes, may quote a record."""
    try:
        with told_of_memory():
            yield
    except StreamdpError:
        raise
    except Exception:  # noqa: BLE001
        number = _number(entropy)
        raise InternalError(
            f"an unexpected error, number {number}",
            hint="a mistake in streamdp: please report it with `streamdp version`; nothing more is"
            " kept of it, on purpose, since even its kind may follow from a record",
            id=number,
        ) from None


def _number(entropy: Entropy) -> str:
    """A number that message and log of one error share; zeros if there is no entropy."""
    try:
        return f"{entropy.bits(48):012x}"
    except OSError:
        return "0" * 12


def _record(
    release_id: str, job: Job, batch: Batch, charge: Charge, outcome: Outcome, now: int
) -> Release:
    return Release(
        id=release_id,
        job=job.name,
        source=batch.source,
        batch=batch.key,
        window_start=batch.start,
        window_end=batch.end,
        kind=job.kind.name,
        epsilon_nano=charge.epsilon_nano,
        delta_atto=charge.delta_atto,
        released_at=now,
        rows=outcome.rows,
        columns=job.kind.columns,
    )


MOST_MEASUREMENTS = 4000
"""Number of newest releases that are replayed: ten years of days, and less than a minute."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """The state of a learner after the replay of measurements.

    Args:
        state: The learner's.
        releases: How many taught it something.
    """

    state: Json
    releases: int


def replayed(job: Job, store: SqliteStore, now: int) -> Replayed:
    """Return what a job's measurements teach its learner from the beginning.

    A release that the learner cannot use teaches it nothing. Reads no records: post-processing.

    Args:
        job: Whose kind learns.
        store: With its measurements.
        now: POSIX time.
    """
    found = newest_measured(store, job.name)
    if not found:
        return Replayed(job.kind.init(), 0)
    batches = {batch.key: batch for batch in job.source.batches(now)}
    state, releases = job.kind.init(), 0
    for release in found:
        batch = batches.get(release.batch.key, release.batch)
        after = _after(job.kind, state, batch, release, store)
        if after is not None:
            state, releases = after, releases + 1
    return Replayed(state, releases)


def newest_measured(store: SqliteStore, job: str) -> tuple[MeasuredRelease, ...]:
    """The newest releases of a job with so many measurements in all, the oldest first."""
    kept, size = deque[MeasuredRelease](), 0
    for release in store.measured(job):
        kept.append(release)
        size += len(release.measurements)
        while size > MOST_MEASUREMENTS:
            size -= len(kept.popleft().measurements)
    return tuple(kept)


def informed(
    kind: ReleaseKind, batch: Batch, store: SqliteStore, made_before: str | None = None
) -> ReleaseKind:
    """The kind, told what other jobs had released when a batch began.

    Args:
        kind: Of a job.
        batch: That it releases, or released.
        store: With the releases of other jobs.
        made_before: Id of a release: what others released after it was not known to it.
    """
    if not isinstance(kind, ReadsReleases):
        return kind
    found = ((job, store.release_before(job, batch, made_before)) for job in kind.jobs)
    return kind.informed({job: release.rows for job, release in found if release is not None})


def _after(
    kind: ReleaseKind, state: Json, batch: Batch, release: MeasuredRelease, store: SqliteStore
) -> Json:
    """The state after one release, as it would come from the store; None if it teaches nothing."""
    try:
        one = informed(kind, batch, store, release.id)
    except WaitingError:
        return None
    if not isinstance(one, Measures):
        return None
    try:
        return json.loads(json.dumps(one.replayed(state, batch, release.measurements)))
    except FAILURES:
        return None
