"""MariaDB's words for the one question; types are those of `types.kind_of`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streamdp.backends.mariadb.total import total
from streamdp.backends.sql.words import Role, Words, quoted

WHOLE = ("tinyint", "smallint", "mediumint", "int", "bigint", "year")
REAL = ("decimal", "float", "double")
MOMENTS = ("datetime", "timestamp")
NUMBERS = (*WHOLE, *REAL, "date", *MOMENTS)
KINDS: dict[Role, tuple[str, ...]] = {
    "value": (*NUMBERS, "time"),
    "unit": (*NUMBERS, "varchar", "varbinary"),
    "group": (*WHOLE, "date", "varchar"),
    "listed": (*WHOLE, "date", "varchar"),
    "time": ("date", *MOMENTS),
}

COLLATION = "utf8mb4_nopad_bin"
"""Texts are compared by all of their bytes; others leave out case, accents or blanks at the end."""

LOSSLESS = ("latin1", "utf8mb3", "utf8mb4")
"""Character sets that have no two texts of one UTF-8."""

LONGEST_UNIT = 2048
"""Bytes; a longer text or one without a length would be sorted by its first bytes alone."""


@dataclass(frozen=True)
class MariaDBWords(Words):
    """See `words.Words`. An expression that could fail on a record is made total, or refused.

    Args:
        columns: Types of columns that expressions name.
    """

    columns: Mapping[str, str] = field(default_factory=dict)

    whole = small = "SIGNED"
    nulls_first = ""  # they come first by themselves
    grouping_sets = False

    def takes(self, role: Role, kind: str) -> bool:
        family, _, length = kind.partition("(")
        if role == "unit" and family.startswith("var") and int(length[:-1]) > LONGEST_UNIT:
            return False
        return family in KINDS[role] or (family == "text" and role in ("group", "listed"))

    def tried(self, expression: str) -> str:
        return f"({total(expression, self.columns)})"

    def name(self, column: str) -> str:
        return quoted(column, "`")

    def text(self, value: str) -> str:
        return quoted(value.replace("\\", "\\\\"), "'")

    def rows(self, rows: Sequence[Sequence[str]], name: str, columns: Sequence[str]) -> str:
        """Literal rows by WITH, as MariaDB takes no names behind a derived table."""
        listed = ", ".join(f"({', '.join(row)})" for row in rows)
        names = ", ".join(columns)
        return f"(WITH {name}({names}) AS (VALUES {listed}) SELECT * FROM {name}) AS {name}"

    def as_text(self, value: str, kind: str) -> str:
        text = value if re.match("varchar|text", kind) else f"CAST({value} AS CHAR)"
        return _bytewise(text)

    def short(self, text: str, longest: int) -> str:
        """The bytes of a text, whose sort knows how many there are, with a length to index."""
        return f"CAST(CAST({text} AS CHAR({longest})) AS BINARY)"

    def blob(self, key: str) -> str:
        return key

    def listed(self, columns: Sequence[Sequence[str]], name: str) -> str:
        """Texts by JSON; each column is as wide as the longest text needs."""
        rows = json.dumps(list(zip(*columns, strict=True)), ensure_ascii=False)
        wide = [max((len(text) for text in texts), default=1) for texts in columns]
        read = ", ".join(f"g{i} VARCHAR({n}) PATH '$[{i}]'" for i, n in enumerate(wide))
        shown = ", ".join(f"CAST(g{i} AS BINARY) AS g{i}" for i in range(len(columns)))
        table = f"JSON_TABLE({self.text(rows)}, '$[*]' COLUMNS({read})) AS listed"
        return f"(SELECT {shown} FROM {table}) AS {name}"

    def number(self, value: str, kind: str) -> str:
        if kind in MOMENTS:
            return f"(CAST({_micros(value)} AS DOUBLE) / 1000000)"
        if kind == "date":
            return f"(CAST({_days(value)} AS DOUBLE) * 86400)"
        if kind == "time":
            return f"(CAST(TIME_TO_SEC({value}) * 1000000 AS DOUBLE) / 1000000)"
        return f"CAST({value} AS DOUBLE)"

    def is_whole(self, kind: str) -> bool:
        return kind in WHOLE

    def unit(self, column: str, kind: str) -> str:
        """A unit; a text as its bytes, whose sort knows how many there are.

        Privacy: keys by which texts are sorted are filled up with zeros, so `A` and `A` before a
        byte of zero would be sorted as one and counted as many.
        """
        name = self.name(column)
        return f"CAST({name} AS BINARY)" if kind.startswith("varchar") else name

    def canonical(self, unit: str, kind: str) -> str:
        if kind in MOMENTS:
            return f"CAST({_micros(unit)} AS CHAR)"
        if kind == "date":
            return f"CAST({_days(unit)} AS CHAR)"
        if kind.partition("(")[0] in REAL:
            whole = f"greatest(-1e15, least(1e15, {self.number(unit, kind)}))"
            return f"CAST(CAST(floor({whole}) AS SIGNED) AS CHAR)"
        if kind.startswith("varbinary"):
            return f"lower(hex({unit}))"
        return self.as_text(unit, kind)

    def bytewise(self, column: str) -> str:
        return _bytewise(self.name(column))

    def stored(self, column: str, charset: str | None) -> str:
        """A text column as UTF-8 that no two texts share, compared byte by byte.

        Character sets other than UTF-8 have letters that Unicode lacks, and all of these would
        become one `?`. A text that does not come back from UTF-8 as it was is written as U+10FFFF,
        which no such set has, and its bytes as the letters that latin1 has for them.

        Privacy: two units are two texts, so records of one push out none of the other.
        """
        if charset is None or charset in LOSSLESS:
            return self.bytewise(column)
        name = self.name(column)
        text = f"CONVERT({name} USING utf8mb4)"
        same = f"CAST(CONVERT({text} USING {charset}) AS BINARY) = CAST({name} AS BINARY)"
        spelt = f"CONVERT(CONVERT(CAST({name} AS BINARY) USING latin1) USING utf8mb4)"
        lost = f"CONCAT(CONVERT(X'F48FBFBF' USING utf8mb4), {spelt})"
        return _bytewise(f"CASE WHEN {same} THEN {text} ELSE {lost} END")

    def start(self, text: str) -> str:
        return f"CAST(conv(substr(md5({text}), 1, 4), 16, 10) AS SIGNED)"


def _bytewise(text: str) -> str:
    return f"CONVERT({text} USING utf8mb4) COLLATE {COLLATION}"


def _micros(value: str) -> str:
    return f"timestampdiff(MICROSECOND, TIMESTAMP '1970-01-01 00:00:00', {value})"


def _days(value: str) -> str:
    return f"datediff({value}, DATE '1970-01-01')"
