"""What the footer of a Parquet file says of its columns: their names, and types of their values.

The footer is read field by field, and no further than the schema. Statistics of records stand
behind it, and none of them is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import SEEK_END
from math import log10
from typing import Any, BinaryIO

from streamdp.backends.duckdb.thrift import fields

MARK = b"PAR1"
"""What a file begins and ends with."""

NO_FOOTER = (OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError)
"""Errors in which the reading of bytes ends that are no footer."""

PHYSICAL = {
    0: "BOOLEAN",
    1: "INT32",
    2: "INT64",
    3: "INT96",
    4: "FLOAT",
    5: "DOUBLE",
    6: "BYTE_ARRAY",
    7: "FIXED_LEN_BYTE_ARRAY",
}
"""How values are stored, by the numbers of the format."""

_LOGICAL = {
    1: "STRING",
    2: "MAP",
    3: "LIST",
    4: "ENUM",
    5: "DECIMAL",
    6: "DATE",
    7: "TIME",
    8: "TIMESTAMP",
    10: "INT",
    11: "UNKNOWN",
    12: "JSON",
    13: "BSON",
    14: "UUID",
    15: "FLOAT16",
    16: "VARIANT",
    17: "GEOMETRY",
    18: "GEOGRAPHY",
}
"""What values mean, by the numbers of the format."""

_UNITS = {1: "milliseconds", 2: "microseconds", 3: "nanoseconds"}

_CONVERTED = dict(
    enumerate(
        (
            *(("STRING",), ("MAP",), ("MAP",), ("LIST",), ("ENUM",), ("DECIMAL",), ("DATE",)),
            *(("TIME", True, "milliseconds"), ("TIME", True, "microseconds")),
            *(("TIMESTAMP", True, "milliseconds"), ("TIMESTAMP", True, "microseconds")),
            *(("INT", bits, signed) for signed in (False, True) for bits in (8, 16, 32, 64)),
            *(("JSON",), ("BSON",), ("INTERVAL",)),
        )
    )
)
"""Converted types, in files of older writers."""

_OF_BYTES = ("STRING", "ENUM", "JSON", "BSON", "VARIANT", "GEOMETRY", "GEOGRAPHY")
_LENGTHS = {"FLOAT16": 2, "UUID": 16, "INTERVAL": 12}
_INT32_DIGITS, _INT64_DIGITS = 9, 18
_REPEATED = 2
_LAST = 8
"""Bytes behind the footer: its length, and the mark."""


@dataclass(frozen=True, slots=True)
class Column:
    """What the schema says of a column that is not nested.

    Args:
        physical: How its values are stored.
        length: Bytes of each value where all have as many by their type; otherwise zero.
        logical: What they mean: the name of a type, `NONE` where nothing is said.
        words: The same with all that is said of it.
        precision: Digits of a decimal; otherwise zero.
        scale: Those behind its point.
    """

    physical: str
    length: int
    logical: str = "NONE"
    words: str = "None"
    precision: int = 0
    scale: int = 0

    @property
    def sound(self) -> bool:
        """Whether what values mean goes with how they are stored."""
        physical, logical = self.physical, self.logical
        if physical == "FIXED_LEN_BYTE_ARRAY" and self.length <= 0:
            return False
        if logical == "DECIMAL":
            return 0 <= self.scale <= self.precision and 0 < self.precision <= self._digits
        if logical in _OF_BYTES:
            return physical == "BYTE_ARRAY"
        if logical in _LENGTHS:
            return self.length == _LENGTHS[logical]
        if logical in ("INT", "TIME"):
            large = "bitWidth=64" in self.words or "cro" in self.words or "nano" in self.words
            return physical == ("INT64" if large else "INT32")
        wanted = {"DATE": "INT32", "TIMESTAMP": "INT64"}.get(logical, physical)
        return physical == wanted and logical not in ("MAP", "LIST")

    @property
    def _digits(self) -> float:
        """Most digits of a decimal that is stored so."""
        if self.length:
            return int((8 * self.length - 1) * log10(2))
        most = {"INT32": _INT32_DIGITS, "INT64": _INT64_DIGITS, "BYTE_ARRAY": float("inf")}
        return most.get(self.physical, 0)


@dataclass(frozen=True, slots=True)
class Schema:
    """Columns of a file.

    Args:
        names: All columns, nested ones too.
        leaves: Those that are not nested, by name.
        start: Where in the file its footer begins.
        length: Bytes of the footer.
    """

    names: tuple[str, ...]
    leaves: Mapping[str, Column]
    start: int
    length: int


def schema_of(file: BinaryIO) -> Schema:
    """The schema of an open file.

    Raises:
        ValueError: It has none; the other errors of `NO_FOOTER` say the same.
    """
    end = file.seek(-_LAST, SEEK_END)
    last = file.read(_LAST)
    length = int.from_bytes(last[: -len(MARK)], "little")
    start = end - length
    if not last.endswith(MARK) or start < len(MARK):
        raise ValueError("the file does not end in a footer")
    file.seek(start)
    for number, elements in fields(file.read(length)):
        if number == 2:
            return Schema(*_columns(elements[0], iter(elements[1:])), start, length)
    raise ValueError("the footer has no schema")


def _columns(
    root: Mapping[int, Any], elements: Iterator[Mapping[int, Any]]
) -> tuple[tuple[str, ...], dict[str, Column]]:
    """Names of all columns, and what is said of those that are not nested.

    Args:
        root: Of the tree of columns.
        elements: All of the tree below it, each before those in it.
    """
    names: dict[str, None] = {}
    leaves = {}
    for _ in range(root.get(5, 0)):
        element = next(elements, {})
        name = element[4].decode()
        if _inside(element, elements):
            names[name] = None
        if _is_leaf(element):
            column = _column(element)
            if element[3] != _REPEATED:
                leaves[name] = column
    if next(elements, None) is not None:
        raise ValueError("the schema has columns that are in no other")
    return tuple(names), leaves


def _is_leaf(element: Mapping[int, Any]) -> bool:
    return 1 in element and not element.get(5)


def _inside(element: Mapping[int, Any], elements: Iterator[Mapping[int, Any]]) -> int:
    """How many columns of values an element has, itself included."""
    if _is_leaf(element):
        return 1
    found = 0
    for _ in range(element[5]):
        found += _inside(next(elements, {}), elements)
    return found


def _column(element: Mapping[int, Any]) -> Column:
    physical = PHYSICAL[element[1]]
    length = element[2] if physical == "FIXED_LEN_BYTE_ARRAY" else 0
    column = Column(physical, length, *_meaning(element))
    if not column.sound:
        raise ValueError("a type does not go with how its values are stored")
    return column


def _meaning(element: Mapping[int, Any]) -> tuple[str, str, int, int]:
    """Name of a type, all that is said of it, and precision and scale of a decimal."""
    logical, *more = _said(element)
    if logical == "DECIMAL":
        return logical, "Decimal", more[0], more[1]
    if logical in ("TIME", "TIMESTAMP"):
        words = f"isAdjustedToUTC={str(more[0]).lower()}, timeUnit={more[1]}"
        return logical, f"{logical.title()}({words})", 0, 0
    if logical == "INT":
        words = f"bitWidth={more[0]}, isSigned={str(more[1]).lower()}"
        return logical, f"Int({words})", 0, 0
    return logical, logical.title(), 0, 0


def _said(element: Mapping[int, Any]) -> tuple[Any, ...]:
    """Name of a type and what is said of it, in the new way of writing it or the old one."""
    if 10 in element:
        number: int = min(element[10], default=0)
        said: Mapping[int, Any] = element[10].get(number, {})
        logical = _LOGICAL.get(number, "UNDEFINED")
        if logical == "DECIMAL":
            return logical, said[2], said[1]
        if logical in ("TIME", "TIMESTAMP"):
            return logical, said[1], _UNITS[min(said[2])]
        return (logical, said[1], said[2]) if logical == "INT" else (logical,)
    if 6 not in element:
        return ("NONE",)
    old: tuple[Any, ...] = _CONVERTED[element[6]]
    return (*old, element[8], element.get(7, 0)) if old == ("DECIMAL",) else old
