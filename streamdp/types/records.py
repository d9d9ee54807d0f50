"""Records that are made of the rows of a table, each of one row."""

from __future__ import annotations

from dataclasses import dataclass

RECORD = "record"
"""The name of a row in SQL over the table."""


@dataclass(frozen=True, slots=True)
class Made:
    """A column made of one row.

    Args:
        name: As it is asked for.
        sql: Expression in the engine's words, over columns of `RECORD`.
        source: The table's column, where it is nothing else: the engine may then skip by it.
    """

    name: str
    sql: str
    source: str | None = None
