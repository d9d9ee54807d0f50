"""The budget each file and table belongs to, by its identity and not its name.

An origin is a text that stays the same whatever a file or table is renamed to: of a file its inode
and time of birth, of a table what its server says of itself (`files`, `Backend.origins`). The first
source that reads an origin keeps it, and so does the first batch where files are batches: the same
records under another name, link or source are refused, since they would be paid from two budgets.

Functions that write run inside a transaction of their caller.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping

from streamdp.database import Database
from streamdp.store import row_checksums
from streamdp.store.ledger import chain
from streamdp.types import Belongs

ORIGINS = (
    """
    CREATE TABLE origin (
        id TEXT PRIMARY KEY,
        scope TEXT NOT NULL,
        batch TEXT NOT NULL,
        first_seen INTEGER NOT NULL,
        seal TEXT NOT NULL DEFAULT ''
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX origin_of_scope ON origin (scope, batch)",
    """
    CREATE TABLE arrival (
        source TEXT NOT NULL,
        batch TEXT NOT NULL,
        state BLOB NOT NULL,
        seal TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (source, batch)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE problem (
        about TEXT NOT NULL,
        batch TEXT NOT NULL,
        code TEXT NOT NULL,
        reason TEXT NOT NULL,
        since INTEGER NOT NULL,
        seal TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (about, batch)
    ) STRICT, WITHOUT ROWID
    """,
)
"""The schema step: origins, the state of files when they were last read whole, and `problems`."""


def bind_origins(
    database: Database, scope: str, batch: str, origins: Collection[str], now: int
) -> dict[str, Belongs]:
    """Bind new origins to a scope and a batch; return those that belong to others.

    Args:
        database: The store.
        scope: Whose budget pays for them.
        batch: Key of the only batch that may read them; empty if all batches of the scope may.
        origins: Files and tables.
        now: POSIX time.
    """
    known = belongings(database, origins)
    for origin in origins:
        if origin not in known:
            database.execute(
                "INSERT INTO origin (id, scope, batch, first_seen) VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                [origin, scope, batch, now],
            )
            row_checksums.update(database, "origin", id=origin, scope=scope)
    return foreign(known, scope, batch)


def foreign(known: Mapping[str, Belongs], scope: str, batch: str) -> dict[str, Belongs]:
    """Origins that belong to another scope or, in the scope, to another batch."""
    own = Belongs(scope, batch)
    return {origin: owner for origin, owner in known.items() if owner != own}


def belongings(database: Database, origins: Iterable[str]) -> dict[str, Belongs]:
    """Source and batch that known origins belong to."""
    rows = database.execute(
        "SELECT id, scope, batch FROM origin WHERE id IN (SELECT value FROM json_each(?))",
        [json.dumps(list(origins))],
    )
    return {origin: Belongs(scope, batch) for origin, scope, batch in rows}


def release_unspent(database: Database, scopes: Collection[str]) -> None:
    """Let go of origins of sources that are configured no more and never spent anything."""
    rows = database.execute("SELECT DISTINCT scope FROM origin").fetchall()
    for (scope,) in rows:
        if scope not in scopes and not chain.spent_of(database, scope):
            database.execute("DELETE FROM origin WHERE scope = ?", [scope])


def release_batch(database: Database, owner: Belongs) -> bool:
    """Let go of a batch's files if nothing was ever charged for it; whether they are free."""
    charged = database.execute(
        "SELECT 1 FROM ledger WHERE scope = ? AND batch = ? AND purpose IN ('reserve', 'join')",
        [owner.scope, owner.batch],
    ).fetchone()
    if charged is None:
        database.execute(
            "DELETE FROM origin WHERE scope = ? AND batch = ?", [owner.scope, owner.batch]
        )
    return charged is None


def arrivals(database: Database, source: str) -> dict[str, bytes]:
    """State of each batch's files when they were last read whole."""
    rows = database.execute("SELECT batch, state FROM arrival WHERE source = ?", [source])
    return dict(rows.fetchall())


def keep_arrival(database: Database, source: str, batch: str, state: bytes) -> None:
    """Remember the state of a batch's files."""
    database.execute(
        "INSERT INTO arrival (source, batch, state) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET state = excluded.state",
        [source, batch, state],
    )
    row_checksums.update(database, "arrival", source=source, batch=batch)
