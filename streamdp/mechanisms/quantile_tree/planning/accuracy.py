"""How accurate a release will be, from public facts alone, before anything is spent.

Batches of several shapes are simulated about the place and the spread that the configuration
believes in, and released by the production mechanism from the prior of a first release: the rank
error that a share of such releases stays under. All follows from that place and spread, so the
figures are the same in any unit. A batch that lies elsewhere can be released less accurately; the
cost in epsilon never depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from streamdp.mechanisms.quantile_tree.planning.simulation import (
    PublicEntropy,
    batch_of,
    rank_errors,
    standard_batch,
)
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.types import FloatArray

REPEATS = 80
"""Simulated releases behind one figure."""

MOST_TRIALS = 6
"""Values of epsilon that are tried for a wanted error."""


@dataclass(frozen=True, slots=True)
class Believed:
    """Public beliefs about the place and spread of batches."""

    location: float
    scale: float

    def batch(self, index: int, rows: int) -> FloatArray:
        """Sorted values of one of many plausible batches."""
        chance = PublicEntropy(f"believed batch {index}")
        shift = self.location + self.scale * (2.0 * chance.uniform() - 1.0)
        scale = self.scale * math.exp(1.4 * chance.uniform() - 0.7)
        return shift + scale * standard_batch(index, rows)


STANDARD = Believed(0.0, 1.0)


def simulated_errors(
    tree: QuantileTree, prior: JointPrior, rows: int, believed: Believed, repeats: int
) -> FloatArray:
    """Distances of target ranks from the ranks of released values, over n.

    Args:
        tree: The mechanism.
        prior: Of a first release.
        rows: Expected number of records in a batch, public.
        believed: Of the batches.
        repeats: Number of releases.

    Returns:
        Shape (repeats, m).
    """
    entropy = PublicEntropy(f"accuracy:{tree.quantiles}:{tree.epsilon}:{rows}")
    errors = np.empty((repeats, len(tree.quantiles)))
    for index in range(repeats):
        batch = batch_of(believed.batch(index, rows), rows, tree.grid)
        errors[index] = rank_errors(batch, tree.quantiles, tree.draw(batch, prior, entropy))
    return errors


def stays_under(
    tree: QuantileTree, prior: JointPrior, rows: int, believed: Believed, share: float = 0.95
) -> float:
    """The largest rank error of all quantiles that `share` of the releases stay under.

    Of so many simulated errors the one is taken that is above the share with a probability of 80 %.
    """
    errors = np.sort(simulated_errors(tree, prior, rows, believed, REPEATS).max(axis=1))
    index = share * len(errors) + 0.84 * math.sqrt(share * (1.0 - share) * len(errors))
    return float(errors[min(len(errors) - 1, math.ceil(index))])


def epsilon_needed(
    reached: Callable[[Fraction], float], epsilon: Fraction, wanted: float
) -> Fraction | None:
    """An epsilon with which releases stay within a wanted rank error.

    Errors fall about as 1/epsilon, so each trial rescales epsilon by what is missing.

    Args:
        reached: What releases stay under at some epsilon.
        epsilon: The first that is tried.
        wanted: The error.

    Returns:
        The least that was tried with success, to two digits, rounded up; None if a few trials do
        not reach it, because the grid is too coarse or rows are too few.
    """
    found: Fraction | None = None
    for _ in range(MOST_TRIALS):
        error = reached(epsilon)
        if error <= wanted:
            found = epsilon if found is None else min(found, epsilon)
        factor = 1.1 * error / wanted
        if 0.8 < factor <= 1.1:
            break
        epsilon = _two_digits(float(epsilon) * min(max(factor, 1 / 16), 16.0))
        if found is not None and epsilon >= found:
            break
    return found


def _two_digits(number: float) -> Fraction:
    digits = 1 - math.floor(math.log10(number))
    return Fraction(math.ceil(number * 10.0**digits)) / Fraction(10) ** digits
