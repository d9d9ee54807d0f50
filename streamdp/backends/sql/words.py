"""The few words in which engines differ when they are asked the one question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

SEPARATOR = "\x1f"
"""Separator of texts of a list: a control character, which none of them holds."""

Role = Literal["value", "unit", "group", "listed", "time"]
"""Part that a column plays in a question."""


class Words(Protocol):
    """Words of SQL in which engines differ; an engine overrides what it has otherwise."""

    keeps_order: bool = False
    """Whether a window function with an empty OVER is told to see rows as a subquery sorts them."""

    whole: str = "BIGINT"
    """Type of whole numbers of 64 bits, as a cast names it."""

    small: str = "SMALLINT"
    """Type of whole numbers of 16 bits, or of more where there is none."""

    nulls_first: str = " NULLS FIRST"
    """Behind a column of ORDER BY: that nulls come before all values."""

    grouping_sets: bool = True
    """Whether one GROUP BY can group in several ways."""

    def takes(self, role: Role, kind: str) -> bool:
        """Whether a column of this type of the engine can play this part."""
        ...

    def name(self, column: str) -> str:
        """A column."""
        return quoted(column, '"')

    def text(self, value: str) -> str:
        """A literal text."""
        return quoted(value, "'")

    def rows(self, rows: Sequence[Sequence[str]], name: str, columns: Sequence[str]) -> str:
        """Literal rows as a table that stands behind FROM or JOIN."""
        listed = ", ".join(f"({', '.join(row)})" for row in rows)
        return f"(VALUES {listed}) AS {name}({', '.join(columns)})"

    def double(self, value: float) -> str:
        """A literal double, exact to the last bit."""
        return f"CAST('{value!r}' AS DOUBLE)"

    def tried(self, expression: str) -> str:
        """An expression of the configuration; null, if the engine can, where it fails."""
        return f"({expression})"

    def as_text(self, value: str, kind: str) -> str:
        """A value of a type of the engine as text, which compares byte by byte."""
        ...

    def position(self, text: str, texts: Sequence[str]) -> str | None:
        """Index of a text in a list, null if it is not there; None where a join is faster."""
        return None

    def bytes(self, text: str) -> str:
        """The number of bytes of a text."""
        return f"octet_length({text})"

    def short(self, text: str, longest: int) -> str:
        """A text of at most so many bytes, as keys are compared."""
        return text

    def blob(self, key: str) -> str:
        """The bytes of a text that is compared as keys are."""
        ...

    def listed(self, columns: Sequence[Sequence[str]], name: str) -> str:
        """Texts by column as a table (g0, g1, …) that stands behind FROM or JOIN.

        None of them holds a control character; none at all may be one empty row.
        """
        ...

    def number(self, value: str, kind: str) -> str:
        """A value of a type of the engine as a double, by the rule of `cells`."""
        ...

    def is_whole(self, kind: str) -> bool:
        """Whether values of this type are whole numbers, compared exactly with literal ones."""
        ...

    def unit(self, column: str, kind: str) -> str:
        """A unit, as it is sorted and compared."""
        return self.name(column)

    def canonical(self, unit: str, kind: str) -> str:
        """A text that equal units share, the same in all engines."""
        ...

    def bytewise(self, column: str) -> str:
        """A text column, compared byte by byte whatever collation it has."""
        ...

    def unskipped(self, name: str) -> str:
        """The value of a column, by an expression that the engine has no statistics of."""
        return name

    def start(self, text: str) -> str:
        """The first DIGITS hexadecimal digits of the MD5 of a UTF-8 text, as a BIGINT."""
        ...


def quoted(name: str, quote: str) -> str:
    """A name or text between quotes, those within doubled."""
    return quote + name.replace(quote, quote * 2) + quote
