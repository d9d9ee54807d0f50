"""Losses of experts as a few integers of a batch, and the losses that released integers stand for.

What a batch is asked for is an integer vector z, and a public matrix turns it into losses:

    losses = level + B·z,  in losses per expected record.

`RuleLosses`, thresholds or halfspaces, predict a label and lose one for each error. A record
changes the errors of all rules that match it by the same amount, +1 without the label and -1 with
it. So all that matters of a cell of their axes is how many more of its records are without the
label than with it. One record changes one of these numbers by one. The level of the losses is how
many records have the label: the errors of a rule that matches nothing.

`Actions` lose an integer between 0 and D of D for each record. Asked for is Σ (2·loss - D), so that
the worst record changes each by D at most, and all of k by k·D. Their level is a half.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from streamdp.kinds.rules.rules import Halfspaces, RuleGrid, label_dimension
from streamdp.types import (
    Column,
    FloatArray,
    Grid,
    IntArray,
    Neighbours,
    Row,
    SumQuery,
    Sums,
    TableCounts,
    TableQuery,
    Term,
)

LEVEL_SHARE = Fraction(1, 10)
"""Share of epsilon that buys the level of rules; weights do not need it."""


@dataclass(frozen=True)
class RuleLosses:
    """Experts that say a label of a record holds where their thresholds are met.

    Args:
        grid: The rules.
        label: SQL condition in the engine's dialect; records where it is null do not count.
    """

    grid: RuleGrid | Halfspaces
    label: str

    @property
    def count(self) -> int:
        """How many experts there are."""
        return int(np.prod(self.grid.shape))

    def labels(self) -> tuple[Column, ...]:
        """One column a parameter of the rules."""
        return self.grid.columns()

    def rows(self) -> tuple[Row, ...]:
        """Each expert as the first columns of its row."""
        return tuple(dict(each) for each in self.grid.candidates())

    def average(self, weights: FloatArray) -> int:
        """The rule whose parameters are nearest to the average of all by weight, one by one."""
        shares, places = weights.reshape(self.grid.shape), []
        for axis, (_, possible) in enumerate(self.grid.parameters):
            values = np.array(possible, dtype=float)
            others = tuple(other for other in range(shares.ndim) if other != axis)
            places.append(int(abs(values - shares.sum(axis=others) @ values).argmin()))
        return int(np.ravel_multi_index(places, self.grid.shape))

    def query(self) -> TableQuery:
        """Records by label and cell of the thresholds."""
        return self.grid.query(label_dimension(self.label))

    @cached_property
    def matrix(self) -> FloatArray:
        """Which cells each rule matches, shape (k, m); cells that no rule matches are left out."""
        return self._matches[:, self._asked]

    def integers(self, statistic: TableCounts | Sums) -> list[int]:
        """The signed counts z of the m cells that matter. Private."""
        assert isinstance(statistic, TableCounts), "the answer to a table query is a table"  # noqa: S101
        without, with_label = statistic.marginals[0]
        return [int(each) for each in (without - with_label).reshape(-1)[self._asked]]

    def level(self, statistic: TableCounts | Sums) -> int | None:
        """Records that have the label: errors of a rule that matches nothing. Private."""
        assert isinstance(statistic, TableCounts), "the answer to a table query is a table"  # noqa: S101
        return int(statistic.marginals[0][1].sum())

    @cached_property
    def _matches(self) -> FloatArray:
        cells = tuple(dimension.size for dimension in self.grid.query().dimensions)
        basis = np.eye(int(np.prod(cells)), dtype=np.int64).reshape((-1, *cells))
        return np.array([self.grid.over_matching(each) for each in basis], dtype=float).T

    @cached_property
    def _asked(self) -> IntArray:
        return np.flatnonzero(self._matches.any(axis=0))

    def kernels(self) -> tuple[FloatArray, ...]:
        """Likenesses of rules by the distance of their parameters, from short to long range."""
        return tuple(_product_kernel(self.grid.shape, width) for width in WIDTHS)


WIDTHS = (0.02, 0.07, 0.2, 0.5)
"""Ranges over which rules are alike, as shares of a parameter's values."""


def _product_kernel(shape: tuple[int, ...], width: float) -> FloatArray:
    kernel = np.ones((1, 1))
    for size in shape:
        places = np.arange(size) / (width * size)
        along = np.exp(-0.5 * (places[:, None] - places) ** 2)
        kernel = np.asarray(np.kron(kernel, along), dtype=float)
    return kernel


@dataclass(frozen=True)
class Actions:
    """Experts that lose by an expression over each record.

    Args:
        losses: Name and SQL of each loss, in the engine's dialect, between 0 and 1.
        denominator: D: losses are rounded to multiples of 1/D.
    """

    losses: tuple[tuple[str, str], ...]
    denominator: int

    @property
    def count(self) -> int:
        """How many experts there are."""
        return len(self.losses)

    def labels(self) -> tuple[Column, ...]:
        """One column, the name of the action."""
        return (Column("action", "text", "label"),)

    def rows(self) -> tuple[Row, ...]:
        """Each expert as the first columns of its row."""
        return tuple({"action": name} for name, _ in self.losses)

    def query(self) -> SumQuery:
        """Sum of 2·loss - 1 over the records, in units of 1/D; a null loss adds nothing."""
        grid = Grid(Fraction(1, self.denominator), -self.denominator, self.denominator)
        return SumQuery(
            tuple(Term(name, grid, sql=f"2 * ({sql}) - 1") for name, sql in self.losses)
        )

    @cached_property
    def matrix(self) -> FloatArray:
        """Half of 1/D on the diagonal, shape (k, k)."""
        return np.eye(self.count) / (2 * self.denominator)

    def integers(self, statistic: TableCounts | Sums) -> list[int]:
        """The sums z of the answer. Private."""
        assert isinstance(statistic, Sums), "the answer to a question of sums is sums"  # noqa: S101
        return list(statistic.values)

    def level(self, statistic: TableCounts | Sums) -> int | None:
        """None: a half, whatever the records are."""
        return None

    def kernels(self) -> tuple[FloatArray, ...]:
        """The identity: no action is like another."""
        return (np.eye(self.count),)


def sensitivity(losses: RuleLosses | Actions, neighbours: Neighbours) -> int:
    """L1 sensitivity of z: 1 for rules, k·D for actions; twice that under substitution.

    A record is in one cell of the rules' table and changes its signed count by one. It changes
    each action's sum by at most D.
    """
    one = losses.count * losses.denominator if isinstance(losses, Actions) else 1
    return 2 * one if neighbours == "substitute" else one
