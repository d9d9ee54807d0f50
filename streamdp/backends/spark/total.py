"""Expressions that no record can fail in Spark, which fails at times beyond what it can count.

See `backends.sql.total`. Outside of ANSI mode Spark's whole numbers overflow in silence, so they
are computed as decimals of 38 digits, or as doubles beyond; these fail on nothing.

Privacy: an expression is a total function of one record, or is refused by configuration and types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from streamdp.backends.sql.total import DOUBLE, OTHER, Made, Value, Walk

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_DIGITS = 38
"""Digits of a decimal."""

_WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""Digits of whole numbers."""

_MOMENT = Value("moment", raw=True)

_COLUMNS: Mapping[str, Value] = {
    **{kind: Value("exact", 0, high, whole=True, raw=True) for kind, high in _WHOLE.items()},
    **dict.fromkeys(("float", "double"), DOUBLE),
    "date": Value("date", raw=True),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), _MOMENT),
    "interval day to second": Value("span"),
    **dict.fromkeys(("string", "varchar", "char", "binary", "boolean"), Value("text")),
}

_CASTS: Mapping[str, str] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), "bigint"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "double"),
    **dict.fromkeys(("VARCHAR", "TEXT", "BOOLEAN"), "string"),
    "DATE": "date",
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ"), "timestamp"),
}
"""Types that a cast leads to, by sqlglot's names."""


def total(expression: str, kinds: Mapping[str, str]) -> str:
    """The expression in SQL that is null where it would fail.

    Args:
        expression: In Spark's dialect, such as `sections.expressions` admits.
        kinds: Types of columns, by name; with the table before a dot where one is named.

    Raises:
        SourceError: It could fail on a record, or names a column that is not there.

    >>> total("`a` * `b` > 1", {"a": "int", "b": "bigint"})
    'CAST(`a` AS DECIMAL(10, 0)) * CAST(`b` AS DECIMAL(19, 0)) > 1'
    """
    return _Walk.total(expression, kinds)


class _Walk(Walk):
    """Makes the nodes of one expression total."""

    engine = "Spark"
    dialect = "spark"
    truth = Value("text")
    folds_names = True

    def rules(self) -> dict[type[Expr], Callable[[Expr], Made]]:
        from sqlglot import exp

        starts = (exp.TimestampTrunc, exp.DateTrunc)
        return super().rules() | {exp.TryCast: self.cast} | dict.fromkeys(starts, self._start)

    def type_of(self, kind: str) -> Value:
        head, _, digits = kind.partition("(")
        if head != "decimal":
            return _COLUMNS.get(head, OTHER)
        precision, scale = map(int, digits.rstrip(")").split(","))
        return Value("exact", -scale, precision - scale)

    def fits(self, value: Value) -> bool:
        return value.high - value.low <= _DIGITS and -value.low <= _DIGITS

    def bounded(self, value: Value) -> Value:
        return value  # doubles become infinite and no more

    def number(self, node: Expr, value: Value) -> Made:
        if value.kind == "double":
            return node, replace(value, raw=False)
        return super().number(node, value)

    def as_decimal(self, node: Expr, value: Value) -> Made:
        digits, behind = max(value.high - value.low, 1), -value.low
        made = self.as_type(node, f"decimal({digits}, {behind})")
        return made, replace(value, whole=False, raw=False)

    def cast(self, node: Expr) -> Made:
        inside, _ = self.guarded(*self.of(node.this))
        node.set("this", inside)
        to = node.args["to"]
        if to.this.name == "DECIMAL":
            return node, self.type_of(to.sql(self.dialect).lower().replace(" ", ""))
        return node, self.type_of(_CASTS.get(to.this.name, ""))

    def part(self, node: Expr) -> Made:
        inside, _ = self.guarded(*self.of(node.expression))
        node.set("expression", inside)
        return node, Value("exact", -6, 10, raw=True)

    def _start(self, node: Expr) -> Made:
        """The beginning of the month, day or hour of a time."""
        inside, value = self.guarded(*self.of(node.this))
        node.set("this", inside)
        return node, Value("moment", years=value.years)

    def comparison(self, node: Expr) -> Made:
        """A comparison; a date beside another time becomes one."""
        keys = [key for key in ("this", "expression", "low", "high") if node.args.get(key)]
        made = [self.of(each) for each in (*(node.args[key] for key in keys), *node.expressions)]
        if len({value.kind for _, value in made}) > 1:
            made = [self.guarded(*each) for each in made]
        for key, (each, _) in zip(keys, made, strict=False):
            node.set(key, each)
        if node.expressions:
            node.set("expressions", [each for each, _ in made[len(keys) :]])
        return node, self.truth
