"""The outbox: what was committed and still has to reach a sink, at least once, in order."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

from sqlite_utils import Database

from streamdp.store import seals
from streamdp.types import Delivery

LONGEST_WAIT = 3600
"""Seconds between attempts, at most; they double from 2."""


def post(database: Database, release_id: str, sinks: Iterable[str], now: int) -> None:
    """Owe a release to sinks; in the transaction that commits it."""
    for sink in sinks:
        database.execute(
            "INSERT INTO outbox (release_id, sink, next_at) VALUES (?, ?, ?)",
            [release_id, sink, now],
        )
        seals.seal(database, "outbox", release_id=release_id, sink=sink)


def due(database: Database, now: int, sinks: Collection[str]) -> tuple[Delivery, ...]:
    """Deliveries to these sinks to try now, oldest first; a sink that waits holds later ones back.

    A wait longer than the longest there is was set by a clock that has gone backwards since.
    """
    rows = database.query(
        "SELECT o.release_id, o.sink, o.attempts FROM outbox o"
        " JOIN release r ON r.id = o.release_id"
        " WHERE o.delivered_at IS NULL AND o.sink IN (SELECT value FROM json_each(:sinks))"
        " AND o.sink NOT IN (SELECT sink FROM outbox"
        "   WHERE delivered_at IS NULL AND next_at > :now AND next_at <= :now + :longest)"
        " ORDER BY r.reservation",
        {"now": now, "sinks": json.dumps(list(sinks)), "longest": LONGEST_WAIT},
    )
    return tuple(Delivery(**row) for row in rows)


def delivered(database: Database, deliveries: Iterable[Delivery], now: int) -> None:
    """Sinks have confirmed."""
    for delivery in deliveries:
        database.execute(
            "UPDATE outbox SET delivered_at = ?, attempts = attempts + 1"
            " WHERE release_id = ? AND sink = ?",
            [now, delivery.release_id, delivery.sink],
        )
        seals.seal(database, "outbox", release_id=delivery.release_id, sink=delivery.sink)


def failed(database: Database, delivery: Delivery, now: int) -> None:
    """A sink refused: wait twice as long as the last time."""
    wait = min(2 ** (delivery.attempts + 1), LONGEST_WAIT)
    database.execute(
        "UPDATE outbox SET next_at = ?, attempts = attempts + 1 WHERE release_id = ? AND sink = ?",
        [now + wait, delivery.release_id, delivery.sink],
    )
    seals.seal(database, "outbox", release_id=delivery.release_id, sink=delivery.sink)
