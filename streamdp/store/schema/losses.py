"""Losses that are zero-concentrated alone: the schema step that lets a charge have no pure loss.

`epsilon_nano` is null where there is no pure loss, and so is `lifetime_spent_nano` from then on.
`lifetime_rho_nano` is the running sum of the other loss. It is outside the chain's hashes, which
cover what it is added up from; `chain.verify` adds it up again.
"""

from __future__ import annotations

# ruff: noqa: S608

_TIME = "strftime('%Y-%m-%dT%H:%M:%SZ', {0}, 'unixepoch')"

_VIEWS = ("v_releases", "v_budget", "v_gates", "v_runs")

_IN_RHO = "c.event ->> 'measure' = 'rho'"
"""Whether a row of caps is in zero-concentrated loss."""

_SPENT = (
    f"(SELECT CASE WHEN {_IN_RHO} THEN lifetime_rho_nano ELSE lifetime_spent_nano END"
    " FROM ledger WHERE scope = c.scope ORDER BY seq DESC LIMIT 1)"
)

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
    *(f"DROP VIEW {view}" for view in _VIEWS),
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
