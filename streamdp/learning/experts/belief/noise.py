"""The noise of a release: how likely each draw of the tree was, were the truth t.

A draw picks o with P(o | t) = μ(o)·exp(-k(o, t))/Z(t), where t is the value at its target rank,
Z(t) = ∫ μ(u)·exp(-k(u, t)) du over its region, and k is the sharpness times the records between u
and t. Where the data say little, μ decides and P(o | t) hardly depends on t: a release then does
not confirm the belief it was drawn from (the echo).

Ranks become values by the spacing of the quantiles, and the number of records is the public
`expected_rows`: everything here is known without the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.mechanisms.quantile_tree.tree import Node, QuantileTree
from streamdp.types import FloatArray, Prior

_DISTANCES = np.geomspace(0.1, 3e3, 11)
_REACH = np.concatenate((-_DISTANCES[::-1], [0.0], _DISTANCES))
"""Where around a peak the law is tabulated, in units of the noise."""

FLAT = 1e-6
"""Change of the cost between two points below which it is none."""


@dataclass(frozen=True, slots=True)
class NoisyDraw:
    """One draw of a release as the learner sees it.

    The target rank is left_share·F(o_left) + right_share·F(o_right) + a constant.

    Args:
        target: Index of the quantile.
        left: Index of the released quantile that bounds the region, or -1.
        right: The same on the right, or m.
        left_share: Weight of the rank at the left end.
        right_share: Weight of the rank at the right end.
        quantile: Target within the region.
        strength: Sharpness times the records expected in the region.
        part: Share of the batch expected in the region.
        level: Depth of its node.
    """

    target: int
    left: int
    right: int
    left_share: float
    right_share: float
    quantile: float
    strength: float
    part: float
    level: int

    def cost(self, offsets: FloatArray, density: float) -> FloatArray:
        """k for u - t = offset, `density` being the share of the batch per unit of value at t.

        Linear near the target, and bounded by all records on a side, as ranks are.
        """
        side = np.where(offsets < 0.0, self.quantile, 1.0 - self.quantile)
        records = -side * np.expm1(np.abs(offsets) * (-density / self.part) / side)
        return np.asarray(self.strength * records)

    def unit(self, density: float) -> float:
        """Value width over which the cost changes by one."""
        return self.part / (density * self.strength)


def noisy_draws(tree: QuantileTree, rows: int) -> tuple[NoisyDraw, ...]:
    """The draws of one release over about `rows` records, parents first.

    A joint node is read as a chain: each quantile is drawn right of the one before it.
    """
    levels = tree.levels()
    draws: list[NoisyDraw] = []
    for node in tree.nodes():
        sharpness = float(levels[node.level].sharpness(node.quantiles))
        draws += _draws_of(node, tree, sharpness * rows)
    return tuple(draws)


def _draws_of(node: Node, tree: QuantileTree, strength: float) -> list[NoisyDraw]:
    edges = [0.0, *map(float, tree.quantiles), 1.0]
    draws = []
    for place, target in enumerate(node.targets):
        chained = tree.node == "joint" and place > 0
        left = node.targets[place - 1] if chained else node.left
        part = edges[node.right + 1] - edges[left + 1]
        quantile = (edges[target + 1] - edges[left + 1]) / part
        shares = (1.0, 0.0) if chained else (1.0 - quantile, quantile)
        draws.append(
            NoisyDraw(
                target, left, node.right, *shares, quantile, strength * part, part, node.level
            )
        )
    return draws


def log_normaliser(
    draw: NoisyDraw,
    density: float,
    prior: Prior,
    region: tuple[float, float],
    peaks: FloatArray,
    unit: float,
) -> tuple[FloatArray, FloatArray]:
    """Points t of the region and ln Z(t) there, dense around `peaks` and geometric beyond.

    Between two points the cost is taken as linear and the prior as even, so e^-cost counts by its
    logarithmic mean.

    Returns:
        Non-decreasing points and ln Z, each of shape (p,); interpolate between.
    """
    near = np.clip((peaks[:, None] + _REACH * unit).ravel(), *region)
    points = np.sort(np.concatenate((near, region)))
    masses = np.exp(prior.log_mass(points[:-1], points[1:]))
    costs = draw.cost(points - points[:, None], density)
    kept, steps = np.exp(-costs), np.diff(costs, axis=1)
    flat = np.abs(steps) < FLAT
    means = np.where(flat, kept[:, 1:], -np.diff(kept, axis=1) / np.where(flat, 1.0, steps))
    return points, np.asarray(np.log(means @ masses))
