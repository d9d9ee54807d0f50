"""Notices that tell sinks a gate's answer: a yes, or a no after which a release still stands."""

from __future__ import annotations

from streamdp.engine.job import Job
from streamdp.engine.release import new_release_id
from streamdp.text import iso
from streamdp.types import Batch, Entropy, Release, Row

Notices = tuple[tuple[Release, tuple[str, ...]], ...]
"""Notices, each with the sinks that it is owed to."""


def of_acceptance(
    gate: str,
    sinks: tuple[str, ...],
    standing: tuple[Release, ...],
    batch: Batch,
    slot: int,
    entropy: Entropy,
    chosen: Row,
) -> Notices:
    """The gate's notice of a yes: the batch it accepted, and the release that stood before.

    Of a gate over several configurations it has the one that was accepted.
    """
    row: Row = {"accepted": True, **chosen, **(_standing(standing[0]) if standing else {})}
    told = _notice(gate, "gate", batch, slot, row, entropy)
    return ((told, sinks),) if sinks else ()


def of_standing(
    jobs: tuple[Job, ...], standing: tuple[Release, ...], batch: Batch, slot: int, entropy: Entropy
) -> Notices:
    """A notice of a no for each job that has a release: that release still stands."""
    last = {release.job: release for release in standing}
    found = ((job, last[job.name]) for job in jobs if job.name in last)
    return tuple(
        (_notice(job.name, "standing", batch, slot, _left(release), entropy), job.sinks)
        for job, release in found
    )


def _left(release: Release) -> Row:
    return {"accepted": False, **_standing(release)}


def _standing(release: Release) -> Row:
    return {
        "standing_release": release.id,
        "standing_batch": release.batch,
        "standing_window_start": iso(release.window_start),
        "standing_window_end": iso(release.window_end),
    }


def _notice(job: str, kind: str, batch: Batch, slot: int, row: Row, entropy: Entropy) -> Release:
    return Release(
        id=new_release_id(entropy),
        job=job,
        source=batch.source,
        batch=batch.key,
        window_start=batch.start,
        window_end=batch.end,
        kind=kind,
        epsilon_nano=0,
        released_at=slot,
        rows=(row,),
    )
