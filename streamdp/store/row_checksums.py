"""Row checksums: a digest in each row of the tables beside the ledger finds a flipped bit.

The ledger is a chain, and each commit in it seals its release. What else is remembered (which
batches arrived, what is owed to sinks, who is paused) changes, and carries a digest row by row.
A checksum finds damage, not forgery. Rows that hold what is hidden from readers of the store have a
keyed one, by the store's own key: who sees a digest without a key finds a small number behind it by
trying them all.
"""

from __future__ import annotations

import hashlib
import hmac
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
    "rollup": (
        *("id", "job", "step", "period", "revision", "source", "since", "until", "made_of"),
        *("made_at", "columns", "rows"),
    ),
}
"""Columns of the checksums of tables that have had them from the first."""

KEYED = frozenset({"gate_run"})
"""Tables whose rows hold a hidden number, the threshold of a gate: their seals are keyed."""

COLUMNS = tuple(f"ALTER TABLE {table} ADD COLUMN seal TEXT NOT NULL DEFAULT ''" for table in SEALED)
"""The schema step that gives each table its seals."""


def update(database: Database, table: str, **where: Json) -> None:
    """Write the checksums of the rows of a table that have these values."""
    matches = " AND ".join(f"{name} IS :{name}" for name in where) or "true"
    secret = _key(database) if table in KEYED else b""
    for row in database.query(f"SELECT * FROM {table} WHERE {matches}", where):  # noqa: S608
        key = {name: row[name] for name in list(row)[:LONGEST_KEY] if name != "seal"}
        same = " AND ".join(f"{name} IS :{name}" for name in key)
        database.execute(
            f"UPDATE {table} SET seal = :seal WHERE {same}",  # noqa: S608
            {**key, "seal": _digest(table, row, secret)},
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


def update_runs(database: Database) -> None:
    """Seal the runs of gates again, by the key."""
    update(database, "gate_run")


def verify(database: Database) -> None:
    """Verify the checksum of every row.

    Raises:
        IntegrityError: A row is not what was written.
    """
    secret = _key(database)
    for table in SEALED | SEALED_SINCE:
        for row in database.query(f"SELECT * FROM {table}"):  # noqa: S608
            if row["seal"] != _digest(table, row, secret):
                raise IntegrityError(
                    f"table {table} was altered",
                    hint="restore the store from a backup; what was spent since must be assumed"
                    " spent",
                )


def _key(database: Database) -> bytes:
    """The store's own key, which its readers are not shown; none before there is a store."""
    row = database.execute("SELECT digest_key FROM instance").fetchone()
    return row[0] if row else b""


def _digest(table: str, row: dict[str, Json], secret: bytes) -> str:
    values = [row.get(name) for name in (SEALED | SEALED_SINCE)[table]]
    if table in KEYED:
        text = json.dumps([table, *values], default=bytes.hex)
        return hmac.digest(secret, text.encode(), "sha256").hex()[:32]
    text = json.dumps(values, default=bytes.hex)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
