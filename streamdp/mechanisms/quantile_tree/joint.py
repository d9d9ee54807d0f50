"""Several quantiles of a region in one draw: JointExp with priors.

P(o) ∝ μ(o)·exp(-c·Σ_{j=0..k} |grains between o_j and o_{j+1} - n·Δ_j|) over ordered tuples
o_1 ≤ ... ≤ o_k of public points, o_0 and o_{k+1} being the ends of the region.

A component of the prior is a product. One forward pass gives the total Z_0 of the robust one, and
each shape is a single tuple with a total Z_c of one term; a component is chosen with probability
∝ w_c·Z_c, and a backward draw gives the tuple of the robust one.

Each term e^(-c·|x|) of the weight is K(x) = e^(-c·|x|) + e^-45 (`passes`). -ln K is 1-Lipschitz in
c·|x|, so a term changes by no more than without its floor; the range 4(1 - min Δ) and the 4 of a
substitution are bounds on the sum of the sizes of the terms' changes, so they hold for K.

References:
    Gillenwater, Joseph & Kulesza 2021 (JointExp).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Self

import numpy as np

from streamdp.mechanisms.quantile_tree.grains import GRAINS, Grains, Region
from streamdp.mechanisms.quantile_tree.passes import (
    SHARPEST,
    Gap,
    LongPass,
    log_kernel,
)
from streamdp.mechanisms.quantile_tree.points import (
    Points,
    ShapePoints,
    public_points,
    shape_points,
)
from streamdp.mechanisms.quantile_tree.sharpness import RELATIVE_ERROR, gaps
from streamdp.priors.joint import JointPrior, Shapes
from streamdp.privacy.draws import choose
from streamdp.types import Entropy, FloatArray, Grid, IntArray

Targets = Mapping[int, Fraction]
"""Quantiles of a region by their index, strictly increasing in (0, 1)."""

ROUNDINGS = 16
"""Roundings of a logarithm in one step of a forward pass and the choice that follows it."""

MOST_TERMS = 2**18
"""Terms of the longest running sum: 8·`points.MOST_POINTS`."""

TABULATED = 4
"""Terms share a table of the kernel, so it may be so many times the size of one lookup."""


def joint_slack(draws: int) -> Fraction:
    """Part of epsilon that pays for the rounding of joint draws of `draws` quantiles.

    A logarithm of the forward pass is at most 700·k in size (45 for the kernel, 640 for the prior,
    and the running sums), and 1000 more within a block (`passes`), whatever the records, epsilon
    and the prior. It is rounded `ROUNDINGS` times a step, the change of base in `choose` included.
    """
    return forward_slack(draws, ROUNDINGS, MOST_TERMS, choices=draws + 1)


def forward_slack(draws: int, roundings: int, terms: int, choices: int) -> Fraction:
    """Part of epsilon that pays for the rounding of a forward pass and the draws behind it.

    Each rounding of a logarithm, at most 700·k + 1000 in size, is 2^-53 of it, and a running sum of
    p positive terms errs by p·2^-53. So step j has weights of error j·u, its choice costs four
    times that, and the sum over steps and the choice of a component is 2·u·k·(k + 3).

    Args:
        draws: k, how many quantiles are drawn.
        roundings: Of a logarithm in one step.
        terms: p, of the longest running sum.
        choices: How many are made by the prior alone, or by weights that are known to
            `RELATIVE_ERROR`.
    """
    step = Fraction(roundings * (700 * draws + 1000) + terms, 2**53) + RELATIVE_ERROR
    return 2 * step * draws * (draws + 3) + 4 * choices * RELATIVE_ERROR


def draw_jointly(
    grains: Grains,
    region: Region,
    targets: Targets,
    sharpness: float,
    prior: JointPrior,
    grid: Grid,
    entropy: Entropy,
) -> tuple[int, ...]:
    """Draw an ordered tuple of fine points of the region.

    Args:
        grains: The batch. Private.
        region: Stretch whose own grains are ranked.
        targets: By their index in the prior, rescaled to the region.
        sharpness: c.
        prior: Of these targets and others; what it gives outside the region is dropped.
        grid: Public cells.
        entropy: Source of chance.

    Privacy: add/remove, one record of weight w ≤ 1 in the region: loss of range c·w·4(1 - min Δ);
    substitute within the region: 4·c·w. One draw, pure and bounded-range. Total: every tuple of
    the robust component has a positive weight, whatever the counts.
    """
    task = _JointDraw.of(grains, region, grid, tuple(targets.values()), sharpness)
    chain = _chain(task, public_points(tuple(prior.robust[j] for j in targets), grid))
    if prior.shapes is None:
        return chain.draw(entropy)
    log_robust = math.log(prior.robust_weight) + chain.log_total()
    public = shape_points(prior.shapes, tuple(targets), grid)
    log_shapes = _log_shapes(task, prior.shapes, prior.log_bump_mass * len(targets), public)
    component = choose(np.append(log_robust, log_shapes), entropy)
    if component == 0:
        return chain.draw(entropy)
    return tuple(public.points[:, component - 1].tolist())


def log_joint_inner_product(
    grains: Grains,
    region: Region,
    targets: Targets,
    sharpness: float,
    prior: JointPrior,
    grid: Grid,
) -> float:
    """Return ln Ψ of a joint draw: Ψ = ∫ Π_j K(x_j) dμ, with μ of the ordered tuples of the region.

    Args:
        grains: The batch. Private.
        region: Stretch whose own grains are ranked.
        targets: By their index in the prior, rescaled to the region.
        sharpness: c.
        prior: Of these targets and others.
        grid: Public cells.

    Privacy: a function of the records that nothing protects. It is for batches that are simulated.
    """
    weighed, measured = (
        _log_weight(grains, region, targets, each, prior, grid) for each in (sharpness, _BLUNT)
    )
    return weighed - measured


def _log_weight(
    grains: Grains,
    region: Region,
    targets: Targets,
    sharpness: float,
    prior: JointPrior,
    grid: Grid,
) -> float:
    """ln of the weight of all tuples."""
    task = _JointDraw.of(grains, region, grid, tuple(targets.values()), sharpness)
    total = _chain(task, public_points(tuple(prior.robust[j] for j in targets), grid)).log_total()
    if prior.shapes is None:
        return total
    public = shape_points(prior.shapes, tuple(targets), grid)
    log_shapes = _log_shapes(task, prior.shapes, prior.log_bump_mass * len(targets), public)
    robust = math.log(prior.robust_weight) + total
    return float(np.logaddexp.reduce(np.append(log_shapes, robust)))


def _log_shapes(
    task: _JointDraw, shapes: Shapes, log_mass: float, public: ShapePoints
) -> FloatArray:
    """ln of the weight of each shape."""
    found = log_utilities(task.ranks(public.distinct), task.size, task.kernel, public)
    if not task.region.holds(public.distinct[[0, -1]]).all():
        found[~task.region.holds(public.points).all(axis=0)] = -np.inf
    return np.asarray(shapes.log_weights + log_mass + found)


_BLUNT = 1e-12
"""A sharpness that leaves the measure alone: records of a simulated batch change its ln by less
than 1e-6."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class _JointDraw:
    """One joint draw: its region, its targets and its sharpness. Private.

    Args:
        size: Grains of the region.
        wanted: n·Δ_j in grains, shape (k + 1,).
        sharpness: c of a grain.
        tables: The kernel of 0, 1, ... `size` grains, by D.
    """

    grains: Grains
    region: Region
    grid: Grid
    size: int
    wanted: tuple[Gap, ...]
    sharpness: float
    tables: dict[Gap, FloatArray] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        grains: Grains,
        region: Region,
        grid: Grid,
        targets: tuple[Fraction, ...],
        sharpness: float,
    ) -> Self:
        size = grains.left_of(region.stop) - grains.left_of(region.start)
        wanted = tuple(Gap.of(gap * size) for gap in gaps(targets))
        return cls(grains, region, grid, size, wanted, min(sharpness / GRAINS, SHARPEST))

    def ranks(self, points: IntArray) -> IntArray:
        """Grains of the region left of each point."""
        return self.grains.left_of_each(points) - self.grains.left_of(self.region.start)

    def costs(self, grains: IntArray, gap: int) -> FloatArray:
        """c·|grains - n·Δ_gap|."""
        return self.wanted[gap].off(grains) * self.sharpness

    def kernel(self, grains: IntArray, gap: int) -> FloatArray:
        """ln of the kernel; looked up where a batch has fewer grains than are asked for.

        Differences that a point outside the region makes may have any value: its prior is zero.
        """
        if self.size >= TABULATED * grains.size:
            return log_kernel(self.costs(grains, gap))
        wanted = self.wanted[gap]
        if wanted not in self.tables:
            self.tables[wanted] = log_kernel(self.costs(np.arange(self.size + 1), gap))
        return np.asarray(self.tables[wanted].take(grains, mode="clip"))


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class _Chain:
    """Forward pass of the robust component. Private.

    Args:
        points: Fine points, shape (p,).
        ranks: Grains of the region left of each, same shape.
        forward: By j, ln of the sum over o_1 ... o_{j-1} of the weight of (o_1 ... o_j = point).
        task: What is drawn.
    """

    points: IntArray
    ranks: IntArray
    forward: list[FloatArray]
    task: _JointDraw

    def ends(self) -> FloatArray:
        """`forward` of the last quantile, with the last term of the cost."""
        return np.asarray(self.forward[-1] + self.task.kernel(self.task.size - self.ranks, -1))

    def log_total(self) -> float:
        """ln Z."""
        ends = self.ends()
        peak = float(ends.max())
        return peak + math.log(np.exp(ends - peak).sum())

    def draw(self, entropy: Entropy) -> tuple[int, ...]:
        """Backward: the last quantile first, each given the one on its right."""
        index = choose(self.ends(), entropy)
        drawn = [int(self.points[index])]
        for j in range(len(self.forward) - 2, -1, -1):
            stop = int(self.points.searchsorted(drawn[-1], side="right"))
            between = self.ranks[index] - self.ranks[:stop]
            index = choose(self.forward[j][:stop] + self.task.kernel(between, j + 1), entropy)
            drawn.append(int(self.points[index]))
        return tuple(reversed(drawn))


def _chain(task: _JointDraw, public: Points) -> _Chain:
    """The robust component over all public points of the region."""
    first = int(public.points.searchsorted(task.region.start, side="right"))
    stop = int(public.points.searchsorted(task.region.last, side="right"))
    points = np.concatenate(([task.region.start], public.points[first:stop]))
    masses = public.log_masses[:, first - 1 : stop]
    ranks = task.ranks(points)
    passes = {each: LongPass(ranks, each, task.sharpness) for each in set(task.wanted[1:-1])}
    forward = [masses[0] + task.kernel(ranks, 0)]
    for mass, wanted in zip(masses[1:], task.wanted[1:-1], strict=True):
        forward.append(mass + passes[wanted].step(forward[-1]))
    return _Chain(points, ranks, forward, task)


def log_utilities(
    ranks: IntArray,
    size: int,
    kernel: Callable[[IntArray, int], FloatArray],
    public: ShapePoints,
) -> FloatArray:
    """ln of the kernels of each component's points, which are a tuple.

    Args:
        ranks: Of `public.distinct`. Private.
        size: The rank behind all.
        kernel: ln of the kernel of what lies between two points, by the number of the gap.
        public: Points of the components.
    """
    found, left = np.zeros(public.which.shape[1]), np.zeros(1, dtype=np.int64)
    for gap, which in enumerate(public.which):
        right = ranks.take(which)
        found += kernel(right - left, gap)
        left = right
    found += kernel(size - left, -1)
    return found
