"""The closed list of events: their level, and the fields each may carry.

A field is here only if it follows from the configuration, the clock and the ledger. There are no
values, no counts of rows, no durations: two neighbouring batches leave the same lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from streamdp.types import Json

Level = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Event:
    """An event's level, its fields, and its meaning for operators."""

    level: Level
    fields: frozenset[str]
    meaning: str


def _event(level: Level, fields: str, meaning: str) -> Event:
    return Event(level, frozenset(fields.split()), meaning)


EVENTS = {
    "daemon.started": _event("info", "pid", "the daemon holds the store and works"),
    "anchor.on-one-volume": _event(
        "warning", "", "store and anchor are on one volume, and lost together; told at each start"
    ),
    "daemon.stopped": _event("info", "", "the daemon ended on purpose"),
    "daemon.reloaded": _event("info", "", "a new configuration is in force"),
    "daemon.reload-refused": _event("error", "code reason", "the old configuration stays"),
    "wake": _event("debug", "job", "a schedule woke a job"),
    "recovery.burnt": _event("warning", "job batch", "a process died; its charge stays spent"),
    "batch.sealed": _event("debug", "source batch", "a batch was written down"),
    "batch.altered": _event("error", "source batch reason", "a file changed after it arrived"),
    "batch.refused": _event("warning", "source batch reason", "a second name of a known file"),
    "batch.unreadable": _event(
        "error", "source batch reason", "a batch cannot be read; told once a change"
    ),
    "input.skipped": _event(
        "warning",
        "source batch reason",
        "what a pattern finds is not read: a pipe, a socket, a device, a link to nothing, a folder"
        " without permission; told once a process, for windows once a reason",
    ),
    "release.reserved": _event("debug", "job batch epsilon_nano", "a charge is spent"),
    "release.committed": _event("info", "job batch release", "a release is in the store"),
    "release.burnt": _event("warning", "job batch epsilon_nano", "spent, and no release"),
    "release.delivered": _event("debug", "job batch release sink", "a sink has it"),
    "rollup.made": _event("info", "job batch release", "a closed period is rolled up, for nothing"),
    "release.failed": _event(
        "error", "job code source id reason", "a job's turn ended in an error"
    ),
    "job.waits": _event("info", "job reason", "no group was found before its batches yet"),
    "job.rests": _event("warning", "job until", "charges were burnt; the next try waits so long"),
    "budget.exhausted": _event(
        "warning", "job batch cap measure left_nano frees", "a cap refused a release; told once"
    ),
    "cap.lowered": _event("info", "scope", "the configuration lowered a cap"),
    "store.failed": _event("error", "code reason", "store or clock refuse; it is tried again"),
    "clock.behind": _event("warning", "", "the clock has gone back; nothing is done twice"),
    "learner.restarted": _event("warning", "job code", "what was learned was put aside"),
    "learner.replayed": _event("info", "job releases", "a learner began with so many releases"),
    "gate.armed": _event("info", "gate epsilon_nano", "a run is charged and begins"),
    "gate.asked": _event("debug", "gate batch answer", "the answer, at its slot"),
    "gate.accepted": _event("info", "gate batch", "a yes: the run is over, its actions are queued"),
    "gate.exhausted": _event("warning", "gate", "a run is over: it had all its tests"),
    "gate.lost": _event("warning", "gate", "a test was cut off: its run is over"),
    "gate.changed": _event("warning", "gate", "a run is over: the configuration changed"),
    "sink.failed": _event("error", "job batch release sink code reason", "it is tried again"),
    "sink.gave-up": _event("error", "job batch release sink code reason", "see `streamdp outbox`"),
    "alert": _event(
        "warning", "alert job batch reason", "a condition needs an operator, or is over; told once"
    ),
    "report.written": _event("info", "report job", "a report of a period is in its folder"),
    "report.failed": _event(
        "error", "report job reason", "a report could not be written; told once, tried again"
    ),
    "backup.written": _event("info", "name", "a copy of the store is in its folder"),
    "backup.failed": _event(
        "error", "code reason", "a copy could not be made; told once, tried again"
    ),
    "log.refused": _event("error", "name", "an event or field outside this list was dropped"),
}


def refused(event: str, fields: dict[str, Json]) -> bool:
    """Whether an event, or one of its fields, is not on the list."""
    return event not in EVENTS or not fields.keys() <= EVENTS[event].fields
