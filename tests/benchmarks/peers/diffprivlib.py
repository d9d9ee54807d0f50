"""diffprivlib: each target by itself with an equal share of epsilon."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from streamdp.types import FloatArray
from tests.benchmarks.peers import Bounds, Release


def releases() -> dict[str, Release]:
    """Its one way; none if it is not installed."""
    try:
        tools: Any = importlib.import_module("diffprivlib.tools")
    except ImportError:
        return {}

    def release(
        values: FloatArray,
        quantiles: Sequence[float],
        epsilon: float,
        bounds: Bounds,
        generator: np.random.Generator,
    ) -> list[float]:
        seed = int(generator.integers(2**31))
        found = tools.quantile(
            values, list(quantiles), epsilon=epsilon, bounds=bounds, random_state=seed
        )
        return sorted(np.atleast_1d(found).tolist())

    return {"diffprivlib": release}
