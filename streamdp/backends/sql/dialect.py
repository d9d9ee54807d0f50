"""The SQL in which engines differ when they are asked the one question."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from streamdp.backends.sql.total import TotalExpression

SEPARATOR = "\x1f"
"""Separator of texts of a list: a control character, which none of them holds."""

Role = Literal["value", "unit", "group", "listed", "time"]
"""Part that a column plays in a question."""


@dataclass(frozen=True)
class SqlDialect(ABC):
    """One engine's SQL: its types as data, and a method for each expression that it writes itself.

    Args:
        columns: The engine's types of the columns that expressions name.
    """

    columns: Mapping[str, str] = field(default_factory=dict)

    roles: ClassVar[Mapping[Role, tuple[str, ...]]]
    """Families of types that can play each part."""

    whole_types: ClassVar[tuple[str, ...]]
    """Whole numbers, compared exactly with literal ones."""

    real_types: ClassVar[tuple[str, ...]]
    """Numbers with a fraction."""

    instant_types: ClassVar[tuple[str, ...]]
    """Timestamps, with a zone and without."""

    interval_type: ClassVar[str]
    """Durations."""

    binary_type: ClassVar[str]
    """Bytes."""

    date_type: ClassVar[str] = "date"
    double: ClassVar[str] = "DOUBLE"
    text: ClassVar[str]
    """Types of dates, doubles and texts, as a cast names them."""

    whole: ClassVar[str] = "BIGINT"
    """Whole numbers of 64 bits, as a cast names them."""

    small: ClassVar[str] = "SMALLINT"
    """Whole numbers of 16 bits, or of more where there are none."""

    quote: ClassVar[str] = '"'
    """Stands around names."""

    bytewise_collation: ClassVar[str] = '"C"'
    """Compares texts byte by byte."""

    keeps_order: ClassVar[bool] = False
    """Whether a window function with an empty OVER is told to see rows as a subquery sorts them."""

    nulls_first: ClassVar[str] = " NULLS FIRST"
    """Behind a column of ORDER BY: that nulls come before all values."""

    grouping_sets: ClassVar[bool] = True
    """Whether one GROUP BY can group in several ways."""

    total: ClassVar[type[TotalExpression]]
    """Makes expressions total, where the engine ends a question at the first that fails."""

    def takes(self, role: Role, kind: str) -> bool:
        """Whether a column of this type can play this part."""
        return family(kind) in self.roles[role]

    def is_whole(self, kind: str) -> bool:
        """Whether values of this type are whole numbers, compared exactly with literal ones."""
        return family(kind) in self.whole_types

    def name(self, column: str) -> str:
        """A column."""
        return quoted(column, self.quote)

    def literal(self, value: str) -> str:
        """A literal text."""
        return quoted(value, "'")

    def double_literal(self, value: float) -> str:
        """A literal double, exact to the last bit."""
        return f"CAST('{value!r}' AS {self.double})"

    def rows(self, rows: Sequence[Sequence[str]], name: str, columns: Sequence[str]) -> str:
        """Literal rows as a table that stands behind FROM or JOIN."""
        listed = ", ".join(f"({', '.join(row)})" for row in rows)
        return f"(VALUES {listed}) AS {name}({', '.join(columns)})"

    @abstractmethod
    def text_table(self, columns: Sequence[Sequence[str]], name: str) -> str:
        """Texts by column as a table (g0, g1, …) that stands behind FROM or JOIN.

        None of them holds a control character; none at all may be one empty row.
        """

    def tried(self, expression: str) -> str:
        """An expression of the configuration; null where it would fail.

        Raises:
            SourceError: It could fail on a record all the same.
        """
        return f"({self.total.rewrite(expression, self.columns)})"

    def number(self, value: str, kind: str) -> str:
        """A value as a double, by the rule of `cells`."""
        name = family(kind)
        if name in self.instant_types:
            return f"(CAST({self.micros(value)} AS {self.double}) / 1000000)"
        if name == self.date_type:
            return f"(CAST({self.days(value)} AS {self.double}) * 86400)"
        if name == self.interval_type:
            return f"(CAST({self.interval_micros(value)} AS {self.double}) / 1000000)"
        return f"CAST({value} AS {self.double})"

    @abstractmethod
    def micros(self, value: str) -> str:
        """Microseconds of an instant since 1970 UTC, without a fraction."""

    @abstractmethod
    def days(self, value: str) -> str:
        """Days of a date since 1970."""

    @abstractmethod
    def interval_micros(self, value: str) -> str:
        """Microseconds of a duration, a month being 30 days."""

    def as_text(self, value: str, kind: str) -> str:
        """A value as text, which compares byte by byte."""
        return f"CAST({value} AS {self.text})"

    def unit(self, column: str, kind: str) -> str:
        """A unit, as it is sorted and compared."""
        return self.name(column)

    def canonical(self, unit: str, kind: str) -> str:
        """A text that equal units share, the same in all engines."""
        name = family(kind)
        if name in self.instant_types:
            return f"CAST({self.micros(unit)} AS {self.text})"
        if name == self.date_type:
            return f"CAST({self.days(unit)} AS {self.text})"
        if name in self.real_types:
            clipped = f"greatest(-1e15, least(1e15, {self.number(unit, kind)}))"
            return f"CAST(CAST(floor({clipped}) AS {self.whole}) AS {self.text})"
        return f"lower(hex({unit}))" if name == self.binary_type else self.as_text(unit, kind)

    @abstractmethod
    def start(self, text: str) -> str:
        """The first DIGITS hexadecimal digits of the MD5 of a UTF-8 text, as a BIGINT."""

    def position(self, text: str, texts: Sequence[str]) -> str | None:
        """Index of a text in a list, null if it is not there; None where a join is faster."""
        return None

    def bytes(self, text: str) -> str:
        """The number of bytes of a text."""
        return f"octet_length({text})"

    def short(self, text: str, longest: int) -> str:
        """A text of at most so many bytes, as keys are compared."""
        return text

    @abstractmethod
    def blob(self, key: str) -> str:
        """The bytes of a text that is compared as keys are."""

    def bytewise(self, column: str) -> str:
        """A text column, compared byte by byte whatever collation it has."""
        return f"{self.name(column)} COLLATE {self.bytewise_collation}"

    def unskipped(self, name: str) -> str:
        """The value of a column, by an expression that the engine has no statistics of."""
        return f"CASE WHEN {name} IS NULL THEN NULL ELSE {name} END"


def family(kind: str) -> str:
    """A type without its parameters.

    >>> family("DECIMAL(9,2)"), family("timestamp(3) without time zone")
    ('DECIMAL', 'timestamp without time zone')
    """
    return re.sub(r"\(.*\)", "", kind, flags=re.DOTALL)


def quoted(name: str, quote: str) -> str:
    """A name or text between quotes, those within doubled."""
    return quote + name.replace(quote, quote * 2) + quote
