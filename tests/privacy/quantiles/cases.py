"""Which mechanisms are enumerated, over which batches, and where their bound is tight."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from streamdp.mechanisms.quantile_tree import tree as tree_module
from streamdp.mechanisms.quantile_tree.exponential import Restriction
from streamdp.mechanisms.quantile_tree.sharpness import NodeKind, Relation
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior, Shapes
from tests.privacy.quantiles.law import Law, forking, law_of
from tests.privacy.quantiles.neighbours import (
    Records,
    Steps,
    counts_of,
    level,
    log_ratio,
    nearly_sure,
    pairs,
    unit_grid,
)
from tests.privacy.quantiles.supremum import Cells, Part, Worst, supremum

EPSILON = Fraction(1)

Bound = Literal["tight", "loose"]


@dataclass(frozen=True)
class Case:
    """A mechanism on a small grid, and batches.

    Args:
        targets: Quantiles, as text.
        cells: Size of the grid.
        most: Records of the larger batch.
        bound: Of a tight one the supremum must reach 0.99 of the claim.
        relation: Neighbours.
        branching: K.
        node: Of the tree.
        restriction: Of the prior.
        shapes: Whether a joint prior of two components stands beside the level priors.
        level_power: p of the level budgets.
        spread: Whether the joint draw is that of `quantile_tree.spread`. Its targets have one
            prior, so the supremum over a prior for each is a bound that none need reach.
    """

    targets: str
    cells: int
    most: int
    bound: Bound
    relation: Relation = "add-remove"
    branching: int = 2
    node: NodeKind = "independent"
    restriction: Restriction = "conditional"
    shapes: bool = False
    level_power: int = 0
    spread: bool = False

    @property
    def name(self) -> str:
        """As it stands in the rows."""
        options = (self.restriction == "edge") * " edge" + self.shapes * " shapes"
        options += f" p={self.level_power}" if self.level_power else ""
        options += self.spread * " spread"
        return f"{self.node} K={self.branching}{options} {self.targets}"

    def tree(self) -> QuantileTree:
        """The production mechanism."""
        return QuantileTree(
            tuple(map(Fraction, self.targets.split())),
            EPSILON,
            unit_grid(self.cells),
            branching=self.branching,
            node=self.node,
            relation=self.relation,
            restriction=self.restriction,
            level_power=self.level_power,
            spread=self.spread,
        )

    def parts(self) -> tuple[Part, ...]:
        """Its draws; independent ones of a node count one by one."""
        nodes = self.tree().nodes()
        if self.unsorted():
            return tuple(Part((target,)) for target in nodes[0].targets)
        return tuple(
            Part(
                node.targets,
                tuple(t for above in nodes if above.level < node.level for t in above.targets),
            )
            for node in nodes
        )

    def unsorted(self) -> bool:
        """Whether several independent draws share the root: then the law before sorting is used."""
        return self.node == "independent" and self.branching > 2


CASES = (
    Case("1/2", 4, 5, "tight"),
    Case("1/3", 4, 5, "tight"),
    Case("1/10", 3, 11, "tight"),
    Case("1/3 2/3", 4, 4, "loose"),
    Case("1/4 1/2 3/4", 4, 4, "tight"),
    Case("1/8 1/4 3/8 1/2 5/8 3/4 7/8", 3, 2, "tight"),
    Case("1/4 1/2 3/4", 4, 3, "tight", restriction="edge"),
    Case("1/3 2/3", 4, 5, "tight", branching=3),
    Case("1/4 1/2 3/4", 4, 4, "tight", branching=4),
    Case("1/2", 4, 5, "tight", branching=2, node="joint"),
    Case("1/3 2/3", 4, 4, "tight", branching=3, node="joint"),
    Case("1/4 1/2 3/4", 4, 4, "tight", branching=4, node="joint"),
    Case("1/6 1/3 1/2 2/3 5/6", 3, 3, "tight", branching=3, node="joint"),
    Case("1/4 1/2 3/4", 4, 3, "loose", branching=4, node="joint", shapes=True),
    Case("1/3 2/3", 3, 4, "loose", branching=2, node="joint", shapes=True, level_power=5),
    Case("1/2", 4, 5, "tight", node="joint", spread=True),
    Case("1/3 2/3", 4, 4, "loose", branching=3, node="joint", spread=True),
    Case("1/3 2/3", 3, 3, "loose", branching=3, node="joint", shapes=True, spread=True),
    Case("1/2", 4, 4, "tight", "substitute"),
    Case("1/4", 4, 5, "tight", "substitute"),
    Case("1/4 1/2 3/4", 4, 4, "tight", "substitute"),
    Case("1/3 2/3", 4, 4, "tight", "substitute", branching=3),
    Case("1/4 1/2 3/4", 4, 4, "tight", "substitute", branching=4, node="joint"),
    Case("1/6 1/3 1/2 2/3 5/6", 3, 3, "loose", "substitute", branching=3, node="joint"),
    Case("1/3 2/3", 3, 3, "loose", "substitute", branching=3, node="joint", spread=True),
)

LONG = (
    Case("1/4 1/2 3/4", 4, 5, "tight", branching=4),
    Case("1/2", 5, 7, "tight"),
    Case("1/4 1/2 3/4", 5, 5, "tight"),
    Case("1/5 2/5 3/5 4/5", 4, 5, "loose"),
    Case("1/10 1/2 9/10", 4, 11, "loose"),
    Case("1/8 1/4 3/8 1/2 5/8 3/4 7/8", 3, 5, "tight"),
    Case("1/4 1/2 3/4", 4, 6, "loose", "substitute"),
    Case("1/10 1/2 9/10", 3, 12, "loose", branching=4, node="joint"),
    Case("1/10 1/2 9/10", 3, 11, "loose", branching=4),
    Case("1/4 1/2 3/4", 4, 6, "loose", "substitute", branching=4, node="joint"),
    Case("1/6 1/3 1/2 2/3 5/6", 3, 6, "loose", "substitute", branching=3, node="joint"),
)


def release_law(case: Case, records: Records, favourites: Cells | None = None) -> Law[Cells]:
    """The production law of one release under level priors, or priors nearly sure of cells."""
    tree, statistic = case.tree(), counts_of(records)
    count = len(tree.quantiles)
    robust: tuple[Steps, ...] = (level(case.cells),) * count
    if favourites is not None:
        robust = tuple(nearly_sure(cell, case.cells) for cell in favourites)
    prior = JointPrior(robust, _rising(count) if case.shapes and favourites is None else None)
    return law_of(lambda entropy: tree.draw(statistic, prior, entropy))


def _rising(count: int) -> Shapes:
    """Two beliefs: targets half a cell apart from the first cell, or one apart."""
    centres = np.outer([0.5, 1.0], np.arange(count))
    return Shapes(np.array([0.0, -1.0]), centres, np.full_like(centres, 0.3))


def largest_loss(case: Case) -> Worst:
    """Supremum over all neighbours, releases and priors; one grain a cell, so it is exact."""
    laws: dict[Records, Law[Cells]] = {}
    parts, worst = case.parts(), Worst(0.0)
    with forking(1), _unsorted(case.unsorted()):
        for pair in pairs(case.relation, case.cells, case.most):
            for records in pair:
                if records not in laws:
                    laws[records] = release_law(case, records)
            found = supremum(laws[pair[0]], laws[pair[1]], parts)
            if found.loss > worst.loss:
                worst = Worst(found.loss, found.released, found.favourites, pair)
    return worst


def loss_under(case: Case, pair: tuple[Records, Records], favourites: Cells, grains: int) -> float:
    """Largest loss of one pair under priors nearly sure of `favourites`, from its whole law."""
    with forking(grains):
        mine, other = (release_law(case, records, favourites) for records in pair)
    released = mine.keys() | other.keys()
    zero = Fraction(0)
    return max(log_ratio(mine.get(each, zero), other.get(each, zero)) for each in released)


@contextmanager
def _unsorted(wanted: bool) -> Iterator[None]:
    """Inside, the draws of a node stay in the order of their targets.

    Sorting is post-processing, so the loss before it bounds the loss of the release; and priors
    nearly sure of cells in order let it be reached.
    """
    if not wanted:
        yield
        return
    vars(tree_module)["sorted"] = tuple
    try:
        yield
    finally:
        del vars(tree_module)["sorted"]
