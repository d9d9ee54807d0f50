"""Spark's words for the one question; types are simple strings of `pyspark.sql.types`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streamdp.backends.spark.total import total
from streamdp.backends.sql.words import SEPARATOR, Role, Words, quoted

WHOLE = ("tinyint", "smallint", "int", "bigint")
FLOATING = ("float", "double")
TIMESTAMPS = ("timestamp", "timestamp_ntz")
NUMBERS = (*WHOLE, *FLOATING, "decimal", "date", *TIMESTAMPS, "interval day to second")
TEXTS = (*WHOLE, "boolean", "date", "string", "varchar", "char")
KINDS: dict[Role, tuple[str, ...]] = {
    "value": NUMBERS,
    "unit": (*NUMBERS[:-1], "boolean", "string", "varchar", "char", "binary"),
    "group": TEXTS,
    "listed": TEXTS,
    "time": ("date", *TIMESTAMPS),
}


def family(kind: str) -> str:
    """A type without its parameters.

    >>> family("decimal(9,2)")
    'decimal'
    """
    return kind.partition("(")[0]


@dataclass(frozen=True)
class SparkWords(Words):
    """See `words.Words`. The session is not in ANSI mode, and expressions are made total.

    Args:
        columns: Types of columns that expressions name.
    """

    columns: Mapping[str, str] = field(default_factory=dict)

    def tried(self, expression: str) -> str:
        return f"({total(expression, self.columns)})"

    def takes(self, role: Role, kind: str) -> bool:
        return family(kind) in KINDS[role]

    def name(self, column: str) -> str:
        return quoted(column, "`")

    def text(self, value: str) -> str:
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def as_text(self, value: str, kind: str) -> str:
        return f"CAST({value} AS STRING)"

    def blob(self, key: str) -> str:
        return f"CAST({key} AS BINARY)"

    def listed(self, columns: Sequence[Sequence[str]], name: str) -> str:
        split = ", ".join(
            f"split({self.text(SEPARATOR.join(texts))}, {self.text(SEPARATOR)})"
            for texts in columns
        )
        names = ", ".join(f"g{i}" for i in range(len(columns)))
        return f"(SELECT inline(arrays_zip({split})) AS ({names})) AS {name}"

    def number(self, value: str, kind: str) -> str:
        name = family(kind)
        if name in TIMESTAMPS:
            return f"(CAST({_micros(value)} AS DOUBLE) / {self.double(1e6)})"
        if name == "date":
            return f"(CAST(unix_date({value}) AS DOUBLE) * {self.double(86400.0)})"
        if name.startswith("interval"):
            return f"(CAST({_span(value)} AS DOUBLE) / {self.double(1e6)})"
        return f"CAST({value} AS DOUBLE)"

    def is_whole(self, kind: str) -> bool:
        return family(kind) in WHOLE

    def canonical(self, unit: str, kind: str) -> str:
        name = family(kind)
        if name in TIMESTAMPS:
            return f"CAST({_micros(unit)} AS STRING)"
        if name == "date":
            return f"CAST(unix_date({unit}) AS STRING)"
        if name in (*FLOATING, "decimal"):
            low, high = self.double(-1e15), self.double(1e15)
            whole = f"floor(greatest({low}, least({high}, {self.number(unit, kind)})))"
            return f"CAST(CAST({whole} AS BIGINT) AS STRING)"
        if name == "binary":
            return f"lower(hex({unit}))"
        return f"CAST({unit} AS STRING)"

    def bytewise(self, column: str) -> str:
        return f"{self.name(column)} COLLATE UTF8_BINARY"

    def unskipped(self, name: str) -> str:
        return f"CASE WHEN {name} IS NULL THEN NULL ELSE {name} END"

    def start(self, text: str) -> str:
        return f"CAST(conv(substr(md5(CAST({text} AS BINARY)), 1, 4), 16, 10) AS BIGINT)"


def _micros(value: str) -> str:
    """Microseconds of an instant; a timestamp without a zone is UTC, as the session is."""
    return f"unix_micros(CAST({value} AS TIMESTAMP))"


def _span(value: str) -> str:
    hours = f"CAST(extract(DAY FROM {value}) AS BIGINT) * 24 + extract(HOUR FROM {value})"
    minutes = f"({hours}) * 60 + extract(MINUTE FROM {value})"
    micros = f"CAST(extract(SECOND FROM {value}) * 1000000 AS BIGINT)"
    return f"(({minutes}) * 60000000 + {micros})"
