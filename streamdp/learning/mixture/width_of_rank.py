"""Bounds at a single drawn quantile from the spread of its past releases.

Where one quantile is released, only the guess says how a batch is spread, and it may be wrong.
Releases differ by noise and by sampling, both known in ranks. Values that differ by more than these
explain at the guessed density lie where the density is lower, or batches move: the interval of a
value is then too wide, and never too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from streamdp.mechanisms.quantile_tree.planning.rank_law import deviations
from streamdp.mechanisms.quantile_tree.tree import QuantileTree

REMEMBERED_VALUES = 60
"""Values that are looked at: the newest."""

LEAST = 5
"""Differences that say something."""

SHARE, DEVIATIONS = 0.8, 1.28
"""Quantile of the differences that is taken: one jump in five is none of the noise. Deviations
within which a normal distribution has as much."""

ENOUGH = 12
"""Differences that say how large one may be."""

OFTEN, REACH_FACTOR = 0.95, 1.5
"""Share of the differences that is looked at for that, and so many times as large it may be."""

UNSURE = 1.5
"""Relative error of the deviation, times the root of the number of differences."""


def width_of_rank(tree: QuantileTree, rows: int, values: Sequence[float]) -> float:
    """Return an upper bound of dQ/du at a single quantile; 0 where there are too few values.

    Args:
        tree: What draws the quantile.
        rows: Expected number of records.
        values: Released one after the other.
    """
    moves = np.abs(np.diff(values))
    if len(moves) < LEAST:
        return 0.0
    target, noise = float(tree.quantiles[0]), float(deviations(tree, rows)[0])
    ranks = math.sqrt(2.0 * (noise**2 + target * (1.0 - target) / rows))
    unsure = 1.0 + UNSURE / math.sqrt(len(moves))
    return float(np.quantile(moves, SHARE)) / DEVIATIONS / ranks * unsure


def reach(values: Sequence[float]) -> float:
    """Return a bound of the error of a draw; infinite where there are too few values.

    Both the noise of draws and what batches do are in the differences of values. If they are all
    equal nothing follows: draws may fall on one of few values that many records have.

    Args:
        values: Released one after the other.
    """
    moves = np.abs(np.diff(values))
    if len(moves) < ENOUGH:
        return math.inf
    often = float(np.quantile(moves, OFTEN))
    return REACH_FACTOR * often * (1.0 + UNSURE / math.sqrt(len(moves))) if often else math.inf
