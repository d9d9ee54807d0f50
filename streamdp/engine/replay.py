"""Replay a job's measurements: what a learner that begins would know had it been there before.

A learner begins where its signature is a new one: after an upgrade that changed it, or with another
list of quantiles. Measurements are released and paid for, so what they teach costs nothing.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass

from streamdp.engine.draw import FAILURES
from streamdp.engine.job import Job
from streamdp.engine.protocols import Store
from streamdp.errors import WaitingError
from streamdp.types import (
    Batch,
    Json,
    MeasuredRelease,
    Measures,
    ReadsReleases,
    ReleaseKind,
)

MOST_MEASUREMENTS = 4000
"""Number of newest releases that are replayed: ten years of days, and less than a minute."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What measurements taught.

    Args:
        state: The learner's.
        releases: How many taught it something.
    """

    state: Json
    releases: int


def replayed(job: Job, store: Store, now: int) -> Replayed:
    """Return what a job's measurements teach its learner from the beginning.

    A release that the learner cannot use teaches it nothing. Reads no records: post-processing.

    Args:
        job: Whose kind learns.
        store: With its measurements.
        now: POSIX time.
    """
    found = newest(store, job.name)
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


def newest(store: Store, job: str) -> tuple[MeasuredRelease, ...]:
    """The newest releases of a job with so many measurements in all, the oldest first."""
    kept, size = deque[MeasuredRelease](), 0
    for release in store.measured(job):
        kept.append(release)
        size += len(release.measurements)
        while size > MOST_MEASUREMENTS:
            size -= len(kept.popleft().measurements)
    return tuple(kept)


def informed(
    kind: ReleaseKind, batch: Batch, store: Store, made_before: str | None = None
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
    kind: ReleaseKind, state: Json, batch: Batch, release: MeasuredRelease, store: Store
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
