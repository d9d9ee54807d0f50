"""The chance that a charge loses more than its epsilon or rho: the schema step that books it.

`delta_atto` is in units of 1e-18, and `lifetime_delta_atto` its running sum over a scope. Rows from
before have none; the hash of a row that has none is what it was (`chain`).
"""

from __future__ import annotations

# ruff: noqa: S608

_TIME = "strftime('%Y-%m-%dT%H:%M:%SZ', {0}, 'unixepoch')"

_IN_RHO = "c.event ->> 'measure' = 'rho'"
"""Whether a row of caps is in zero-concentrated loss."""

_LAST = " FROM ledger WHERE scope = c.scope ORDER BY seq DESC LIMIT 1)"
_SPENT = f"(SELECT CASE WHEN {_IN_RHO} THEN lifetime_rho_nano ELSE lifetime_spent_nano END{_LAST}"

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
