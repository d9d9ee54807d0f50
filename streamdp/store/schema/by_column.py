"""Fewer bytes a release: the schema step that stores rows of releases by columns.

Releases and what they taught are numbered by their charge, where each had an index of its id.
Digests of states and hashes of the ledger are bytes. Seals and hashes are those of before: they
cover what is read, not how it is stored.
"""

from __future__ import annotations

from collections.abc import Callable

from streamdp.database import Database
from streamdp.store.release_rows import FORM, form_id, packed
from streamdp.store.schema.compact import COMPACT, LEDGER
from streamdp.store.schema.json_views import JSON_VIEWS
from streamdp.store.schema.losses import REPLACE_LEDGER

# ruff: noqa: S608

_TIME = "strftime('%Y-%m-%dT%H:%M:%SZ', {0}, 'unixepoch')"
_AT = "(SELECT j.value FROM json_each(columns) j WHERE j.key = '{0}')"

_WHOLE = "r.form IS NULL"
_ENTRY = (
    "coalesce(CASE c.type WHEN 'array'"
    " THEN (SELECT v.value FROM json_each(c.value) v WHERE v.key = e.key) ELSE c.value END, 'null')"
)
_EACH_ROW = (
    f"json_each(CASE WHEN {_WHOLE} THEN r.rows"
    " ELSE (SELECT c.value FROM json_each(r.rows) c WHERE c.key = 0) END) e"
)
_OBJECT = (
    f"CASE WHEN {_WHOLE} THEN e.value ELSE (SELECT group_concat(said, '') || '}}' FROM"
    f" (SELECT p.value || {_ENTRY} AS said FROM release_form f, json_each(f.parts) p,"
    " json_each(r.rows) c WHERE f.id = r.form AND c.key = p.key ORDER BY p.key)) END"
)
"""Rows and their objects as `v_releases` of this step has them; the next step replaces it."""

_VIEWS = ("v_releases", "v_budget", "v_runs", "v_measurements", "v_counts")

_COLUMNS = "reservation, id, job, source, batch, kind, epsilon_nano, released_at, version"


def _as_before(name: str) -> str:
    """A view that reads what is replaced, as it is."""
    texts = (*COMPACT, *JSON_VIEWS)
    return next(str(text) for text in texts if str(text).startswith(f"CREATE VIEW {name} "))


def _bytes(digits: str) -> bytes:
    """A hash or digest as bytes; what was altered and is none stays altered, for `verify`."""
    try:
        return bytes.fromhex(digits)
    except ValueError:
        return digits.encode()


def _copy_ledger(database: Database) -> None:
    """Copy the ledger with hashes as bytes."""
    names = [row[1] for row in database.execute("PRAGMA table_info(ledger)").fetchall()]
    place, spaces = names.index("hash"), ", ".join("?" * len(names))
    rows = database.execute("SELECT * FROM ledger ORDER BY seq")
    database.conn.executemany(
        f"INSERT INTO new_ledger VALUES ({spaces})",
        ((*row[:place], _bytes(row[place]), *row[place + 1 :]) for row in rows),
    )


def _copy_releases(database: Database) -> None:
    """Copy the releases, with their rows by columns where the same text can be had back."""
    rows = database.execute(f"SELECT {_COLUMNS}, rows FROM release ORDER BY reservation")
    for *about, text in rows:
        found = packed(text)
        form = None if found is None else form_id(database, found[0])
        database.execute(
            f"INSERT INTO new_release ({_COLUMNS}, form, rows) VALUES ({', '.join('?' * 11)})",
            [*about, form, text if found is None else found[1]],
        )


def _copy_learned(database: Database) -> None:
    """Copy what was learned, with digests as bytes."""
    rows = database.execute(
        "SELECT r.reservation, l.job, l.version, l.signature, l.digest"
        " FROM learner l JOIN release r ON r.id = l.release_id ORDER BY 1"
    )
    database.conn.executemany(
        "INSERT INTO new_learner VALUES (?, ?, ?, ?, ?)",
        ((*row, None if digest is None else _bytes(digest)) for *row, digest in rows),
    )


BY_COLUMN: tuple[str | Callable[[Database], None], ...] = (
    *(f"DROP VIEW {view}" for view in _VIEWS),
    LEDGER.replace("hash TEXT", "hash BLOB"),
    _copy_ledger,
    *REPLACE_LEDGER,
    FORM,
    """
    CREATE TABLE new_release (
        reservation INTEGER PRIMARY KEY REFERENCES ledger (seq),
        id TEXT NOT NULL UNIQUE,
        job TEXT NOT NULL,
        source TEXT NOT NULL,
        batch TEXT NOT NULL,
        kind TEXT NOT NULL,
        epsilon_nano INTEGER,
        released_at INTEGER NOT NULL,
        version TEXT NOT NULL,
        form INTEGER REFERENCES release_form (id),
        rows TEXT NOT NULL,
        UNIQUE (job, source, batch),
        FOREIGN KEY (source, batch) REFERENCES batch (source, key)
    ) STRICT
    """,
    _copy_releases,
    """
    CREATE TABLE new_learner (
        reservation INTEGER PRIMARY KEY REFERENCES release (reservation),
        job TEXT NOT NULL,
        version INTEGER NOT NULL,
        signature TEXT NOT NULL,
        digest BLOB,
        UNIQUE (job, version)
    ) STRICT
    """,
    _copy_learned,
    """
    CREATE TABLE new_learned_state (
        reservation INTEGER PRIMARY KEY REFERENCES release (reservation),
        state TEXT NOT NULL
    ) STRICT
    """,
    "INSERT INTO new_learned_state SELECT r.reservation, s.state"
    " FROM learned_state s JOIN release r ON r.id = s.release_id",
    *(
        statement
        for table in ("learned_state", "learner", "release")
        for statement in (f"DROP TABLE {table}", f"ALTER TABLE new_{table} RENAME TO {table}")
    ),
    "CREATE INDEX learner_signed ON learner (job, version) WHERE signature != ''",
    "CREATE VIEW v_releases AS SELECT release_id, job, source, batch, window_start, window_end,"
    " kind, epsilon, rho, delta, released_at, row,"
    f" {_AT.format('value')} AS value, {_AT.format('lower')} AS lower,"
    f" {_AT.format('upper')} AS upper, columns, current FROM"
    " (SELECT r.id AS release_id, r.job, r.source, r.batch,"
    f" {_TIME.format('b.window_start')} AS window_start,"
    f" {_TIME.format('b.window_end')} AS window_end, r.kind, r.epsilon_nano / 1e9 AS epsilon,"
    " CASE WHEN r.epsilon_nano IS NULL THEN l.rho_nano / 1e9 END AS rho,"
    " l.delta_atto / 1e18 AS delta,"
    f" {_TIME.format('r.released_at')} AS released_at, e.key AS row, {_OBJECT} AS columns,"
    " r.reservation = max(r.reservation) OVER (PARTITION BY r.job, r.batch) AS current"
    " FROM release r JOIN batch b ON b.source = r.source AND b.key = r.batch"
    f" JOIN ledger l ON l.seq = r.reservation, {_EACH_ROW})",
    *map(_as_before, ("v_budget", "v_runs", "v_measurements", "v_counts")),
)
"""The schema step."""
