"""A query as a source: a SELECT that makes one row of one record, by an allow-list of its parts.

A record is protected because it is in one row. A row made of several records, several rows made of
one, or a row that is there because of others would each break that, and no price would be right.
So a query is taken apart: it reads one table, each column and the condition are expressions of
`expressions`, and whatever else stands in it is refused. The engine gets SQL made of the parts,
never the text.

Columns belong to the table, as in the standard: engines that would let a name given by AS stand
for its expression elsewhere could read another time than the budget is bound to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from streamdp.sections.dialects import Dialect
from streamdp.sections.expressions import checked, parsed
from streamdp.types import RECORD, Json, Made

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

TABLE = r"^[^\s.`\"']+(\.[^\s.`\"']+){0,2}$"
"""A table's name, with its schema and catalog before dots."""

LONGEST = 10_000
"""Characters."""

_REFUSED = {
    "distinct": "DISTINCT makes one row of several records",
    "group": "GROUP BY makes one row of several records",
    "having": "HAVING looks at several records",
    "joins": "a join may make several rows of one record, or of none",
    "laterals": "LATERAL may make several rows of one record",
    "pivots": "PIVOT makes one row of several records",
    "limit": "LIMIT lets other records decide whether one is read",
    "offset": "OFFSET lets other records decide whether one is read",
    "order": "there is no ORDER BY here: rows have no order",
    "sample": "a sample would not be the same the next time",
    "qualify": "QUALIFY looks at several records",
    "windows": "a window looks at several records",
    "with_": "WITH makes tables of its own: read from one that is there",
    "into": "INTO writes",
    "locks": "a source takes no locks",
    "alias": "leave the table's second name out: there is only one table",
    "when": "a table is read as it is now",
    "ordinality": "a row's number says where a record lies among the others",
}
"""Parts of a SELECT and of its table, as sqlglot names them."""


@dataclass(frozen=True, slots=True)
class SplitQuery:
    """A query taken apart.

    Args:
        table: That it reads, whose records these are.
        columns: What it makes of a record; empty for the table's own columns.
        where: Condition in the engine's words.
        named: Columns of the table that it names.
    """

    table: str
    columns: tuple[Made, ...]
    where: str | None
    named: tuple[str, ...]

    def origin(self, name: str) -> Json:
        """Source of a derived column: the name of a column of the table, or an expression.

        Raises:
            ValueError: The query has no such column.
        """
        if not self.columns:
            return name
        for column in self.columns:
            if column.name == name:
                return column.source or {"sql": column.sql}
        raise ValueError(f"the query has no column {name!r}")


@lru_cache(maxsize=64)
def table_query(text: str, dialect: Dialect = "duckdb") -> SplitQuery:
    r"""Take a query apart.

    Args:
        text: As configured, in DuckDB's dialect.
        dialect: Of the engine.

    Raises:
        ValueError: It is none, or makes something else than one row of one record.

    >>> found = table_query("SELECT at, arr - dep AS delay FROM public.rides WHERE kind = 'bus'")
    >>> found.table, found.where, found.origin("at")
    ('public.rides', '"record"."kind" = \'bus\'', 'at')
    """
    from sqlglot import exp

    select = parsed(text, LONGEST)
    if isinstance(select, exp.SetOperation):
        raise ValueError("UNION and its like read two tables: one person may have rows of both")
    if not isinstance(select, exp.Select):
        raise ValueError("this is no SELECT from one table")
    _require_parts(select, {"expressions", "from_", "where"})
    items = select.expressions
    columns = () if _is_star(items) else tuple(_column(item, dialect) for item in items)
    _require_names([column.name for column in columns])
    where = select.args.get("where")
    named = dict.fromkeys(column.name for column in select.find_all(exp.Column))
    return SplitQuery(
        _table(select.args.get("from_")),
        columns,
        None if where is None else checked(where.this.copy(), dialect, RECORD),
        tuple(named),
    )


def _require_parts(node: Expr, allowed: set[str]) -> None:
    """Refuse any part of a query that is not on the list."""
    for part, value in node.args.items():
        if value and part not in allowed:
            raise ValueError(_REFUSED.get(part) or f"{part.strip('_')} is not allowed here")


def _table(source: Expr | None) -> str:
    from sqlglot import exp

    table = None if source is None else source.this
    if source is None or not isinstance(table, exp.Table):
        raise ValueError("a query reads FROM one table or view, by its name")
    _require_parts(source, {"this"})
    _require_parts(table, {"this", "db", "catalog"})
    parts = table.parts
    name = ".".join(part.name for part in parts)
    whole = all(isinstance(part, exp.Identifier) and "." not in part.name for part in parts)
    if not whole or not re.match(TABLE, name):
        raise ValueError("a query reads FROM one table or view, by its name")
    return name


def _is_star(items: list[Expr]) -> bool:
    """All columns of the table, and nothing beside them that could have the name of one."""
    from sqlglot import exp

    stars = [item for item in items if isinstance(item, exp.Star)]
    for star in stars:
        _require_parts(star, set())
    if stars and len(items) > 1:
        raise ValueError("a star stands alone: name the columns beside it one by one")
    return bool(stars)


def _column(item: Expr, dialect: Dialect) -> Made:
    from sqlglot import exp

    made = item.this if isinstance(item, exp.Alias) else item
    sql = checked(made.copy(), dialect, RECORD)
    source = made.name if isinstance(made, exp.Column) else None
    if isinstance(item, exp.Alias):
        return Made(item.alias, sql, source)
    if source is None:
        raise ValueError(f"give {made.sql('duckdb', comments=False)} a name with AS")
    return Made(source, sql, source)


def _require_names(names: list[str]) -> None:
    """Engines differ in whether names in capitals are others; here they are not."""
    seen: set[str] = set()
    for name in names:
        if not name:
            raise ValueError("a column of the query has no name")
        if name.lower() in seen:
            raise ValueError(f"two columns of the query have the name {name!r}")
        seen.add(name.lower())
