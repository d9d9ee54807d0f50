"""Operands of expressions, refused where MariaDB would convert one in silence.

It subtracts 2024-01-01 00:00:00 from another time as the number 20240101000000, and reads a text
beside a number as the digits that it begins with. Other engines refuse that or mean something else.
So the server is asked for the type of each operand before anything is spent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamdp.errors import SourceError

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_MOMENT = "date or timestamp"

_FAMILIES = {
    "number": (
        *("tinyint", "smallint", "mediumint", "int", "bigint", "year"),
        *("decimal", "float", "double"),
    ),
    "text": ("varchar", "text"),
    _MOMENT: ("date", "datetime", "timestamp"),
}


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of an operator.

    Args:
        sql: Of the operand.
        operator: Number of the operator in which it stands.
        wanted: What the operator takes; None for whatever stands beside it.
        literal: Whether it is a literal text, which may stand for a time.
    """

    sql: str
    operator: int
    wanted: str | None
    literal: bool


def operands(texts: Iterable[str]) -> list[Operand]:
    """Operands of all operators of some expressions in MariaDB's dialect, but intervals."""
    from sqlglot import exp

    found: list[Operand] = []
    for number, node in enumerate(_nodes(texts)):
        parts, wanted = _taken(node)
        for part in parts:
            is_text = isinstance(part, exp.Literal) and part.is_string
            found.append(Operand(part.sql("mysql"), number, wanted, is_text))
    return found


def _taken(node: Expr) -> tuple[list[Expr], str | None]:
    """Operands of a node that is an operator, and the type that it takes."""
    from sqlglot import exp

    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod):
        if isinstance(node.expression, exp.Interval):
            return [node.this], _MOMENT
        return [node.this, node.expression], "number"
    if isinstance(node, exp.Neg | exp.Abs | exp.Round | exp.Floor | exp.Ceil | exp.Ln | exp.Sqrt):
        return [node.this], "number"
    if isinstance(node, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE | exp.NullSafeEQ):
        return [node.this, node.expression], None
    if isinstance(node, exp.Between):
        return [node.this, node.args["low"], node.args["high"]], None
    if isinstance(node, exp.In):
        return [node.this, *node.expressions], None
    if isinstance(node, exp.Extract):
        return [node.expression], _MOMENT
    times = (exp.TimestampDiff, exp.TimeToStr, exp.DayOfWeek, exp.DayOfYear, exp.Week)
    if isinstance(node, times):
        return [node.this], _MOMENT
    if isinstance(node, exp.Anonymous) and node.name.upper() == "WEEKDAY":
        return node.expressions, _MOMENT
    return [], None


def _nodes(texts: Iterable[str]) -> Iterator[Expr]:
    import sqlglot

    for text in texts:
        with suppress(sqlglot.errors.SqlglotError):  # the server refuses it by itself
            yield from sqlglot.parse_one(text, read="mysql").walk()


def require_alike(found: Sequence[Operand], kinds: Sequence[str], source: str) -> None:
    """Refuse operands of other types than their operator takes, or than stand beside them.

    Args:
        found: Operands.
        kinds: Types of the same.
        source: Name of the source.

    Raises:
        SourceError: There is one.
    """
    beside: dict[int, str] = {}
    for operand, kind in zip(found, kinds, strict=True):
        family = _family(kind)
        if family == "null":
            continue
        expected = operand.wanted or beside.setdefault(operand.operator, family)
        if operand.literal and expected == _MOMENT:
            continue
        if family != expected:
            raise SourceError(
                f"an expression for source {source} needs a {expected} where MariaDB has {kind}",
                where=operand.sql,
                hint="seconds of a time are extract(epoch FROM it); cast a text in a view",
                source=source,
            )


def _family(kind: str) -> str:
    head = kind.partition("(")[0]
    return next((name for name, kinds in _FAMILIES.items() if head in kinds), head)
