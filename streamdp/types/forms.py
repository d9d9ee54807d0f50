"""The forms of plain data: arrays, stored documents, rows of a table, types of text columns."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Json = Any
"""A value that `json.dumps` takes: the form of stored states, events and releases."""

Format = Literal["parquet", "csv", "jsonl", "arrow"]
"""Formats of files of records."""

Neighbours = Literal["add-remove", "substitute"]
"""Neighbouring batches differ by one record more, or in one record."""

Row = Mapping[str, float | str | int | None]

Rows = Mapping[tuple[str, ...], int]
"""How many records each group is expected to have; () where there are no groups."""


FIELD_TYPES = ("number", "decimal-comma", "timestamp", "date", "boolean", "text")
"""Words for types; `decimal-comma` is a number such as `1.234,50`."""

_DIRECTIVE = re.compile(r"%-?(.)")
_TIME = frozenset("HIMSfpz")
_DAY = ("Yy", "mbB", "d")
"""One directive of each is needed to tell a day."""


def is_time_form(declared: str) -> bool:
    """Whether a text says how dates or times are written.

    >>> is_time_form("%d.%m.%Y %H:%M"), is_time_form("%Y"), is_time_form("float")
    (True, False, False)
    """
    found = set(_DIRECTIVE.findall(declared))
    known = found <= {"%", *_TIME, *"".join(_DAY)} and "%" not in _DIRECTIVE.sub("", declared)
    return known and all(found & set(part) for part in _DAY)


def has_time_of_day(form: str) -> bool:
    """Whether a form of dates or times tells more than the day."""
    return bool(_TIME & set(_DIRECTIVE.findall(form)))


RECORD = "record"
"""The name of a row in SQL over the table."""


@dataclass(frozen=True, slots=True)
class Made:
    """A column made of one row.

    Args:
        name: As it is asked for.
        sql: Expression in the engine's words, over columns of `RECORD`.
        source: The table's column, where it is nothing else: the engine may then skip by it.
    """

    name: str
    sql: str
    source: str | None = None


_EXACT = "<f8"
"""Doubles, the last byte first, whatever the machine has."""


def packed(array: FloatArray) -> Json:
    """An array as it is stored: its shape, and the bytes of its numbers."""
    content = np.ascontiguousarray(array, dtype=_EXACT).tobytes()
    numbers = base64.b64encode(content).decode("ascii")
    return {"shape": list(array.shape), "kind": _EXACT, "numbers": numbers}


def unpacked(state: Json) -> FloatArray:
    """The inverse of `packed`."""
    numbers = np.frombuffer(base64.b64decode(state["numbers"]), dtype=state["kind"])
    return numbers.astype(np.float64).reshape(state["shape"])
