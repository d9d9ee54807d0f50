"""`auto`: which tree to draw from, by a public rule.

The rule looks up the cell of a table nearest to (number of quantiles, epsilon times expected
rows) and takes the candidate that erred least there. Ranks are all that matters, so the table
holds for any unit and any number of rows. It was made from simulated batches and knows no data, by
`python -m streamdp.mechanisms.quantile_tree.planning.calibrate`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from streamdp.mechanisms.quantile_tree.planning.choice_table import TABLE, CandidateErrors
from streamdp.mechanisms.quantile_tree.sharpness import NodeKind, Relation
from streamdp.mechanisms.quantile_tree.spread import spread_slack
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior, Shapes
from streamdp.priors.shapes import with_shapes
from streamdp.types import Grid, Prior


@dataclass(frozen=True, slots=True)
class TreeChoice:
    """A form of the tree.

    Args:
        branching: K, or 0 for m + 1.
        node: How a node draws.
        level_power: p; with 5 nearly all of epsilon is the root's, and the shapes fill in.
        shapes: Whether joint nodes have shapes beside the robust priors.
        log_bump_mass: Of the shapes (`QuantileTree`).
        spread: Whether equal records are spread (`QuantileTree`).
    """

    branching: int
    node: NodeKind
    level_power: int = 0
    shapes: bool = False
    log_bump_mass: float = 0.0
    spread: bool = False

    def tree(
        self,
        quantiles: tuple[Fraction, ...],
        epsilon: Fraction,
        grid: Grid,
        relation: Relation = "add-remove",
    ) -> QuantileTree:
        """The tree of this form."""
        branching = self.branching or max(2, len(quantiles) + 1)
        return QuantileTree(
            quantiles,
            epsilon,
            grid,
            branching,
            self.node,
            relation,
            level_power=self.level_power,
            log_bump_mass=self.log_bump_mass,
            spread=self.spread,
        )

    def prior(self, learned: tuple[Prior, ...] | JointPrior, shapes: Shapes | None) -> JointPrior:
        """Learned priors, with the shapes if the form has a place for them."""
        if isinstance(learned, JointPrior):
            return learned
        if not self.shapes or shapes is None:
            return JointPrior(learned)
        return with_shapes(learned, shapes)


CANDIDATES: dict[str, TreeChoice] = {
    "binary": TreeChoice(2, "independent"),
    "joint": TreeChoice(0, "joint", spread=True),
    "joint, faint shapes": TreeChoice(0, "joint", shapes=True, log_bump_mass=-4.5, spread=True),
    "joint, shapes": TreeChoice(0, "joint", shapes=True, log_bump_mass=-2.0, spread=True),
    "tree of 6, shapes": TreeChoice(6, "joint", 5, shapes=True, log_bump_mass=-1.0),
    "tree of 4, shapes": TreeChoice(4, "joint", 5, shapes=True),
}
"""The forms that are compared."""


_SPREAD = frozenset(name for name, each in CANDIDATES.items() if each.spread)

MOST_SPREAD = 2**16
"""Records of a batch whose draw may take time and memory that grow with them."""

MOST_ROUNDED = Fraction(1, 100)
"""Share of epsilon that may pay for the rounding of such a draw."""


def choose_tree(quantiles: int, epsilon: Fraction, expected_rows: int | None) -> TreeChoice:
    """The candidate for a number of targets; `binary` if no number of rows is expected.

    Args:
        quantiles: m.
        epsilon: Price of a release.
        expected_rows: Public; never the batch's own number.
    """
    if expected_rows is None:
        return CANDIDATES["binary"]
    information = math.log(float(epsilon) * max(1, expected_rows))
    costly = expected_rows > MOST_SPREAD or spread_slack(quantiles) > MOST_ROUNDED * epsilon

    def distance(row: CandidateErrors) -> tuple[float, float]:
        size = abs(math.log(row.quantiles / quantiles))
        return size, abs(math.log(row.epsilon_rows) - information)

    return CANDIDATES[min(TABLE, key=distance).choice(_SPREAD if costly else frozenset())]
