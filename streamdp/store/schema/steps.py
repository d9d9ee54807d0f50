"""Steps of the schema that are longer than a statement or two, oldest first.

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

from collections.abc import Callable

from streamdp.database import Database
from streamdp.store.release_rows import EACH_ROW, FORM, form_id, packed

_TIME = "strftime('%Y-%m-%dT%H:%M:%SZ', {0}, 'unixepoch')"

VIEWS = (
    "CREATE VIEW v_releases AS SELECT r.id AS release_id, r.job, r.source, r.batch,"
    f" {_TIME.format('b.window_start')} AS window_start,"
    f" {_TIME.format('b.window_end')} AS window_end, r.kind, r.epsilon_nano / 1e9 AS epsilon,"
    f" {_TIME.format('r.released_at')} AS released_at, e.key AS row,"
    " e.value ->> 'value' AS value, e.value ->> 'lower' AS lower, e.value ->> 'upper' AS upper,"
    " e.value AS columns,"
    " r.reservation = max(r.reservation) OVER (PARTITION BY r.job, r.batch) AS current"
    " FROM release r JOIN batch b ON b.source = r.source AND b.key = r.batch,"
    " json_each(r.rows) e",
    "CREATE VIEW v_budget AS SELECT c.scope,"
    " (SELECT coalesce(sum(epsilon_nano), 0) FROM ledger WHERE scope = c.scope) / 1e9 AS spent,"
    " c.lifetime_cap_nano / 1e9 AS lifetime_cap, max(c.lifetime_cap_nano -"
    " (SELECT coalesce(sum(epsilon_nano), 0) FROM ledger WHERE scope = c.scope), 0) / 1e9 AS left,"
    " c.batch_cap_nano / 1e9 AS batch_cap,"
    f" (SELECT {_TIME.format('max(at)')} FROM ledger WHERE scope = c.scope"
    "   AND purpose IN ('reserve', 'open')) AS last_charged_at"
    " FROM ledger c WHERE c.seq IN"
    " (SELECT max(seq) FROM ledger WHERE purpose = 'cap' GROUP BY scope)",
    "CREATE VIEW v_gates AS SELECT gate, source, batch,"
    " CASE accepted WHEN 1 THEN 'yes' ELSE 'no' END AS answer,"
    f" {_TIME.format('slot')} AS answered_at, run FROM gate_answer WHERE slot <= unixepoch()",
    "CREATE VIEW v_runs AS SELECT g.run, g.gate, l.scope, l.epsilon_nano / 1e9 AS epsilon,"
    f" {_TIME.format('l.at')} AS armed_at, coalesce(g.ended, 'open') AS state,"
    f" (SELECT {_TIME.format('c.at')} FROM ledger c WHERE c.reservation = g.run"
    "   AND c.purpose = 'close') AS closed_at"
    " FROM gate_run g JOIN ledger l ON l.seq = g.run",
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
    "r.id AS release_id, r.job, r.source, r.batch,"
    f" {_TIME.format('b.window_start')} AS window_start,"
    f" {_TIME.format('b.window_end')} AS window_end,"
    f" coalesce({_at('group')}, '[]') AS groups, coalesce({_at('stage')}, 0) AS stage"
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
    "CREATE VIEW v_releases AS SELECT r.id AS release_id, r.job, r.source, r.batch,"
    f" {_TIME.format('b.window_start')} AS window_start,"
    f" {_TIME.format('b.window_end')} AS window_end, r.kind, r.epsilon_nano / 1e9 AS epsilon,"
    " CASE WHEN r.epsilon_nano IS NULL THEN l.rho_nano / 1e9 END AS rho,"
    " l.delta_atto / 1e18 AS delta,"
    f" {_TIME.format('r.released_at')} AS released_at, e.key AS row,"
    f" {_at('value', 'e.value')} AS value, {_at('lower', 'e.value')} AS lower,"
    f" {_at('upper', 'e.value')} AS upper, e.value AS columns,"
    " r.reservation = max(r.reservation) OVER (PARTITION BY r.job, r.batch) AS current"
    " FROM release r JOIN batch b ON b.source = r.source AND b.key = r.batch"
    " JOIN ledger l ON l.seq = r.reservation, json_each(r.rows) e",
    f"CREATE VIEW v_budget AS SELECT c.scope, {_SPENT_BY_TABLE} / 1e9 AS spent,"
    " c.lifetime_cap_nano / 1e9 AS lifetime_cap,"
    f" coalesce(max(c.lifetime_cap_nano - {_SPENT_BY_TABLE}, 0), 0) / 1e9 AS left,"
    " c.batch_cap_nano / 1e9 AS batch_cap,"
    f" CASE WHEN {_IN_RHO_BY_TABLE} THEN 'rho' ELSE 'epsilon' END AS measure,"
    f" (SELECT lifetime_delta_atto{_LAST} / 1e18 AS delta_spent,"
    f" (SELECT {_TIME.format('max(at)')} FROM ledger WHERE scope = c.scope"
    "   AND purpose IN ('reserve', 'open')) AS last_charged_at"
    " FROM ledger c WHERE c.seq IN"
    " (SELECT max(seq) FROM ledger WHERE purpose = 'cap' GROUP BY scope)",
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
    """
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
    """,
)
"""Runs of gates with their hidden thresholds, and the public answer to each batch."""

ANSWERS_OF_SOURCES = (
    """
    CREATE TABLE answered (
        gate TEXT NOT NULL,
        batch TEXT NOT NULL,
        source TEXT NOT NULL,
        run INTEGER NOT NULL REFERENCES gate_run (run),
        accepted INTEGER NOT NULL,
        slot INTEGER NOT NULL,
        seal TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (gate, source, batch),
        FOREIGN KEY (source, batch) REFERENCES batch (source, key)
    ) STRICT, WITHOUT ROWID
    """,
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

REPLACE_LEDGER = (
    "DROP TABLE ledger",
    "ALTER TABLE new_ledger RENAME TO ledger",
    "CREATE INDEX ledger_of_batch ON ledger (scope, batch) WHERE purpose IN ('reserve', 'join')",
    "CREATE INDEX ledger_of_scope ON ledger (scope, seq)",
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
)
"""Statements that put `new_ledger` in the place of the ledger, with indexes and triggers."""

LOSSES = (
    *(f"DROP VIEW {view}" for view in _VIEWS_OF_LOSSES),
    """
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
        previous TEXT NOT NULL,
        hash TEXT NOT NULL UNIQUE,
        lifetime_rho_nano INTEGER NOT NULL
    ) STRICT
    """,
    """
    INSERT INTO new_ledger
    SELECT *, sum(rho_nano) OVER (PARTITION BY scope ORDER BY seq) FROM ledger ORDER BY seq
    """,
    *REPLACE_LEDGER,
    """
    CREATE TABLE new_release (
        id TEXT PRIMARY KEY,
        job TEXT NOT NULL,
        source TEXT NOT NULL,
        batch TEXT NOT NULL,
        kind TEXT NOT NULL,
        epsilon_nano INTEGER,
        reservation INTEGER NOT NULL UNIQUE REFERENCES ledger (seq),
        released_at INTEGER NOT NULL,
        version TEXT NOT NULL,
        rows TEXT NOT NULL,
        UNIQUE (job, source, batch),
        FOREIGN KEY (source, batch) REFERENCES batch (source, key)
    ) STRICT
    """,
    "INSERT INTO new_release SELECT * FROM release",
    "DROP TABLE release",
    "ALTER TABLE new_release RENAME TO release",
    "CREATE VIEW v_releases AS SELECT r.id AS release_id, r.job, r.source, r.batch,"
    f" {_TIME.format('b.window_start')} AS window_start,"
    f" {_TIME.format('b.window_end')} AS window_end, r.kind, r.epsilon_nano / 1e9 AS epsilon,"
    " CASE WHEN r.epsilon_nano IS NULL THEN (SELECT rho_nano / 1e9 FROM ledger"
    "  WHERE seq = r.reservation) END AS rho,"
    f" {_TIME.format('r.released_at')} AS released_at, e.key AS row,"
    " e.value ->> 'value' AS value, e.value ->> 'lower' AS lower, e.value ->> 'upper' AS upper,"
    " e.value AS columns,"
    " r.reservation = max(r.reservation) OVER (PARTITION BY r.job, r.batch) AS current"
    " FROM release r JOIN batch b ON b.source = r.source AND b.key = r.batch,"
    " json_each(r.rows) e",
    f"CREATE VIEW v_budget AS SELECT c.scope, {_SPENT} / 1e9 AS spent,"
    " c.lifetime_cap_nano / 1e9 AS lifetime_cap,"
    f" coalesce(max(c.lifetime_cap_nano - {_SPENT}, 0), 0) / 1e9 AS left,"
    " c.batch_cap_nano / 1e9 AS batch_cap,"
    f" CASE WHEN {_IN_RHO} THEN 'rho' ELSE 'epsilon' END AS measure,"
    f" (SELECT {_TIME.format('max(at)')} FROM ledger WHERE scope = c.scope"
    "   AND purpose IN ('reserve', 'open')) AS last_charged_at"
    " FROM ledger c WHERE c.seq IN"
    " (SELECT max(seq) FROM ledger WHERE purpose = 'cap' GROUP BY scope)",
    "CREATE VIEW v_gates AS SELECT gate, source, batch,"
    " CASE accepted WHEN 1 THEN 'yes' ELSE 'no' END AS answer,"
    f" {_TIME.format('slot')} AS answered_at, run FROM gate_answer WHERE slot <= unixepoch()",
    "CREATE VIEW v_runs AS SELECT g.run, g.gate, l.scope, l.epsilon_nano / 1e9 AS epsilon,"
    f" {_TIME.format('l.at')} AS armed_at, coalesce(g.ended, 'open') AS state,"
    f" (SELECT {_TIME.format('c.at')} FROM ledger c WHERE c.reservation = g.run"
    "   AND c.purpose = 'close') AS closed_at"
    " FROM gate_run g JOIN ledger l ON l.seq = g.run",
)
"""The schema step."""


DELTAS = (
    "ALTER TABLE ledger ADD COLUMN delta_atto INTEGER NOT NULL DEFAULT 0 CHECK (delta_atto >= 0)",
    "ALTER TABLE ledger ADD COLUMN lifetime_delta_atto INTEGER NOT NULL DEFAULT 0",
    "DROP VIEW v_releases",
    "DROP VIEW v_budget",
    "CREATE VIEW v_releases AS SELECT r.id AS release_id, r.job, r.source, r.batch,"
    f" {_TIME.format('b.window_start')} AS window_start,"
    f" {_TIME.format('b.window_end')} AS window_end, r.kind, r.epsilon_nano / 1e9 AS epsilon,"
    " CASE WHEN r.epsilon_nano IS NULL THEN l.rho_nano / 1e9 END AS rho,"
    " l.delta_atto / 1e18 AS delta,"
    f" {_TIME.format('r.released_at')} AS released_at, e.key AS row,"
    " e.value ->> 'value' AS value, e.value ->> 'lower' AS lower, e.value ->> 'upper' AS upper,"
    " e.value AS columns,"
    " r.reservation = max(r.reservation) OVER (PARTITION BY r.job, r.batch) AS current"
    " FROM release r JOIN batch b ON b.source = r.source AND b.key = r.batch"
    " JOIN ledger l ON l.seq = r.reservation, json_each(r.rows) e",
    f"CREATE VIEW v_budget AS SELECT c.scope, {_SPENT} / 1e9 AS spent,"
    " c.lifetime_cap_nano / 1e9 AS lifetime_cap,"
    f" coalesce(max(c.lifetime_cap_nano - {_SPENT}, 0), 0) / 1e9 AS left,"
    " c.batch_cap_nano / 1e9 AS batch_cap,"
    f" CASE WHEN {_IN_RHO} THEN 'rho' ELSE 'epsilon' END AS measure,"
    f" (SELECT lifetime_delta_atto{_LAST} / 1e18 AS delta_spent,"
    f" (SELECT {_TIME.format('max(at)')} FROM ledger WHERE scope = c.scope"
    "   AND purpose IN ('reserve', 'open')) AS last_charged_at"
    " FROM ledger c WHERE c.seq IN"
    " (SELECT max(seq) FROM ledger WHERE purpose = 'cap' GROUP BY scope)",
)
"""The schema step."""


_VIEWS_OF_COMPACT = ("v_releases", "v_budget", "v_runs")
_TEXTS = [
    text
    for text in (*LOSSES, *JSON_VIEWS)
    if text.startswith(tuple(f"CREATE VIEW {view} " for view in _VIEWS_OF_COMPACT))
][-3:]
"""Views of the ledger, as they are: a table that views read cannot be replaced."""

LEDGER = """
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
    LEDGER,
    """
    INSERT INTO new_ledger
    SELECT seq, at, purpose, scope, job, batch, reservation, epsilon_nano, rho_nano, event,
        release_id, batch_cap_nano, lifetime_cap_nano, lifetime_spent_nano, hash,
        lifetime_rho_nano, delta_atto, lifetime_delta_atto
    FROM ledger ORDER BY seq
    """,
    *REPLACE_LEDGER,
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

_AT_ENTRY = "(SELECT j.value FROM json_each(e.value) j WHERE j.key = '{0}')"

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
    "CREATE VIEW v_releases AS SELECT r.id AS release_id, r.job, r.source, r.batch,"
    f" {_TIME.format('b.window_start')} AS window_start,"
    f" {_TIME.format('b.window_end')} AS window_end, r.kind, r.epsilon_nano / 1e9 AS epsilon,"
    " CASE WHEN r.epsilon_nano IS NULL THEN l.rho_nano / 1e9 END AS rho,"
    " l.delta_atto / 1e18 AS delta,"
    f" {_TIME.format('r.released_at')} AS released_at, e.key AS row,"
    f" {_AT_ENTRY.format('value')} AS value, {_AT_ENTRY.format('lower')} AS lower,"
    f" {_AT_ENTRY.format('upper')} AS upper, e.value AS columns, {_CURRENT} AS current"
    " FROM release r JOIN batch b ON b.source = r.source AND b.key = r.batch"
    f" JOIN ledger l ON l.seq = r.reservation, {EACH_ROW}",
)
"""The schema step."""
