"""Views for people who open the store: readable times, amounts and answers."""

from __future__ import annotations

# ruff: noqa: S608

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
