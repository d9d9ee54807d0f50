"""The outbox: committed releases and notices to deliver, at least once, in order.

It owes releases, and notices: public facts beside releases that cost nothing, such as the word
of a gate. That word is held until its slot is over: until then it is as if it were not there, and
holds nothing back. A sink may say after how many attempts it gives up; what it gave up on is a dead
letter, which waits for a person and holds nothing back.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

from streamdp.database import Database
from streamdp.store import row_checksums
from streamdp.types import Delivery, Failure

LONGEST_WAIT = 3600
"""Seconds between attempts, at most; they double from 2."""

_OWED = "delivered_at IS NULL AND dead_at IS NULL"


_HELD = "attempts = 0 AND next_at > :now AND next_at <= :now + :longest"
"""Never tried, and not yet to be."""


def wait_after(attempts: int) -> int:
    """Seconds from the last of so many failed attempts to the next."""
    return min(1 << min(attempts, 20), LONGEST_WAIT)


def attempts_in(seconds: int) -> int:
    """Attempts of one delivery of which the last comes no earlier than this after the first.

    >>> attempts_in(0), attempts_in(2), attempts_in(3600)
    (1, 2, 12)
    """
    attempts, passed = 1, 0
    while passed < seconds:
        passed += wait_after(attempts)
        attempts += 1
    return attempts


def post(database: Database, release_id: str, sinks: Iterable[str], now: int) -> None:
    """Queue a release or notice for sinks, in the transaction that commits it."""
    for sink in sinks:
        database.execute(
            "INSERT INTO outbox (release_id, sink, next_at) VALUES (?, ?, ?)",
            [release_id, sink, now],
        )
    row_checksums.update(database, "outbox", release_id=release_id)


def hold(database: Database, release_id: str, sinks: Iterable[str], now: int) -> None:
    """Queue a notice for sinks until `let_go`, or the next start of a daemon, makes it due."""
    post(database, release_id, sinks, now + LONGEST_WAIT)


def held(database: Database, now: int) -> list[str]:
    """Return the ids of notices that are held."""
    rows = database.query(
        f"SELECT DISTINCT release_id FROM outbox WHERE {_OWED} AND {_HELD}"  # noqa: S608
        " AND release_id IN (SELECT id FROM notice)",
        {"now": now, "longest": LONGEST_WAIT},
    )
    return [row["release_id"] for row in rows]


def let_go(database: Database, release_ids: Iterable[str], now: int) -> None:
    """Make notices due that were held."""
    for release_id in release_ids:
        database.execute(
            "UPDATE outbox SET next_at = min(next_at, ?) WHERE release_id = ? AND attempts = 0",
            [now, release_id],
        )
        row_checksums.update(database, "outbox", release_id=release_id)


def due(
    database: Database, now: int, sinks: Collection[str], most: int | None = None
) -> tuple[Delivery, ...]:
    """Deliveries to try now, at most so many, oldest first; a sink that waits holds its own back.

    A wait longer than the longest there is was set by a clock that has gone backwards since.
    """
    rows = database.query(
        f"SELECT release_id, sink, attempts FROM outbox WHERE {_OWED}"  # noqa: S608
        " AND sink IN (SELECT value FROM json_each(:sinks))"
        f" AND NOT ({_HELD})"
        f" AND sink NOT IN (SELECT sink FROM outbox WHERE {_OWED} AND attempts > 0"
        "   AND next_at > :now AND next_at <= :now + :longest)"
        " ORDER BY seq LIMIT :most",
        {
            "now": now,
            "sinks": json.dumps(list(sinks)),
            "longest": LONGEST_WAIT,
            "most": -1 if most is None else most,
        },
    )
    return tuple(Delivery(**row) for row in rows)


def delivered(database: Database, deliveries: Iterable[Delivery], now: int) -> None:
    """Remove deliveries that sinks confirmed."""
    for delivery in deliveries:
        _set(database, delivery, "delivered_at = ?, reason = NULL", now)


def failed(database: Database, failures: Iterable[Failure], now: int) -> None:
    """Record failed deliveries: wait twice as long as before, or for an operator."""
    for failure in failures:
        delivery = failure.delivery
        when = now + wait_after(delivery.attempts + 1)
        column, at = ("dead_at", now) if failure.dead else ("next_at", when)
        _set(database, delivery, f"{column} = ?, reason = ?", at, failure.reason)


def retry(database: Database, release_id: str | None, now: int) -> int:
    """Queue dead letters again, of one release or of all; return how many."""
    revived = database.execute(
        "UPDATE outbox SET dead_at = NULL, attempts = 0, next_at = ? WHERE dead_at IS NOT NULL"
        " AND delivered_at IS NULL AND (? IS NULL OR release_id = ?)",
        [now, release_id, release_id],
    )
    row_checksums.update(database, "outbox", delivered_at=None)
    return revived.rowcount


def _set(database: Database, delivery: Delivery, change: str, *values: int | str) -> None:
    database.execute(
        f"UPDATE outbox SET {change}, attempts = attempts + 1"  # noqa: S608
        " WHERE release_id = ? AND sink = ?",
        [*values, delivery.release_id, delivery.sink],
    )
    row_checksums.update(database, "outbox", release_id=delivery.release_id, sink=delivery.sink)
