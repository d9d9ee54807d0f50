"""Expressions that no record can fail in MariaDB, whose numbers overflow.

See `backends.sql.total`. Decimals have 65 digits, 38 of them behind the point: numbers whose sum
or product has no room there are computed as doubles. Times that are none are null by themselves,
as are quotients by zero.

Privacy: an expression is a total function of one record, or is refused by configuration and types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from streamdp.backends.sql.total import DOUBLE, OTHER, PARTS, Made, Value, Walk

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_DIGITS = 65
_BEHIND = 38
"""Digits of a decimal, and those of them that may stand behind its point."""

_WHOLE = {"tinyint": 3, "smallint": 5, "mediumint": 8, "int": 10, "bigint": 20, "year": 4}
"""Digits of whole numbers, with a sign or without."""

_COLUMNS: Mapping[str, Value] = {
    **{kind: Value("exact", 0, high, whole=True, raw=True) for kind, high in _WHOLE.items()},
    **dict.fromkeys(("float", "double"), DOUBLE),
    "date": Value("date"),
    **dict.fromkeys(("datetime", "timestamp"), Value("moment")),
    **dict.fromkeys(("varchar", "text", "varbinary", "blob"), Value("text")),
}

_CONSTANTS: Mapping[str, Value] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), Value("exact", 0, 20, whole=True)),
    **dict.fromkeys(("FLOAT", "DOUBLE"), DOUBLE),
    "DATE": Value("date"),
    **dict.fromkeys(("DATETIME", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ"), Value("moment")),
}
"""Types that a constant may be cast to, by sqlglot's names."""


def total(expression: str, kinds: Mapping[str, str]) -> str:
    """The expression in SQL that is null where it would fail.

    Args:
        expression: In MariaDB's dialect, such as `sections.expressions` admits.
        kinds: Types of columns, by name; with the table before a dot where one is named.

    Raises:
        SourceError: It could fail on a record, or names a column that is not there.

    >>> total("`a` * `b` > 1", {"a": "int", "b": "bigint"})
    'CAST(`a` AS DECIMAL(10, 0)) * CAST(`b` AS DECIMAL(20, 0)) > 1'
    """
    return _Walk.total(expression, kinds)


class _Walk(Walk):
    """Makes the nodes of one expression total.

    MariaDB reads a text beside a number as one and finds columns in any case, so nothing is left to
    its own refusals.
    """

    engine = "MariaDB"
    dialect = "mysql"
    truth = Value("exact", 0, 1, whole=True)
    folds_names = True

    def rules(self) -> dict[type[Expr], Callable[[Expr], Made]]:
        from sqlglot import exp

        parts = (exp.TimestampDiff, exp.DayOfWeek, exp.DayOfYear, exp.Week, exp.Anonymous)
        found = super().rules() | dict.fromkeys(parts, self._counted)
        times = (exp.TsOrDsToDate, exp.TsOrDsToTimestamp, exp.TimeToStr)
        return found | dict.fromkeys(times, self._read)

    def type_of(self, kind: str) -> Value:
        head, _, digits = kind.partition("(")
        if head != "decimal":
            return _COLUMNS.get(head, OTHER)
        precision, scale = map(int, digits.rstrip(")").split(","))
        return Value("exact", -scale, precision - scale)

    def fits(self, value: Value) -> bool:
        return value.low >= -_BEHIND and value.high - value.low <= _DIGITS

    def as_decimal(self, node: Expr, value: Value) -> Made:
        digits, behind = max(value.high - value.low, 1), -value.low
        made = self.as_type(node, f"decimal({digits}, {behind})")
        return made, replace(value, whole=False, raw=False)

    def as_double(self, node: Expr) -> Expr:
        return self.as_type(node, "double")

    def moved(self, node: Expr, one: Made, other: Made) -> Made:
        from sqlglot import exp

        if not isinstance(other[0], exp.Interval):
            raise self.refusal("a time takes an interval such as INTERVAL 1 DAY")
        return type(node)(this=one[0], expression=other[0]), Value("moment")

    def cast(self, node: Expr) -> Made:
        from sqlglot import exp

        if node.find(exp.Column) is None:
            return node, _CONSTANTS.get(node.args["to"].this.name, OTHER)
        if node.is_type("double"):
            return self.double(*self.of(node.this))
        if not isinstance(node.this, exp.TimeToStr):  # the beginning of a month, day or hour
            raise self.refusal("a cast")
        node.set("this", self.of(node.this)[0])
        return node, Value("moment")

    def part(self, node: Expr) -> Made:
        if node.this.name.upper() not in PARTS:
            raise self.refusal(f"MariaDB knows no {node.this.name.lower()} of a time")
        node.set("expression", self.of(node.expression)[0])
        return node, Value("exact", 0, 4, whole=True)

    def _counted(self, node: Expr) -> Made:
        """Numbers that functions make of a time: microseconds, or days and weeks."""
        from sqlglot import exp

        if node.find(exp.Column) is None:
            return node, OTHER
        if isinstance(node, exp.Anonymous):
            if node.name.upper() != "WEEKDAY":
                raise self.refusal(f"{node.name.lower()} is not known to be total here")
            node.set("expressions", [self.of(each)[0] for each in node.expressions])
        else:
            node.set("this", self.of(node.this)[0])
        return node, Value("exact", 0, 19, whole=True)

    def _read(self, node: Expr) -> Made:
        """A time that stands in a function of times."""
        inside, value = self.of(node.this)
        if value.kind == "text":
            raise self.refusal(f"{inside.sql(self.dialect)} is no time")
        node.set("this", inside)
        return node, Value("moment")

    def interval(self, node: Expr) -> Made:
        node.set("this", self.of(node.this)[0])
        return node, Value("span")

    def comparison(self, node: Expr) -> Made:
        for key in ("this", "expression", "low", "high"):
            if node.args.get(key) is not None:
                node.set(key, self.of(node.args[key])[0])
        if node.expressions:
            node.set("expressions", [self.of(each)[0] for each in node.expressions])
        return node, self.truth
