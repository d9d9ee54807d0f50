"""Many quantiles: the quantile tree, one mechanism with two parameters, branching and node.

A node cuts its region at K - 1 of its targets; each part keeps the targets between two of them
and is drawn from its own grains, with the targets rescaled to it. A record's grains lie in
disjoint regions of a level, so the nodes of a level share one charge (`sharpness`).

| branching | node | known as |
|---|---|---|
| 2 | independent | ApproximateQuantiles (Kaplan, Schnapp & Stemmer 2022) |
| ceil(exp(sqrt(ln 2·ln(m + 1)))) | independent | the K-ary tree (Khodak et al. 2023) |
| m + 1 | joint | JointExp (Gillenwater, Joseph & Kulesza 2021), with priors |
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from streamdp.mechanisms.quantile_tree.exponential import BaseMeasure, Restriction, draw_quantile
from streamdp.mechanisms.quantile_tree.grains import GRAINS, Grains, Region
from streamdp.mechanisms.quantile_tree.joint import draw_jointly, joint_slack
from streamdp.mechanisms.quantile_tree.sharpness import (
    Level,
    NodeKind,
    Relation,
    level_budgets,
    numerical_slack,
)
from streamdp.mechanisms.quantile_tree.spread import draw_spread, spread_slack
from streamdp.priors.joint import JointPrior
from streamdp.privacy import events
from streamdp.types import CellCounts, Entropy, Grid, Json, Prior


@dataclass(frozen=True, slots=True)
class Node:
    """One node of the tree, public.

    Args:
        targets: Indices of the quantiles that are drawn.
        left: Index of the released quantile that bounds the region, or -1.
        right: The same on the right, or m.
        level: Depth, the root has 0.
        quantiles: Targets rescaled to the region: (q - q_left)/(q_right - q_left).
    """

    targets: tuple[int, ...]
    left: int
    right: int
    level: int
    quantiles: tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class NodeDraw:
    """The draw of one node.

    Args:
        node: What was drawn.
        region: Where.
        sharpness: c of its draws.
        prior: Of its draws, as the levels above have left it.
        points: Fine points by index of the quantile.
    """

    node: Node
    region: Region
    sharpness: float
    prior: JointPrior
    points: dict[int, int]

    def shares(self) -> list[float]:
        """Targets within the region."""
        return [float(quantile) for quantile in self.node.quantiles]


@dataclass(frozen=True, slots=True)
class QuantileTree:
    """A plan of draws for sorted targets.

    Args:
        quantiles: Targets, exact, strictly increasing in (0, 1), shape (m,).
        epsilon: What the whole tree costs.
        grid: Public cells.
        branching: K, parts a node cuts its region in.
        node: `independent` draws, sorted afterwards, or one `joint` draw of an ordered tuple.
        relation: Neighbours: `add-remove` or `substitute` one record.
        restriction: What becomes of the prior outside a region; joint nodes are conditional.
        level_power: p, level l gets a share ∝ (l + 1)^-p of epsilon.
        log_bump_mass: ln of the mass of each bump of a joint prior's shapes. Below zero, shapes
            must fit the better the more targets a node has; data that none fits are left to the
            robust priors.
        spread: Whether a joint draw of all targets cuts equal records wherever it needs to
            (`quantile_tree.spread`); else it falls on public points.

    Raises:
        ValueError: Targets not strictly increasing in (0, 1), also as the floating-point numbers
            they are published as; branching below 2; epsilon that does not exceed the numerical
            slack; spread records in other nodes than a joint one of all targets.
    """

    quantiles: tuple[Fraction, ...]
    epsilon: Fraction
    grid: Grid
    branching: int = 2
    node: NodeKind = "independent"
    relation: Relation = "add-remove"
    restriction: Restriction = "conditional"
    level_power: Fraction | int = 0
    log_bump_mass: float = 0.0
    spread: bool = False

    def __post_init__(self) -> None:
        edges = (Fraction(0), *self.quantiles, Fraction(1))
        if not self.quantiles or any(
            float(low) >= float(high) for low, high in itertools.pairwise(edges)
        ):
            raise ValueError("quantiles must increase strictly within (0, 1)")
        if self.branching < 2:
            raise ValueError("branching must be at least 2")
        if self.spread and (self.node != "joint" or self.branching <= len(self.quantiles)):
            raise ValueError("records are spread for one joint draw of all targets")
        if self.epsilon <= 2 * self.slack():
            raise ValueError(f"epsilon must exceed {float(2 * self.slack())}")

    def nodes(self) -> tuple[Node, ...]:
        """All nodes, parents first."""
        return _nodes(self.quantiles, self.branching)

    def slack(self) -> Fraction:
        """Part of epsilon that pays for the rounding of weights."""
        if self.spread:
            return spread_slack(len(self.quantiles))
        if self.node == "joint":
            return joint_slack(len(self.quantiles))
        return numerical_slack(len(self.quantiles))

    def levels(self) -> tuple[Level, ...]:
        """Budgets and sharpness, one a depth."""
        return _levels(self)

    def event(self) -> Json:
        """The event for the ledger: the levels one after the other, and the numerical slack."""
        about = {"spread": True} if self.spread else {}
        return events.sequence(
            [*(level.event() for level in self.levels()), events.pure(self.slack())],
            mechanism="quantile-tree",
            quantiles=[str(quantile) for quantile in self.quantiles],
            epsilon=str(self.epsilon),
            branching=self.branching,
            node=self.node,
            relation=self.relation,
            restriction=self.restriction,
            level_power=str(self.level_power),
            log_bump_mass=self.log_bump_mass,
            **about,
        )

    def draw(
        self,
        statistic: CellCounts,
        priors: tuple[Prior, ...] | JointPrior,
        entropy: Entropy,
    ) -> tuple[int, ...]:
        """Draw one cell for each target; never crossing.

        Args:
            statistic: The batch. Private.
            priors: One for each target, shape (m,), or for joint nodes a `JointPrior`, of which
                independent nodes use the robust priors alone.
            entropy: Source of chance.

        Returns:
            Cells of the grid, non-decreasing, shape (m,).

        Privacy: `relation` of one record, pure epsilon. Level l has budget e_l, Σ e_l plus the
        numerical slack is epsilon; `sharpness` proves that e_l covers its nodes.
        """
        points: dict[int, int] = {}
        for step in self.steps(statistic, priors, entropy):
            points.update(step.points)
        return tuple(points[index] // GRAINS for index in range(len(self.quantiles)))

    def steps(
        self,
        statistic: CellCounts,
        priors: tuple[Prior, ...] | JointPrior,
        entropy: Entropy,
    ) -> Iterator[NodeDraw]:
        """Draw the nodes one after the other, parents first.

        Args:
            statistic: The batch. Private.
            priors: Of `draw`.
            entropy: Source of chance.

        Privacy: that of `draw` for the points. Regions and sharpness follow from them and from
        public facts.
        """
        prior = priors if isinstance(priors, JointPrior) else JointPrior(tuple(priors))
        prior = replace(prior, log_bump_mass=self.log_bump_mass)
        grains, levels = Grains.of(statistic), self.levels()
        top = (self.grid.upper + 1) * GRAINS
        regions = {(-1, len(self.quantiles)): Region(self.grid.lower * GRAINS, top, top - 1)}
        points: dict[int, int] = {}
        believed, level = prior, 0
        for node in self.nodes():
            if node.level > level:
                level, believed = node.level, self._updated(prior, points)
            region = regions.pop((node.left, node.right))
            sharpness = float(levels[node.level].sharpness(node.quantiles))
            drawn = self._draw_node(node, grains, region, sharpness, believed, entropy)
            found = dict(zip(node.targets, drawn, strict=True))
            yield NodeDraw(node, region, sharpness, believed, found)
            points.update(found)
            cuts = (node.left, *node.targets, node.right)
            parts = itertools.pairwise(cuts)
            regions.update(zip(parts, region.split(drawn), strict=True))

    def _updated(self, prior: JointPrior, points: dict[int, int]) -> JointPrior:
        """The prior once the levels above are drawn: it may learn from them."""
        width = float(self.grid.resolution)
        return prior.given({j: point // GRAINS * width for j, point in points.items()}, width)

    def _draw_node(
        self,
        node: Node,
        grains: Grains,
        region: Region,
        sharpness: float,
        prior: JointPrior,
        entropy: Entropy,
    ) -> tuple[int, ...]:
        if self.node == "joint":
            targets = dict(zip(node.targets, node.quantiles, strict=True))
            if self.spread:
                return draw_spread(grains, targets, sharpness, prior, self.grid, entropy)
            return draw_jointly(grains, region, targets, sharpness, prior, self.grid, entropy)
        drawn = [
            draw_quantile(
                grains,
                region,
                quantile,
                sharpness,
                BaseMeasure(prior.robust[target], self.grid),
                entropy,
                self.restriction,
            )
            for target, quantile in zip(node.targets, node.quantiles, strict=True)
        ]
        return tuple(sorted(drawn))


@functools.lru_cache(maxsize=256)
def _nodes(quantiles: tuple[Fraction, ...], branching: int) -> tuple[Node, ...]:
    edges = (Fraction(0), *quantiles, Fraction(1))
    nodes: list[Node] = []
    waiting = [(-1, len(quantiles), 0)]
    for left, right, level in waiting:
        parts = min(branching, right - left)
        if parts < 2:
            continue
        targets = tuple(left + (right - left) * part // parts for part in range(1, parts))
        low, high = edges[left + 1], edges[right + 1]
        rescaled = tuple((edges[target + 1] - low) / (high - low) for target in targets)
        nodes.append(Node(targets, left, right, level, rescaled))
        cuts = (left, *targets, right)
        waiting += [(a, b, level + 1) for a, b in itertools.pairwise(cuts)]
    return tuple(nodes)


@functools.lru_cache(maxsize=256)
def _levels(tree: QuantileTree) -> tuple[Level, ...]:
    nodes = tree.nodes()
    depth = 1 + nodes[-1].level
    budgets = level_budgets(tree.epsilon, depth, tree.slack(), Fraction(tree.level_power))
    return tuple(
        Level(
            budget,
            tuple(node.quantiles for node in nodes if node.level == level),
            tree.node,
            tree.relation,
        )
        for level, budget in enumerate(budgets)
    )
