"""DuckDB's words for the one question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from streamdp.backends.sql.words import SEPARATOR, Role, Words

WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
WIDE = ("HUGEINT", "UHUGEINT")
FLOATING = ("FLOAT", "DOUBLE")
TIMESTAMPS = (
    *("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
    "TIMESTAMP WITH TIME ZONE",
)
TIMES = ("DATE", *TIMESTAMPS)
NUMBERS = (*WHOLE, *WIDE, *FLOATING, "DECIMAL", *TIMES, "INTERVAL")
TEXTS = (*WHOLE, *WIDE, "BOOLEAN", "DATE", "VARCHAR", "ENUM", "UUID")
FAMILIES: dict[Role, tuple[str, ...]] = {
    "value": NUMBERS,
    "unit": (*NUMBERS[:-1], "BOOLEAN", "VARCHAR", "ENUM", "UUID", "BLOB"),
    "group": TEXTS,
    "listed": TEXTS,
    "time": TIMES,
}

NOTHING = '"NULL"'
"""Type of a column that holds no value in any record; it may be every part, and counts nothing."""

CAST = ("TIMESTAMP_S", "TIMESTAMP_MS")
"""Types that DuckDB casts to TIMESTAMP before it compares or counts them; some tables have them."""

_ENDS = ("290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54.775806")
ENDS = dict.fromkeys(("TIMESTAMP", *CAST), _ENDS)
ENDS["TIMESTAMP WITH TIME ZONE"] = (f"{_ENDS[0]}+00", f"{_ENDS[1]}+00")
"""The first and the last time of a type that DuckDB casts to others."""

_BARE = re.compile(r'"[^"]+"|[a-z_]\w*', re.ASCII | re.IGNORECASE)

EXACT_DIGITS = 15
"""A decimal of so many digits is an exact double times a power of ten; DuckDB casts it right."""

FEW_DIGITS = 18
"""Digits of a decimal that DuckDB casts whatever its bits are."""


def family(kind: str) -> str:
    """A type without its parameters.

    >>> family("DECIMAL(9,2)"), family("ENUM('a', 'b')")
    ('DECIMAL', 'ENUM')
    """
    return kind.split("(")[0].upper()


class DuckDBWords(Words):
    """See `words.Words`."""

    keeps_order = True

    def takes(self, role: Role, kind: str) -> bool:
        return kind == NOTHING or family(kind) in FAMILIES[role]

    def tried(self, expression: str) -> str:
        """The expression within TRY, unless it is a bare column, which cannot fail."""
        return expression if _BARE.fullmatch(expression) else f"TRY({expression})"

    def as_text(self, value: str, kind: str) -> str:
        return f"CAST({value} AS VARCHAR)"

    def position(self, text: str, texts: Sequence[str]) -> str:
        """Position by a cast to an enum, which compares bytes whatever the collation."""
        listed = ", ".join(self.text(each) for each in texts)
        return f"enum_code(TRY_CAST({text} AS ENUM({listed})))"

    def bytes(self, text: str) -> str:
        return f"strlen({text})"

    def blob(self, key: str) -> str:
        return f"encode({key})"

    def listed(self, columns: Sequence[Sequence[str]], name: str) -> str:
        split = (
            f"unnest(string_split({self.text(SEPARATOR.join(texts))}, {self.text(SEPARATOR)}))"
            f" AS g{i}"
            for i, texts in enumerate(columns)
        )
        return f"(SELECT {', '.join(split)}) AS {name}"

    def number(self, value: str, kind: str) -> str:
        name = family(kind)
        if kind == NOTHING:
            return "CAST(NULL AS DOUBLE)"
        if name in WIDE or (name == "DECIMAL" and _digits(kind) > EXACT_DIGITS):
            return f"CAST(CAST({value} AS VARCHAR) AS DOUBLE)"
        if name in TIMESTAMPS:
            return f"(CAST({_micros(value)} AS DOUBLE) / 1000000)"
        if name == "DATE":
            return f"(CAST({_days(value)} AS DOUBLE) * 86400)"
        if name == "INTERVAL":
            return f"(CAST(CAST({_span(value)} AS VARCHAR) AS DOUBLE) / 1000000)"
        return f"CAST({value} AS DOUBLE)"

    def is_whole(self, kind: str) -> bool:
        return family(kind) in WHOLE

    def canonical(self, unit: str, kind: str) -> str:
        name = family(kind)
        if name in TIMESTAMPS:
            return f"CAST({_micros(unit)} AS VARCHAR)"
        if name == "DATE":
            return f"CAST({_days(unit)} AS VARCHAR)"
        if name in (*FLOATING, "DECIMAL"):
            whole = f"greatest(-1e15, least(1e15, {self.number(unit, kind)}))"
            return f"CAST(CAST(floor({whole}) AS BIGINT) AS VARCHAR)"
        if name == "BLOB":
            return f"lower(hex({unit}))"
        return f"CAST({unit} AS VARCHAR)"

    def plain_time(self, value: str, kind: str) -> str:
        """A time of a type in `ENDS`; null where it is none, or before all others.

        CASE alone may hand on the values as they are stored, those of records that a condition has
        left out among them, and a cast then looks at all of them: `greatest` makes others.
        """
        made = "TIMESTAMP" if kind in CAST else kind
        first, last = (f"CAST({self.text(end)} AS {made})" for end in ENDS[kind])
        if kind in CAST:
            known = f"TRY({value} BETWEEN {first} AND {last} OR NOT isfinite({value}))"
            return f"CASE WHEN {known} THEN {value} END"
        return f"CASE WHEN {value} >= {first} THEN greatest({value}, {first}) END"

    def plain_decimal(self, value: str, kind: str) -> str | None:
        """A decimal with the nearest value of its type for bits that are none; None if all are one.

        Files and tables may hold such bits, and DuckDB ends a question at them in a cast.
        """
        if family(kind) != "DECIMAL" or _digits(kind) <= FEW_DIGITS:
            return None
        precision, scale = (int(each) for each in kind[8:-1].split(","))
        most = f"{Decimal((0, (9,) * precision, -scale)):f}"
        low, high = (f"CAST('{sign}{most}' AS {kind})" for sign in ("-", ""))
        within = f"greatest(least({value}, {high}), {low})"
        return f"CASE WHEN {value} IS NULL THEN NULL ELSE {within} END"

    def bytewise(self, column: str) -> str:
        return f'{self.name(column)} COLLATE "C"'

    def unskipped(self, name: str) -> str:
        return f"CASE WHEN {name} IS NULL THEN NULL ELSE {name} END"

    def start(self, text: str) -> str:
        return f"CAST('0x' || substr(md5({text}), 1, 4) AS BIGINT)"


def _digits(kind: str) -> int:
    found = re.search(r"\((\d+)", kind)
    return int(found[1]) if found else 38


def _micros(value: str) -> str:
    return f"CASE WHEN isfinite({value}) THEN epoch_us({value}) END"


def _days(value: str) -> str:
    return f"CASE WHEN isfinite({value}) THEN {value} - DATE '1970-01-01' END"


def _span(value: str) -> str:
    """Microseconds of an interval, which has years, months, days and a time; a month is 30 days."""
    days = f"(year({value})::HUGEINT * 12 + month({value})) * 30 + day({value})"
    minutes = f"(({days}) * 24 + hour({value})) * 60 + minute({value})"
    return f"(({minutes}) * 60000000 + microsecond({value}))"
