"""The founding paper's bound on the rank error of a drawn release, on simulated batches.

A draw of sharpness c whose prior gives Ψ = ∫ exp(-c·cost) dμ costs more than ln(1/(βΨ))/c with a
probability of at most β. A target q within a region lies between its ends, and an error of theirs
moves it by (1 - q)·left + q·right. So the bounds E of m draws hold together with probability 1 - β:

    E_i = (1 - q_i)·E_left + q_i·E_right + ln(m/(βΨ_i))/c_i

Records that share a fine point add their number. The quality of all priors is told as
U = -ln of the harmonic mean of Ψ_i: 0 for a prior that knows every quantile.

References:
    Khodak et al. 2023, sections 2 and 3 (Ψ, U, Theorem 3.1, Corollary 3.1). There a child's target
    is that of the whole batch, so that errors of parents count twice; here it is that of its own
    region, so that they count once, with each restriction of the prior.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamdp.mechanisms.quantile_tree.exponential import CLIP, log_inner_product
from streamdp.mechanisms.quantile_tree.grains import GRAINS, Grains
from streamdp.mechanisms.quantile_tree.measure import Measure
from streamdp.mechanisms.quantile_tree.planning.accuracy import Believed
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy, batch_of
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.types import CellCounts, Entropy

REPEATS = 20
"""Simulated releases behind one figure."""


class Bounded(NamedTuple):
    """The bound on a release, and the quality of its priors.

    Args:
        rank_error: Share of the ranks that all quantiles stay within but with probability β; 1
            where the bound says nothing.
        loss: U, in nats.
        cells: What was released.
    """

    rank_error: float
    loss: float
    cells: tuple[int, ...]


def bounded(
    tree: QuantileTree, prior: JointPrior, batch: CellCounts, entropy: Entropy, beta: float = 0.05
) -> Bounded:
    """Release a simulated batch of one record or more, and bound its error.

    Args:
        tree: With independent nodes: one draw of a tuple has no Ψ of each target.
        prior: Of the release.
        batch: Simulated.
        entropy: Source of chance.
        beta: Probability with which the bound may fail.

    Privacy: none; it is for batches that are simulated.
    """
    count, grains = len(tree.quantiles), Grains.of(batch)
    records = int(grains.before[-1])
    errors, losses, cells = {-1: 0.0, count: 0.0}, [], {}
    for step in tree.steps(batch, prior, entropy):
        node, largest = step.node, 0.0
        for target, quantile in zip(node.targets, node.quantiles, strict=True):
            measure = Measure(step.prior.robust[target], tree.grid)
            loss = -log_inner_product(
                grains, step.region, quantile, step.sharpness, measure, tree.restriction
            )
            losses.append(loss)
            exponent = math.log(count / beta) + loss
            own = exponent / step.sharpness if exponent < CLIP else math.inf
            share = float(quantile)
            moved = (1.0 - share) * errors[node.left] + share * errors[node.right]
            largest = max(largest, own + moved)
        for target, point in step.points.items():
            equal = (grains.left_of(point + 1) - grains.left_of(point)) / GRAINS
            errors[target], cells[target] = largest + equal, point // GRAINS
    mean = float(np.logaddexp.reduce(losses)) - math.log(count)
    worst = min(max(errors.values()) / records, 1.0)
    return Bounded(worst, mean, tuple(cells[index] for index in range(count)))


def of_first_releases(
    tree: QuantileTree, prior: JointPrior, rows: int, believed: Believed
) -> tuple[float, float]:
    """Return the medians of bound and loss over simulated first releases.

    Args:
        tree: With independent nodes.
        prior: Of a first release.
        rows: Expected number of records in a batch, public.
        believed: Of the batches.
    """
    entropy = PublicEntropy(f"bound:{tree.quantiles}:{tree.epsilon}:{rows}")
    found = [
        bounded(tree, prior, batch_of(believed.batch(index, rows), rows, tree.grid), entropy)
        for index in range(REPEATS)
    ]
    return (
        float(np.median([each.rank_error for each in found])),
        float(np.median([each.loss for each in found])),
    )
