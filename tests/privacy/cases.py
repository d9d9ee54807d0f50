"""Which mechanisms are enumerated, over which batches, and where their bound is tight."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from streamdp.mechanisms.tree import QuantileTree
from tests.privacy.law import Law, forking, law_of
from tests.privacy.neighbours import (
    Records,
    counts_of,
    level,
    log_ratio,
    nearly_sure,
    pairs,
    unit_grid,
)
from tests.privacy.supremum import Cells, Part, Worst, supremum

EPSILON = Fraction(1)


@dataclass(frozen=True)
class Case:
    """A mechanism on a small grid.

    Args:
        quantiles: Targets, as text.
        cells: Size of the grid.
        most: Records of the larger batch.
        tight: The supremum must reach 0.99 of the claim.
        relation: Neighbours.
    """

    quantiles: tuple[str, ...]
    cells: int
    most: int
    tight: bool
    relation: str = "add-remove"

    @property
    def name(self) -> str:
        """As it stands in the rows."""
        return f"tree {' '.join(self.quantiles)}"

    def tree(self) -> QuantileTree:
        """The production mechanism."""
        targets = tuple(map(Fraction, self.quantiles))
        return QuantileTree(targets, EPSILON, unit_grid(self.cells))

    def parts(self) -> tuple[Part, ...]:
        """Its draws."""
        return tuple(Part((node.target,), node.left, node.right) for node in self.tree().nodes())


CASES = (
    Case(("1/2",), 4, 5, tight=True),
    Case(("1/3",), 4, 5, tight=True),
    Case(("4/5",), 4, 6, tight=True),
    Case(("1/10",), 3, 11, tight=True),
    Case(("1/3", "2/3"), 4, 4, tight=False),
    Case(("1/4", "1/2", "3/4"), 4, 4, tight=True),
    Case(("1/10", "1/2", "9/10"), 4, 4, tight=False),
    Case(("1/8", "1/4", "3/8", "1/2", "5/8", "3/4", "7/8"), 3, 2, tight=True),
)

LONG = (
    Case(("1/2",), 5, 7, tight=True),
    Case(("1/4", "1/2", "3/4"), 5, 5, tight=True),
    Case(("1/5", "2/5", "3/5", "4/5"), 4, 5, tight=False),
    Case(("1/10", "1/2", "9/10"), 4, 11, tight=False),
    Case(("1/8", "1/4", "3/8", "1/2", "5/8", "3/4", "7/8"), 3, 5, tight=True),
)


def release_law(case: Case, records: Records, favourites: Cells | None = None) -> Law[Cells]:
    """The production law of one release under level priors, or priors nearly sure of cells."""
    tree, statistic = case.tree(), counts_of(records)
    if favourites is None:
        priors = (level(case.cells),) * len(case.quantiles)
    else:
        priors = tuple(nearly_sure(cell, case.cells) for cell in favourites)
    return law_of(lambda entropy: tree.draw(statistic, priors, entropy))


def largest_loss(case: Case) -> Worst:
    """Supremum over all neighbours, releases and priors; one grain a cell, so it is exact."""
    laws: dict[Records, Law[Cells]] = {}
    parts, worst = case.parts(), Worst(0.0)
    with forking(1):
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
