"""What others offer for the same question, behind one signature.

`release(values, quantiles, epsilon, bounds, generator) -> released values`: values sorted float64,
neighbours add/remove, nothing known but the bounds. Libraries are used if they are installed
(`tests/benchmarks/requirements.txt`); mechanisms of papers are written here from their formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from streamdp.types import FloatArray

Bounds = tuple[float, float]
Release = Callable[
    [FloatArray, Sequence[float], float, Bounds, np.random.Generator], Sequence[float]
]
