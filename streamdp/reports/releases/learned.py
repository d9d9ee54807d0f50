"""What a job has learned: the states in the store, read by its kind as tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import cast
from zoneinfo import ZoneInfo

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.errors import StreamdpError
from streamdp.store.archive import (
    KEPT,
    is_forgotten,
    learned_states,
    require_release,
    version_after,
)
from streamdp.types import (
    Batch,
    Explains,
    HasParts,
    History,
    Learned,
    Lesson,
    Release,
    ReleaseKind,
    Step,
)
from streamdp.zones import shown

NEWEST = 30
"""Releases whose losses are shown, unless more are asked for."""


@dataclass(frozen=True, slots=True)
class Lessons:
    """What a job had learned before one batch.

    Args:
        job: Its name.
        batch: Key of the batch; of one to come, that of the batch before and what follows.
        part: Group that the tables are about; empty if there is only one.
        parts: All groups.
        releases: How many releases taught it.
        tables: What it learned.
    """

    job: str
    batch: str
    part: str
    parts: tuple[str, ...]
    releases: int
    tables: tuple[Lesson, ...]


def learned(
    configuration: Configuration,
    database: Database,
    kind: ReleaseKind,
    job: str,
    batch: str | None = None,
    part: str | None = None,
    last: int = NEWEST,
) -> Lessons:
    """Return what a job had learned before a batch.

    From the store alone, at no price: releases, and the states that were learned from them.

    Args:
        configuration: Of the job.
        database: The store.
        kind: Of the job.
        job: Its name.
        batch: Key of a batch that was released; by default the one that comes next.
        part: Group; by default the first.
        last: How many releases before it are looked at.

    Raises:
        StreamdpError: There is nothing to show.
    """
    until, release = _until(database, job, batch)
    found = list(islice(learned_states(database, job, until), last + 1))
    zone = configuration.source_section(job).zone
    if not found and release is None:
        raise StreamdpError(
            f"{job} has learned nothing: it has no release",
            hint="`streamdp run --once` releases what is due",
        )
    history = _history(found, release, kind, zone, last)
    whole, releases = kind, len(history.steps)
    if found and found[0][0].signature == kind.signature():
        releases = found[0][0].version
    parts: tuple[str, ...] = ()
    about: object = whole
    if isinstance(kind, HasParts):
        parts = kind.parts()
        part = parts[0] if part is None else part
        if part not in parts:
            raise StreamdpError(
                f"{job} has no group {part!r}", hint=f"it has {', '.join(parts[:20])}"
            )
        about, history = kind.part(part, history)
    elif part:
        raise StreamdpError(
            f"what {job} learned is not told by group", hint="leave --group out: all are shown"
        )
    if not isinstance(about, Explains):
        raise StreamdpError(f"releases of kind {kind.name} do not show what they learn")
    tables = tuple(each for each in about.lessons(history) if each.rows)
    key = history.batch.key if release else f"after {history.batch.key}"
    return Lessons(job, key, part or "", parts, releases, tables)


def _until(database: Database, job: str, batch: str | None) -> tuple[int | None, Release | None]:
    """The newest version that a batch was released with, and its release."""
    if batch is None:
        return None, None
    release = require_release(database, job, batch)
    version = version_after(database, release.id)
    if is_forgotten(database, job, version - 1):
        raise StreamdpError(
            f"what {job} knew before {batch} is not kept any more",
            hint=f"the newest {KEPT} learned states of a job are kept",
        )
    return version - 1, release


def _history(
    found: list[tuple[Learned, Release]],
    release: Release | None,
    kind: ReleaseKind,
    zone: str,
    last: int,
) -> History:
    """The steps that one signature has taught, oldest first, and the batch after them.

    Args:
        found: States and their releases, the newest first.
        release: Of the batch, if it was released.
        kind: Of the job; what was learned under another signature is forgotten.
        zone: Of the source.
        last: How many steps at most.
    """
    signature, steps = kind.signature(), list[Step]()
    for (state, made), before in zip(found[:last], [*found[1:], None], strict=False):
        if state.signature != signature:
            break
        knew = kind.init()
        if before is not None and before[0].signature == signature:
            knew = before[0].state
        elif before is None and state.version > 1:
            break
        steps.insert(0, Step(_batch(made, zone), knew, made.rows))
    knows = found and found[0][0].signature == signature
    state = found[0][0].state if knows else kind.init()
    if release is not None:
        return History(tuple(steps), state, _batch(release, zone), release.rows)
    return History(tuple(steps), state, _following(found[0][1], zone))


def _batch(release: Release, zone: str) -> Batch:
    start, end = release.window_start, release.window_end
    batch = Batch(release.source, release.batch, start, end)
    return batch if start is None or end is None else _with_wall(batch, zone)


def _with_wall(batch: Batch, zone: str) -> Batch:
    if zone == "UTC":
        return batch
    moments = cast("int", batch.start), cast("int", batch.end)
    first, last = (shown(moment, ZoneInfo(zone)) for moment in moments)
    return replace(batch, wall=(first, last))


def _following(release: Release, zone: str) -> Batch:
    """The window after that of a release; of a file nothing is known but that it comes later."""
    start, end = release.window_start, release.window_end
    batch = Batch(release.source, release.batch, start, end)
    if start is None or end is None:
        return batch
    return _with_wall(replace(batch, start=end, end=end + end - start), zone)
