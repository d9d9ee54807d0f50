"""Which quantiles a release measures, and what each choice would be off by.

Noise falls with what a draw is given, so a few quantiles measured with the whole of epsilon, in
turn, tell more than all of them with a part each, as long as the others follow from them. They
follow up to what each quantile does on its own: where noise is smaller than that, all are drawn.
All are drawn too while nothing is known: under broad shapes, which find any place and spread.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from streamdp.learning import learner
from streamdp.learning.experts.belief.belief import Belief
from streamdp.learning.experts.belief.density import Usual
from streamdp.learning.experts.belief.noise import NoisyDraw, noisy_draws
from streamdp.learning.experts.drawing.sequential import Reading
from streamdp.learning.experts.memory.forecast import Seen
from streamdp.learning.experts.memory.panel import Inputs, Panel
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.families import Cauchy
from streamdp.priors.joint import JointPrior
from streamdp.priors.mixture import Mixture
from streamdp.priors.shapes import REACH
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
        tree = replace(whole, quantiles=tuple(whole.quantiles[j] for j in targets))
        return cls(targets, tree, noisy_draws(tree, rows, targets, len(whole.quantiles)))

    def noise(self) -> dict[int, float]:
        """Deviations of its draws in ranks, by target; a Laplace law of scale u has √2·u."""
        return {draw.target: math.sqrt(2.0) * draw.unit(1.0) for draw in self.draws}

    def error(self, belief: Belief, each: FloatArray, misfit: float, missed: float) -> float:
        """Mean error of all quantiles, in ranks.

        As if noise were normal of the same variance, 2u² for a fall by e^(-|x|/u). Draws tell
        which part of the belief holds, so what parts are off by is averaged, not their variances:
        one that expects anything then counts by its weight.

        Args:
            belief: Before the draw.
            each: Density at each quantile, shape (m,).
            misfit: Variance of a quantile about a smooth law through those drawn, in squared ranks.
            missed: Least variance of what is inferred.
        """
        ranks = belief.covariances * each[:, None] * each
        seen = np.zeros((len(self.draws), len(each)))
        for row, draw in zip(seen, self.draws, strict=True):
            row[draw.target] = 1.0
            for end, share in draw.ends():
                if 0 <= end < len(row):
                    row[end] -= share
        noise = np.diag([deviation**2 for deviation in self.noise().values()])
        carried = seen @ ranks
        shrunk = np.linalg.solve(carried @ seen.T + noise, carried)
        left = np.einsum("eii->ei", ranks) - np.einsum("eki,eki->ei", carried, shrunk)
        left = np.maximum(left, 0.0)
        filled = np.ones(len(each), dtype=bool)
        filled[list(self.targets)] = False
        inferred = left[:, filled] * misfit / (left[:, filled] + misfit)
        left[:, filled] = np.maximum(inferred, missed)
        return MEAN_ABSOLUTE * float(belief.weights() @ np.sqrt(left).mean(axis=1))


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
    """

    tree: QuantileTree
    prior: JointPrior
    rows: int
    noise: FloatArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        node, levels = self.tree.nodes()[0], self.tree.levels()
        records = float(levels[0].sharpness(node.quantiles)) * self.rows
        steps = np.arange(1, len(node.targets) + 1)
        bridge = np.minimum.outer(steps, steps) - np.outer(steps, steps) / (len(steps) + 1)
        targets = np.array([float(quantile) for quantile in self.tree.quantiles])
        ends = np.array([0.0, *targets[list(node.targets)], 1.0])
        between = np.array([np.interp(targets, ends, unit) for unit in np.eye(len(ends))[1:-1]])
        noise = between.T @ (2.0 / records**2 * bridge) @ between
        filled = np.diag(np.where(np.isin(targets, ends), 0.0, MISFIT**2))
        object.__setattr__(self, "noise", noise + filled)

    def shifted(self, distance: float, there: Cauchy) -> JointPrior:
        """The prior, its shapes elsewhere; out of their reach robust priors are half as `there`."""
        if distance == 0.0:
            return self.prior
        return _shifted(
            self.prior, distance, there if abs(distance) > REACH * there.scale else None
        )

    def covers(self, span: float) -> bool:
        """Whether some shape is as wide as a batch, between its outer quantiles."""
        shapes = self.prior.shapes
        if shapes is None:
            return True
        return span <= float((shapes.centres[:, -1] - shapes.centres[:, 0]).max())

    def noise_of_values(self, density: FloatArray) -> FloatArray:
        """Covariance of the noise in the unit of the values, shape (m, m).

        Args:
            density: At each quantile, shape (m,).
        """
        return np.asarray(self.noise / density[:, None] / density)

    def log_reach(self, prior: JointPrior, values: FloatArray, density: FloatArray) -> float:
        """ln of the share of a prior that lies within the noise of some quantiles.

        Args:
            prior: Of the draw.
            values: Of all quantiles, shape (m,).
            density: At each of them, shape (m,).
        """
        noise = self.noise_of_values(density)
        half, size = float(self.tree.grid.resolution) / 2.0, len(values)
        volume = (np.linalg.slogdet(2.0 * np.pi * noise)[1]) / 2.0
        robust = math.log(prior.robust_weight) + math.lgamma(size + 1) + float(volume)
        for each, value in zip(prior.robust, values.tolist(), strict=True):
            edges = np.array([value - half]), np.array([value + half])
            robust += float(each.log_mass(*edges)[0]) - math.log(2.0 * half)
        if prior.shapes is None:
            return robust
        bumps = self.tree.log_bump_mass * size + prior.shapes.log_weights
        off = prior.shapes.centres - values
        near = bumps - 0.5 * np.einsum("ci,ij,cj->c", off, np.linalg.inv(noise), off)
        whole = np.logaddexp(math.log(prior.robust_weight), np.logaddexp.reduce(bumps))
        return float(np.logaddexp(robust, np.logaddexp.reduce(near)) - whole)

    def power(self) -> float:
        """Largest ln of how much likelier a draw's root makes true quantiles than far ones."""
        node = self.tree.nodes()[0]
        sharpness = float(self.tree.levels()[0].sharpness(node.quantiles))
        return 2.0 * sharpness * self.rows * (1.0 - 1.0 / (len(node.targets) + 1))

    def fills(self) -> bool:
        """Whether the root draws some of the quantiles alone, and shapes fill in the others."""
        return len(self.tree.nodes()[0].targets) < len(self.tree.quantiles)

    def error(self) -> float:
        """Mean error of all quantiles, in ranks, if the root draws them all."""
        return MEAN_ABSOLUTE * float(np.sqrt(np.diag(self.noise)).mean())


@functools.lru_cache(maxsize=4)
def _shifted(prior: JointPrior, distance: float, there: Cauchy | None) -> JointPrior:
    """The same object for every release around one place, so that its points are found once."""
    shapes = prior.shapes and replace(prior.shapes, centres=prior.shapes.centres + distance)
    moved = replace(prior, shapes=shapes)
    if there is None:
        return moved
    return replace(moved, robust=tuple(Mixture((0.5, 0.5), (there, each)) for each in prior.robust))


@dataclass(frozen=True, slots=True)
class Way(learner.Way):
    """How one batch is drawn, and the belief that its draws are read with.

    Args:
        noise: Deviations of what is drawn, in ranks, by the index of the quantile.
        panel: What was remembered.
        inputs: Public numbers of the batch.
        point: What was believed of the batch before; None before any release.
        usual: How a batch usually looks.
        seen: What was forecast.
        reading: How draws of a turn are read; None under broad shapes.
    """

    noise: Mapping[int, float]
    panel: Panel
    inputs: Inputs
    point: FloatArray | None
    usual: Usual
    seen: Seen
    reading: Reading | None = None

    @property
    def whole(self) -> bool:
        """Whether a value of every quantile is drawn."""
        return len(self.targets) == len(self.usual.density)
