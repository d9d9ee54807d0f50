"""Many quantiles: the quantile tree with one draw a node (ApproximateQuantiles).

The middle target is drawn first; it cuts the grid in two disjoint regions, and each half of the
targets is drawn in its own region, from that region's own grains, with the target rescaled to it.
A record's grains lie in disjoint regions of a level with total weight at most one, so the nodes
of a level share one charge, and each may be as sharp as its own target allows.

References:
    Kaplan, Schnapp & Stemmer 2022 (the tree); Khodak et al. 2023 (priors, conditional regions).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from streamdp.mechanisms.exponential import draw_quantile
from streamdp.mechanisms.grains import GRAINS, Grains, Region
from streamdp.mechanisms.measure import Measure
from streamdp.mechanisms.sharpness import level_budgets, numerical_slack, single_quantile_range
from streamdp.privacy import events
from streamdp.types import CellCounts, Entropy, Grid, Json, Prior


@dataclass(frozen=True, slots=True)
class Node:
    """One draw of the tree, public.

    Args:
        target: Index of the quantile that is drawn.
        left: Index of the released quantile that bounds the region, or -1.
        right: The same on the right, or m.
        level: Depth, the root has 0.
        quantile: Target rescaled to the region: (q - q_left)/(q_right - q_left).
    """

    target: int
    left: int
    right: int
    level: int
    quantile: Fraction


@dataclass(frozen=True, slots=True)
class QuantileTree:
    """A plan of draws for sorted targets; branching 2.

    Args:
        quantiles: Targets, exact, strictly increasing in (0, 1), shape (m,).
        epsilon: What the whole tree costs.
        grid: Public cells.
    """

    quantiles: tuple[Fraction, ...]
    epsilon: Fraction
    grid: Grid

    def nodes(self) -> tuple[Node, ...]:
        """All nodes, parents first."""
        edges = (Fraction(0), *self.quantiles, Fraction(1))
        nodes: list[Node] = []
        waiting = [(-1, len(self.quantiles), 0)]
        for left, right, level in waiting:
            if right - left < 2:
                continue
            target = (left + right) // 2
            low, high = edges[left + 1], edges[right + 1]
            rescaled = (edges[target + 1] - low) / (high - low)
            nodes.append(Node(target, left, right, level, rescaled))
            waiting += [(left, target, level + 1), (target, right, level + 1)]
        return tuple(nodes)

    def event(self) -> Json:
        """What the ledger stores: a sequence of levels, each one bounded-range draw a record."""
        draws = [events.bounded_range(budget) for budget in self._budgets(self.nodes())]
        return events.sequence(
            [*draws, events.pure(numerical_slack(len(self.quantiles)))],
            mechanism="quantile-tree",
            quantiles=[str(quantile) for quantile in self.quantiles],
            epsilon=str(self.epsilon),
        )

    def draw(
        self, statistic: CellCounts, priors: tuple[Prior, ...], entropy: Entropy
    ) -> tuple[int, ...]:
        """Draw one cell for each target; never crossing.

        Args:
            statistic: The batch. Private.
            priors: One for each target, positive on the grid, shape (m,).
            entropy: Source of chance.

        Returns:
            Cells of the grid, non-decreasing, shape (m,).

        Privacy: add/remove of one record, pure epsilon. Level l has budget e_l, Σ e_l plus the
        numerical slack is epsilon; node v draws with c = e_l/R_v and a record of weight w_v in its
        region costs c·w_v·R_v = w_v·e_l there, Σ_v w_v ≤ 1.
        """
        grains, nodes = Grains.of(statistic), self.nodes()
        budgets = self._budgets(nodes)
        top = (self.grid.upper + 1) * GRAINS
        regions = {(-1, len(self.quantiles)): Region(self.grid.lower * GRAINS, top, top - 1)}
        points: dict[int, int] = {}
        for node in nodes:
            region = regions.pop((node.left, node.right))
            sharpness = float(budgets[node.level] / single_quantile_range(node.quantile))
            measure = Measure(priors[node.target], self.grid)
            point = draw_quantile(grains, region, node.quantile, sharpness, measure, entropy)
            points[node.target] = point
            left, right = region.split((point,))
            regions[node.left, node.target] = left
            regions[node.target, node.right] = right
        return tuple(points[index] // GRAINS for index in range(len(self.quantiles)))

    def _budgets(self, nodes: tuple[Node, ...]) -> tuple[Fraction, ...]:
        depth = 1 + max(node.level for node in nodes)
        return level_budgets(self.epsilon, depth, len(nodes))
