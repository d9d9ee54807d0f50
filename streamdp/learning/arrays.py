"""Arrays in a state: short and quick to read."""

from __future__ import annotations

import base64
from typing import Literal

import numpy as np

from streamdp.types import FloatArray, Json


def packed(array: FloatArray, kind: Literal["<f8", "<f4"] = "<f8") -> Json:
    """Shape and little-endian numbers; `<f8` is exact."""
    content = np.ascontiguousarray(array, dtype=kind).tobytes()
    numbers = base64.b64encode(content).decode("ascii")
    return {"shape": list(array.shape), "kind": kind, "numbers": numbers}


def unpacked(state: Json) -> FloatArray:
    """The inverse of `packed`."""
    numbers = np.frombuffer(base64.b64decode(state["numbers"]), dtype=state["kind"])
    return numbers.astype(np.float64).reshape(state["shape"])
