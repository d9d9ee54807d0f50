"""Intervals that reach across a gap that a batch may have beside a released value.

Between two humps a batch has no records. All values there have one rank, so a draw lies anywhere in
the hole, while the quantile lies at one of its ends. Few released values do not show whether there
is a hole, and the more noise a value has, the likelier one is within it: then an interval reaches
to the next value that was measured, or by the believed spread of a batch. Where noise reaches an
end of a batch and the last gaps between values grow, the next may be as many times larger.
"""

from __future__ import annotations

import numpy as np

from streamdp.mechanisms.quantile_tree.planning.rank_law import deviations
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.types import FloatArray

SPARSE = 0.15
"""Least share of a batch between two measured values with which they do not show a hole."""

NOISY, NOISY_ALONE = 0.025, 0.024
"""Deviations of a rank from which on an interval reaches across a hole: of few quantiles, and of
one alone. Below them the reach falls with the fourth power of the deviation."""

FAR = 0.3
"""Share of the way to the end of a batch beyond which the noise makes its shape a question."""

MOST_GROWTH = 30.0
"""Times as large as the last gap between values that the next may be."""

OUTWARDS = 1.5
"""Reach of an outermost value outwards, in units of the way to the next one inwards."""

ALONE = 1.0
"""Reach of a single quantile, in units of what a batch is believed to be spread."""


def across(
    tree: QuantileTree, rows: int, released: FloatArray, hardly: tuple[int, ...], scale: float
) -> FloatArray:
    """Ends of intervals that reach across holes, shape (2, m).

    Args:
        tree: What drew the values.
        rows: Expected number of records, public.
        released: Values, non-decreasing, shape (m,).
        hardly: Indices of values that were hardly measured, which say nothing.
        scale: Spread of a batch as the configuration believes.

    Returns:
        No bound (∞, -∞) where an interval need not reach.
    """
    found = np.array([np.full(len(released), np.inf), np.full(len(released), -np.inf)])
    measured = np.setdiff1d(np.arange(len(released)), hardly)
    targets = np.array([float(tree.quantiles[j]) for j in measured])
    off, values = deviations(tree, rows)[measured], released[measured]
    reach = _across_holes(targets, values, off, scale)
    if len(measured) > 2:
        gaps = np.diff(values)
        if off[0] > FAR * targets[0]:
            reach[0, 0] = max(reach[0, 0], _beyond(gaps[0], gaps[1]))
        if off[-1] > FAR * (1.0 - targets[-1]):
            reach[-1, 1] = max(reach[-1, 1], _beyond(gaps[-1], gaps[-2]))
    found[0, measured] = values - reach[:, 0]
    found[1, measured] = values + reach[:, 1]
    return found


def _across_holes(
    targets: FloatArray, values: FloatArray, off: FloatArray, scale: float
) -> FloatArray:
    """Return how far down and up intervals reach across gaps, by the noise of ranks; (k, 2)."""
    if len(values) == 1:
        noisy, ways = NOISY_ALONE, np.full(2, ALONE * scale)
    else:
        between = np.where(np.diff(targets) >= SPARSE, np.diff(values), 0.0)
        noisy = NOISY
        ways = np.concatenate((OUTWARDS * between[:1], between, OUTWARDS * between[-1:]))
    share = np.minimum(1.0, off / noisy) ** 4
    return np.asarray(np.stack((ways[:-1], ways[1:]), axis=1) * share[:, None])


def _beyond(last: float, before: float) -> float:
    """Reach beyond the last value: gaps may go on growing as they grew."""
    return float(last * min(last / max(before, 1e-300), MOST_GROWTH))
