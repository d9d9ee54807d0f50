"""Columns of a job's releases, recorded whenever they change.

Functions that write run inside a transaction of their caller.
"""

from __future__ import annotations

import json
from functools import lru_cache

from streamdp.database import Database
from streamdp.store import row_checksums
from streamdp.types import Column

COLUMNS = (
    """
    CREATE TABLE release_columns (
        job TEXT NOT NULL,
        since INTEGER NOT NULL REFERENCES ledger (seq),
        columns TEXT NOT NULL,
        seal TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (job, since)
    ) STRICT, WITHOUT ROWID
    """,
)
"""The schema step: columns of a job's releases, from a reservation on."""

OF_RELEASE = (
    "(SELECT c.columns FROM release_columns c WHERE c.job = r.job AND c.since <= r.reservation"
    " ORDER BY c.since DESC LIMIT 1)"
)
"""SQL of the columns of a release `r`; null if it is from before they were written down."""


def add_columns(
    database: Database, job: str, reservation: int, columns: tuple[Column, ...]
) -> None:
    """Record the columns of a release if they differ from those of the one before."""
    text = columns_text(columns)
    newest = "SELECT columns FROM release_columns WHERE job = ? ORDER BY since DESC LIMIT 1"
    row = database.execute(newest, [job]).fetchone()
    if row is None or row[0] != text:
        database.table("release_columns").insert(
            {"job": job, "since": reservation, "columns": text}
        )
        row_checksums.update(database, "release_columns", job=job, since=reservation)


def columns_text(columns: tuple[Column, ...]) -> str:
    """Columns as they are written down; releases of one job have the same."""
    try:
        return _remembered(columns)
    except TypeError:  # a column of another package's kind has a list in it
        return _text(columns)


def _text(columns: tuple[Column, ...]) -> str:
    return json.dumps([column.written() for column in columns])


_remembered = lru_cache(maxsize=256)(_text)


@lru_cache(maxsize=1024)
def columns_from(text: str | None) -> tuple[Column, ...]:
    """Columns as they were written down; none if they were not."""
    return tuple(Column.read(each) for each in json.loads(text or "[]"))
