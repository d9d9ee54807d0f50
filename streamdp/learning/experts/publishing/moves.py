"""How thin a batch may be at a single quantile, as released values show.

Where one quantile is released, nothing tells how a batch is spread but the guess, which may be
wrong. Releases differ by noise, and by what batches do as samples; both are known in ranks. So
values that differ by more than these explain at the guessed density lie where batches are thinner,
or batches move: the interval of a value is then too wide, and never too narrow.
"""

from __future__ import annotations

import math

import numpy as np

from streamdp.learning.experts.drawing.ways import Way
from streamdp.learning.experts.facts import Facts
from streamdp.mechanisms.quantile_tree.planning.rank_law import deviations

LEAST = 5
"""Differences that say something."""

SHARE, DEVIATIONS = 0.8, 1.28
"""Share of the differences that is looked at: one jump in five is none of the noise. As many
deviations of a normal law hold it."""

UNSURE = 1.5
"""Over the root of the number of differences: how far off the deviation may be, as a part of it."""


def width_of_rank(facts: Facts, way: Way, value: float) -> float:
    """Value for a unit of rank at a single quantile, at most; 0 where nobody knows.

    Args:
        facts: About the stream.
        way: How the quantile was drawn.
        value: What was drawn.
    """
    moves = np.abs(np.diff((*way.panel.past[0], value)))
    if len(facts.targets) > 1 or len(moves) < LEAST:
        return 0.0
    target, noise = float(facts.targets[0]), float(deviations(way.tree, facts.rows)[0])
    ranks = math.sqrt(2.0 * (noise**2 + target * (1.0 - target) / facts.rows))
    unsure = 1.0 + UNSURE / math.sqrt(len(moves))
    return float(np.quantile(moves, SHARE)) / DEVIATIONS / ranks * unsure
