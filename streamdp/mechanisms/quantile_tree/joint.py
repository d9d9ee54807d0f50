"""Several quantiles of a region in one draw: JointExp with priors.

P(o) ∝ μ(o)·exp(-c·Σ_{j=0..k} |grains between o_j and o_{j+1} - n·Δ_j|) over ordered tuples
o_1 ≤ ... ≤ o_k of public points, o_0 and o_{k+1} being the ends of the region.

A component of the prior is a product, so one forward pass gives its total Z_c; a component is
chosen with probability ∝ Z_c, and a backward draw gives the tuple.

Each term e^(-c·|x|) of the weight is K(x) = e^(-c·|x|) + e^-45 (`passes`). -ln K is 1-Lipschitz in
c·|x|, so a term changes by no more than without its floor; the range 4(1 - min Δ) and the 4 of a
substitution are bounds on the sum of the sizes of the terms' changes, so they hold for K.

References:
    Gillenwater, Joseph & Kulesza 2021 (JointExp).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Self

import numpy as np

from streamdp.mechanisms.quantile_tree.grains import GRAINS, Grains, Region
from streamdp.mechanisms.quantile_tree.passes import (
    SHARPEST,
    Gap,
    LongPass,
    dense_pass,
    log_kernel,
    log_sum,
)
from streamdp.mechanisms.quantile_tree.points import Points, public_points, shape_points
from streamdp.mechanisms.quantile_tree.sharpness import RELATIVE_ERROR, gaps
from streamdp.priors.joint import JointPrior, Shapes
from streamdp.privacy.draws import choose
from streamdp.types import Entropy, FloatArray, Grid, IntArray

ROUNDINGS = 16
"""Of a logarithm, in one step of a forward pass and the choice that follows it."""

MOST_TERMS = 2**18
"""Terms of the longest running sum: 8·`points.MOST_POINTS`."""

TABULATED = 4
"""Groups of shapes share a table of the kernel, so it may be so many times one lookup's size."""


def joint_slack(draws: int) -> Fraction:
    """Part of epsilon that pays for the rounding of joint draws of `draws` quantiles.

    A logarithm of the forward pass is at most 700·k in size (45 for the kernel, 640 for the prior,
    and the running sums), and 1000 more within a block (`passes`), whatever the records, epsilon
    and the prior. It is rounded to 2^-53 of itself `ROUNDINGS` times a step, the change of base in
    `choose` included; a running sum of p positive terms errs by p·2^-53. So step j has weights of
    error j·u, its choice costs four times that, and the sum over steps and the choice of a
    component is 2·u·k·(k + 3).
    """
    step = Fraction(ROUNDINGS * (700 * draws + 1000) + MOST_TERMS, 2**53) + RELATIVE_ERROR
    return 2 * step * draws * (draws + 3) + 4 * (draws + 1) * RELATIVE_ERROR


def draw_jointly(
    grains: Grains,
    region: Region,
    targets: tuple[Fraction, ...],
    sharpness: float,
    prior: JointPrior,
    grid: Grid,
    entropy: Entropy,
) -> tuple[int, ...]:
    """Draw an ordered tuple of fine points of the region.

    Args:
        grains: The batch. Private.
        region: Stretch whose own grains are ranked.
        targets: Rescaled to the region, strictly increasing in (0, 1), shape (k,).
        sharpness: c.
        prior: Of these targets; what it gives outside the region is dropped.
        grid: Public cells.
        entropy: Source of chance.

    Privacy: add/remove, one record of weight w ≤ 1 in the region: loss of range c·w·4(1 - min Δ);
    substitute within the region: 4·c·w. One draw, pure and bounded-range. Total: every tuple of
    the robust component has a positive weight, whatever the counts.
    """
    task = _Task.of(grains, region, grid, targets, sharpness)
    public = public_points(prior.robust, grid)
    chains = [_long_chain(task, public), *(_dense_chain(task, group) for group in prior.shapes)]
    weights = [np.log([prior.robust_weight]), *(group.log_weights for group in prior.shapes)]
    totals = [chain.totals() for chain in chains]
    component = choose(np.concatenate(weights) + np.concatenate(totals), entropy)
    for chain, rows in zip(chains, map(len, totals), strict=True):
        if component < rows:
            return chain.draw(component, entropy)
        component -= rows
    raise AssertionError("a component is one of a chain")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class _Task:
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

    def first_term(self, ranks: IntArray) -> FloatArray:
        """ln of the kernel left of the first quantile."""
        return self.kernel(ranks, 0)

    def last_term(self, ranks: IntArray) -> FloatArray:
        """ln of the kernel right of the last quantile."""
        return self.kernel(self.size - ranks, -1)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class _Chain:
    """Forward passes of components with their own points each. Private.

    Args:
        points: Fine points, k arrays of shape (p, rows).
        ranks: Grains of the region left of each, same shapes.
        forward: ln of the sum over o_1 ... o_{j-1} of the weight of (o_1 ... o_j = point), same.
        task: What is drawn.
    """

    points: list[IntArray]
    ranks: list[IntArray]
    forward: list[FloatArray]
    task: _Task

    def ends(self) -> FloatArray:
        """`forward` of the last quantile, with the last term of the cost; shape (p, rows)."""
        return np.asarray(self.forward[-1] + self.task.last_term(self.ranks[-1]))

    def totals(self) -> FloatArray:
        """ln Z of each row."""
        return log_sum(self.ends())

    def draw(self, row: int, entropy: Entropy) -> tuple[int, ...]:
        """Backward: the last quantile first, each given the one on its right."""
        index = choose(self.ends()[:, row], entropy)
        drawn = [int(self.points[-1][index, row])]
        rank = int(self.ranks[-1][index, row])
        for j in range(len(self.points) - 2, -1, -1):
            points, ranks = self.points[j][:, row], self.ranks[j][:, row]
            stop = int(points.searchsorted(drawn[-1], side="right"))
            kernel = log_kernel(self.task.costs(rank - ranks[:stop], j + 1))
            index = choose(self.forward[j][:stop, row] + kernel, entropy)
            drawn.append(int(points[index]))
            rank = int(ranks[index])
        return tuple(reversed(drawn))


def _long_chain(task: _Task, public: Points) -> _Chain:
    """The robust component: one row over all public points of the region."""
    first = int(public.points.searchsorted(task.region.start, side="right"))
    stop = int(public.points.searchsorted(task.region.last, side="right"))
    points = np.concatenate(([task.region.start], public.points[first:stop]))
    masses = public.log_masses[:, first - 1 : stop]
    ranks = task.ranks(points)
    passes = {each: LongPass(ranks, each, task.sharpness) for each in set(task.wanted[1:-1])}
    forward = [masses[0] + task.first_term(ranks)]
    for mass, wanted in zip(masses[1:], task.wanted[1:-1], strict=True):
        forward.append(mass + passes[wanted].step(forward[-1]))
    count = len(masses)
    columns = [each[:, None] for each in forward]
    return _Chain([points[:, None]] * count, [ranks[:, None]] * count, columns, task)


def _dense_chain(task: _Task, shapes: Shapes) -> _Chain:
    """The shapes: a row for each component, a few points of its own for each target."""
    public = shape_points(shapes, task.grid)
    points, ranks = public.points, public.spread(task.ranks(public.distinct))
    bump, ends = shapes.log_bump()[:, None], public.distinct[[0, -1]]
    masses = [bump] * len(points)
    if not task.region.holds(ends).all():
        masses = [np.where(task.region.holds(each), bump, -np.inf) for each in points]
    forward = [masses[0] + task.first_term(ranks[0])]
    for j in range(1, len(points)):
        ordered = points[j - 1][:, None, :] <= points[j][None, :, :]
        kernel = task.kernel(ranks[j][None, :, :] - ranks[j - 1][:, None, :], j)
        forward.append(masses[j] + dense_pass(forward[-1], kernel, ordered))
    return _Chain(points, ranks, forward, task)
