"""The walk of one release: plan, reserve, evaluate, draw, learn, commit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from streamdp.engine.draw import Ready, finish, get_ready
from streamdp.engine.ingest import require_unaltered
from streamdp.engine.job import Job
from streamdp.engine.origins import bind_files, bind_tables
from streamdp.engine.protocols import Store
from streamdp.engine.replay import informed, replayed
from streamdp.engine.rollups import Rolled
from streamdp.errors import InternalError, StreamdpError, told_of_memory
from streamdp.types import (
    Batch,
    Charge,
    Clock,
    Entropy,
    Json,
    Learned,
    Log,
    Outcome,
    Release,
    Skipped,
)

RELEASE_ID_BITS = 96


@dataclass(frozen=True, slots=True)
class EngineContext:
    """Store, entropy, clock and log of a release.

    Args:
        told: Inputs of each source that this process has logged as skipped.
        taught: By job, the newest learner that began and what measurements taught it.
        rolled: What this process knows of rollups.
        rested: By task, until when it rests as this process has logged.
    """

    store: Store
    entropy: Entropy
    clock: Clock
    log: Log
    told: set[tuple[str, Skipped]] = field(default_factory=set)
    taught: dict[str, tuple[str, Json]] = field(default_factory=dict)
    rolled: Rolled = field(default_factory=Rolled)
    rested: dict[str, int] = field(default_factory=dict)


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
            around.log("learner.restarted", job=job.name, code="configuration-changed")
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
