"""How many releases it takes until errors are what they are in the end."""

from __future__ import annotations

import numpy as np

from streamdp.types import FloatArray

WITHIN = 1.2
"""Recovered: at most this many times the stable error."""

WINDOW = 5
"""Releases over which an error is averaged, and over seeds and quantiles: one alone is chance."""


def releases_to_recover(errors: list[FloatArray], event: int) -> int | None:
    """Releases after the event until the mean of the next five is within 20 % of the stable error.

    Args:
        errors: Of each seed, shape (batches, m).
        event: Index of the first release after it.

    Returns:
        None if the last quarter, which is the stable part, has begun.
    """
    course = np.mean([each.mean(axis=1) for each in errors], axis=0)
    late = len(course) - len(course) // 4
    stable = float(course[late:].mean())
    for start in range(event, late):
        if course[start : start + WINDOW].mean() <= WITHIN * stable:
            return start - event
    return None
