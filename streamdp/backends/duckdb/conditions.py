"""Parts of expressions that must be true or false, so that their types are looked at beforehand.

DuckDB casts what stands as a condition: a text by its spelling, a number by whether it is zero. The
cast fails for other values, and a condition that is neither true nor false is a mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from streamdp.errors import SourceError

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_TRUTH = ("BOOLEAN", '"NULL"')

_COMPARISONS = ("EQ", "NEQ", "GT", "GTE", "LT", "LTE", "NullSafeEQ", "NullSafeNEQ", "Is", "Between")
_DECIDED = frozenset((*_COMPARISONS, "In", "Like", "And", "Or", "Not", "Boolean", "Null"))
"""Names of sqlglot's classes that are true, false or null whatever stands in them."""


def conditions(where: str | None, expressions: Iterable[str]) -> list[str]:
    """SQL of the parts whose types decide whether they are conditions, once each.

    Args:
        where: A condition.
        expressions: That may hold some, in DuckDB's words.
    """
    found = [] if where is None else list(_within(where, whole=True))
    for each in expressions:
        found += _within(each, whole=False)
    return list(dict.fromkeys(found))


def require_conditions(kinds: Mapping[str, str], source: str) -> None:
    """Refuse a condition that is not true or false.

    Args:
        kinds: Types by SQL.
        source: Name of the source.

    Raises:
        SourceError: One has another type.
    """
    for sql, kind in kinds.items():
        if kind not in _TRUTH:
            raise SourceError(
                f"a condition for source {source} has type {kind}, wanted is true or false",
                where=sql,
                hint=_hint(sql, kind),
                source=source,
            )


def _hint(sql: str, kind: str) -> str:
    if kind == "VARCHAR":
        return f"compare it, as in {sql} = 'yes', or write CAST({sql} AS BOOLEAN)"
    if kind.startswith(("DATE", "TIME", "INTERVAL")):
        return f"compare it, as in {sql} IS NOT NULL"
    return f"compare it, as in {sql} <> 0"


@lru_cache(maxsize=4096)
def _within(sql: str, *, whole: bool) -> tuple[str, ...]:
    import sqlglot

    tree = sqlglot.parse_one(sql, read="duckdb")
    parts = [tree] if whole else []
    parts += [each for node in tree.walk() for each in _operands(node)]
    open_ = (part.unnest() for part in parts)
    return tuple(
        part.sql("duckdb", identify=True) for part in open_ if type(part).__name__ not in _DECIDED
    )


def _operands(node: Expr) -> Iterator[Expr]:
    """What a node takes for true or false."""
    from sqlglot import exp

    if isinstance(node, exp.And | exp.Or):
        yield node.this
        yield node.expression
    elif isinstance(node, exp.Not):
        yield node.this
    elif isinstance(node, exp.Case) and node.this is None:
        yield from (each.this for each in node.args["ifs"])
