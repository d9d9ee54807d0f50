"""PostgreSQL's SQL for the one question; types are names of `pg_type` in `format_type`.

Its expressions are such as no record can fail (`backends.sql.total`), in PostgreSQL, which has
`numeric` for what overflows. Decimals and times are null in arithmetic where they lie beyond public
bounds: 10^30, and the years 1 to 9999.

Privacy: an expression is a total function of one record, or is refused by configuration and types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from streamdp.backends.sql.dialect import SEPARATOR, Role, SqlDialect, family
from streamdp.backends.sql.total import (
    DOUBLE,
    FAR,
    OTHER,
    PARTS,
    Made,
    TotalExpression,
    UnfitError,
    Value,
    integers,
)

if TYPE_CHECKING:
    from sqlglot.expressions import Expr


WHOLE = ("smallint", "integer", "bigint")
REAL = ("real", "double precision", "numeric")
INSTANTS = ("timestamp without time zone", "timestamp with time zone")
LONG = ("text", "character varying")
TEXTS = (*LONG, "character", "uuid", "boolean")
COMPARED = (*WHOLE, *REAL, "date", *INSTANTS)

LONGEST = 2**28
"""Bytes of a unit that is hashed as it is; a longer one may not fit a text of PostgreSQL."""

LONGEST_LETTERS = 2**24
"""Bytes of a text whose letters are changed or trimmed: PostgreSQL takes up to eight times as many,
and ends a question at a gigabyte."""

_DECIMAL = Value("exact", -FAR, FAR, raw=True)
_DATE, _INSTANT = Value("date", raw=True), Value("moment", raw=True)

_PARTS = (*PARTS, "EPOCH")
_PARTS_OF_DATES = ("DOW", "ISODOW", "DOY", "WEEK", "ISOYEAR", "DECADE", "CENTURY", "MILLENNIUM")
"""Parts that PostgreSQL knows of every interval, and those of dates and timestamps."""

_WHOLE = Value("exact", 0, 19, whole=True)


class PostgresExpression(TotalExpression):
    """Makes an expression total; what has no operator the server refuses itself.

    >>> PostgresExpression.rewrite('"a" * "b" > 1', {"a": "integer", "b": "integer"})
    'CAST("a" AS DECIMAL) * CAST("b" AS DECIMAL) > 1'
    """

    engine = "PostgreSQL"
    dialect = "postgres"
    truth = Value("text")
    rest_of_doubles = False
    counts_days = True
    _in_letters = False

    types: ClassVar[Mapping[str, Value]] = {
        **integers(smallint=5, integer=10, bigint=19),
        "numeric": _DECIMAL,
        **dict.fromkeys(("real", "double precision"), DOUBLE),
        "date": _DATE,
        **dict.fromkeys(INSTANTS, _INSTANT),
        "interval": Value("span", raw=True),
        **dict.fromkeys((*TEXTS, "bytea"), Value("text")),
        **dict.fromkeys((*LONG, "citext"), Value("text", raw=True)),
    }

    constants: ClassVar[Mapping[str, Value]] = {
        **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), _WHOLE),
        "DECIMAL": _DECIMAL,
        **dict.fromkeys(("FLOAT", "DOUBLE"), DOUBLE),
        "DATE": _DATE,
        **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ"), _INSTANT),
    }
    """Types that a constant may be cast to, by sqlglot's names."""

    def rules(self) -> dict[type[Expr], Callable[[Expr], Made]]:
        from sqlglot import exp

        letters = dict.fromkeys((exp.Lower, exp.Upper, exp.Trim), self._letters)
        return super().rules() | letters | {exp.TimestampTrunc: self.start}

    def _letters(self, node: Expr) -> Made:
        """A function of a text of which PostgreSQL takes some bytes for each letter."""
        outside, self._in_letters = self._in_letters, True
        made = self._inside(node)
        self._in_letters = outside
        return made

    def _column(self, node: Expr) -> Made:
        """A column; one whose letters are looked at is null where it is too long for that."""
        made, value = super()._column(node)
        if self._in_letters and value.kind == "text" and value.raw:
            short = f"CASE WHEN octet_length(CAST(x AS text)) <= {LONGEST_LETTERS} THEN x END"
            made = self.parsed(short, made)
        return made, value

    def unfit(self, node: Expr, value: Value) -> Exception:
        return UnfitError() if value.kind == "text" else super().unfit(node, value)

    def as_decimal(self, node: Expr, value: Value) -> Made:
        if value.whole:
            node = self.as_type(node, "numeric")
        else:
            node = self.parsed(f"CASE WHEN abs(x) <= 1e{FAR} THEN round(x, {FAR}) END", node)
        return node, replace(value, whole=False, raw=False)

    def cast(self, node: Expr) -> Made:
        from sqlglot import exp

        if node.find(exp.Column) is None:
            return node, self.constants.get(node.args["to"].this.name, OTHER)
        inside, value = self.of(node.this)
        if not node.is_type("double") or value.kind == "text":
            raise self.refusal("a cast")
        return self.double(inside, value)

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

    def start(self, node: Expr) -> Made:
        """The beginning of the month, day or hour of a time."""
        inside, value = self.guarded(*self.of(node.this))
        part = node.text("unit").upper()
        if value.kind == "text":
            raise UnfitError
        if value.kind not in ("date", "moment") or part not in (*PARTS, *_PARTS_OF_DATES):
            raise self.refusal(f"PostgreSQL knows no beginning of a {part.lower()} of this")
        node.set("this", inside)
        return node, Value("moment", years=value.years)

    def compared(self, made: list[Made]) -> list[Made]:
        """Numbers of two families are doubles in a comparison, which a decimal may leave."""
        if all(value.kind != "double" for _, value in made):
            return made
        return [
            self.double(each, value) if value.kind == "exact" and not value.whole else (each, value)
            for each, value in made
        ]


class PostgresDialect(SqlDialect):
    """See `SqlDialect`."""

    roles: ClassVar[Mapping[Role, tuple[str, ...]]] = {
        "value": (*COMPARED, "interval"),
        "unit": (*COMPARED, *TEXTS, "bytea"),
        "group": (*WHOLE, *TEXTS, "date"),
        "listed": (*WHOLE, *TEXTS, "date", "numeric"),
        "time": ("date", *INSTANTS),
    }
    whole_types, real_types, instant_types = WHOLE, REAL, INSTANTS
    interval_type, binary_type = "interval", "bytea"
    double, text = "double precision", "text"
    total = PostgresExpression

    def as_text(self, value: str, kind: str) -> str:
        """Text of a value; whole numerics are written without a fraction."""
        whole = f"trim_scale({value})" if family(kind) == "numeric" else value
        return f'(CAST({whole} AS text) COLLATE "C")'

    def blob(self, key: str) -> str:
        return f"convert_to({key}, getdatabaseencoding())"

    def text_table(self, columns: Sequence[Sequence[str]], name: str) -> str:
        split = ", ".join(
            f"string_to_array({self.literal(SEPARATOR.join(texts))}, {self.literal(SEPARATOR)})"
            for texts in columns
        )
        names = ", ".join(f"g{i}" for i in range(len(columns)))
        return f"unnest({split}) AS {name}({names})"

    def number(self, value: str, kind: str) -> str:
        """A value as a double; a numeric beyond the doubles is the last of them, or zero."""
        if family(kind) != "numeric":
            return super().number(value, kind)
        clipped = f"greatest(-1e308, least(1e308, {value}))"
        finite = f"{value} NOT IN ('NaN', 'Infinity', '-Infinity')"
        tiny = f"abs({value}) < 1e-300"
        return (
            f"CASE WHEN {finite} THEN CASE WHEN {tiny} THEN CAST(0 AS double precision)"
            f" ELSE CAST({clipped} AS double precision) END END"
        )

    def micros(self, value: str) -> str:
        """Microseconds as a numeric: those of the last years do not fit a bigint."""
        epoch = f"trunc(extract(epoch FROM {value}) * 1000000)"
        return f"CASE WHEN isfinite({value}) THEN {epoch} END"

    def days(self, value: str) -> str:
        return f"CASE WHEN isfinite({value}) THEN {value} - DATE '1970-01-01' END"

    def interval_micros(self, value: str) -> str:
        """Microseconds of an interval; PostgreSQL gives a year 365.25 days."""
        excess = f"extract(year FROM {value}) * 453600"
        return f"((extract(epoch FROM {value}) - {excess}) * 1000000)"

    def canonical(self, unit: str, kind: str) -> str:
        text = super().canonical(unit, kind)
        if family(kind) == self.binary_type:
            text = f"encode({unit}, 'hex')"
        elif family(kind) not in LONG:
            return text
        return f"CASE WHEN octet_length({unit}) < {LONGEST} THEN {text} ELSE md5({unit}) END"

    def start(self, text: str) -> str:
        """A number of 16 bits from a text in the server's encoding, which may be no UTF-8."""
        digits = f"substr(md5({text}), 1, 4)"
        return f"CAST(CAST(CAST('x' || {digits} AS bit(16)) AS integer) AS bigint)"
