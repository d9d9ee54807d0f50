"""The forms of plain data: arrays, stored documents, rows of a table, types of text columns."""

from __future__ import annotations

import base64
import math
import re
import zlib
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

_NUMBERS = "packed"
"""Name of the numbers of all arrays."""


def rounded(array: FloatArray, digits: int) -> FloatArray:
    """Round each number to so many binary digits: of short numbers `packed` makes few bytes."""
    part, exponent = np.frexp(array)
    return np.asarray(np.ldexp(np.rint(np.ldexp(part, digits)), exponent - digits))


def packed(state: Json) -> Json:
    """Store the arrays in a dictionary of plain data: shapes in place, all numbers compressed.

    First bytes of numbers are stored together, then second ones, since they are alike.
    """
    arrays: list[FloatArray] = []

    def shapes(part: Json) -> Json:
        if isinstance(part, dict):
            return {name: shapes(each) for name, each in part.items()}
        if not isinstance(part, np.ndarray):
            return part
        arrays.append(part.ravel())
        return {"shape": list(part.shape)}

    plain = shapes(state)
    content = np.concatenate((np.empty(0), *arrays)).astype(_EXACT).view(np.uint8).reshape(-1, 8)
    numbers = base64.b64encode(zlib.compress(content.T.tobytes())).decode("ascii")
    return {**plain, _NUMBERS: numbers}


def unpacked(state: Json) -> Json:
    """The inverse of `packed`; older states have the numbers of each array beside its shape."""
    left = zlib.decompress(base64.b64decode(state[_NUMBERS])) if _NUMBERS in state else b""
    numbers = np.frombuffer(left, np.uint8).reshape(8, -1).T.ravel().view(_EXACT).astype(np.float64)
    start = 0

    def arrays(part: Json) -> Json:
        nonlocal start
        if not isinstance(part, dict):
            return part
        if "shape" not in part:
            return {name: arrays(each) for name, each in part.items() if name != _NUMBERS}
        if "kind" in part:
            own = np.frombuffer(base64.b64decode(part["numbers"]), dtype=part["kind"])
            return own.astype(np.float64).reshape(part["shape"])
        first, start = start, start + math.prod(part["shape"])
        return numbers[first:start].reshape(part["shape"])

    return arrays(state)
