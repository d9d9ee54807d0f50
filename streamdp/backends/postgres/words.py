"""PostgreSQL's words for the one question; types are names of `pg_type` in `format_type`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streamdp.backends.postgres.total import total
from streamdp.backends.sql.words import SEPARATOR, Role, Words

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
