"""PeGaSus: a perturbed stream, privately grouped where it hardly changes, smoothed by medians.

Laplace noise of 1/(.8·ε) on each count. A group stays open while the deviation of its true counts
from their mean, with noise Lap(8/ε_g), is below a threshold of 5/ε_g with noise Lap(4/ε_g), ε_g =
.2·ε. A count is released as the median of the noisy ones of its group so far.

References:
    Chen, Machanavajjhala, Hay & Miklau 2017.
"""

from __future__ import annotations

import numpy as np

from streamdp.types import FloatArray

FOR_COUNTS = 0.8
THRESHOLD = 5.0


def pegasus(counts: FloatArray, epsilon: float, generator: np.random.Generator) -> FloatArray:
    """Released counts of one stream, shape (days,)."""
    grouping = (1.0 - FOR_COUNTS) * epsilon
    noisy = counts + generator.laplace(scale=1.0 / (FOR_COUNTS * epsilon), size=len(counts))
    released, start = np.empty(len(counts)), 0
    threshold = _threshold(grouping, generator)
    for day in range(len(counts)):
        group = counts[start : day + 1]
        deviation = float(np.abs(group - group.mean()).sum())
        if deviation + generator.laplace(scale=8.0 / grouping) >= threshold:
            start, threshold = day, _threshold(grouping, generator)
        released[day] = np.median(noisy[start : day + 1])
    return released


def _threshold(epsilon: float, generator: np.random.Generator) -> float:
    return THRESHOLD / epsilon + float(generator.laplace(scale=4.0 / epsilon))
