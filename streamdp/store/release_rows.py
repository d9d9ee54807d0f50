r"""Rows of releases as they are stored: by columns, with the names of columns stored once.

Rows are a list of JSON objects, whose names and many of whose values repeat. A *form* is the text
of an object before each value, and what is between two objects; it is shared by all releases that
have it. Columns follow in its order, `[[0.1,0.9],[3.0,"41.03125000000000001"],"\"noisy\""]`: each
is a list with an entry a row, or one entry that all rows have; the first one is a list. An entry is
a number where SQLite says it in the same digits, null for null, and else the text of the value. So
the text of the rows is had back to the last byte; SQL without functions of JSON (`v_releases`) has
the same objects. The seals of the ledger cover that text.

Columns of a job's releases are recorded whenever they change. Functions that write run inside a
transaction of their caller.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from math import isfinite

from streamdp.database import Database
from streamdp.store import row_checksums
from streamdp.types import Column, Json

# ruff: noqa: S608


def number_of(database: Database, table: str, column: str, text: str) -> int:
    """Number of a text in a table, where it is written down when it is new.

    Runs inside a transaction of the caller.
    """
    known = f"SELECT id FROM {table} WHERE {column} = ?"
    row = database.execute(known, [text]).fetchone()
    if row is None:
        database.execute(f"INSERT INTO {table} ({column}) VALUES (?)", [text])
        row = database.execute(known, [text]).fetchone()
    return int(row[0])


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


# ruff: noqa: S608

_COMPACT, _SPACED = (",", ":"), (", ", ": ")
_LONGEST = 16
"""Letters of a number, its point among them, that SQLite says in the same digits: it has 15."""

_QUOTE = json.encoder.encode_basestring_ascii
_ENCODE = {each: json.JSONEncoder(separators=each).encode for each in (_COMPACT, _SPACED)}
_PARSE = json.JSONDecoder(parse_float=str, parse_int=str).decode
"""Reads numbers in the digits in which they are written."""

FORM = """
    CREATE TABLE release_form (
        id INTEGER PRIMARY KEY,
        parts TEXT NOT NULL UNIQUE
    ) STRICT
"""
"""The table of forms: a list of texts, each what stands before a value."""

ROWS_OF_RELEASE = "whole_rows(r.rows, (SELECT f.parts FROM release_form f WHERE f.id = r.form))"
"""SQL of the rows of a release `r` as a list of objects, on connections of the store."""

_ENTRY = "coalesce(CASE c.type WHEN 'array' THEN at.value ELSE c.value END, 'null')"
_BETWEEN = "CASE WHEN c.key = 0 AND at.key > 0 THEN '},' ELSE '' END"
EACH_ROW = (
    "json_each(CASE WHEN r.form IS NULL THEN r.rows ELSE"
    f" (SELECT '[' || group_concat(said, '') || '}}]' FROM (SELECT {_BETWEEN} || p.value ||"
    f" {_ENTRY} AS said FROM json_each(r.rows) one CROSS JOIN json_each(r.rows) c"
    " CROSS JOIN release_form f CROSS JOIN json_each(f.parts) p CROSS JOIN"
    " json_each(CASE c.type WHEN 'array' THEN c.value ELSE one.value END) at"
    " WHERE one.key = 0 AND f.id = r.form AND p.key = c.key ORDER BY at.key, c.key)) END) e"
)
"""SQL that goes through the rows of a release `r` as `e`: `key` is a place, `value` an object.

Each column is gone through once, beside the first one, which says how many rows there are. The text
of objects is put together and read again, as `json_each` is the only function it may use: all other
functions of JSON are closed to views of readers that trust no schema.
"""


def packed(text: str) -> tuple[str, str] | None:
    """The form of some rows and their columns; None if they cannot be had back from these.

    What was altered, and is no list of objects, cannot: it stays as it is, for `verify`.
    """
    try:
        rows = json.loads(text)
        names = list(rows[0]) if rows else []
        if not names or any(list(row) != names for row in rows):
            return None
    except (ValueError, TypeError, LookupError):
        return None
    for comma, colon in (_COMPACT, _SPACED):
        encode = _ENCODE[comma, colon]
        starts = [f"{comma if at else '{'}{encode(name)}{colon}" for at, name in enumerate(names)]
        parts = json.dumps([*starts, comma], separators=_COMPACT)
        columns = [[_entry(row[name], encode) for row in rows] for name in names]
        listed = [f"[{','.join(column)}]" for column in columns]
        shared = [
            column[0] if at and column.count(column[0]) == len(column) else listed[at]
            for at, column in enumerate(columns)
        ]
        found = f"[{','.join(shared)}]"
        if whole_rows(found, parts) == text:
            return parts, found
    return None


def whole_rows(text: str, parts: str | None) -> str:
    r"""Rows as a list of objects, from their columns and their form; without a form they are one.

    What was altered and cannot be read is returned as it is: the seal of its release refuses it.

    >>> whole_rows('[["0.10000000000000001",2.50],null]', r'["{\"at\":",",\"flag\":",","]')
    '[{"at":0.10000000000000001,"flag":null},{"at":2.50,"flag":null}]'
    """
    if parts is None:
        return text
    try:
        columns, words = _PARSE(text), json.loads(parts)
        count = len(columns[0])
        said = [
            [start + (entry or "null") for entry in column]
            if isinstance(column, list)
            else [start + (column or "null")] * count
            for start, column in zip(words[:-1], columns, strict=True)
        ]
        rows = ["".join(row) + "}" for row in zip(*said, strict=True)]
        return f"[{words[-1].join(rows)}]"
    except (ValueError, TypeError, LookupError, AttributeError):
        return text


def form_id(database: Database, parts: str) -> int:
    """Number of a form, which is written down when it is new."""
    return number_of(database, "release_form", "parts", parts)


def _entry(value: Json, encode: Callable[[Json], str]) -> str:
    """A value as it is stored: JSON of a number or of null, or of the text of the value."""
    if value is None:
        return "null"
    if (type(value) is float and isfinite(value)) or type(value) is int:
        text = repr(value)
        said_alike = len(text) <= _LONGEST and "e" not in text and text != "-0.0"
        return text if said_alike else f'"{text}"'
    return _QUOTE(encode(value))
