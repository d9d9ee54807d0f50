"""The forms of plain data: arrays, stored documents, rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
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
