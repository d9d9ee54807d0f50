"""PostgreSQL's words for the one question; types are names of `pg_type` in `format_type`.

Its expressions are such as no record can fail (`backends.sql.total`), in PostgreSQL, which has
`numeric` for what overflows. Decimals and times are null in arithmetic where they lie beyond public
bounds: 10^30, and the years 1 to 9999.

Privacy: an expression is a total function of one record, or is refused by configuration and types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from streamdp.backends.sql.words import SEPARATOR, Role, Words

if TYPE_CHECKING:
    from sqlglot.expressions import Expr


WHOLE = ("smallint", "integer", "bigint")
FLOATING = ("real", "double precision")
TIMESTAMPS = ("timestamp without time zone", "timestamp with time zone")
TEXTS = ("text", "character varying", "character", "uuid", "boolean")
LONG = ("text", "character varying")
LONGEST = 2**28
"""Bytes of a unit that is hashed as it is."""
NUMBERS = (*WHOLE, *FLOATING, "numeric", "date", *TIMESTAMPS, "interval")
KINDS: dict[Role, tuple[str, ...]] = {
    "value": NUMBERS,
    "unit": (*NUMBERS[:-1], *TEXTS, "bytea"),
    "group": (*WHOLE, *TEXTS, "date"),
    "listed": (*WHOLE, *TEXTS, "date", "numeric"),
    "time": ("date", *TIMESTAMPS),
}


def family(kind: str) -> str:
    """A type without its parameters.

    >>> family("numeric(9,2)"), family("timestamp(3) without time zone")
    ('numeric', 'timestamp without time zone')
    """
    head, bracket, rest = kind.partition("(")
    return head + rest.partition(")")[2] if bracket else kind


@dataclass(frozen=True, slots=True)
class PostgresWords(Words):
    """See `words.Words`. An expression that could fail on a record is made total, or refused.

    Args:
        columns: Types of columns that expressions name.
    """

    columns: Mapping[str, str] = field(default_factory=dict)

    def tried(self, expression: str) -> str:
        return f"({total(expression, self.columns)})"

    def takes(self, role: Role, kind: str) -> bool:
        return family(kind) in KINDS[role]

    def double(self, value: float) -> str:
        return f"CAST('{value!r}' AS double precision)"

    def as_text(self, value: str, kind: str) -> str:
        """Text of a value; whole numerics are written without a fraction."""
        whole = f"trim_scale({value})" if family(kind) == "numeric" else value
        return f'(CAST({whole} AS text) COLLATE "C")'

    def blob(self, key: str) -> str:
        return f"convert_to({key}, getdatabaseencoding())"

    def listed(self, columns: Sequence[Sequence[str]], name: str) -> str:
        split = ", ".join(
            f"string_to_array({self.text(SEPARATOR.join(texts))}, {self.text(SEPARATOR)})"
            for texts in columns
        )
        names = ", ".join(f"g{i}" for i in range(len(columns)))
        return f"unnest({split}) AS {name}({names})"

    def number(self, value: str, kind: str) -> str:
        name = family(kind)
        if name in TIMESTAMPS:
            return f"(CAST({_micros(value)} AS double precision) / 1000000)"
        if name == "date":
            return f"(CAST({_days(value)} AS double precision) * 86400)"
        if name == "interval":
            return f"(CAST({_span(value)} AS double precision) / 1000000)"
        if name == "numeric":
            return _within_doubles(value)
        return f"CAST({value} AS double precision)"

    def is_whole(self, kind: str) -> bool:
        return family(kind) in WHOLE

    def canonical(self, unit: str, kind: str) -> str:
        name = family(kind)
        if name in TIMESTAMPS:
            return f"CAST(trunc({_micros(unit)}) AS text)"  # beyond bigint in the last years
        if name == "date":
            return f"CAST({_days(unit)} AS text)"
        if name in (*FLOATING, "numeric"):
            whole = f"greatest(-1e15, least(1e15, {self.number(unit, kind)}))"
            return f"CAST(CAST(floor({whole}) AS bigint) AS text)"
        if name == "bytea":
            return _short(unit, f"encode({unit}, 'hex')")
        text = f"CAST({unit} AS text)"
        return _short(unit, text) if name in LONG else text

    def bytewise(self, column: str) -> str:
        return f'{self.name(column)} COLLATE "C"'

    def start(self, text: str) -> str:
        """A number of 16 bits from a text in the server's encoding, which may be no UTF-8."""
        digits = f"substr(md5({text}), 1, 4)"
        return f"CAST(CAST(CAST('x' || {digits} AS bit(16)) AS integer) AS bigint)"


def _short(value: str, text: str) -> str:
    """A text that may not fit the gigabyte of a PostgreSQL text, or the MD5 of the value."""
    return f"CASE WHEN octet_length({value}) < {LONGEST} THEN {text} ELSE md5({value}) END"


def _micros(value: str) -> str:
    return f"CASE WHEN isfinite({value}) THEN extract(epoch FROM {value}) * 1000000 END"


def _days(value: str) -> str:
    return f"CASE WHEN isfinite({value}) THEN {value} - DATE '1970-01-01' END"


def _span(value: str) -> str:
    """Microseconds of an interval, a month being 30 days; PostgreSQL gives a year 365.25."""
    excess = f"extract(year FROM {value}) * 453600"
    return f"((extract(epoch FROM {value}) - {excess}) * 1000000)"


def _within_doubles(value: str) -> str:
    """A numeric beyond the doubles counts as the last of them, and one too near zero as zero."""
    clipped = f"greatest(-1e308, least(1e308, {value}))"
    finite = f"{value} NOT IN ('NaN', 'Infinity', '-Infinity')"
    tiny = f"abs({value}) < 1e-300"
    return (
        f"CASE WHEN {finite} THEN CASE WHEN {tiny} THEN CAST(0 AS double precision)"
        f" ELSE CAST({clipped} AS double precision) END END"
    )


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
    return _PostgresWalk.total(expression, kinds)


class _PostgresWalk(Walk):
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
