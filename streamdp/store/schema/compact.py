"""Fewer bytes a release: the schema step that keeps learned states in a table of their own.

A state that is forgotten leaves a page that is free, not one that is half empty. The ledger loses
the hash of the row before, which that row has (`chain` verifies by it), and an index of hashes that
nothing asks.
"""

from __future__ import annotations

from streamdp.store.schema.json_views import JSON_VIEWS
from streamdp.store.schema.losses import LOSSES, REPLACE_LEDGER

_VIEWS = ("v_releases", "v_budget", "v_runs")
_TEXTS = [
    text
    for text in (*LOSSES, *JSON_VIEWS)
    if text.startswith(tuple(f"CREATE VIEW {view} " for view in _VIEWS))
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
    *(f"DROP VIEW {view}" for view in _VIEWS),
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
