"""`auto`: which tree to draw from, by a public rule.

The rule looks up the number of quantiles nearest in a table, interpolates errors between its lines
at epsilon times expected rows, and takes the candidate that errs least there. Ranks are all that
matters, so the table holds for any unit and any number of rows. It was made from simulated batches
and knows no data, by
`python -m streamdp.mechanisms.quantile_tree.planning.calibrate`.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from fractions import Fraction

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
    information = float(epsilon) * max(1, expected_rows)
    costly = expected_rows > MOST_SPREAD or spread_slack(quantiles) > MOST_ROUNDED * epsilon
    known = expected_errors(quantiles, information)
    return CANDIDATES[known.choice(_SPREAD if costly else frozenset())]


NAMES = (
    "binary",
    "joint",
    "joint, faint shapes",
    "joint, shapes",
    "tree of 6, shapes",
    "tree of 4, shapes",
)
"""Candidates, faster ones first: the columns of `_ERRORS`."""

MARGIN = 0.97
"""A later, slower candidate must err less than this share of the best before it."""

TIES = 0.005
"""Share of a batch by which joint draws must err less than the binary tree, unless they would find
equal records. The table is of batches without any."""

SURE = 52
"""Epsilon times rows for each target at which a joint draw finds equal records on a fine grid. Of k
targets in a cell whose mass is M, each pays ln 1/M for lying there, 13 if it is a millionth of the
spread, and all of them gain epsilon/4 for each record of the cell."""

_ERRORS = """
        1           10  0.22767  0.14091  0.14102  0.19522        -        -
        1           30   0.0162  0.02251  0.03112  0.01984        -        -
        1          100  0.00488   0.0068  0.00865  0.00671        -        -
        1          300  0.00173  0.00187  0.00307  0.00159        -        -
        1         1000   0.0007  0.00032   0.0007  0.00061        -        -
        1         3000  0.00017    7e-05  0.00022  0.00018        -        -
        1        10000      0.0    1e-05    5e-05    3e-05        -        -
        1       100000      0.0      0.0      0.0      0.0        -        -
        3           10  0.39116  0.46563  0.42775  0.46274        -        -
        3           30  0.21395  0.24294  0.25625  0.16605        -        -
        3          100  0.03995  0.03101  0.03521  0.03298        -        -
        3          300  0.01233  0.00969   0.0121  0.01157        -        -
        3         1000  0.00326  0.00333  0.00313  0.00457        -        -
        3         3000   0.0011   0.0011  0.00106  0.00106        -        -
        3        10000  0.00024  0.00015  0.00018  0.00018        -        -
        3       100000    1e-05    1e-05      0.0      0.0        -        -
        9           10  0.54383  0.59606   0.5656  0.56269  0.51983  0.55148
        9           30  0.43636   0.4879  0.51065  0.31636  0.23454   0.1959
        9          100  0.18444  0.20297  0.19723  0.12378  0.11046  0.09351
        9          300  0.05034  0.03165  0.02619  0.04306  0.06349  0.08959
        9         1000   0.0127  0.00984  0.01089  0.01235  0.05191  0.08014
        9         3000  0.00418  0.00289  0.00405  0.00807     0.02  0.05496
        9        10000  0.00133   0.0009  0.00089  0.00151        -        -
        9       100000    7e-05    4e-05    6e-05    6e-05        -        -
       29           10  0.58061  0.61442   0.6137  0.56505  0.65554    0.655
       29           30  0.49714  0.61075  0.61256  0.23478  0.18757  0.21701
       29          100  0.25557  0.50258   0.4888  0.17989  0.11193  0.09965
       29          300  0.08768  0.21356  0.15138  0.16399  0.07066  0.10968
       29         1000  0.02889  0.02602   0.0251  0.04932  0.06698  0.09999
       29         3000  0.00799  0.00702  0.01051  0.01147   0.0591  0.09207
       29        10000  0.00237  0.00195  0.00648  0.00794        -        -
       29       100000  0.00018  0.00015  0.00014  0.00014        -        -
       99           10  0.68853        -        -        -  0.56278  0.54965
       99           30  0.59051        -        -        -  0.23839  0.20447
       99          100  0.31417        -        -        -  0.12131  0.10225
       99          300  0.12519        -        -        -   0.0752  0.10276
       99         1000   0.0441        -        -        -  0.07325  0.10909
       99         3000  0.01446        -        -        -  0.06944  0.09781
       99        10000  0.00535        -        -        -        -        -
       99       100000  0.00048        -        -        -        -        -
"""
"""Number of quantiles, epsilon times rows, and the error of each candidate that was tried."""


@dataclass(frozen=True, slots=True)
class CandidateErrors:
    """Errors of candidates where quantiles and records are so many.

    Args:
        quantiles: Number of targets.
        epsilon_rows: Epsilon times the number of records.
        errors: Mean rank error of each candidate, in the order of `NAMES`.
    """

    quantiles: int
    epsilon_rows: int
    errors: dict[str, float]

    def choice(self, without: frozenset[str] = frozenset()) -> str:
        """The candidate that errs least, by a margin if it is slower or may not find equal records.

        Args:
            without: Candidates that are not to be had.
        """
        best = "binary"
        for name, error in self.errors.items():
            if name not in without and error < MARGIN * self.errors[best]:
                best = name
        finds = 1 < self.quantiles <= self.epsilon_rows / SURE
        gained = self.errors["binary"] - self.errors[best]
        return best if finds or gained > TIES else "binary"

    def line(self) -> str:
        """The line of the table."""
        shown = [f"{self.errors.get(name, '-'):>7}" for name in NAMES]
        return "  ".join([f"{self.quantiles:>9} {self.epsilon_rows:>12}", *shown])


def _measured(line: str) -> CandidateErrors:
    quantiles, epsilon_rows, *errors = line.split()
    known = zip(NAMES, errors, strict=True)
    found = {name: float(error) for name, error in known if error != "-"}
    return CandidateErrors(int(quantiles), int(epsilon_rows), found)


TABLE = tuple(map(_measured, _ERRORS.strip().splitlines()))


LEAST = 1e-6
"""Least error that has a logarithm: the table's last digit is ten times as much."""


def expected_errors(quantiles: int, information: float) -> CandidateErrors:
    """Return the errors of candidates between two lines of the table, in logarithms.

    Args:
        quantiles: Number of targets; the lines are those of the nearest number.
        information: Epsilon times the rows; beyond the table, its first or last line holds.
    """
    nearest = min(TABLE, key=lambda line: abs(math.log(line.quantiles / quantiles))).quantiles
    lines = [line for line in TABLE if line.quantiles == nearest]
    sizes = [line.epsilon_rows for line in lines]
    at = min(max(information, sizes[0]), sizes[-1])
    after = max(bisect.bisect_left(sizes, at), 1)
    low, high = lines[after - 1 : after + 1]
    share = math.log(at / low.epsilon_rows) / math.log(high.epsilon_rows / low.epsilon_rows)
    return CandidateErrors(
        nearest,
        round(at),
        {
            name: max(low.errors[name], LEAST) ** (1.0 - share) * max(error, LEAST) ** share
            for name, error in high.errors.items()
        },
    )
