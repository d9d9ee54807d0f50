"""Measurements of releases: written with them, under their seals, never changed and never pruned.

Terms that many releases share are stored once. Cells and numbers are lists of JSON, so that SQL
reads them (`v_measurements`). The ledger's seal of a release covers them, and so its chain does.
Functions that write run inside a transaction of their caller.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from streamdp.database import Database
from streamdp.errors import IntegrityError
from streamdp.store.ledger.renames import all_changes, all_names
from streamdp.store.release_rows import number_of
from streamdp.types import Batch, Json, MeasuredRelease, Measurement, MeasurementTerms
from streamdp.types.measurements import Form

# ruff: noqa: S608

_TIME = "strftime('%Y-%m-%dT%H:%M:%SZ', {0}, 'unixepoch')"
_OF_RELEASE = (
    "r.id AS release_id, r.job, r.source, r.batch,"
    f" {_TIME.format('b.window_start')} AS window_start,"
    f" {_TIME.format('b.window_end')} AS window_end,"
    " coalesce(t.terms ->> 'group', '[]') AS groups, coalesce(t.terms ->> 'stage', 0) AS stage"
)
_JOINED = (
    "measurement m JOIN measurement_terms t ON t.id = m.terms"
    " JOIN release r ON r.reservation = m.reservation"
    " JOIN batch b ON b.source = r.source AND b.key = r.batch"
)
_FRACTION = "(t.terms ->> '$.question.grid[0]')"
_RESOLUTION = (
    f"(CAST({_FRACTION} AS REAL) / CASE instr({_FRACTION}, '/') WHEN 0 THEN 1.0"
    f" ELSE CAST(substr({_FRACTION}, instr({_FRACTION}, '/') + 1) AS REAL) END)"
)
"""SQL of the width of a cell, which is stored as a fraction: SQLite reads its numerator."""

MEASUREMENTS = (
    """
    CREATE TABLE measurement_terms (
        id INTEGER PRIMARY KEY,
        terms TEXT NOT NULL UNIQUE
    ) STRICT
    """,
    """
    CREATE TABLE measurement (
        reservation INTEGER NOT NULL REFERENCES release (reservation),
        number INTEGER NOT NULL,
        terms INTEGER NOT NULL REFERENCES measurement_terms (id),
        cells TEXT NOT NULL,
        numbers TEXT NOT NULL,
        given TEXT,
        PRIMARY KEY (reservation, number)
    ) STRICT, WITHOUT ROWID
    """,
    *(
        f"CREATE TRIGGER {table}_{what} BEFORE {verb} ON {table}"
        " BEGIN SELECT RAISE(ABORT, 'measurements are append-only'); END"
        for table in ("measurement", "measurement_terms")
        for what, verb in (("keeps_rows", "DELETE"), ("keeps_values", "UPDATE"))
    ),
    f"CREATE VIEW v_measurements AS SELECT {_OF_RELEASE}, m.number,"
    " t.terms ->> 'form' AS form, coalesce(t.terms ->> 'part', '') AS part,"
    " t.terms -> 'question' AS question, t.terms -> 'noise' AS noise,"
    " coalesce(t.terms ->> 'share', '1') AS share,"
    " coalesce(t.terms ->> 'relation', 'add-remove') AS relation, t.terms -> 'unit' AS unit,"
    f" m.cells, m.numbers, m.given FROM {_JOINED}",
    f"CREATE VIEW v_counts AS SELECT {_OF_RELEASE}, e.key AS bin,"
    f" (m.cells ->> (e.key - 1)) * {_RESOLUTION} AS above,"
    f" (m.cells ->> e.key) * {_RESOLUTION} AS up_to, e.value AS noisy_count"
    f" FROM {_JOINED}, json_each(m.numbers) e WHERE t.terms ->> 'form' = 'counts'",
)
"""The schema step: measurements, and views for people who open the store."""

_COMPACT = (",", ":")

_FROM = (
    " FROM batch b"
    " CROSS JOIN release r ON r.source = b.source AND r.batch = b.key"
    " LEFT JOIN measurement m ON m.reservation = r.reservation"
    " LEFT JOIN measurement_terms t ON t.id = m.terms"
    " WHERE r.job IN (SELECT value FROM json_each(:jobs))"
)
_MEASURED = (
    "SELECT r.id, r.kind, r.job, r.reservation, r.released_at, b.source, b.key, b.window_start,"
    f" b.window_end, m.cells, m.numbers, m.given, t.terms{_FROM}"
)
_IN_ORDER = " ORDER BY coalesce(b.window_start, 0), b.key, m.number"


def add_measurements(
    database: Database, reservation: int, measurements: Iterable[Measurement]
) -> None:
    """Write the measurements of a release, in the order in which they were drawn."""
    for number, each in enumerate(measurements):
        text = json.dumps(each.terms.to_json(), separators=_COMPACT)
        database.execute(
            "INSERT INTO measurement VALUES (?, ?, ?, ?, ?, ?)",
            [
                *(reservation, number, number_of(database, "measurement_terms", "terms", text)),
                json.dumps(each.cells, separators=_COMPACT),
                json.dumps(each.numbers, separators=_COMPACT),
                None if each.given is None else json.dumps(each.given, separators=_COMPACT),
            ],
        )


def sealed_rows(database: Database, release_id: str) -> list[Json]:
    """What the seal of a release covers of its measurements; nothing of one that has none."""
    rows = database.execute(
        "SELECT m.number, t.terms, m.cells, m.numbers, m.given FROM release r"
        " CROSS JOIN measurement m ON m.reservation = r.reservation"
        " LEFT JOIN measurement_terms t ON t.id = m.terms WHERE r.id = ? ORDER BY m.number",
        [release_id],
    )
    return list(rows)


def verify(database: Database) -> None:
    """Require that all measurements and terms belong to releases, whose seals cover them.

    Raises:
        IntegrityError: Some belong to none.
    """
    stray = (
        "SELECT EXISTS (SELECT 1 FROM measurement"
        " WHERE reservation NOT IN (SELECT reservation FROM release))"
        " OR EXISTS (SELECT 1 FROM measurement_terms"
        " WHERE id NOT IN (SELECT terms FROM measurement))"
    )
    if database.execute(stray).fetchone()[0]:
        raise IntegrityError(
            "table measurement was altered",
            hint="restore the store from a backup; what was spent since must be assumed spent",
        )


def select_measurements(
    database: Database,
    job: str,
    since: int | None = None,
    until: int | None = None,
) -> tuple[MeasuredRelease, ...]:
    """Read the releases of a job with their measurements, in the order of batches.

    Terms are in the job's names of now. Releases from before measurements were kept have none.

    Args:
        database: The store.
        job: Under all its names.
        since: First second of the windows wanted.
        until: Second after the last window wanted.
    """
    rows = database.query(
        f"{_MEASURED} AND b.source = :source"
        " AND (:since IS NULL OR coalesce(b.window_start, 0) >= :since)"
        " AND (:until IS NULL OR coalesce(b.window_end, r.released_at) <= :until)"
        f"{_IN_ORDER}",
        {**_about(database, job), "since": since, "until": until},
    )
    return tuple(_releases(database, job, rows))


def select_forms(database: Database, job: str) -> list[tuple[str, tuple[Form, ...]]]:
    """Read the batch of each release of a job and the forms of its measurements, without numbers.

    Releases are in the order of batches. Those from before measurements were kept have no forms.
    """
    rows = database.execute(
        f"SELECT r.reservation, b.key, t.terms ->> 'form'{_FROM} AND b.source = :source{_IN_ORDER}",
        _about(database, job),
    )
    found = []
    for _, group in groupby(rows, key=lambda row: row[0]):
        (_, key, first), *rest = group
        forms = () if first is None else (first, *(form for _, _, form in rest))
        found.append((key, forms))
    return found


def _about(database: Database, job: str) -> dict[str, Any]:
    """Parameters of a query about a job: all its names, and the source of its releases."""
    jobs = all_names(database, job)
    row = database.execute(
        "SELECT source FROM release WHERE job IN (SELECT value FROM json_each(?)) LIMIT 1", [jobs]
    ).fetchone()
    return {"jobs": jobs, "source": row and row[0]}


def batches_span(database: Database, job: str) -> tuple[int, int, int] | None:
    """First and last second of the windows of a job's releases, and the longest; None without."""
    first, last, longest = database.execute(
        "SELECT min(b.window_start), max(b.window_end), max(b.window_end - b.window_start)"
        " FROM release r JOIN batch b ON b.source = r.source AND b.key = r.batch"
        " WHERE r.job IN (SELECT value FROM json_each(?))",
        [all_names(database, job)],
    ).fetchone()
    return None if first is None or last is None else (first, last, longest)


def measurements_of(database: Database, job: str, release_id: str) -> MeasuredRelease:
    """Read one release of a job, which is known to exist, with its measurements."""
    rows = database.query(
        f"{_MEASURED} AND r.id = :id ORDER BY m.number",
        {"jobs": all_names(database, job), "id": release_id},
    )
    return next(_releases(database, job, rows))


def measured_in_turn(database: Database, job: str) -> Iterator[MeasuredRelease]:
    """Read the releases of a job that have measurements, in the order in which they were made."""
    rows = database.query(
        f"{_MEASURED} AND m.reservation IS NOT NULL ORDER BY r.reservation, m.number",
        {"jobs": all_names(database, job)},
    )
    return _releases(database, job, rows)


def _releases(
    database: Database, job: str, rows: Iterable[dict[str, Any]]
) -> Iterator[MeasuredRelease]:
    names = all_changes(database, job)
    for _, group in groupby(rows, key=lambda row: row["reservation"]):
        found = list(group)
        first = found[0]
        batch = Batch(first["source"], first["key"], first["window_start"], first["window_end"])
        changes = [each for at, each in names if at > first["reservation"]]
        measured = []
        for row in found if first["terms"] is not None else ():
            terms = _terms(row["terms"])
            for each in changes:
                terms = terms.renamed(each)
            given = row["given"] and json.loads(row["given"])
            cells, numbers = tuple(json.loads(row["cells"])), tuple(json.loads(row["numbers"]))
            measured.append(Measurement(terms, cells, numbers, given))
        about = first["id"], first["kind"], batch, first["released_at"]
        yield MeasuredRelease(*about, tuple(measured))


@functools.lru_cache(maxsize=4096)
def _terms(text: str) -> MeasurementTerms:
    return MeasurementTerms.from_json(json.loads(text))
