"""A table of a database, a query over it, or a view, as a source of records.

Views of a database may compute: what they fail at burns a charge, and `doctor` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from streamdp.backends.sql.dialect import SqlDialect
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
        self,
        dialect: SqlDialect,
        columns: Iterable[str] = (),
        read: Mapping[str, str] | None = None,
    ) -> str:
        """SQL behind FROM.

        Args:
            dialect: Of the engine.
            columns: Of the table.
            read: How some of them are read, so that a condition looks at one record and its bytes.
        """
        table = self._read(dialect, columns, read) if read else self.bare(dialect)
        if not self.is_made():
            return f"{table} AS relation"
        made = ", ".join(
            f"{each.sql if each.source else dialect.tried(each.sql)} AS {dialect.name(each.name)}"
            for each in self.columns
        )
        where = "" if self.where is None else f" WHERE {dialect.tried(self.where)}"
        rows = f"{table} AS {dialect.name(RECORD)}"
        return f"(SELECT {made or '*'} FROM {rows}{where}) AS relation"

    def _read(self, dialect: SqlDialect, columns: Iterable[str], read: Mapping[str, str]) -> str:
        """The table with some columns read through an expression."""
        names = (
            f"{read[name]} AS {dialect.name(name)}" if name in read else dialect.name(name)
            for name in columns
        )
        return f"(SELECT {', '.join(names)} FROM {self.bare(dialect)} AS stored)"

    def bare(self, dialect: SqlDialect) -> str:
        """The table without the columns and the condition of the query."""
        if self.query:
            return f"({self.query})"
        return ".".join(dialect.name(part) for part in self.table.split("."))


def one_by_one(dialect: SqlDialect, columns: Mapping[str, str]) -> dict[str, str]:
    """Columns with floating numbers, read so that no condition is decided by statistics.

    Files keep the least and the largest value of many records, and leave NaN out. An engine that
    calls NaN larger than all numbers and skips records by these statistics counts or skips every
    NaN by what another record holds.
    """
    return {
        name: dialect.unskipped(dialect.name(name))
        for name, kind in columns.items()
        if any(part in kind.lower() for part in ("float", "double"))
    }


_WORDS = (
    "Select From Table TableAlias Alias Where Column Identifier Star Paren And Or Not EQ NEQ GT GTE"
    " LT LTE Is Null Boolean Literal In Between NullSafeEQ NullSafeNEQ Tuple DataType DataTypeParam"
    " Coalesce Case If"
)
_PLAIN = frozenset(_WORDS.split())
"""Names of sqlglot's classes that fail on no record."""


def computes(definition: str, dialect: str) -> bool:
    """Whether a view does more than choose rows and columns.

    Args:
        definition: Its SELECT, or how it was made.
        dialect: Of the engine, as sqlglot calls it.

    >>> computes("SELECT a, b AS c FROM t WHERE a > 1", "postgres")
    False
    >>> computes("SELECT a::int FROM t", "postgres")
    True
    """
    import sqlglot
    from sqlglot import exp

    try:
        tree = sqlglot.parse_one(definition, read=dialect)
    except sqlglot.errors.SqlglotError:
        return True
    if isinstance(tree, exp.Create):
        tree = tree.expression
    return any(
        type(node).__name__ not in _PLAIN and node.find(exp.Column) is not None
        for node in tree.walk()
    )


def beneath(select: str, definitions: Mapping[str, str], dialect: str) -> list[str]:
    """Names of the views that a SELECT reads, and of those that these read.

    Args:
        select: It.
        definitions: By the name of a view in lower case, how it was made.
        dialect: Of the engine, as sqlglot calls it.

    >>> beneath("FROM above", {"above": "CREATE VIEW above AS FROM v", "v": "FROM t"}, "duckdb")
    ['above', 'v']
    """
    import sqlglot
    from sqlglot import exp

    found: dict[str, None] = {}
    waiting = [select]
    while waiting:
        try:
            tree = sqlglot.parse_one(waiting.pop(), read=dialect)
        except sqlglot.errors.SqlglotError:
            continue
        for table in tree.find_all(exp.Table):
            name = table.name.lower()
            if name in definitions and name not in found:
                found[name] = None
                waiting.append(definitions[name])
    return list(found)


def notice(view: str) -> str:
    """The warning about a view that computes."""
    return (
        f"the view {view} computes: a record that it fails at burns the charge; write it so that it"
        " is null there, or compute in `query`"
    )
