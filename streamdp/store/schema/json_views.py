"""Views that read JSON by the table `json_each`: the schema step that replaces `->>` in them.

SQLite up to 3.40 lets no view use functions of JSON where the schema is not trusted, as on
connections of readers; that table is allowed everywhere. A place of -1, which later versions of the
operator count from the end, is no place.
"""

from __future__ import annotations

# ruff: noqa: S608

_TIME = "strftime('%Y-%m-%dT%H:%M:%SZ', {0}, 'unixepoch')"


def _at(key: str, of: str = "t.terms") -> str:
    """The value of a key; a value that is a list or mapping is JSON."""
    return f"(SELECT j.value FROM json_each({of}) j WHERE j.key = '{key}')"


def _place(number: str, of: str = "m.cells", path: str = "$") -> str:
    """The value at a place of a list; null where it has no such place."""
    return f"(SELECT j.value FROM json_each({of}, '{path}') j WHERE j.key = {number})"


_IN_RHO = f"{_at('measure', 'c.event')} = 'rho'"
_LAST = " FROM ledger WHERE scope = c.scope ORDER BY seq DESC LIMIT 1)"
_SPENT = f"(SELECT CASE WHEN {_IN_RHO} THEN lifetime_rho_nano ELSE lifetime_spent_nano END{_LAST}"
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
