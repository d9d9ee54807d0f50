"""Events of batches besides releases: burnt, refused, asked about, carried forward."""

from __future__ import annotations

from dataclasses import dataclass

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.store.reading.browse import gate_answers, missed_batches
from streamdp.store.reading.places import moment_of_key
from streamdp.store.reading.reports import standing

MOST = 1000
"""The most happenings of each kind, the newest."""

MEANINGS = {
    "burn": "charged, and not released",
    "refuse": "refused by a cap",
    "yes": "the gate said yes",
    "no": "the gate said no: the last release stands",
}


@dataclass(frozen=True, slots=True)
class Happening:
    """Something about one batch.

    Args:
        batch: Its key.
        moment: Where it stands in time (POSIX seconds).
        what: `burn`, `refuse`, `yes` or `no`.
    """

    batch: str
    moment: int
    what: str

    @property
    def meaning(self) -> str:
        """The event in words."""
        return MEANINGS[self.what]


@dataclass(frozen=True, slots=True)
class Happenings:
    """All of a job, newest first.

    Args:
        events: One batch each.
        carried: First and last moment of stretches that a release stood for, and its batch.
    """

    events: tuple[Happening, ...]
    carried: tuple[tuple[int, int, str], ...]


def happenings(configuration: Configuration, database: Database, job: str, now: int) -> Happenings:
    """Events of a job's batches besides releases."""
    found = [
        Happening(key, _moment(key, each.window_start, each.at), each.what)
        for each in missed_batches(database, job, MOST)
        for key in (each.batch or "",)
    ]
    gate = configuration.gated().get(job)
    if gate is None:
        return Happenings(tuple(found), ())
    growing = configuration.source_section(job).is_growing()
    starts, ends = dict[str, int](), dict[str, int]()
    for answer in gate_answers(database, gate, now, MOST):
        window = answer.window_end if growing else answer.window_start
        moment = _moment(answer.batch, window, answer.slot)
        starts[answer.batch] = moment
        ends[answer.batch] = moment if answer.window_end is None else answer.window_end
        found.append(Happening(answer.batch, moment, "yes" if answer.accepted else "no"))
    carried = tuple(
        (starts[each.first], ends[each.last], each.of)
        for each in standing(database, job, now).values()
        if each.first in starts and each.last in starts
    )
    return Happenings(tuple(sorted(found, key=lambda each: -each.moment)), carried)


def _moment(key: str, window: int | None, at: int) -> int:
    """Where a batch lies in time: by its window, the date in its key, or when it was dealt with."""
    known = moment_of_key(key) if window is None else window
    return at if known is None else known
