"""Evidence of a measurement for each hypothesis about a batch. Post-processing: it sees no record.

By squared distances from what the hypotheses foretell, less the noise, over one variance.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamdp.kinds.workload.fitting.refit import Measurement
from streamdp.types import FloatArray

KEPT = 0.8
"""Share of a squared distance from even cells that is kept: much of it is found by measuring."""

TEMPER = 3.0
"""Cells of a batch vary together, their noise does not: only one in so many is evidence."""

_PLIANCY, _PLIANT_ROWS = 8.0, 40.0
_RELATIVE = 0.1
"""Variance of a cell's count around a learned hypothesis: of a mean count m, 2φ·m + 0.1·m², with φ
1 and 1 for so many records, at most 8."""


def evidence(measurement: Measurement, foretold: Sequence[FloatArray], total: float) -> list[float]:
    """Nats for each hypothesis, up to a constant.

    Args:
        measurement: Of an item.
        foretold: Its cells' counts under each hypothesis, first the uniform one.
        total: Expected records.
    """
    cells = float(len(measurement.values))
    variance = float(_variance(np.array(cells), measurement.variance, total))
    noise = cells * measurement.variance
    distances = [float(((measurement.values - mean) ** 2).sum()) - noise for mean in foretold]
    return [
        -kept * distance / (2.0 * variance)
        for kept, distance in zip((KEPT, 1.0, 1.0), distances, strict=True)
    ]


def most_shown(apart: FloatArray, cells: FloatArray, noise: float, total: float) -> FloatArray:
    """Nats that measurements of items show of counts that are as far from the learned as even ones.

    Args:
        apart: Squared distance of the learned counts of each item from even ones.
        cells: Of each item.
        noise: Variance of the noise of a cell.
        total: Expected records.
    """
    return np.asarray(apart / (2.0 * _variance(cells, noise, total)))


def _variance(cells: FloatArray, noise: float, total: float) -> FloatArray:
    mean = total / cells
    pliancy = min(_PLIANCY, 1.0 + total / _PLIANT_ROWS)
    return noise + TEMPER * (2.0 * pliancy * mean + _RELATIVE * mean**2)


def relative(nats: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Nats of hypotheses against several measurements together, with the best at 0."""
    together = np.sum(np.array(nats).reshape(-1, 3), axis=0)
    return tuple(float(each) for each in together - together.max())
