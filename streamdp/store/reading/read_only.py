"""Restrict a connection to reading public columns: SQLite itself refuses the rest.

An authorizer is asked for each column that a statement would read, and for anything else it would
do. The file is opened read-only besides (`mode=ro`, `query_only`).
"""

from __future__ import annotations

import sqlite3

from streamdp.database import Database

PRIVATE = frozenset(
    {
        ("gate_run", "hidden"),
        ("gate_run", "tests"),
        ("gate_run", "asked"),
        ("gate_run", "seal"),
        ("batch", "digest"),
        ("instance", "digest_key"),
    }
)
"""Columns that are never shown: noisy thresholds and test counts, keyed digests."""

_HARMLESS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
    sqlite3.SQLITE_TRANSACTION,
    sqlite3.SQLITE_SAVEPOINT,
}


def restrict(database: Database) -> None:
    """Let a connection read what is not private, and do nothing else."""
    database.conn.isolation_level = None
    database.execute("PRAGMA query_only=ON")
    database.execute("PRAGMA trusted_schema=OFF")
    database.execute("SELECT 1 FROM json_each('[]')")  # SQLite makes its table now
    database.conn.set_authorizer(authorize)


def authorize(
    action: int, table: str | None, column: str | None, database: str | None, trigger: str | None
) -> int:
    """Authorizer of SQLite: allow reading of what is not private, deny all else."""
    if action == sqlite3.SQLITE_READ and (table, column) not in PRIVATE:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_OK if action in _HARMLESS else sqlite3.SQLITE_DENY
