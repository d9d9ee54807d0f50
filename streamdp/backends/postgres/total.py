"""Expressions that no record can fail in PostgreSQL, which has `numeric` for what overflows.

See `backends.sql.total`. Decimals and times are null in arithmetic where they lie beyond public
bounds: 10^30, and the years 1 to 9999.

Privacy: an expression is a total function of one record, or is refused by configuration and types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from streamdp.backends.sql.total import (
    DOUBLE,
    FAR,
    OTHER,
    PARTS,
    Made,
    UnfitError,
    Value,
    Walk,
)

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_WHOLE = {"smallint": 5, "integer": 10, "bigint": 19}
"""Digits of whole numbers."""

_DECIMAL = Value("exact", -FAR, FAR, raw=True)

_COLUMNS: Mapping[str, Value] = {
    **{kind: Value("exact", 0, high, whole=True, raw=True) for kind, high in _WHOLE.items()},
    "numeric": _DECIMAL,
    **dict.fromkeys(("real", "double precision"), DOUBLE),
    "date": Value("date", raw=True),
    "timestamp without time zone": Value("moment", raw=True),
    "timestamp with time zone": Value("moment", raw=True),
    "interval": Value("span", raw=True),
    **dict.fromkeys(
        ("text", "character varying", "character", "uuid", "boolean", "bytea"), Value("text")
    ),
}
"""Types; PostgreSQL has no arithmetic of the last."""

_CONSTANTS: Mapping[str, Value] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), Value("exact", 0, 19, whole=True)),
    "DECIMAL": _DECIMAL,
    **dict.fromkeys(("FLOAT", "DOUBLE"), DOUBLE),
    "DATE": Value("date", raw=True),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ"), Value("moment", raw=True)),
}
"""Types that a constant may be cast to, by sqlglot's names."""

_PARTS = (*PARTS, "EPOCH")
_PARTS_OF_DATES = ("DOW", "ISODOW", "DOY", "WEEK", "ISOYEAR", "DECADE", "CENTURY", "MILLENNIUM")
"""Parts that PostgreSQL knows of every interval, and those of dates and timestamps."""


def total(expression: str, kinds: Mapping[str, str]) -> str:
    """The expression in SQL that is null where it would fail.

    Args:
        expression: In PostgreSQL's dialect, such as `sections.expressions` admits.
        kinds: Types of columns, by name; with the table before a dot where one is named.

    Raises:
        SourceError: It could fail on a record.

    >>> total('"a" * "b" > 1', {"a": "integer", "b": "integer"})
    'CAST("a" AS DECIMAL) * CAST("b" AS DECIMAL) > 1'
    """
    return _Walk.total(expression, kinds)


class _Walk(Walk):
    """Makes the nodes of one expression total; what has no operator the server refuses itself."""

    engine = "PostgreSQL"
    dialect = "postgres"
    truth = Value("text")
    rest_of_doubles = False
    counts_days = True

    def rules(self) -> dict[type[Expr], Callable[[Expr], Made]]:
        from sqlglot import exp

        return Walk.rules(self) | {exp.TimestampTrunc: self._start}

    def type_of(self, kind: str) -> Value:
        return _COLUMNS.get(kind.partition("(")[0], OTHER)

    def fits(self, value: Value) -> bool:
        return True

    def unfit(self, node: Expr, value: Value) -> Exception:
        return UnfitError() if value.kind == "text" else Walk.unfit(self, node, value)

    def as_decimal(self, node: Expr, value: Value) -> Made:
        if value.whole:
            node = self.as_type(node, "numeric")
        else:
            node = self.parsed(f"CASE WHEN abs(x) <= 1e{FAR} THEN round(x, {FAR}) END", node)
        return node, replace(value, whole=False, raw=False)

    def cast(self, node: Expr) -> Made:
        from sqlglot import exp

        if node.find(exp.Column) is None:
            return node, _CONSTANTS.get(node.args["to"].this.name, OTHER)
        if not node.is_type("double"):
            raise self.refusal("a cast")
        return self.double(*self.of(node.this))

    def part(self, node: Expr) -> Made:
        inside, value = self.guarded(*self.of(node.expression))
        part = node.this.name.upper()
        if value.kind == "text":
            raise UnfitError
        known = {"span": _PARTS, "other": ("HOUR", "MINUTE", "SECOND", "EPOCH")}
        if part not in known.get(value.kind, (*_PARTS, *_PARTS_OF_DATES)):
            raise self.refusal(f"PostgreSQL knows no {part.lower()} of this")
        if value.kind == "date":
            inside = self.as_type(inside, "timestamp")
        node.set("expression", inside)
        return node, Value("exact", -6, 15 if value.kind != "span" else 20)

    def _start(self, node: Expr) -> Made:
        """The beginning of the month, day or hour of a time."""
        inside, value = self.guarded(*self.of(node.this))
        part = node.text("unit").upper()
        if value.kind == "text":
            raise UnfitError
        if value.kind not in ("date", "moment") or part not in (*PARTS, *_PARTS_OF_DATES):
            raise self.refusal(f"PostgreSQL knows no beginning of a {part.lower()} of this")
        node.set("this", inside)
        return node, Value("moment", years=value.years)

    def comparison(self, node: Expr) -> Made:
        """A comparison; numbers of two families are doubles there, which a decimal may leave."""
        keys = [key for key in ("this", "expression", "low", "high") if node.args.get(key)]
        listed = node.expressions
        made = [self.of(each) for each in (*(node.args[key] for key in keys), *listed)]
        if any(value.kind == "double" for _, value in made):
            made = [
                self.double(each, value)
                if value.kind == "exact" and not value.whole
                else (each, value)
                for each, value in made
            ]
        for key, (each, _) in zip(keys, made, strict=False):
            node.set(key, each)
        if listed:
            node.set("expressions", [each for each, _ in made[len(keys) :]])
        return node, self.truth
