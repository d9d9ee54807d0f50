"""Whether anything in a store was altered, and whether the next run would be refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.errors import IntegrityError, StoreError, StreamdpError
from streamdp.store import archive, row_checksums
from streamdp.store.anchor import require_agreement, require_same_end
from streamdp.store.clock_guard import require_followed
from streamdp.store.database import connect_to_read, require_sound
from streamdp.store.ledger import chain
from streamdp.store.migrations import is_current, require_schema


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; `finding` says what is wrong."""

    what: str
    sound: bool
    finding: str = ""


def verification(configuration: Configuration) -> list[Check]:
    """Look at everything, on a connection of its own; nothing is changed.

    Raises:
        StoreError: There is no store, or one of another version.
    """
    path, anchor = configuration.store.paths()
    database = connect_to_read(path)
    with closing(database.conn):
        if not is_current(database):
            raise StoreError(
                "this store was written by another version of streamdp",
                where=str(path),
                hint="`streamdp run` brings an older one up to date, and keeps a copy of it",
            )
        return examined(database, anchor)


def examined(database: Database, anchor: Path) -> list[Check]:
    """Each check of a store that is open for reading, and what it found."""
    found = []
    for what, check in _checks(database, anchor):
        try:
            check()
            found.append(Check(what, True))
        except IntegrityError as error:
            found.append(Check(what, False, error.line))
    return found


def _checks(database: Database, anchor: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    yield "pages and indexes are sound", lambda: require_sound(database)
    yield "the schema is its own, and nothing else is", lambda: require_schema(database)
    yield "the ledger's chain is whole and adds up", lambda: chain.verify(database)
    yield "every commit has its release, as it was drawn", lambda: archive.verify(database)
    yield "batches, deliveries and pauses are as written", lambda: row_checksums.verify(database)
    yield "the anchor agrees", lambda: require_agreement(database, anchor)


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
