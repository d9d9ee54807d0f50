"""How accurate a release will be, from public facts alone, before anything is spent.

Batches are simulated as the prior believes in them, and released by the production mechanism: the
rank error that a share of such releases stays under. A batch that the prior did not expect can be
released less accurately; the cost in epsilon never depends on it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from streamdp.mechanisms.measure import Measure
from streamdp.mechanisms.simulation import PublicEntropy, batch_of, levels, rank_error
from streamdp.mechanisms.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.types import FloatArray, Prior

REPEATS = 40
"""Simulated releases behind one figure: a 95th percentile is then good to about a sixth."""

MOST_TRIALS = 4
"""Values of epsilon that are tried for a wanted error."""


def simulated_errors(
    tree: QuantileTree,
    priors: tuple[Prior, ...] | JointPrior,
    rows: int,
    repeats: int = REPEATS,
) -> FloatArray:
    """Rank errors max_q |rank - q·n|/n of releases of simulated batches, sorted.

    Args:
        tree: The mechanism.
        priors: Its priors; each batch has quantiles drawn from them.
        rows: Expected number of records in a batch, public.
        repeats: Number of releases.

    Returns:
        Shape (repeats,).
    """
    entropy = PublicEntropy(f"accuracy:{tree.quantiles}:{tree.epsilon}:{rows}")
    prior = priors if isinstance(priors, JointPrior) else JointPrior(tuple(priors))
    errors = []
    for _ in range(repeats):
        batch = batch_of(_believed_batch(tree, prior, rows, entropy), rows, tree.grid)
        errors.append(rank_error(batch, tree.quantiles, tree.draw(batch, prior, entropy)))
    return np.sort(errors)


def stays_under(
    tree: QuantileTree,
    priors: tuple[Prior, ...] | JointPrior,
    rows: int,
    share: float = 0.95,
) -> float:
    """The rank error that `share` of the releases of expected batches stay under."""
    errors = simulated_errors(tree, priors, rows)
    return float(errors[min(len(errors) - 1, math.ceil(share * len(errors)))])


def epsilon_needed(
    tree: QuantileTree,
    priors: tuple[Prior, ...] | JointPrior,
    rows: int,
    wanted: float,
    share: float = 0.95,
) -> Fraction | None:
    """An epsilon with which `share` of the releases stay under a wanted rank error.

    Errors fall about as 1/epsilon, so each trial rescales epsilon by what is missing.

    Returns:
        The least that was tried with success; None if a few trials do not reach it, because the
        grid is too coarse or rows are too few.
    """
    epsilon, found = tree.epsilon, None
    for _ in range(MOST_TRIALS):
        reached = stays_under(replace(tree, epsilon=epsilon), priors, rows, share)
        if reached <= wanted:
            found = epsilon if found is None else min(found, epsilon)
        factor = 1.1 * reached / wanted
        if 0.8 < factor <= 1.1:
            break
        epsilon = Fraction(f"{float(epsilon) * min(max(factor, 1 / 64), 64.0):.2g}")
    return found


def _believed_batch(
    tree: QuantileTree, prior: JointPrior, rows: int, entropy: PublicEntropy
) -> FloatArray:
    """Sorted values whose quantiles at the targets are drawn from the prior."""
    targets = np.array([float(quantile) for quantile in tree.quantiles])
    values = _believed_quantiles(tree, prior, entropy)
    if len(values) == 1:
        values, targets = np.array([values[0] - 1.0, *values]), np.array([0.0, *targets])
    slopes = np.diff(values) / np.diff(targets)
    ends = values[0] - slopes[0] * targets[0], values[-1] + slopes[-1] * (1.0 - targets[-1])
    at = np.concatenate(([0.0], targets, [1.0]))
    return np.interp(levels(rows), at, np.concatenate((ends[:1], values, ends[1:])))


def _believed_quantiles(
    tree: QuantileTree, prior: JointPrior, entropy: PublicEntropy
) -> FloatArray:
    """One value a target: a component's centres, or a draw from each robust prior, sorted."""
    ticket = entropy.uniform()
    for group in prior.shapes:
        shares = np.cumsum(np.exp(group.log_weights))
        if ticket < shares[-1]:
            return np.asarray(group.centres[np.searchsorted(shares, ticket, side="right")])
        ticket -= float(shares[-1])
    grid = tree.grid
    cells = [Measure(each, grid).draw(grid.lower, grid.upper + 1, entropy) for each in prior.robust]
    return np.sort([grid.value(cell) for cell in cells])
