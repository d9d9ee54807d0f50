"""Replay a stream through a mechanism and a learner, and measure against the truth."""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from streamdp.mechanisms.tree import QuantileTree
from streamdp.types import CellCounts, FloatArray, IntArray
from tests.benchmarks.streams.contenders import Learner, experts
from tests.benchmarks.streams.sequences import DECILES, Stream

QUANTILES = np.array([float(q) for q in DECILES])

TRUTH_EPSILON = Fraction(50)
"""The oracle's past is read with the noise of this epsilon: none to speak of."""


@dataclass(slots=True)
class SeededEntropy:
    """Repeatable chance, for benchmarks alone."""

    generator: random.Random

    def bits(self, count: int) -> int:
        """A uniform integer in [0, 2**count)."""
        return self.generator.getrandbits(count)


def replay(stream: Stream, tree: QuantileTree, learner: Learner, seed: int) -> FloatArray:
    """Rank errors of every release, shape (batches, m)."""
    entropy, state = SeededEntropy(random.Random(seed)), learner.init()
    errors = []
    for batch, row in zip(stream.batches, stream.features, strict=True):
        features = tuple(map(float, row))
        priors = learner.priors(state, len(DECILES), features)
        cells = tree.draw(batch, priors, entropy)
        errors.append(rank_errors(batch, np.array(cells)))
        state = learner.learn(state, tuple(map(stream.grid.value, cells)), features)
    return np.array(errors)


def oracle(stream: Stream, tree: QuantileTree, seed: int) -> FloatArray:
    """Rank errors when the default learner is shown the true quantiles of all past batches.

    What no learning from private releases can beat by knowing the past better.
    """
    entropy = SeededEntropy(random.Random(seed))
    shown = experts(stream, QuantileTree(DECILES, TRUTH_EPSILON, stream.grid))
    learner, state = experts(stream, tree), shown.init()
    errors = []
    for batch, row in zip(stream.batches, stream.features, strict=True):
        features = tuple(map(float, row))
        priors = learner.priors(state, len(DECILES), features)
        cells = tree.draw(batch, priors, entropy)
        errors.append(rank_errors(batch, np.array(cells)))
        truth = tuple(stream.grid.value(int(cell)) for cell in true_cells(batch))
        state = shown.learn(state, truth, features)
    return np.array(errors)


def true_cells(batch: CellCounts) -> IntArray:
    """The exact quantiles of a batch, shape (m,)."""
    running = np.cumsum(batch.counts)
    ranks = QUANTILES * running[-1]
    return np.asarray(batch.cells[np.searchsorted(running, ranks - 1e-9)])


def rank_errors(batch: CellCounts, cells: IntArray) -> FloatArray:
    """Distance of each target from the ranks of its cell, [#< cell, #<= cell]/n, shape (m,)."""
    running = np.concatenate(([0], np.cumsum(batch.counts))) / batch.counts.sum()
    below = running[np.searchsorted(batch.cells, cells, "left")]
    through = running[np.searchsorted(batch.cells, cells, "right")]
    return np.asarray(np.maximum(0.0, np.maximum(below - QUANTILES, QUANTILES - through)))
