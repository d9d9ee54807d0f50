"""Texts that many rows share: each is stored once and known by its number."""

from __future__ import annotations

from streamdp.database import Database

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
