"""The founding paper's bound on the rank error of a drawn release, on simulated batches.

A draw of exponent c·cost with base measure μ and Ψ = ∫ exp(-c·cost) dμ costs more than
ln(1/(βΨ))/c with a probability of at most β. What a draw costs bounds its error: the cost of one
quantile is its error, and that of a tuple twice the error of each of its quantiles at least, since
the parts on either side of a quantile are off by as much as it is. A target q within a region lies
between its ends, and an error of theirs moves it by (1 - q)·left + q·right. So errors E of a
release of D draws hold together with probability 1 - β:

    E_i = (1 - q_i)·E_left + q_i·E_right + ln(D/(βΨ_i))/c_i,   2·c_i for a tuple

Records that share a fine point add their number to errors of ends. U = -ln of the harmonic mean of
Ψ_i tells the quality of all priors: 0 for one that knows the batch.

References:
    Khodak et al. 2023, sections 2 and 3 (Ψ, U, Theorem 3.1, Corollary 3.1). There a child's target
    is that of the whole batch, so that errors of parents count twice; here it is that of its own
    region, so that they count once, with each restriction of the prior.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamdp.mechanisms.quantile_tree.exponential import CLIP, BaseMeasure, log_inner_product
from streamdp.mechanisms.quantile_tree.grains import GRAINS, Grains
from streamdp.mechanisms.quantile_tree.joint import log_joint_inner_product
from streamdp.mechanisms.quantile_tree.planning.accuracy import Believed
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy, batch_of
from streamdp.mechanisms.quantile_tree.tree import NodeDraw, QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.types import CellCounts, Entropy, FloatArray

REPEATS = 40
"""Simulated releases behind one figure."""

HALVINGS = 20
"""Halvings of the interval that holds the error."""

BETA = 0.05
"""Probability at which a draw is bounded by its Ψ or by its region, whichever is less."""

LEAST = 1e-3
"""Least probability that errors are told for: beyond it, costs would reach the clip of a draw."""

BELOW_CLIP = 7.0
"""How far costs of a tuple stay below the clip: each floor of a kernel adds at most e^-7 nats."""


class Bounded(NamedTuple):
    """The bound on a release, and the quality of its priors.

    Args:
        fixed: Share of the ranks that is added whatever the probability, one a target.
        slopes: The same, by ln(1/β).
        loss: U, in nats.
        cells: What was released.
    """

    fixed: FloatArray
    slopes: FloatArray
    loss: float
    cells: tuple[int, ...]

    def rank_error(self, beta: float) -> float:
        """Share of the ranks that all stay within but with probability β; 1 if nothing is known."""
        error = float((self.fixed + self.slopes * math.log(1.0 / max(beta, LEAST))).max())
        return min(error, 1.0)

    def beyond(self, rank_error: float) -> float:
        """Bound on the probability that a target is off by more than a share of the ranks."""
        if rank_error >= 1.0:
            return 0.0
        if rank_error < self.fixed.max():
            return 1.0
        sloped = self.slopes > 0.0
        nats = ((rank_error - self.fixed[sloped]) / self.slopes[sloped]).min(initial=math.inf)
        return max(math.exp(-float(nats)), LEAST)


def bounded(tree: QuantileTree, prior: JointPrior, batch: CellCounts, entropy: Entropy) -> Bounded:
    """Release a simulated batch of one record or more, and bound its error.

    Privacy: none; it is for batches that are simulated.
    """
    count, grains = len(tree.quantiles), Grains.of(batch)
    draws = len(tree.nodes()) if tree.node == "joint" else count
    ends = {-1: np.zeros(2), count: np.zeros(2)}
    errors, losses, cells = np.empty((count, 2)), [], {}
    for step in tree.steps(batch, prior, entropy):
        node, found = step.node, _losses(tree, grains, step)
        losses += found
        own = _own(tree, step.sharpness, max(found), draws)
        if own @ (1.0, math.log(1.0 / BETA)) > (most := _widest(grains, step)):
            own = np.array([most, 0.0])
        moved = [(1.0 - q) * ends[node.left] + q * ends[node.right] for q in step.shares()]
        errors[list(node.targets)] = own + np.max(moved, axis=0)
        for target, point in step.points.items():
            equal = (grains.left_of(point + 1) - grains.left_of(point)) / GRAINS
            ends[target], cells[target] = errors[target] + (equal, 0.0), point // GRAINS
    fixed, slopes = (errors / int(grains.before[-1])).T
    loss = float(np.logaddexp.reduce(losses)) - math.log(len(losses))
    return Bounded(fixed, slopes, loss, tuple(cells[index] for index in range(count)))


def _losses(tree: QuantileTree, grains: Grains, step: NodeDraw) -> list[float]:
    """-ln Ψ of each draw of a node."""
    targets = dict(zip(step.node.targets, step.node.quantiles, strict=True))
    if tree.node == "joint":
        found = log_joint_inner_product(
            grains, step.region, targets, step.sharpness, step.prior, tree.grid
        )
        return [-found]
    return [
        -log_inner_product(
            grains,
            step.region,
            quantile,
            step.sharpness,
            BaseMeasure(step.prior.robust[target], tree.grid),
            tree.restriction,
        )
        for target, quantile in targets.items()
    ]


def _widest(grains: Grains, step: NodeDraw) -> float:
    """Records that a draw of a node is off by at most, since it stays in its region."""
    size = grains.left_of(step.region.last + 1) - grains.left_of(step.region.start)
    return size / GRAINS * max(max(q, 1.0 - q) for q in step.shares())


def _own(tree: QuantileTree, sharpness: float, loss: float, draws: int) -> FloatArray:
    """Return the rank error of a node's own draws: a constant, and the factor of ln(1/β)."""
    nats, most, costs = loss + math.log(draws), CLIP, sharpness
    if tree.node == "joint":
        nats += tree.branching * math.exp(-BELOW_CLIP)
        most, costs = CLIP - BELOW_CLIP, 2.0 * sharpness
    if nats - math.log(LEAST) > most:
        nats = math.inf
    return np.array([nats / costs, 1.0 / costs])


def of_first_releases(
    tree: QuantileTree, prior: JointPrior, rows: int, believed: Believed, share: float = 0.95
) -> tuple[float, float]:
    """Return the error that a share of simulated first releases stays within, and the median U.

    The batches are the first of those whose errors `accuracy` simulates. Bounds on the chance of a
    larger error are averaged over them.

    Args:
        tree: How a first release is drawn.
        prior: Of a first release.
        rows: Expected number of records in a batch, public.
        believed: Of the batches.
        share: Of the releases.
    """
    entropy = PublicEntropy(f"bound:{tree.quantiles}:{tree.epsilon}:{rows}")
    found = [
        bounded(tree, prior, batch_of(believed.batch(index, rows), rows, tree.grid), entropy)
        for index in range(REPEATS)
    ]
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        beyond = sum(each.beyond(middle) for each in found) / REPEATS
        low, high = (middle, high) if beyond > 1.0 - share else (low, middle)
    return high, float(np.median([each.loss for each in found]))
