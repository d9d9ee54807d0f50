"""Translate expressions from DuckDB's dialect to an engine's, or refuse them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Dialect = Literal["duckdb", "postgres", "mariadb", "spark"]

_PARTS = ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")

_TRUNCATED = {
    "YEAR": "%Y-01-01",
    "MONTH": "%Y-%m-01",
    "DAY": "%Y-%m-%d",
    "HOUR": "%Y-%m-%d %H:00:00",
    "MINUTE": "%Y-%m-%d %H:%i:00",
    "SECOND": "%Y-%m-%d %H:%i:%s",
}

_FAILS = {
    "postgres": "PostgreSQL ends a query at a value that cannot be cast, which would tell of it:"
    " cast in a view",
    "mariadb": "MariaDB casts a text that is no number to 0: cast in a view",
}


def require_sayable(node: Expr, dialect: Dialect) -> None:
    """Refuse what an engine would read with another meaning, or fail on.

    Raises:
        ValueError: It is such.
    """
    from sqlglot import exp

    if isinstance(node, exp.Like):
        _require_pattern(node.expression, dialect)
    if isinstance(node, exp.Cast) and dialect in _FAILS and not isinstance(node.this, exp.Literal):
        raise ValueError(_FAILS[dialect])
    if dialect != "mariadb":
        return
    if isinstance(node, exp.Greatest | exp.Least):
        raise ValueError("MariaDB's greatest and least are null where one value is: write CASE")
    start = node.args.get("start") if isinstance(node, exp.Substring) else None
    if start is not None and start.name == "0":
        raise ValueError("a text of MariaDB begins at 1, and nothing is at 0")


def _require_pattern(pattern: Expr, dialect: Dialect) -> None:
    """Require a pattern that no record can end a question with, by a letter or by its length.

    A pattern of a record takes as long as it and the text are long, multiplied. Spark looks for
    what stands behind a second `%` again from each letter, and behind a third again from each pair.
    """
    from sqlglot import exp

    if not isinstance(pattern, exp.Literal):
        raise ValueError("LIKE takes a literal text: a pattern of a record may end the question")
    if "\\" in pattern.name and dialect != "duckdb":
        raise ValueError(
            "LIKE takes a literal text without a backslash: engines fail at one, or read on"
        )
    if dialect == "spark" and pattern.name.rstrip("%").count("%") > 1:
        raise ValueError(
            "Spark looks for a pattern with several % again from each letter, so one long text may"
            " end the question: write a condition for each, as in x LIKE '%a%' AND x LIKE '%b%'"
        )


def in_words_of(tree: Expr, dialect: Dialect) -> Expr:
    """An expression in an engine's own functions.

    Raises:
        ValueError: It has none.
    """
    if dialect == "spark":
        return tree.transform(_spark)
    if dialect == "postgres":
        return tree.transform(_postgres)
    return tree.transform(_mariadb) if dialect == "mariadb" else tree


def _postgres(node: Expr) -> Expr:
    """Take no letters where fewer are asked for; PostgreSQL would fail."""
    from sqlglot import exp

    length = node.args.get("length") if isinstance(node, exp.Substring) else None
    if length is None or isinstance(length, exp.Literal):
        return node
    zero = exp.Literal.number(0)
    below = exp.If(this=exp.LT(this=length.copy(), expression=zero), true=zero.copy())
    node.set("length", exp.Case(ifs=[below], default=length.copy()))
    return node


def _spark(node: Expr) -> Expr:
    """Number days of the week as DuckDB does; Spark's Sunday is 1."""
    from sqlglot import exp

    if not isinstance(node, exp.Extract):
        return node
    part = node.this.name.upper()
    if part == "ISODOW":
        return exp.Extract(this=exp.var("DOW_ISO"), expression=node.expression)
    if part in ("DOW", "DAYOFWEEK", "WEEKDAY"):
        day = exp.Extract(this=exp.var("DOW"), expression=node.expression)
        return exp.Paren(this=exp.Sub(this=day, expression=exp.Literal.number(1)))
    return node


def _mariadb(node: Expr) -> Expr:
    """Rewrite parts of times, and quotients: those of whole numbers would have four digits."""
    from sqlglot import exp

    if isinstance(node, exp.Div):
        return exp.Div(this=_double(node.this), expression=node.expression)
    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
        unit = node.args["unit"].name.upper()
        if unit not in _TRUNCATED:
            raise ValueError(f"MariaDB has no beginning of a {unit.lower()}: derive it in a view")
        text = exp.Anonymous(
            this="DATE_FORMAT", expressions=[node.this, exp.Literal.string(_TRUNCATED[unit])]
        )
        return exp.Cast(this=text, to=exp.DataType.build("DATETIME", dialect="mysql"))
    return _mariadb_part(node) if isinstance(node, exp.Extract) else node


def _mariadb_part(node: Expr) -> Expr:
    from sqlglot import exp

    part, at = node.this.name.upper(), node.expression

    def call(name: str, *more: int) -> Expr:
        return exp.Anonymous(this=name, expressions=[at, *map(exp.Literal.number, more)])

    def moved(function: Expr, by: int) -> Expr:
        return exp.Paren(this=exp.Add(this=function, expression=exp.Literal.number(by)))

    if part == "EPOCH":
        since = exp.Anonymous(
            this="TIMESTAMPDIFF",
            expressions=[exp.var("MICROSECOND"), exp.Literal.string("1970-01-01"), at],
        )
        million = exp.Literal.number("1000000")
        return exp.Paren(this=exp.Div(this=_double(since), expression=million))
    if part in ("DOW", "DAYOFWEEK", "WEEKDAY"):
        return moved(call("DAYOFWEEK"), -1)
    if part == "ISODOW":
        return moved(call("WEEKDAY"), 1)
    if part in ("DOY", "DAYOFYEAR"):
        return call("DAYOFYEAR")
    if part in ("WEEK", "WEEKOFYEAR"):
        return call("WEEK", 3)
    if part not in _PARTS:
        raise ValueError(f"MariaDB has no {part.lower()} of a time: derive it in a view")
    return node


def _double(value: Expr) -> Expr:
    from sqlglot import exp

    return exp.Cast(this=value, to=exp.DataType.build("DOUBLE"))
