"""Make the table of `choice`, from simulation alone: `python -m` this module.

For each number of quantiles and each epsilon times rows, every candidate releases the same
synthetic batches: normal, exponential, two humps and heavy tails, at random places and scales
within bounds about forty scales wide, known by their bounds only.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np

from streamdp.mechanisms.quantile_tree.planning.choice import (
    CANDIDATES,
    CandidateErrors,
    TreeChoice,
)
from streamdp.mechanisms.quantile_tree.planning.simulation import (
    PublicEntropy,
    batch_of,
    rank_error,
    standard_batch,
)
from streamdp.priors.shapes import Cauchy, shapes_from_bounds
from streamdp.types import FloatArray, Grid

QUANTILES = (1, 3, 9, 29, 99)
EPSILON_ROWS = (10, 30, 100, 300, 1_000, 3_000, 10_000, 100_000)
BATCHES = 24
ROWS = 4096
LARGE, LARGE_ROWS = 100_000, 50_000
"""From so much on a batch has more records: of 4096, errors would be about one record, at an
epsilon of 24 that nobody has."""
MOST_JOINT = 40
"""Targets of one joint draw; more take too long for what they gain."""
MOST_ROOT = 3_000
"""Epsilon times rows up to which a tree that spends all on its root is tried."""
BOUNDS = (-20.0, 20.0)
GRID = Grid(Fraction(1, 2000), -40_000, 40_000)


def main() -> None:
    """Print the lines of the table."""
    for count in QUANTILES:
        for information in EPSILON_ROWS:
            sys.stdout.write(f"{_measured(count, information).line()}\n")
            sys.stdout.flush()


def _measured(count: int, information: int) -> CandidateErrors:
    targets = tuple(Fraction(i, count + 1) for i in range(1, count + 1))
    rows = LARGE_ROWS if information >= LARGE else ROWS
    epsilon = Fraction(information, rows)
    errors: dict[str, float] = {}
    for name, candidate in CANDIDATES.items():
        if candidate.branching == 0 and count > MOST_JOINT:
            continue
        if 2 < candidate.branching > count:
            continue
        if candidate.level_power and information > MOST_ROOT:
            continue
        errors[name] = round(_mean_error(candidate, targets, epsilon, rows), 5)
    return CandidateErrors(count, information, errors)


def _mean_error(
    choice: TreeChoice, targets: tuple[Fraction, ...], epsilon: Fraction, rows: int
) -> float:
    tree = choice.tree(targets, epsilon, GRID)
    robust = (Cauchy(0.0, (BOUNDS[1] - BOUNDS[0]) / 20.0),) * len(targets)
    shapes = shapes_from_bounds(targets, *BOUNDS, float(GRID.resolution))
    prior = choice.prior(robust, shapes)
    entropy = PublicEntropy("calibrate")
    errors = []
    for index in range(BATCHES):
        batch = batch_of(_values(index, rows), rows, GRID)
        errors.append(rank_error(batch, targets, tree.draw(batch, prior, entropy)))
    return float(np.mean(errors))


def _values(index: int, rows: int) -> FloatArray:
    """A batch: its law, place and scale follow from the index."""
    chance = PublicEntropy(f"batch {index}")
    shift, scale = 12.0 * chance.uniform() - 6.0, math.exp(1.4 * chance.uniform() - 0.7)
    return shift + scale * standard_batch(index, rows, rows)


if __name__ == "__main__":
    main()
