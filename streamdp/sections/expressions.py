"""SQL expressions over one record: filters and derived columns, by an allow-list of what they say.

An expression that could look at another record would tie records together: one more of them could
change what many say, and a bound on one would bound nothing. So an expression is parsed, each node
of its tree must be on the list below, and the engine gets SQL made from the tree, never the text.

It is written in DuckDB's dialect whatever the engine. What fails for some values and not for others
(a cast, a quotient by zero, a logarithm of nothing) is made null, since an error would tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from streamdp.sections.dialects import Dialect, in_words_of, require_sayable
from streamdp.sections.section import Section

if TYPE_CHECKING:
    from sqlglot.expressions import Expr


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ALLOWED = _words(
    "Column Identifier Literal Boolean Null Paren Tuple Var Interval DataType DataTypeParam"
    " Add Sub Mul Div Mod Neg Abs Round Floor Ceil Ln Sqrt Greatest Least"
    " EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ And Or Not Is Between In Like"
    " Case If Coalesce Nullif Cast TryCast Lower Upper Trim Length Substring"
    " Extract Year Month Day Hour Minute Second TimestampTrunc DateTrunc"
)
"""Names of sqlglot's classes; each is a function of one record, and of nothing else."""

TYPES = _words(
    "TINYINT SMALLINT INT BIGINT INT128 FLOAT DOUBLE DECIMAL BOOLEAN VARCHAR TEXT DATE"
    " TIMESTAMP TIMESTAMPTZ TIMESTAMPNTZ"
)
"""Types that an expression may cast to."""

PARTS = _words(
    "YEAR QUARTER MONTH WEEK DAY HOUR MINUTE SECOND MILLISECOND MICROSECOND EPOCH"
    " DOW DAYOFWEEK WEEKDAY ISODOW DOY DAYOFYEAR WEEKOFYEAR ISOYEAR YEARWEEK"
    " DECADE CENTURY MILLENNIUM ERA"
)
"""Parts of a time; a date without a clock has no time zone, and engines fail at asking for it."""

UNITS = _words(
    "YEAR QUARTER MONTH WEEK DAY HOUR MINUTE SECOND MILLISECOND MICROSECOND"
    " DECADE CENTURY MILLENNIUM"
)
"""Units that a time is cut off at, and of an interval."""

MOST_NODES = 5_000
"""Most nodes of an expression as engines write it, with what they say twice; see `_size`."""

POSITIONS = _words(
    "rowid file_row_number file_index filename ctid xmin xmax cmin cmax tableoid _metadata"
)
"""Columns engines add that say where a record lies, which hangs on the others."""

CLOCKS = _words("now today tomorrow yesterday")
"""Texts that PostgreSQL and Spark read as a clock where a time is wanted, in any company."""

_TIME_OF_DAY = re.compile(r"\s*T?\d{1,2}(:\d|$)", re.IGNORECASE)
"""Texts that Spark completes by the day on which it reads them."""

LONGEST = 2000
"""Characters."""

_ACROSS = {
    "Window": "a window function reads other records",
    "Subquery": "a subquery reads other records",
    "Select": "a subquery reads other records",
    "Exists": "a subquery reads other records",
    "Star": "a star stands for no column",
    "Placeholder": "there are no parameters here",
    "Rand": "it would not be the same the next time",
    "Uuid": "it would not be the same the next time",
}


def expression(text: str, dialect: Dialect = "duckdb") -> str:
    """SQL of an expression in the words of an engine.

    Args:
        text: As configured.
        dialect: Of the engine.

    Raises:
        ValueError: It is no expression, or says something that is not on the list.

    >>> expression("arr_delay - dep_delay")
    '"arr_delay" - "dep_delay"'
    >>> expression("delay / distance > 2 -- fast", "postgres")
    'CAST("delay" AS DOUBLE PRECISION) / NULLIF("distance", 0) > 2'
    """
    return checked(parsed(text, LONGEST), dialect)


def _of_one_record(text: str) -> str:
    expression(text)
    return text


OfOneRecord = Annotated[str, AfterValidator(_of_one_record)]
"""A SQL expression of one record, kept as it is written."""


def checked(tree: Expr, dialect: Dialect, table: str | None = None) -> str:
    """SQL of a tree of its own in the words of an engine.

    Args:
        tree: Of an expression; it is changed.
        dialect: Of the engine.
        table: What its columns belong to, if that is to be said.

    Raises:
        ValueError: It says something that is not on the list.
    """
    from sqlglot import exp

    parsed(tree.sql("duckdb", comments=False))
    for node in tree.walk():
        _require_allowed(node, dialect)
    if _size(tree) > MOST_NODES:
        raise ValueError(
            "divisors, logarithms, roots or CASE … WHEN stand too deep in each other: each is"
            " computed twice to be safe, so derive the inner ones in a view"
        )
    total = _total(tree)
    if table is not None:
        for column in total.find_all(exp.Column):
            column.set("table", exp.to_identifier(table))
    written = "mysql" if dialect == "mariadb" else dialect
    return str(in_words_of(total, dialect).sql(written, identify=True, comments=False))


def parsed(text: str, longest: int | None = None) -> Expr:
    """The tree of one expression or SELECT.

    Raises:
        ValueError: It is none, or longer than it may be.
    """
    from sqlglot import exp

    if longest is not None and len(text) > longest:
        raise ValueError(f"this is longer than {longest} characters")
    # within brackets a column at the beginning is none of the statements COMMENT, SET or SHOW
    within = _statements(f"({text}\n)")
    if within is not None and isinstance(within[0], exp.Paren):
        only: Expr = within[0].this.pop()
        return only
    found = _statements(text)
    if found is None:
        raise ValueError(
            "this is no SQL expression; a column that is called like a word of SQL is written in"
            ' double quotes: "case"'
        )
    if len(found) != 1 or found[0] is None:
        raise ValueError("this is not one SQL expression")
    return found[0]


def _statements(text: str) -> list[Expr | None] | None:
    """Trees of what semicolons divide, or None where it is no SQL."""
    import sqlglot

    try:
        return list(sqlglot.parse(text, read="duckdb"))
    except (sqlglot.errors.SqlglotError, RecursionError):
        return None


def _require_allowed(node: Expr, dialect: Dialect) -> None:
    from sqlglot import exp

    name = type(node).__name__
    if name not in ALLOWED:
        if isinstance(node, exp.AggFunc):
            raise ValueError(f"{node.sql_name().lower()} is an aggregate: it reads other records")
        raise ValueError(_ACROSS.get(name) or f"{_called(node)} is not among what is allowed here")
    if isinstance(node, exp.Column):
        if len(node.parts) != 1:
            raise ValueError("name columns without a table: there is only one")
        if node.name.lower() in POSITIONS:
            raise ValueError(f"{node.name} says where a record lies among the others")
    if isinstance(node, exp.DataType) and node.this.name not in TYPES:
        raise ValueError(f"there are no casts to {node.this.name.lower()} here")
    _require_known_part(node)
    if isinstance(node, exp.Literal) and node.is_string:
        _require_no_clock(node, dialect)
    if isinstance(node, exp.Substring | exp.Trim) and any(
        each.is_string and re.search("[A-Za-z]", each.name)
        for each in node.this.find_all(exp.Literal)
    ):
        raise ValueError(f"a part of a constant is a constant: write it, without {_called(node)}")
    if dialect == "spark" and isinstance(node, exp.Cast) and not _is_constant(node):
        _require_no_timestamp(node)
    require_sayable(node, dialect)


def _require_known_part(node: Expr) -> None:
    """Refuse a part or unit of a time that is none, or that a record says."""
    from sqlglot import exp

    if isinstance(node, exp.Extract):
        part, known = node.this, PARTS
    elif isinstance(node, exp.TimestampTrunc | exp.DateTrunc | exp.Interval):
        part, known = node.args.get("unit"), UNITS
    else:
        return
    if isinstance(node, exp.Interval) and part is None and isinstance(node.this, exp.Literal):
        return
    name = part.name.upper() if isinstance(part, exp.Var | exp.Literal) else ""
    if not known & {name, name.removesuffix("S")}:
        raise ValueError(
            f"{name.lower() or 'what is no word'} is no part of a time here: there are"
            f" {', '.join(sorted(known)).lower()}"
        )


def _size(node: Expr) -> int:
    """Nodes of what an engine computes: some write out an operand once for each time it is used."""
    from sqlglot import exp

    sizes = {id(child): _size(child) for child in node.iter_expressions()}
    twice: Expr | None = None
    times = 2
    if isinstance(node, exp.Div | exp.Mod):
        twice = node.expression
    elif isinstance(node, exp.Ln | exp.Sqrt):
        twice = node.this
    elif isinstance(node, exp.Case) and node.this is not None:
        twice, times = node.this, len(node.args["ifs"])
    more = 0 if twice is None else sizes[id(twice)] * (times - 1)
    return 1 + more + sum(sizes.values())


def _require_no_timestamp(cast: Expr) -> None:
    if "TIMESTAMP" in cast.args["to"].this.name:
        raise ValueError(
            "Spark completes a time of day by the day on which it reads it: cast in a view"
        )


def _require_no_clock(literal: Expr, dialect: Dialect) -> None:
    """Refuse a text that an engine may read as the current time.

    Where a column is a time, engines read a text beside it as one: `at < 'now'` needs no cast.
    """
    text = literal.name
    found = CLOCKS & {word.lower() for word in re.findall("[A-Za-z]+", text)}
    if found:
        raise ValueError(
            f"{min(found)!r} in a text is a clock where a time is wanted: it would not be the same"
            " the next time"
        )
    if dialect == "spark" and _TIME_OF_DAY.match(text) and ":" in text + ":" * text[:1].isalpha():
        raise ValueError(
            f"{text!r} is a time of day, which Spark completes by the day on which it reads it"
        )


def _called(node: Expr) -> str:
    from sqlglot import exp

    if isinstance(node, exp.Anonymous):
        return f"the function {node.name.lower()}"
    if isinstance(node, exp.Func):
        return f"the function {node.sql_name().lower()}"
    return f"{node.key}"


def _is_constant(node: Expr) -> bool:
    from sqlglot import exp

    return isinstance(node.this, exp.Literal)


def _total(tree: Expr) -> Expr:
    """An expression that is null where the given one would fail; children before parents."""
    from sqlglot import exp

    total: dict[type[Expr], Callable[[Expr], Expr]] = {
        exp.Div: lambda n: exp.Div(this=n.this, expression=_nullif(n.expression)),
        exp.Mod: lambda n: exp.Mod(this=n.this, expression=_nullif(n.expression)),
        exp.Ln: lambda n: exp.Ln(this=_where(exp.GT, n.this)),
        exp.Sqrt: lambda n: exp.Sqrt(this=_where(exp.GTE, n.this)),
        exp.Cast: lambda n: exp.TryCast(**n.args),
    }
    for part in (exp.Year, exp.Month, exp.Day, exp.Hour, exp.Minute, exp.Second):
        total[part] = lambda n: exp.Extract(this=exp.var(n.key.upper()), expression=n.this)
    for node in reversed(list(tree.walk())):
        if type(node) in total:
            parent = node.parent
            made = total[type(node)](node.copy())
            if parent is None:
                tree = made
            else:
                node.replace(made)
    return tree


def _nullif(divisor: Expr) -> Expr:
    from sqlglot import exp

    return exp.Nullif(this=divisor.copy(), expression=exp.Literal.number(0))


def _where(comparison: type[Expr], value: Expr) -> Expr:
    from sqlglot import exp

    condition = comparison(this=value.copy(), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=condition, true=value.copy())])


class Derived(Section):
    """A value made of the columns of one record."""

    sql: OfOneRecord = Field(
        description="SQL expression of one record, in DuckDB's dialect whatever the engine.",
        examples=["price * pieces"],
    )
