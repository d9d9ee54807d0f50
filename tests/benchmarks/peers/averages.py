"""Averages that anyone can make of released values, without knowing how they were released."""

from __future__ import annotations

import numpy as np

from streamdp.types import FloatArray


def simple(values: FloatArray, *, counts: bool) -> dict[str, FloatArray]:
    """What anyone can make of released values, shape (days, series), by name."""
    running = np.cumsum(values, axis=0) / np.arange(1, len(values) + 1)[:, None]
    found = {"by values": values, "by running mean": running}
    for weight in (0.1, 0.3):
        average = [values[0]]
        for each in values[1:]:
            average.append(average[-1] + weight * (each - average[-1]))
        found[f"by average {weight}"] = np.array(average)
    return found | ({"by zero": np.zeros_like(values)} if counts else {})
