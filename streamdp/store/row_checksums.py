"""Row checksums: a digest in each row of the tables beside the ledger finds a flipped bit.

The ledger is a chain, and each commit in it seals its release. What else is remembered (which
batches arrived, what is owed to sinks, who is paused) changes, and carries a digest row by row.
There is no key: a checksum finds damage, not forgery.
"""

from __future__ import annotations

import hashlib
import json

from streamdp.database import Database
from streamdp.errors import IntegrityError
from streamdp.types import Json

SEALED = {
    "instance": ("id", "store_id", "digest_key", "anchored", "known_at"),
    "batch": ("source", "key", "window_start", "window_end", "digest", "arrived_at"),
    "outbox": (
        *("seq", "release_id", "sink", "attempts", "next_at", "delivered_at", "dead_at"),
        "reason",
    ),
    "notice": ("id", "job", "source", "batch", "kind", "noticed_at", "rows"),
    "pause": ("job", "since"),
}
"""Columns of each table that its seals cover, of those that were there before there were seals."""

LONGEST_KEY = 3
"""First columns that tell the rows of each table apart."""

SEALED_SINCE = {
    "gate_run": ("run", "gate", "terms", "hidden", "tests", "asked", "ended", "waits"),
    "gate_answer": ("gate", "batch", "source", "run", "accepted", "slot"),
    "origin": ("id", "scope", "batch", "first_seen"),
    "arrival": ("source", "batch", "state"),
    "release_columns": ("job", "since", "columns"),
    "alert": ("id", "event", "about", "batch", "reason", "since", "over_at"),
    "problem": ("about", "batch", "code", "reason", "since"),
}
"""Of those that have had them from the first."""

COLUMNS = tuple(f"ALTER TABLE {table} ADD COLUMN seal TEXT NOT NULL DEFAULT ''" for table in SEALED)
"""The schema step that gives each table its seals."""


def update(database: Database, table: str, **where: Json) -> None:
    """Write the checksums of the rows of a table that have these values."""
    matches = " AND ".join(f"{name} IS :{name}" for name in where) or "true"
    for row in database.query(f"SELECT * FROM {table} WHERE {matches}", where):  # noqa: S608
        key = {name: row[name] for name in list(row)[:LONGEST_KEY] if name != "seal"}
        same = " AND ".join(f"{name} IS :{name}" for name in key)
        database.execute(
            f"UPDATE {table} SET seal = :seal WHERE {same}",  # noqa: S608
            {**key, "seal": _digest(table, row)},
        )


def update_all(database: Database) -> None:
    """Seal what was written before there were seals."""
    for table in SEALED:
        update(database, table)


def update_time(database: Database) -> None:
    """Seal the last known time too, which was there before it was sealed."""
    update(database, "instance")


def update_debts(database: Database) -> None:
    """Seal the outbox again, whose rows have got a column."""
    update(database, "outbox")


def verify(database: Database) -> None:
    """Verify the checksum of every row.

    Raises:
        IntegrityError: A row is not what was written.
    """
    for table in SEALED | SEALED_SINCE:
        for row in database.query(f"SELECT * FROM {table}"):  # noqa: S608
            if row["seal"] != _digest(table, row):
                raise IntegrityError(
                    f"table {table} was altered",
                    hint="restore the store from a backup; what was spent since must be assumed"
                    " spent",
                )


def _digest(table: str, row: dict[str, Json]) -> str:
    text = json.dumps([row.get(name) for name in (SEALED | SEALED_SINCE)[table]], default=bytes.hex)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
