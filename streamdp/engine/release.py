"""The walk of one release: plan, reserve, evaluate, draw, learn, commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from streamdp.engine.fallbacks import following, planned
from streamdp.engine.ingest import require_unaltered
from streamdp.engine.job import Job
from streamdp.engine.origins import bind_files, bind_tables
from streamdp.engine.protocols import Store
from streamdp.errors import InternalError, StreamdpError, told_of_memory
from streamdp.types import (
    Batch,
    Charge,
    Clock,
    Entropy,
    Learned,
    Log,
    Outcome,
    Plan,
    Query,
    ReadsReleases,
    Release,
    ReleaseKind,
    Skipped,
)

RELEASE_ID_BITS = 96


@dataclass(frozen=True, slots=True)
class EngineContext:
    """Store, entropy, clock and log of a release.

    Args:
        told: Inputs of each source that this process has logged as skipped.
    """

    store: Store
    entropy: Entropy
    clock: Clock
    log: Log
    told: set[tuple[str, Skipped]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Ready:
    """A release before anything is spent: its kind, what that knows, its plan and its price."""

    kind: ReleaseKind
    learned: Learned
    plan: Plan
    query: Query
    charge: Charge


def prepare(job: Job, batch: Batch, around: EngineContext) -> Ready:
    """Plan a release and look whether its batch can be read; spends nothing, reads no records.

    Raises:
        SourceError: The batch cannot be read.
        AlteredBatchError: It is not the one that arrived.
    """
    with redact_errors(around.entropy):
        kind = _informed(job.kind, batch, around.store)
        learned, plan = _plan(job, kind, batch, around)
        require_unaltered(job, batch, around.store)
        bind_files(job, batch, around.store, around.clock.now())
        query = job.charging.bounded(plan.query, batch)
        job.backend.check(query, batch)
        bind_tables(job, job.backend, batch, around.store, around.clock.now())
        return Ready(kind, learned, plan, query, job.charging.charge(plan))


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
    kind, learned, plan, charge = ready.kind, ready.learned, ready.plan, ready.charge
    with redact_errors(around.entropy):
        release_id = new_release_id(around.entropy)
    now = around.clock.now()
    reservation = around.store.reserve(job.scope, job.name, batch, charge, now)
    about = {"job": job.name, "batch": batch.key}
    around.log("release.reserved", **about, epsilon_nano=charge.epsilon_nano)
    try:
        with redact_errors(around.entropy):
            statistic = job.backend.answer(ready.query, batch)
            outcome = kind.draw(plan, statistic, around.entropy)
            state, failed = following(kind, learned.state, plan, outcome)
            if failed:
                around.log("learner.restarted", job=job.name, code="learning-failed")
            published = kind.publish(state, outcome)
            release = _record(release_id, job, batch, charge, published, now)
            after = Learned(learned.version + 1, learned.signature, state)
            around.store.commit(reservation, release, after, job.sinks)
    except BaseException:
        around.store.burn(reservation, now)
        around.log("release.burnt", **about, epsilon_nano=charge.epsilon_nano)
        raise
    around.log("release.committed", **about, release=release.id)
    return release


def new_release_id(entropy: Entropy) -> str:
    """A name that no other release has, and that tells nothing."""
    return f"{entropy.bits(RELEASE_ID_BITS):024x}"


def _plan(job: Job, kind: ReleaseKind, batch: Batch, around: EngineContext) -> tuple[Learned, Plan]:
    """The plan under the newest learned state, or under none if that state does not fit."""
    signature = job.kind.signature()
    learned = around.store.learned(job.name)
    if learned is None:
        learned = Learned(0, signature, job.kind.init())
    elif learned.signature != signature:
        around.log("learner.restarted", job=job.name, code="configuration-changed")
        learned = Learned(learned.version, signature, job.kind.init())
    learned, plan, failed = planned(kind, learned, batch)
    if failed:
        around.log("learner.restarted", job=job.name, code="planning-failed")
    return learned, plan


def _informed(kind: ReleaseKind, batch: Batch, store: Store) -> ReleaseKind:
    """The kind, told what other jobs had released when the batch began."""
    if not isinstance(kind, ReadsReleases):
        return kind
    found = ((job, store.release_before(job, batch)) for job in kind.jobs)
    return kind.informed({job: release.rows for job, release in found if release is not None})


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
        released_at=now,
        rows=outcome.rows,
        columns=job.kind.columns,
    )
