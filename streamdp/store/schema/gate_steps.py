"""Steps of the schema for gates and sinks: notices, dead letters and why, runs and answers."""

from __future__ import annotations

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
