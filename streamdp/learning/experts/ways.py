"""Which quantiles a release measures, and what each choice would be off by.

Noise falls with what a draw is given, so a few quantiles measured with the whole of epsilon, in
turn, tell more than all of them with a part each, as long as the others follow from them. They
follow up to what each quantile does on its own: where noise is smaller than that, all are drawn.
All are drawn too while nothing is known: under broad shapes, which find any place and spread.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from streamdp.learning.experts import density
from streamdp.learning.experts.levels import Usual
from streamdp.learning.experts.noise import NoisyDraw, noisy_draws
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.types import FloatArray

Drawn = Literal["few", "all", "broad"]
"""A few quantiles, all from learned priors, or all under broad shapes."""

MEASURED = 3
"""Quantiles of a turn."""

MISFIT = 0.1
"""Deviation of a filled-in quantile that is due to the shape, in ranks. It is the same every day:
so high, that later draws decide."""

MEAN_ABSOLUTE = 0.8
"""Mean distance of a normal law from its mean, in deviations."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Some quantiles that are measured with the whole of epsilon.

    Args:
        targets: Which, sorted.
        tree: Draws them.
        draws: Of the tree, parents first, by the indices of all quantiles.
    """

    targets: tuple[int, ...]
    tree: QuantileTree
    draws: tuple[NoisyDraw, ...]

    @classmethod
    def of(cls, whole: QuantileTree, targets: tuple[int, ...], rows: int) -> Turn:
        """The turn of some of a tree's quantiles."""
        count, size = len(whole.quantiles), len(targets)
        if size == count:
            return cls(targets, whole, noisy_draws(whole, rows))
        tree = replace(whole, quantiles=tuple(whole.quantiles[j] for j in targets))
        draws = tuple(
            replace(
                draw,
                target=targets[draw.target],
                left=targets[draw.left] if draw.left >= 0 else -1,
                right=targets[draw.right] if draw.right < size else count,
            )
            for draw in noisy_draws(tree, rows)
        )
        return cls(targets, tree, draws)

    def error(self, covariance: FloatArray, usual: Usual) -> float:
        """What all quantiles would be off by, as a mean in ranks, for a forecast's covariance.

        As if noise were normal of the same variance, 2u² for a fall by e^(-|x|/u).
        """
        ranks = usual.in_ranks(covariance)
        seen = np.zeros((len(self.draws), len(ranks)))
        for row, draw in zip(seen, self.draws, strict=True):
            row[draw.target] = 1.0
            for end, share in ((draw.left, draw.left_share), (draw.right, draw.right_share)):
                if 0 <= end < len(row):
                    row[end] -= share
        noise = np.diag([2.0 * draw.unit(1.0) ** 2 for draw in self.draws])
        carried = ranks @ seen.T
        left = ranks - carried @ np.linalg.solve(seen @ carried + noise, carried.T)
        return MEAN_ABSOLUTE * float(np.sqrt(np.maximum(np.diag(left), 0.0)).mean())


def turns(whole: QuantileTree, rows: int) -> tuple[Turn, ...]:
    """Turns that share the quantiles out evenly, a middle one first."""
    count = len(whole.quantiles)
    groups = -(-count // MEASURED)
    order = [*range(groups // 2, groups), *range(groups // 2)]
    return tuple(Turn.of(whole, tuple(range(first, count, groups)), rows) for first in order)


@dataclass(frozen=True, slots=True)
class BroadShapes:
    """How a batch is drawn of which nothing is known: jointly, under broad shapes.

    Shapes are broad against the noise, so the root's values are the true ones and noise:
    increments of rank between neighbours have Laplace errors of variance 2/(c·n)², tied to sum to
    zero. Between the root's quantiles a shape fills in, which is off by as much again and by its
    own misfit.

    Args:
        tree: Over all quantiles, with joint nodes.
        prior: Broad shapes beside robust priors.
        rows: Public guess of the number of rows of a batch.
        noise: Covariance of what is learned from a release, in squared ranks, shape (m, m).
        deviation: Mean deviation of a release if a shape fits, in ranks.
    """

    tree: QuantileTree
    prior: JointPrior
    rows: int
    noise: FloatArray = field(init=False, repr=False, compare=False)
    deviation: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        node, levels = self.tree.nodes()[0], self.tree.levels()
        records = float(levels[0].sharpness(node.quantiles)) * self.rows
        steps = np.arange(1, len(node.targets) + 1)
        bridge = np.minimum.outer(steps, steps) - np.outer(steps, steps) / (len(steps) + 1)
        targets = np.array([float(quantile) for quantile in self.tree.quantiles])
        ends = np.array([0.0, *targets[list(node.targets)], 1.0])
        between = np.array([np.interp(targets, ends, unit) for unit in np.eye(len(ends))[1:-1]])
        noise = between.T @ (2.0 / records**2 * bridge) @ between
        object.__setattr__(self, "deviation", float(np.sqrt(np.diag(noise)).mean()))
        filled = np.diag(np.where(np.isin(targets, ends), 0.0, MISFIT**2))
        object.__setattr__(self, "noise", noise + filled)

    def shifted(self, distance: float) -> JointPrior:
        """The prior, its shapes elsewhere."""
        if distance == 0.0:
            return self.prior
        groups = (replace(each, centres=each.centres + distance) for each in self.prior.shapes)
        return replace(self.prior, shapes=tuple(groups))

    def fills(self) -> bool:
        """Whether the root draws some of the quantiles alone, and shapes fill in the others."""
        return len(self.tree.nodes()[0].targets) < len(self.tree.quantiles)

    def error(self, log_gaps: FloatArray, each: FloatArray) -> float:
        """What all quantiles would be off by, as a mean in ranks: noise, and the shapes' misfit.

        Args:
            log_gaps: Usual gaps between quantiles.
            each: Density at each, shape (m,).
        """
        drawn = list(self.tree.nodes()[0].targets)
        values = np.concatenate(([0.0], np.cumsum(density.gaps(log_gaps))))
        profiles = [group.centres[0] for group in self.prior.shapes]
        off = (np.abs(_filled(values, drawn, shape) - values) * each for shape in profiles)
        misfit = min((float(per.mean()) for per in off), default=0.0)
        return MEAN_ABSOLUTE * self.deviation + misfit


def _filled(values: FloatArray, drawn: list[int], shape: FloatArray) -> FloatArray:
    """A shape laid through some values: stretched between them, its slope kept beyond."""
    first, last = drawn[0], drawn[-1]
    rise = shape[last] - shape[first]
    slope = (values[last] - values[first]) / rise if last > first else 0.0
    middle = np.interp(shape, shape[drawn], values[drawn])
    beyond = np.minimum(shape - shape[first], 0.0) + np.maximum(shape - shape[last], 0.0)
    return np.asarray(middle + slope * beyond)
