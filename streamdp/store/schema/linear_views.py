"""A view of releases whose work grows with what is asked for: the schema step that replaces it.

The view before went through all values of a column for each row, and compared all releases to find
the current one, whichever release was asked for.
"""

from __future__ import annotations

from streamdp.store.release_rows import EACH_ROW

# ruff: noqa: S608

_TIME = "strftime('%Y-%m-%dT%H:%M:%SZ', {0}, 'unixepoch')"
_AT = "(SELECT j.value FROM json_each(e.value) j WHERE j.key = '{0}')"

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
    f" {_AT.format('value')} AS value, {_AT.format('lower')} AS lower,"
    f" {_AT.format('upper')} AS upper, e.value AS columns, {_CURRENT} AS current"
    " FROM release r JOIN batch b ON b.source = r.source AND b.key = r.batch"
    f" JOIN ledger l ON l.seq = r.reservation, {EACH_ROW}",
)
"""The schema step."""
