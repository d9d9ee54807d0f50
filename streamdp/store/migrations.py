"""The schema, as forward-only steps; each is recorded in the transaction that makes it.

* `VIEWS`: for people who open the store; readable times, amounts and answers.
* `NOTICES`, `GATES`, `ANSWERS_OF_SOURCES`, `REASONS`: gates and sinks; notices, dead letters and
  why, runs and answers.
* `LOSSES`: a charge may have no pure loss. `epsilon_nano` is null where there is none, and so is
  `lifetime_spent_nano` from then on. `lifetime_rho_nano` is the running sum of the other loss. It
  is outside the chain's hashes, which cover what it is added up from; `chain.verify` adds it up
  again.
* `JSON_VIEWS`: views read JSON by the table `json_each`, in place of `->>`. SQLite up to 3.40 lets
  no view use functions of JSON where the schema is not trusted, as on connections of readers; that
  table is allowed everywhere. A place of -1, which later versions of the operator count from the
  end, is no place.
* `COMPACT`: learned states have a table of their own. A state that is forgotten leaves a page that
  is free, not one that is half empty. The ledger loses the hash of the row before, which that row
  has (`chain` verifies by it), and an index of hashes that nothing asks.
* `DELTAS`: a charge may lose more than its epsilon or rho with a chance `delta_atto`, in units of
  1e-18; `lifetime_delta_atto` is its running sum over a scope. Rows from before have none; the hash
  of a row that has none is what it was (`chain`).
* `BY_COLUMN`: rows of releases are stored by columns. Releases and what they taught are numbered by
  their charge, where each had an index of its id. Digests of states and hashes of the ledger are
  bytes. Seals and hashes are those of before: they cover what is read, not how it is stored.
* `LINEAR_VIEWS`: the work of the view of releases grows with what is asked for. The view before
  went through all values of a column for each row, and compared all releases to find the current
  one.
"""

# ruff: noqa: S608

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
from streamdp.store.problems import ALERTS
from streamdp.store.release_rows import COLUMNS, EACH_ROW, FORM, form_id, packed
from streamdp.store.rollups import ROLLUPS

Step = tuple[str | Callable[[Database], None], ...]


_LEDGER = """
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
"""

_RELEASE = """
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
"""

_APPEND_ONLY = (
    """
    CREATE TRIGGER ledger_keeps_rows BEFORE DELETE ON ledger
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END
    """,
    """
    CREATE TRIGGER ledger_keeps_values BEFORE UPDATE ON ledger
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END
    """,
)

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
    _LEDGER,
    "CREATE INDEX ledger_of_batch ON ledger (scope, batch) WHERE purpose = 'reserve'",
    "CREATE UNIQUE INDEX ledger_settles_once ON ledger (reservation) WHERE reservation NOT NULL",
    *_APPEND_ONLY,
    _RELEASE,
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


def _replace_ledger(of_scope: str) -> tuple[str, ...]:
    """Put `new_ledger` in the place of the ledger, with indexes and triggers."""
    return (
        "DROP TABLE ledger",
        "ALTER TABLE new_ledger RENAME TO ledger",
        "CREATE INDEX ledger_of_batch ON ledger (scope, batch)"
        " WHERE purpose IN ('reserve', 'join')",
        f"CREATE INDEX ledger_of_scope ON ledger ({of_scope})",
        "CREATE INDEX ledger_of_job ON ledger (job, purpose)",
        "CREATE UNIQUE INDEX ledger_settles_once ON ledger (reservation)"
        " WHERE purpose IN ('commit', 'burn', 'close')",
        "CREATE UNIQUE INDEX ledger_joins_once ON ledger (reservation, batch)"
        " WHERE purpose = 'join'",
        *_APPEND_ONLY,
    )


_REPLACE_LEDGER = _replace_ledger("scope, seq")

_LEDGER_OF_RUNS = _LEDGER.replace("TABLE ledger", "TABLE new_ledger").replace(
    " CHECK (purpose IN ('cap', 'reserve', 'commit', 'burn'))", ""
)
_RUNS = (
    _LEDGER_OF_RUNS,
    "INSERT INTO new_ledger SELECT * FROM ledger",
    *_replace_ledger("scope, seq, rho_nano"),
    "CREATE INDEX batch_in_order ON batch (source, coalesce(window_start, 0), key)",
    "CREATE INDEX batch_in_time ON batch (source, coalesce(window_end, arrived_at))",
)
"""Runs of gates: more purposes of a row, which the table no longer lists (`chain.verify` does)."""

_TIME = "strftime('%Y-%m-%dT%H:%M:%SZ', {0}, 'unixepoch')"

_OF_BATCH = (
    "r.id AS release_id, r.job, r.source, r.batch,"
    f" {_TIME.format('b.window_start')} AS window_start,"
    f" {_TIME.format('b.window_end')} AS window_end"
)
_RHO = " CASE WHEN r.epsilon_nano IS NULL THEN l.rho_nano / 1e9 END AS rho,"
_PRICE = f"{_RHO} l.delta_atto / 1e18 AS delta,"
_NEWEST = "r.reservation = max(r.reservation) OVER (PARTITION BY r.job, r.batch)"
_LAST_CHARGED = (
    f" (SELECT {_TIME.format('max(at)')} FROM ledger WHERE scope = c.scope"
    "   AND purpose IN ('reserve', 'open')) AS last_charged_at FROM ledger c WHERE c.seq IN"
    " (SELECT max(seq) FROM ledger WHERE purpose = 'cap' GROUP BY scope)"
)


def _releases(price: str, at: str, current: str, rows: str) -> str:
    """The view of releases, a line a row of a release.

    Args:
        price: Columns of the price beside epsilon.
        at: Value of a row under a key, which stands as {0} in it.
        current: Whether a release is the newest of its batch.
        rows: What is joined, with the rows last.
    """
    values = ", ".join(f"{at.format(name)} AS {name}" for name in ("value", "lower", "upper"))
    return (
        f"CREATE VIEW v_releases AS SELECT {_OF_BATCH}, r.kind, r.epsilon_nano / 1e9 AS epsilon,"
        f"{price} {_TIME.format('r.released_at')} AS released_at, e.key AS row, {values},"
        f" e.value AS columns, {current} AS current"
        f" FROM release r JOIN batch b ON b.source = r.source AND b.key = r.batch{rows}"
    )


_BY_ARROW = "e.value ->> '{0}'"
_OF_ROWS = ", json_each(r.rows) e"
_WITH_CHARGE = " JOIN ledger l ON l.seq = r.reservation"

_GATES_AND_RUNS = (
    "CREATE VIEW v_gates AS SELECT gate, source, batch,"
    " CASE accepted WHEN 1 THEN 'yes' ELSE 'no' END AS answer,"
    f" {_TIME.format('slot')} AS answered_at, run FROM gate_answer WHERE slot <= unixepoch()",
    "CREATE VIEW v_runs AS SELECT g.run, g.gate, l.scope, l.epsilon_nano / 1e9 AS epsilon,"
    f" {_TIME.format('l.at')} AS armed_at, coalesce(g.ended, 'open') AS state,"
    f" (SELECT {_TIME.format('c.at')} FROM ledger c WHERE c.reservation = g.run"
    "   AND c.purpose = 'close') AS closed_at"
    " FROM gate_run g JOIN ledger l ON l.seq = g.run",
)

VIEWS = (
    _releases("", _BY_ARROW, _NEWEST, _OF_ROWS),
    "CREATE VIEW v_budget AS SELECT c.scope,"
    " (SELECT coalesce(sum(epsilon_nano), 0) FROM ledger WHERE scope = c.scope) / 1e9 AS spent,"
    " c.lifetime_cap_nano / 1e9 AS lifetime_cap, max(c.lifetime_cap_nano -"
    " (SELECT coalesce(sum(epsilon_nano), 0) FROM ledger WHERE scope = c.scope), 0) / 1e9 AS left,"
    " c.batch_cap_nano / 1e9 AS batch_cap," + _LAST_CHARGED,
    *_GATES_AND_RUNS,
)
"""The schema step."""


def _at(key: str, of: str = "t.terms") -> str:
    """The value of a key; a value that is a list or mapping is JSON."""
    return f"(SELECT j.value FROM json_each({of}) j WHERE j.key = '{key}')"


def _place(number: str, of: str = "m.cells", path: str = "$") -> str:
    """The value at a place of a list; null where it has no such place."""
    return f"(SELECT j.value FROM json_each({of}, '{path}') j WHERE j.key = {number})"


_IN_RHO_BY_TABLE = f"{_at('measure', 'c.event')} = 'rho'"
_LAST = " FROM ledger WHERE scope = c.scope ORDER BY seq DESC LIMIT 1)"
_SPENT_BY_TABLE = (
    f"(SELECT CASE WHEN {_IN_RHO_BY_TABLE} THEN lifetime_rho_nano ELSE lifetime_spent_nano END"
    f"{_LAST}"
)
_OF_RELEASE = (
    f"{_OF_BATCH}, coalesce({_at('group')}, '[]') AS groups, coalesce({_at('stage')}, 0) AS stage"
)
_AT_ENTRY = _at("{0}", "e.value")
_DELTA_SPENT = f"(SELECT lifetime_delta_atto{_LAST} / 1e18 AS delta_spent,"


def _budget(spent: str, in_rho: str, delta: str = "") -> str:
    """The view of budgets: what each source has spent, in the measure of its caps."""
    return (
        f"CREATE VIEW v_budget AS SELECT c.scope, {spent} / 1e9 AS spent,"
        " c.lifetime_cap_nano / 1e9 AS lifetime_cap,"
        f" coalesce(max(c.lifetime_cap_nano - {spent}, 0), 0) / 1e9 AS left,"
        " c.batch_cap_nano / 1e9 AS batch_cap,"
        f" CASE WHEN {in_rho} THEN 'rho' ELSE 'epsilon' END AS measure,{delta}{_LAST_CHARGED}"
    )


_JOINED = (
    "measurement m JOIN measurement_terms t ON t.id = m.terms"
    " JOIN release r ON r.reservation = m.reservation"
    " JOIN batch b ON b.source = r.source AND b.key = r.batch"
)
_FRACTION = _place("0", "t.terms", "$.question.grid")
_RESOLUTION = (
    f"(CAST({_FRACTION} AS REAL) / CASE instr({_FRACTION}, '/') WHEN 0 THEN 1.0"
    f" ELSE CAST(substr({_FRACTION}, instr({_FRACTION}, '/') + 1) AS REAL) END)"
)

JSON_VIEWS = (
    *(f"DROP VIEW {view}" for view in ("v_releases", "v_budget", "v_measurements", "v_counts")),
    _releases(_PRICE, _AT_ENTRY, _NEWEST, f"{_WITH_CHARGE}{_OF_ROWS}"),
    _budget(_SPENT_BY_TABLE, _IN_RHO_BY_TABLE, f" {_DELTA_SPENT}"),
    f"CREATE VIEW v_measurements AS SELECT {_OF_RELEASE}, m.number, {_at('form')} AS form,"
    f" coalesce({_at('part')}, '') AS part, {_at('question')} AS question, {_at('noise')} AS noise,"
    f" coalesce({_at('share')}, '1') AS share,"
    f" coalesce({_at('relation')}, 'add-remove') AS relation, {_at('unit')} AS unit,"
    f" m.cells, m.numbers, m.given FROM {_JOINED}",
    f"CREATE VIEW v_counts AS SELECT {_OF_RELEASE}, e.key AS bin,"
    f" {_place('e.key - 1')} * {_RESOLUTION} AS above,"
    f" {_place('e.key')} * {_RESOLUTION} AS up_to, e.value AS noisy_count"
    f" FROM {_JOINED}, json_each(m.numbers) e WHERE {_at('form')} = 'counts'",
)
"""The schema step."""


NOTICES = (
    """
    CREATE TABLE notice (
        id TEXT PRIMARY KEY,
        job TEXT NOT NULL,
        source TEXT NOT NULL,
        batch TEXT NOT NULL,
        kind TEXT NOT NULL,
        noticed_at INTEGER NOT NULL,
        rows TEXT NOT NULL,
        UNIQUE (job, source, batch, kind),
        FOREIGN KEY (source, batch) REFERENCES batch (source, key)
    ) STRICT
    """,
    """
    CREATE TABLE posted (
        seq INTEGER PRIMARY KEY,
        release_id TEXT NOT NULL,
        sink TEXT NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        next_at INTEGER NOT NULL,
        delivered_at INTEGER,
        dead_at INTEGER,
        UNIQUE (release_id, sink)
    ) STRICT
    """,
    "INSERT INTO posted (release_id, sink, attempts, next_at, delivered_at)"
    " SELECT release_id, sink, attempts, next_at, delivered_at FROM outbox ORDER BY rowid",
    "DROP TABLE outbox",
    "ALTER TABLE posted RENAME TO outbox",
    "CREATE INDEX outbox_waiting ON outbox (next_at)"
    " WHERE delivered_at IS NULL AND dead_at IS NULL",
)
"""Notices are public facts beside releases, free of charge; the outbox owes both to sinks."""

_GATE_ANSWER = """
CREATE TABLE gate_answer (
    gate TEXT NOT NULL,
    batch TEXT NOT NULL,
    source TEXT NOT NULL,
    run INTEGER NOT NULL REFERENCES gate_run (run),
    accepted INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    seal TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (gate, batch),
    FOREIGN KEY (source, batch) REFERENCES batch (source, key)
) STRICT, WITHOUT ROWID
"""

GATES = (
    """
    CREATE TABLE gate_run (
        run INTEGER PRIMARY KEY REFERENCES ledger (seq),
        gate TEXT NOT NULL,
        terms TEXT NOT NULL,
        hidden TEXT,
        tests INTEGER DEFAULT 0,
        asked TEXT,
        ended TEXT,
        waits INTEGER NOT NULL DEFAULT 0,
        seal TEXT NOT NULL DEFAULT ''
    ) STRICT
    """,
    "CREATE UNIQUE INDEX gate_run_open ON gate_run (gate) WHERE ended IS NULL",
    _GATE_ANSWER,
)
"""Runs of gates with their hidden thresholds, and the public answer to each batch."""

ANSWERS_OF_SOURCES = (
    _GATE_ANSWER.replace("TABLE gate_answer", "TABLE answered").replace(
        "KEY (gate, batch)", "KEY (gate, source, batch)"
    ),
    "INSERT INTO answered SELECT gate, batch, source, run, accepted, slot, seal FROM gate_answer",
    "DROP TABLE gate_answer",
    "ALTER TABLE answered RENAME TO gate_answer",
)
"""A gate that is given another source may meet a batch of the same name there."""

REASONS = ("ALTER TABLE outbox ADD COLUMN reason TEXT",)
"""Why a sink did not take what it is owed, at its last attempt."""


_VIEWS_OF_LOSSES = ("v_releases", "v_budget", "v_gates", "v_runs")

_IN_RHO = "c.event ->> 'measure' = 'rho'"
"""Whether a row of caps is in zero-concentrated loss."""

_SPENT = f"(SELECT CASE WHEN {_IN_RHO} THEN lifetime_rho_nano ELSE lifetime_spent_nano END{_LAST}"

LOSSES = (
    *(f"DROP VIEW {view}" for view in _VIEWS_OF_LOSSES),
    _LEDGER_OF_RUNS.replace("epsilon_nano INTEGER NOT NULL", "epsilon_nano INTEGER")
    .replace("lifetime_spent_nano INTEGER NOT NULL", "lifetime_spent_nano INTEGER")
    .replace("UNIQUE", "UNIQUE, lifetime_rho_nano INTEGER NOT NULL"),
    """
    INSERT INTO new_ledger
    SELECT *, sum(rho_nano) OVER (PARTITION BY scope ORDER BY seq) FROM ledger ORDER BY seq
    """,
    *_REPLACE_LEDGER,
    _RELEASE.replace("TABLE release", "TABLE new_release").replace(
        "epsilon_nano INTEGER NOT NULL", "epsilon_nano INTEGER"
    ),
    "INSERT INTO new_release SELECT * FROM release",
    "DROP TABLE release",
    "ALTER TABLE new_release RENAME TO release",
    _releases(
        " CASE WHEN r.epsilon_nano IS NULL THEN (SELECT rho_nano / 1e9 FROM ledger"
        "  WHERE seq = r.reservation) END AS rho,",
        _BY_ARROW,
        _NEWEST,
        _OF_ROWS,
    ),
    _budget(_SPENT, _IN_RHO),
    *_GATES_AND_RUNS,
)
"""The schema step."""


DELTAS = (
    "ALTER TABLE ledger ADD COLUMN delta_atto INTEGER NOT NULL DEFAULT 0 CHECK (delta_atto >= 0)",
    "ALTER TABLE ledger ADD COLUMN lifetime_delta_atto INTEGER NOT NULL DEFAULT 0",
    "DROP VIEW v_releases",
    "DROP VIEW v_budget",
    _releases(_PRICE, _BY_ARROW, _NEWEST, f"{_WITH_CHARGE}{_OF_ROWS}"),
    _budget(_SPENT, _IN_RHO, f" {_DELTA_SPENT}"),
)
"""The schema step."""


_VIEWS_OF_COMPACT = ("v_releases", "v_budget", "v_runs")
_TEXTS = [
    text
    for text in (*LOSSES, *JSON_VIEWS)
    if text.startswith(tuple(f"CREATE VIEW {view} " for view in _VIEWS_OF_COMPACT))
][-3:]
"""Views of the ledger, as they are: a table that views read cannot be replaced."""

_COMPACT_LEDGER = """
    CREATE TABLE new_ledger (
        seq INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        purpose TEXT NOT NULL,
        scope TEXT NOT NULL,
        job TEXT,
        batch TEXT,
        reservation INTEGER REFERENCES ledger (seq),
        epsilon_nano INTEGER CHECK (epsilon_nano >= 0),
        rho_nano INTEGER NOT NULL CHECK (rho_nano >= 0),
        event TEXT NOT NULL,
        release_id TEXT,
        batch_cap_nano INTEGER NOT NULL,
        lifetime_cap_nano INTEGER NOT NULL,
        lifetime_spent_nano INTEGER,
        hash TEXT NOT NULL,
        lifetime_rho_nano INTEGER NOT NULL,
        delta_atto INTEGER NOT NULL DEFAULT 0 CHECK (delta_atto >= 0),
        lifetime_delta_atto INTEGER NOT NULL DEFAULT 0
    ) STRICT
    """
"""The table that takes the ledger's place."""

COMPACT = (
    *(f"DROP VIEW {view}" for view in _VIEWS_OF_COMPACT),
    _COMPACT_LEDGER,
    """
    INSERT INTO new_ledger
    SELECT seq, at, purpose, scope, job, batch, reservation, epsilon_nano, rho_nano, event,
        release_id, batch_cap_nano, lifetime_cap_nano, lifetime_spent_nano, hash,
        lifetime_rho_nano, delta_atto, lifetime_delta_atto
    FROM ledger ORDER BY seq
    """,
    *_REPLACE_LEDGER,
    *_TEXTS,
    """
    CREATE TABLE learned_state (
        release_id TEXT PRIMARY KEY REFERENCES release (id),
        state TEXT NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    "INSERT INTO learned_state SELECT release_id, state FROM learner WHERE state != ''",
    """
    CREATE TABLE new_learner (
        job TEXT NOT NULL,
        version INTEGER NOT NULL,
        release_id TEXT NOT NULL UNIQUE REFERENCES release (id),
        signature TEXT NOT NULL,
        digest TEXT,
        PRIMARY KEY (job, version)
    ) STRICT, WITHOUT ROWID
    """,
    "INSERT INTO new_learner SELECT job, version, release_id, signature, digest FROM learner",
    "DROP TABLE learner",
    "ALTER TABLE new_learner RENAME TO learner",
)
"""The schema step."""

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

_VIEWS_BY_COLUMN = ("v_releases", "v_budget", "v_runs", "v_measurements", "v_counts")

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
    *(f"DROP VIEW {view}" for view in _VIEWS_BY_COLUMN),
    _COMPACT_LEDGER.replace("hash TEXT", "hash BLOB"),
    _copy_ledger,
    *_REPLACE_LEDGER,
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
    f" (SELECT {_OF_BATCH}, r.kind, r.epsilon_nano / 1e9 AS epsilon,{_PRICE}"
    f" {_TIME.format('r.released_at')} AS released_at, e.key AS row, {_OBJECT} AS columns,"
    f" {_NEWEST} AS current"
    " FROM release r JOIN batch b ON b.source = r.source AND b.key = r.batch"
    f" JOIN ledger l ON l.seq = r.reservation, {_EACH_ROW})",
    *map(_as_before, ("v_budget", "v_runs", "v_measurements", "v_counts")),
)
"""The schema step."""

_SOURCES = (
    "WITH RECURSIVE own (source) AS (SELECT min(source) FROM release WHERE job = r.job UNION ALL"
    " SELECT (SELECT min(source) FROM release WHERE job = r.job AND source > own.source)"
    " FROM own WHERE own.source IS NOT NULL)"
)
"""Sources of a job, which is asked for one after the other: an index of the table has them."""

_CURRENT = (
    f"NOT EXISTS ({_SOURCES} SELECT 1 FROM own CROSS JOIN release n ON n.job = r.job"
    " AND n.source = own.source AND n.batch = r.batch WHERE n.reservation > r.reservation)"
)
"""Whether no later release of a job, which then reads another source, has the same batch."""

LINEAR_VIEWS: tuple[str, ...] = (
    "DROP VIEW v_releases",
    _releases(_PRICE, _AT_ENTRY, _CURRENT, f"{_WITH_CHARGE}, {EACH_ROW}"),
)
"""The schema step."""

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
    rows = database.execute(f"SELECT {names} FROM sqlite_master")
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
