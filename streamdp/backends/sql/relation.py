"""A table of a database, or a query over it, as a source of records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from streamdp.backends.sql.words import Words
from streamdp.types import RECORD, Made


@dataclass(frozen=True, slots=True)
class Relation:
    """A table, what is made of each of its rows, and which of them are records.

    Args:
        table: Name, with its schema before a dot if it has one.
        query: A SELECT in place of the table, one row a record.
        columns: What is made of a row; empty for the table's own columns.
        where: Condition over columns of `RECORD`; only rows it is true of are records.
        named: Columns of the table that these name.

    Privacy: a row of the relation is made of one row of the table and of nothing else, if the
    expressions are such as `sections.expressions` admits.
    """

    table: str = ""
    query: str = ""
    columns: tuple[Made, ...] = ()
    where: str | None = None
    named: tuple[str, ...] = ()

    def is_made(self) -> bool:
        """Whether it is more than a table."""
        return bool(self.columns) or self.where is not None

    def sql(
        self, words: Words, columns: Iterable[str] = (), read: Mapping[str, str] | None = None
    ) -> str:
        """SQL behind FROM.

        Args:
            words: Of the engine.
            columns: Of the table.
            read: How some of them are read, so that a condition looks at one record and its bytes.
        """
        table = self._read(words, columns, read) if read else self.bare(words)
        if not self.is_made():
            return f"{table} AS relation"
        made = ", ".join(
            f"{each.sql if each.source else words.tried(each.sql)} AS {words.name(each.name)}"
            for each in self.columns
        )
        where = "" if self.where is None else f" WHERE {words.tried(self.where)}"
        rows = f"{table} AS {words.name(RECORD)}"
        return f"(SELECT {made or '*'} FROM {rows}{where}) AS relation"

    def _read(self, words: Words, columns: Iterable[str], read: Mapping[str, str]) -> str:
        """The table with some columns read through an expression."""
        names = (
            f"{read[name]} AS {words.name(name)}" if name in read else words.name(name)
            for name in columns
        )
        return f"(SELECT {', '.join(names)} FROM {self.bare(words)} AS stored)"

    def bare(self, words: Words) -> str:
        """The table without the columns and the condition of the query."""
        if self.query:
            return f"({self.query})"
        return ".".join(words.name(part) for part in self.table.split("."))


def one_by_one(words: Words, columns: Mapping[str, str]) -> dict[str, str]:
    """Columns with floating numbers, read so that no condition is decided by statistics.

    Files keep the least and the largest value of many records, and leave NaN out. An engine that
    calls NaN larger than all numbers and skips records by these statistics counts or skips every
    NaN by what another record holds.
    """
    return {
        name: words.unskipped(words.name(name))
        for name, kind in columns.items()
        if any(part in kind.lower() for part in ("float", "double"))
    }
