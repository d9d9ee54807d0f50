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

from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.types import FloatArray, Prior

_DISTANCES = np.geomspace(0.1, 3e3, 11)
_REACH = np.concatenate((-_DISTANCES[::-1], [0.0], _DISTANCES))
"""Where around a peak the law is tabulated, in units of the noise."""

FLAT = 1e-6
"""Change of the cost between two points below which it is none."""


@dataclass(frozen=True, slots=True)
class NoisyDraw:
    """One draw of a release as the learner sees it.

    Args:
        target: Index of the quantile.
        left: Index of the released quantile that bounds the region, or -1.
        right: The same on the right, or m.
        quantile: Target within the region.
        strength: Sharpness times the records expected in the region.
        part: Share of the batch expected in the region.
        level: Depth of its node.
    """

    target: int
    left: int
    right: int
    quantile: float
    strength: float
    part: float
    level: int

    def ends(self) -> tuple[tuple[int, float], ...]:
        """Ends of the region, each with the weight of its rank in the target rank."""
        return (self.left, 1.0 - self.quantile), (self.right, self.quantile)

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


def noisy_draws(
    tree: QuantileTree, rows: int, targets: tuple[int, ...], count: int
) -> tuple[NoisyDraw, ...]:
    """The draws of one release over about `rows` records, parents first.

    Args:
        tree: With independent nodes.
        rows: Expected number of records of a batch.
        targets: Which of all quantiles the tree draws.
        count: Number of all quantiles.
    """
    levels, edges = tree.levels(), [0.0, *map(float, tree.quantiles), 1.0]
    index = {-1: -1, len(targets): count} | dict(enumerate(targets))
    draws: list[NoisyDraw] = []
    for node in tree.nodes():
        part = edges[node.right + 1] - edges[node.left + 1]
        strength = float(levels[node.level].sharpness(node.quantiles)) * rows * part
        ends = index[node.left], index[node.right]
        for target in node.targets:
            quantile = (edges[target + 1] - edges[node.left + 1]) / part
            draws.append(NoisyDraw(index[target], *ends, quantile, strength, part, node.level))
    return tuple(draws)


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
