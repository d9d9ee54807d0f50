"""DuckDB's SQL for the one question."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import ClassVar

from streamdp.backends.sql.dialect import SEPARATOR, Role, SqlDialect, family

WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
WIDE = ("HUGEINT", "UHUGEINT")
REAL = ("FLOAT", "DOUBLE", "DECIMAL")
INSTANTS = (
    *("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
    "TIMESTAMP WITH TIME ZONE",
)
NOTHING = '"NULL"'
"""Type of a column that holds no value in any record; it may be every part, and counts nothing."""

COMPARED = (*WHOLE, *WIDE, *REAL, "DATE", *INSTANTS, NOTHING)
TEXTS = (*WHOLE, *WIDE, "BOOLEAN", "DATE", "VARCHAR", "ENUM", "UUID", NOTHING)

CAST = ("TIMESTAMP_S", "TIMESTAMP_MS")
"""Types that DuckDB casts to TIMESTAMP before it compares or counts them; some tables have them."""

_ENDS = ("290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54.775806")
ENDS = dict.fromkeys(("TIMESTAMP", *CAST), _ENDS)
ENDS["TIMESTAMP WITH TIME ZONE"] = (f"{_ENDS[0]}+00", f"{_ENDS[1]}+00")
"""The first and the last time of a type that DuckDB casts to others."""

NANOSECONDS = "TIMESTAMP_NS"
"""Type that DuckDB casts a time to which stands beside one of it: some have no nanoseconds."""

NANO_ENDS = (-9_223_372_036, 9_223_372_036)
"""Seconds of the first and the last whole second that have nanoseconds."""

_BARE = re.compile(r'"[^"]+"|[a-z_]\w*', re.ASCII | re.IGNORECASE)

EXACT_DIGITS = 15
"""A decimal of so many digits is an exact double times a power of ten; DuckDB casts it right."""

FEW_DIGITS = 18
"""Digits of a decimal that DuckDB casts whatever its bits are."""


class DuckDBDialect(SqlDialect):
    """See `SqlDialect`."""

    roles: ClassVar[Mapping[Role, tuple[str, ...]]] = {
        "value": (*COMPARED, "INTERVAL"),
        "unit": (*COMPARED, "BOOLEAN", "VARCHAR", "ENUM", "UUID", "BLOB"),
        "group": TEXTS,
        "listed": TEXTS,
        "time": ("DATE", *INSTANTS, NOTHING),
    }
    whole_types, real_types, instant_types = WHOLE, REAL, INSTANTS
    date_type, interval_type, binary_type = "DATE", "INTERVAL", "BLOB"
    text = "VARCHAR"
    keeps_order = True

    def tried(self, expression: str) -> str:
        """The expression within TRY, unless it is a bare column, which cannot fail."""
        return expression if _BARE.fullmatch(expression) else f"TRY({expression})"

    def position(self, text: str, texts: Sequence[str]) -> str:
        """Position by a cast to an enum, which compares bytes whatever the collation."""
        listed = ", ".join(self.literal(each) for each in texts)
        return f"enum_code(TRY_CAST({text} AS ENUM({listed})))"

    def bytes(self, text: str) -> str:
        return f"strlen({text})"

    def blob(self, key: str) -> str:
        return f"encode({key})"

    def text_table(self, columns: Sequence[Sequence[str]], name: str) -> str:
        by = self.literal(SEPARATOR)
        split = (
            f"unnest(string_split({self.literal(SEPARATOR.join(texts))}, {by})) AS g{i}"
            for i, texts in enumerate(columns)
        )
        return f"(SELECT {', '.join(split)}) AS {name}"

    def number(self, value: str, kind: str) -> str:
        """A value as a double, by way of a text where DuckDB's own cast is not the nearest one."""
        if kind == NOTHING:
            return "CAST(NULL AS DOUBLE)"
        value, kind = _in_micros(value, kind)
        if family(kind) in WIDE or (family(kind) == "DECIMAL" and _digits(kind) > EXACT_DIGITS):
            value = f"CAST({value} AS VARCHAR)"
        return super().number(value, kind)

    def canonical(self, unit: str, kind: str) -> str:
        """A text that equal units share, the same in all engines."""
        return super().canonical(*_in_micros(unit, kind))

    def micros(self, value: str) -> str:
        return f"CASE WHEN isfinite({value}) THEN epoch_us({value}) END"

    def days(self, value: str) -> str:
        return f"CASE WHEN isfinite({value}) THEN {value} - DATE '1970-01-01' END"

    def interval_micros(self, value: str) -> str:
        """Microseconds as a text: an interval may be longer than doubles are exact."""
        days = f"(year({value})::HUGEINT * 12 + month({value})) * 30 + day({value})"
        minutes = f"(({days}) * 24 + hour({value})) * 60 + minute({value})"
        return f"CAST((({minutes}) * 60000000 + microsecond({value})) AS VARCHAR)"

    def plain_time(self, value: str, kind: str) -> str:
        """A time of nanoseconds, or of a type in `ENDS`; null where it is none, or before all.

        One of nanoseconds becomes one of microseconds: beside `DATE '9999-12-31'`, which has no
        nanoseconds, each comparison would fail, and be null.

        CASE alone may hand on the values as they are stored, those of records that a condition has
        left out among them, and a cast then looks at all of them: `greatest` makes others.
        """
        if kind == NANOSECONDS:
            micros = f"make_timestamp(epoch_us({value}))"  # a cast would round
            return f"CASE WHEN isfinite({value}) THEN {micros} ELSE CAST({value} AS TIMESTAMP) END"
        made = "TIMESTAMP" if kind in CAST else kind
        first, last = (f"CAST({self.literal(end)} AS {made})" for end in ENDS[kind])
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

    def start(self, text: str) -> str:
        return f"CAST('0x' || substr(md5({text}), 1, 4) AS BIGINT)"


def _in_micros(value: str, kind: str) -> tuple[str, str]:
    """A value and its type; a time of a type in `CAST` as one of microseconds.

    DuckDB would cast it to nanoseconds by itself, and end the question at years that have none.
    """
    return (f"CAST({value} AS TIMESTAMP)", "TIMESTAMP") if family(kind) in CAST else (value, kind)


def _digits(kind: str) -> int:
    found = re.search(r"\((\d+)", kind)
    return int(found[1]) if found else 38
