"""The data each budget belongs to: all that a scope ever read, in notes of the ledger.

A budget is found by the name of its source, but it belongs to the data. What a source reads, and
by which column, clocks and format it is cut into batches, is written down at its first use; later
it changes only by a person's word, and no other source may read data that a scope has ever claimed.
Claims of earlier versions lack clocks and format: those of the first later use are added to them.

Each file and table belongs to one budget, by its identity and not its name. An origin is a text
that stays the same whatever a file or table is renamed to: of a file its inode and time of birth,
of a table what its server says of itself (`files`, `Backend.origins`). The first source that reads
an origin keeps it, and so does the first batch where files are batches: the same records under
another name, link or source are refused, since they would be paid from two budgets.

Functions that write run inside a transaction of their caller.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from streamdp.database import Database
from streamdp.errors import ConfigurationError
from streamdp.store import row_checksums
from streamdp.store.ledger import chain, ledger
from streamdp.types import Belongs, Json

Overlap = Callable[[Json, Json], bool]
"""Whether two claims can mean the same records."""

_CLAIM = "source claimed"

_READ = "read"
"""Key of how records are read: absent from claims of earlier versions."""


def claims_of(database: Database) -> dict[str, list[Json]]:
    """Data that each scope has ever read, oldest first."""
    claims: dict[str, list[Json]] = {}
    for about in ledger.notes(database):
        if about.get("what") == _CLAIM:
            claims.setdefault(about["scope"], []).append(_with_port(about["data"]))
    return claims


def _with_port(data: Json) -> Json:
    """A claim in today's form, with the default port where none was given."""
    path = data["path"] if isinstance(data, dict) else ""
    if not path.startswith("postgres://") or ":None/" not in path:
        return data
    return {**data, "path": path.replace(":None/", ":5432/", 1)}


def claim(database: Database, wanted: Mapping[str, Json], overlap: Overlap, now: int) -> None:
    """Bind scopes to their data; refuse a scope that is bound to other data.

    Raises:
        ConfigurationError: A source reads what belongs to another's budget, or other data than
            before.
    """
    for scope in require_same(database, wanted, overlap):
        write(database, scope, wanted[scope], {"by": "first use"}, now)


def require_same(database: Database, wanted: Mapping[str, Json], overlap: Overlap) -> list[str]:
    """Refuse a scope that is bound to other data; return those whose data is not written down yet.

    Raises:
        ConfigurationError: As `claim`.
    """
    known = claims_of(database)
    for scope, data in wanted.items():
        _refuse_foreign(database, scope, data, known, overlap, wanted)
        if scope in known and not _is_claimed(data, known[scope]):
            raise ConfigurationError(
                f"source {scope} reads other data than before, takes its time or units from another"
                " column, or reads records in another format, times of another type, or days of"
                " another time zone",
                where=f"sources.{scope}",
                hint="set it as it was; if these are the same records in another place,"
                f" `streamdp source {scope} --moved --operator NAME --reason WHY` says so in the"
                " ledger",
            )
    return [scope for scope, data in wanted.items() if data not in known.get(scope, ())]


def _is_claimed(data: Json, claims: Sequence[Json]) -> bool:
    """Whether a scope is bound to data; if no claim says how they are read, any reading will do."""
    if any(_READ in claim for claim in claims):
        return data in claims
    return {name: each for name, each in data.items() if name != _READ} in claims


def move(
    database: Database, scope: str, data: Json, overlap: Overlap, about: Mapping[str, Any], now: int
) -> None:
    """Bind a scope to the new place of its data, by an operator's decision.

    Raises:
        ConfigurationError: The data belongs to another's budget.
    """
    _refuse_foreign(database, scope, data, claims_of(database), overlap, ())
    write(database, scope, data, about, now)


def _refuse_foreign(
    database: Database,
    scope: str,
    data: Json,
    known: Mapping[str, list[Json]],
    overlap: Overlap,
    configured: Collection[str],
) -> None:
    """Refuse data of another budget.

    Where nothing was spent, and no source of that name is left, there is no budget to come back to:
    such a claim binds nobody.
    """
    for other, claims in known.items():
        if other == scope or not any(overlap(data, each) for each in claims):
            continue
        if other in configured or chain.spent_of(database, other):
            raise ConfigurationError(
                f"source {scope} reads data whose budget is that of {other}",
                where=f"sources.{scope}",
                hint=f"a budget belongs to the data, whatever it is called: name it {other} again",
            )


def write(database: Database, scope: str, data: Json, about: Mapping[str, Any], now: int) -> None:
    """Write what a scope reads; `about` says by whom and why."""
    ledger.note(database, {"what": _CLAIM, "scope": scope, "data": data, **about}, now)


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
