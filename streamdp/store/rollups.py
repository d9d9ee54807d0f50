"""Rollups: rows about closed periods that follow from releases, kept with what sinks are owed.

A rollup costs nothing and is in no ledger. It is written once for each period, step and revision,
in one transaction with its deliveries: after a crash it is there with all of them, or not at all.
Functions that write run inside a transaction of their caller.
"""

from __future__ import annotations

import json

from streamdp.database import Database
from streamdp.store import outbox, row_checksums
from streamdp.store.ledger.renames import all_names
from streamdp.store.release_rows import columns_from, columns_text
from streamdp.types import Release

# ruff: noqa: S608

_TIME = "strftime('%Y-%m-%dT%H:%M:%SZ', {0}, 'unixepoch')"

_OF_ROW = "(SELECT j.value FROM json_each(e.value) j WHERE j.key = '{0}')"

ROLLUPS = (
    """
    CREATE TABLE rollup (
        id TEXT PRIMARY KEY,
        job TEXT NOT NULL,
        step TEXT NOT NULL,
        period TEXT NOT NULL,
        revision INTEGER NOT NULL,
        source TEXT NOT NULL,
        since INTEGER NOT NULL,
        until INTEGER NOT NULL,
        made_of TEXT NOT NULL,
        made_at INTEGER NOT NULL,
        columns TEXT NOT NULL,
        rows TEXT NOT NULL,
        seal TEXT NOT NULL DEFAULT '',
        UNIQUE (job, step, period, revision)
    ) STRICT
    """,
    "CREATE VIEW v_rollups AS SELECT p.id AS rollup_id, p.job, p.step, p.period,"
    f" {_TIME.format('p.since')} AS window_start, {_TIME.format('p.until')} AS window_end,"
    f" p.revision, {_TIME.format('p.made_at')} AS made_at, e.key AS row,"
    f" {_OF_ROW.format('value')} AS value, {_OF_ROW.format('lower')} AS lower,"
    f" {_OF_ROW.format('upper')} AS upper, e.value AS columns,"
    " p.revision = max(p.revision) OVER (PARTITION BY p.job, p.step, p.period) AS current"
    " FROM rollup p, json_each(p.rows) e",
)
"""Statements of the schema step: the table, and a view for people who open the store."""

OF_ROLLUP = (
    "SELECT id, job, source, period AS batch, since AS window_start, until AS window_end,"
    " 'rollup' AS kind, 0 AS epsilon_nano, made_at AS released_at, rows, columns FROM rollup"
)
"""SQL of rollups in the form of releases."""

Made = dict[tuple[str, str], tuple[int, str]]
"""Newest revision of each step and period, and what that was made of."""


def made(database: Database, job: str) -> Made:
    """The newest revision of each period that was rolled up."""
    rows = database.execute(
        "SELECT step, period, revision, made_of FROM rollup"
        " WHERE job IN (SELECT value FROM json_each(?)) ORDER BY revision",
        [all_names(database, job)],
    )
    return {(step, period): (revision, of) for step, period, revision, of in rows}


def released(database: Database, job: str) -> tuple[tuple[int, int, str], ...]:
    """Windows and ids of all releases of a job that are of windows, in order of time."""
    rows = database.execute(
        "SELECT b.window_start, b.window_end, r.id FROM release r"
        " JOIN batch b ON b.source = r.source AND b.key = r.batch"
        " WHERE r.job IN (SELECT value FROM json_each(?)) AND b.window_start IS NOT NULL"
        " ORDER BY b.window_start, b.window_end",
        [all_names(database, job)],
    )
    return tuple(rows)


def add(
    database: Database, rollup: Release, step: str, revision: int, made_of: str, sinks: list[str]
) -> bool:
    """Write a rollup, and queue it for sinks; nothing if it is there. Whether it is new."""
    known = database.execute("SELECT 1 FROM rollup WHERE id = ?", [rollup.id]).fetchone()
    if known is not None:
        return False
    database.execute(
        "INSERT INTO rollup (id, job, step, period, revision, source, since, until, made_of,"
        ' made_at, "columns", "rows") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
        [
            *(rollup.id, rollup.job, step, rollup.batch, revision, rollup.source),
            *(rollup.window_start, rollup.window_end, made_of, rollup.released_at),
            columns_text(rollup.columns),
            json.dumps(rollup.rows),
        ],
    )
    row_checksums.update(database, "rollup", id=rollup.id)
    outbox.post(database, rollup.id, sinks, rollup.released_at)
    return True


def steps(database: Database, job: str) -> tuple[str, ...]:
    """Return the periods of which there are rollups, in the order of their names."""
    rows = database.execute(
        "SELECT DISTINCT step FROM rollup WHERE job IN (SELECT value FROM json_each(?))"
        " ORDER BY step",
        [all_names(database, job)],
    )
    return tuple(step for (step,) in rows)


def select(
    database: Database,
    job: str | None = None,
    step: str | None = None,
    limit: int | None = None,
    since: int | None = None,
    until: int | None = None,
) -> tuple[Release, ...]:
    """Rollups in the form of releases, of newest revisions, in order of time.

    Args:
        database: The store.
        job: Of this job alone.
        step: Of these periods alone.
        limit: At most so many, the last ones.
        since: Of periods that begin then or later.
        until: Of periods that begin before.
    """
    rows = database.query(
        f"{OF_ROLLUP} p WHERE (:job IS NULL OR job IN (SELECT value FROM json_each(:job)))"
        " AND (:step IS NULL OR step = :step) AND (:since IS NULL OR since >= :since)"
        " AND (:until IS NULL OR since < :until) AND revision = (SELECT max(revision) FROM rollup q"
        "  WHERE q.job = p.job AND q.step = p.step AND q.period = p.period)"
        " ORDER BY until DESC, since DESC, job DESC LIMIT :limit",
        {
            "job": None if job is None else all_names(database, job),
            "step": step,
            "limit": -1 if limit is None else limit,
            "since": since,
            "until": until,
        },
    )
    found = [
        Release(
            **{
                **row,
                "rows": tuple(json.loads(row["rows"])),
                "columns": columns_from(row["columns"]),
            }
        )
        for row in rows
    ]
    return tuple(reversed(found))
