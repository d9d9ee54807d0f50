"""Whether the next run would be refused, found out without beginning it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.errors import ClockError, StreamdpError
from streamdp.store.anchor.check import require_same_end
from streamdp.store.clock_guard import require_followed, require_not_ahead, require_not_behind
from streamdp.store.ledger import chain
from streamdp.store.schema.migrations import is_current

NEWEST = 5_000
"""Rows of the ledger that are looked at: all of most stores, and no long wait for any."""


def refusal(
    database: Database, anchor: Path, now: int, longest_step: int | None
) -> StreamdpError | None:
    """The error with which a run would end: of the clock, the ledger or its anchor; or None.

    Of a long ledger the newest rows are verified, and the end of the anchor: a run verifies all. A
    store of an earlier version is not looked into: the next run brings it up to this one first.

    Args:
        database: The store, of which no daemon works.
        anchor: File of its anchor.
        now: POSIX time.
        longest_step: Seconds that the clock may be ahead of the last known time; None for any.
    """
    if not is_current(database):
        return None
    try:
        require_followed(database, now, longest_step)
        chain.verify(database, NEWEST)
        require_same_end(database, anchor)
    except StreamdpError as error:
        return error
    return None


def clock_errors(
    configuration: Configuration, database: Database, now: int, names: Iterable[str]
) -> Iterator[ClockError]:
    """What is wrong as the clock has gone back, or was ahead once: of the store, then of jobs.

    Args:
        configuration: Of the jobs.
        database: The store.
        now: POSIX time.
        names: Of releases and gates.
    """
    try:
        require_not_behind(database, now)
    except ClockError as error:
        yield error
    gated = configuration.gated()
    for name in dict.fromkeys(each for job in names for each in (job, gated.get(job, job))):
        gates = configuration.all_gates()
        source = (
            configuration.source_of(gates[name])
            if name in gates
            else configuration.releases[name].source
        )
        try:
            require_not_ahead(database, name, source, now)
        except ClockError as error:
            yield error
