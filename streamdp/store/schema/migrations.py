"""The schema, as forward-only steps; each is recorded in the transaction that makes it.

`open_to_read` opens a store if this streamdp knows its schema.
"""

from __future__ import annotations

import functools
import secrets
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from streamdp.database import Database
from streamdp.errors import IntegrityError, StoreError
from streamdp.store import row_checksums
from streamdp.store.archive import RETENTION
from streamdp.store.backup import backup
from streamdp.store.database import OwnedConnection, connect_to_read, require_sound, transaction
from streamdp.store.ledger.source_binding import ORIGINS
from streamdp.store.measurements import MEASUREMENTS
from streamdp.store.reading.watch import ALERTS
from streamdp.store.release_rows import COLUMNS
from streamdp.store.rollups import ROLLUPS
from streamdp.store.schema.steps import (
    ANSWERS_OF_SOURCES,
    BY_COLUMN,
    COMPACT,
    DELTAS,
    GATES,
    JSON_VIEWS,
    LINEAR_VIEWS,
    LOSSES,
    NOTICES,
    REASONS,
    VIEWS,
)

Step = tuple[str | Callable[[Database], None], ...]

_FIRST = (
    """
    CREATE TABLE instance (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        store_id TEXT NOT NULL,
        digest_key BLOB NOT NULL,
        epoch INTEGER NOT NULL,
        pid INTEGER,
        heartbeat_at INTEGER,
        stopped_at INTEGER
    ) STRICT
    """,
    """
    CREATE TABLE batch (
        source TEXT NOT NULL,
        key TEXT NOT NULL,
        window_start INTEGER,
        window_end INTEGER,
        digest BLOB,
        arrived_at INTEGER NOT NULL,
        PRIMARY KEY (source, key)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE ledger (
        seq INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        purpose TEXT NOT NULL CHECK (purpose IN ('cap', 'reserve', 'commit', 'burn')),
        scope TEXT NOT NULL,
        job TEXT,
        batch TEXT,
        reservation INTEGER REFERENCES ledger (seq),
        epsilon_nano INTEGER NOT NULL CHECK (epsilon_nano >= 0),
        rho_nano INTEGER NOT NULL CHECK (rho_nano >= 0),
        event TEXT NOT NULL,
        release_id TEXT,
        batch_cap_nano INTEGER NOT NULL,
        lifetime_cap_nano INTEGER NOT NULL,
        lifetime_spent_nano INTEGER NOT NULL,
        previous TEXT NOT NULL,
        hash TEXT NOT NULL UNIQUE
    ) STRICT
    """,
    "CREATE INDEX ledger_of_batch ON ledger (scope, batch) WHERE purpose = 'reserve'",
    "CREATE UNIQUE INDEX ledger_settles_once ON ledger (reservation) WHERE reservation NOT NULL",
    """
    CREATE TRIGGER ledger_keeps_rows BEFORE DELETE ON ledger
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END
    """,
    """
    CREATE TRIGGER ledger_keeps_values BEFORE UPDATE ON ledger
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END
    """,
    """
    CREATE TABLE release (
        id TEXT PRIMARY KEY,
        job TEXT NOT NULL,
        source TEXT NOT NULL,
        batch TEXT NOT NULL,
        kind TEXT NOT NULL,
        epsilon_nano INTEGER NOT NULL,
        reservation INTEGER NOT NULL UNIQUE REFERENCES ledger (seq),
        released_at INTEGER NOT NULL,
        version TEXT NOT NULL,
        rows TEXT NOT NULL,
        UNIQUE (job, source, batch),
        FOREIGN KEY (source, batch) REFERENCES batch (source, key)
    ) STRICT
    """,
    """
    CREATE TABLE learner (
        job TEXT NOT NULL,
        version INTEGER NOT NULL,
        release_id TEXT NOT NULL UNIQUE REFERENCES release (id),
        signature TEXT NOT NULL,
        state TEXT NOT NULL,
        PRIMARY KEY (job, version)
    ) STRICT
    """,
    """
    CREATE TABLE outbox (
        release_id TEXT NOT NULL REFERENCES release (id),
        sink TEXT NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        next_at INTEGER NOT NULL,
        delivered_at INTEGER,
        PRIMARY KEY (release_id, sink)
    ) STRICT
    """,
    "CREATE INDEX outbox_waiting ON outbox (next_at) WHERE delivered_at IS NULL",
    """
    CREATE TABLE pause (
        job TEXT PRIMARY KEY,
        since INTEGER NOT NULL
    ) STRICT
    """,
)

_RUNS = (
    """
    CREATE TABLE new_ledger (
        seq INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        purpose TEXT NOT NULL,
        scope TEXT NOT NULL,
        job TEXT,
        batch TEXT,
        reservation INTEGER REFERENCES ledger (seq),
        epsilon_nano INTEGER NOT NULL CHECK (epsilon_nano >= 0),
        rho_nano INTEGER NOT NULL CHECK (rho_nano >= 0),
        event TEXT NOT NULL,
        release_id TEXT,
        batch_cap_nano INTEGER NOT NULL,
        lifetime_cap_nano INTEGER NOT NULL,
        lifetime_spent_nano INTEGER NOT NULL,
        previous TEXT NOT NULL,
        hash TEXT NOT NULL UNIQUE
    ) STRICT
    """,
    "INSERT INTO new_ledger SELECT * FROM ledger",
    "DROP TABLE ledger",
    "ALTER TABLE new_ledger RENAME TO ledger",
    "CREATE INDEX ledger_of_batch ON ledger (scope, batch) WHERE purpose IN ('reserve', 'join')",
    "CREATE INDEX ledger_of_scope ON ledger (scope, seq, rho_nano)",
    "CREATE INDEX ledger_of_job ON ledger (job, purpose)",
    """
    CREATE UNIQUE INDEX ledger_settles_once ON ledger (reservation)
    WHERE purpose IN ('commit', 'burn', 'close')
    """,
    "CREATE UNIQUE INDEX ledger_joins_once ON ledger (reservation, batch) WHERE purpose = 'join'",
    """
    CREATE TRIGGER ledger_keeps_rows BEFORE DELETE ON ledger
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END
    """,
    """
    CREATE TRIGGER ledger_keeps_values BEFORE UPDATE ON ledger
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END
    """,
    "CREATE INDEX batch_in_order ON batch (source, coalesce(window_start, 0), key)",
    "CREATE INDEX batch_in_time ON batch (source, coalesce(window_end, arrived_at))",
)
"""Runs of gates: more purposes of a row, which the table no longer lists (`chain.verify` does)."""

_ANCHORED: Step = ("ALTER TABLE instance ADD COLUMN anchored INTEGER NOT NULL DEFAULT 0",)
"""Whether the store has an anchor; and in the ledger `note` rows, for what people decided."""

_SEALS: Step = (*row_checksums.COLUMNS, row_checksums.update_all)
"""A digest in each row of the tables beside the ledger."""

_TIMED: Step = ("ALTER TABLE instance ADD COLUMN known_at INTEGER",)
"""The last time the store has seen, by a clock that was followed."""

_TIME_SEALED: Step = (row_checksums.update_time,)
"""A flipped bit in the last time the store has seen is found as well."""

_SINKS: Step = (*ANSWERS_OF_SOURCES, *REASONS, row_checksums.update_debts)
"""Answers by source, and reasons in the outbox, under its seals."""

_RUNS_KEYED: Step = (row_checksums.update_runs,)
"""Digests of a gate's hidden run are keyed."""

STEPS: tuple[Step, ...] = (
    *(_FIRST, _RUNS, _ANCHORED, NOTICES),
    *(_SEALS, _TIMED, GATES, _TIME_SEALED, _SINKS, ORIGINS, COLUMNS),
    *(ALERTS, VIEWS, LOSSES, _RUNS_KEYED, RETENTION, MEASUREMENTS, DELTAS),
    *((*ROLLUPS, *JSON_VIEWS), COMPACT, BY_COLUMN, LINEAR_VIEWS),
)
"""Statements of each schema version; a step is never edited once it has been released."""

VERSIONS = (
    "CREATE TABLE IF NOT EXISTS migration"
    " (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT"
)
"""The table that knows which steps were taken."""

_DAMAGED = "it was altered by other hands: restore it from a backup"


def migrate(database: Database, now: int, *, keep: bool = True) -> None:
    """Bring the schema up to date; many processes may try at once.

    Args:
        database: The store.
        now: POSIX time.
        keep: Whether a copy of the store as it was is kept beside it.

    Raises:
        IntegrityError: The store was written by a newer streamdp, or an older schema was altered.
    """
    with _tables_replaceable(database), transaction(database):
        database.execute(VERSIONS)
        done = require_known(database)
        if 0 < done < len(STEPS):
            require_schema(database)
            if keep:
                _keep(database, done, now)
        for version, statements in enumerate(STEPS[done:], start=done + 1):
            apply(database, statements)
            database.execute("INSERT INTO migration VALUES (?, ?)", [version, now])
        if done < len(STEPS) and database.execute("PRAGMA foreign_key_check").fetchone():
            raise IntegrityError("the store holds rows that belong to none", hint=_DAMAGED)
        if done == 0:
            database.execute(
                "INSERT INTO instance (id, store_id, digest_key, epoch) VALUES (1, ?, ?, 0)",
                [secrets.token_hex(16), secrets.token_bytes(32)],
            )
            row_checksums.update(database, "instance")


def require_known(database: Database) -> int:
    """The schema of a store; refuses one that a later streamdp has made.

    Raises:
        IntegrityError: It is newer.
    """
    (done,) = database.execute("SELECT coalesce(max(version), 0) FROM migration").fetchone()
    if done > len(STEPS):
        raise IntegrityError(
            f"the store has schema {done}, this streamdp knows {len(STEPS)}",
            hint="install the version that wrote it, or a later one",
        )
    return int(done)


def is_current(database: Database) -> bool:
    """Whether a store has the schema of this streamdp, looked at without changing it."""
    (done,) = database.execute("SELECT max(version) FROM migration").fetchone()
    return bool(done == len(STEPS))


def require_schema(database: Database) -> None:
    """Compare the schema with the one that its steps make, to the last object.

    Besides there may be tables and indexes of sinks. They run nothing: SQLite lets no CHECK,
    default or index read another table, and `trusted_schema` is off.

    Raises:
        IntegrityError: Something was changed, removed or added that may do anything: a trigger.
    """
    wanted, found = _made(require_known(database)), _schema(database)
    own = {name for _, name, _, _ in wanted}
    added = found - wanted
    altered = [*(wanted - found), *(each for each in added if not _of_a_sink(each, own))]
    if altered:
        kind, name, table, _ = min(altered)
        raise IntegrityError(
            f"the schema of the store was altered: {kind} {name} of {table}",
            hint="DROP what you have added yourself: beside its tables streamdp knows plain tables"
            " and their indexes. Else restore the store from a backup; what was spent since must be"
            " assumed spent",
        )


_Object = tuple[str, str, str, str]
"""Kind, name, table and text."""


def _of_a_sink(each: _Object, own: set[str]) -> bool:
    """Whether an object is a plain table or index beside the store's own tables.

    SQLite goes by the text, which it begins in these words itself, whatever the kind says.
    """
    kind, name, table, text = each
    if kind == "table":
        return name not in own and text.startswith("CREATE TABLE ")
    plain = not text or text.startswith(("CREATE INDEX ", "CREATE UNIQUE INDEX "))
    return kind == "index" and table not in own and plain


@functools.cache
def _made(version: int) -> Counter[_Object]:
    """The schema that so many steps make."""
    with Database(memory=True, execute_plugins=False) as made:
        made.execute(VERSIONS)
        for statements in STEPS[:version]:
            apply(made, statements)
        return _schema(made)


def _schema(database: Database) -> Counter[_Object]:
    """All there is, however SQLite quotes and breaks the lines of its text."""
    names = "coalesce(type, ''), coalesce(name, ''), coalesce(tbl_name, ''), coalesce(sql, '')"
    rows = database.execute(f"SELECT {names} FROM sqlite_master")  # noqa: S608
    return Counter(
        (str(kind), str(name), str(table), " ".join(str(text).replace('"', "").split()))
        for kind, name, table, text in rows
    )


def apply(database: Database, statements: Step) -> None:
    """Take one step."""
    for statement in statements:
        if callable(statement):
            statement(database)
        else:
            database.execute(statement)


def _keep(database: Database, done: int, now: int) -> None:
    """Copy the store as it was, beside it, before a migration touches it."""
    path = Path(database.execute("PRAGMA database_list").fetchone()[2])
    backup(path, path.with_name(f"{path.name}.schema-{done}.{now}"), require_sound)


@contextmanager
def _tables_replaceable(database: Database) -> Iterator[None]:
    """Switch off foreign keys, so that a table others refer to can be replaced."""
    database.execute("PRAGMA foreign_keys = OFF")
    try:
        yield
    finally:
        database.execute("PRAGMA foreign_keys = ON")


def open_to_read(path: Path) -> Database:
    """Open a store for reading only, beside a running daemon.

    One of an earlier schema is read as the next run will make it: from a copy of its own, on a
    temporary file without a name. The store stays as it is.

    Raises:
        StoreError: There is no store at the path.
        IntegrityError: It has a newer schema, or an older one was altered.
    """
    database = connect_to_read(path)
    require_known(database)
    if is_current(database):
        return database
    with closing(database):
        copy = sqlite3.connect("", isolation_level=None, factory=OwnedConnection)
        database.conn.backup(copy)
    upgraded = Database(copy, execute_plugins=False)
    migrate(upgraded, 0, keep=False)
    upgraded.execute("PRAGMA query_only = ON")
    return upgraded


def is_upgrade_pending(path: Path) -> bool:
    """Whether a store has an earlier schema, which the next run brings up to date."""
    with closing(connect_to_read(path)) as database:
        return not is_current(database)


def open_current(path: Path) -> Database:
    """Open a store of this streamdp's own schema for reading only.

    Raises:
        StoreError: There is no store at the path, or it has an older schema.
        IntegrityError: It has a newer one.
    """
    database = connect_to_read(path)
    require_known(database)
    if not is_current(database):
        raise StoreError(
            "this store was written by an earlier version of streamdp",
            where=str(path),
            hint="`streamdp run` brings it up to date, and keeps a copy of it",
        )
    return database
