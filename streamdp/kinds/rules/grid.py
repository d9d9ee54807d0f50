"""A grid of threshold rules, scored from one table of counts by cumulated sums."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from streamdp.types import Column, Dimension, IntArray, TableQuery

Operator = Literal[">=", ">", "<=", "<"]

Value = tuple[tuple[str, float], ...]
"""Name and value of each parameter of a candidate."""

Parameters = tuple[tuple[str, tuple[Fraction, ...]], ...]
"""Name and possible values of each parameter."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """One comparison of a rule: an expression over a record against a parameter.

    Args:
        sql: The expression, in the engine's dialect; null where the rule is not met whatever the
            parameter is.
        operator: How it is compared.
        parameter: Name of the parameter.
        values: What the parameter may be, increasing.
    """

    sql: str
    operator: Operator
    parameter: str
    values: tuple[Fraction, ...]

    def dimension(self) -> Dimension:
        """The axis whose cells decide the comparison for every value of the parameter.

        Cells hold their lower end and not their upper, as `>=` and `<` ask. Engines compare
        doubles, so x > c is x >= the double after c. The expression is not negated: unsigned
        columns have no negatives, and times none at all.
        """
        cuts = [float(value) for value in self.values]
        if self.operator in (">", "<="):
            cuts = [math.nextafter(cut, math.inf) for cut in cuts]
        return Dimension(self.parameter, self.sql, cuts=tuple(cuts), nulls="cell")

    def over_matching(self, counts: IntArray, axis: int) -> IntArray:
        """Sums over the records that meet the comparison, in place of the axis of cells.

        Args:
            counts: Cells along `axis`, the null cell last.
            axis: Which axis is that of `dimension`.

        Returns:
            The same array with one entry a value of the parameter, increasing, along `axis`.
        """
        cells = np.moveaxis(counts, axis, -1)[..., :-1]
        if self.operator in (">=", ">"):
            sums = cells[..., ::-1].cumsum(axis=-1)[..., ::-1][..., 1:]
        else:
            sums = cells.cumsum(axis=-1)[..., :-1]
        return np.moveaxis(sums, -1, axis)


@dataclass(frozen=True, slots=True)
class RuleGrid:
    """All rules that are a conjunction of thresholds, each with a parameter of its own.

    Args:
        thresholds: At least one; the candidates are the product of their values, the last
            parameter running fastest.
    """

    thresholds: tuple[Threshold, ...]

    @property
    def parameters(self) -> Parameters:
        """One a threshold."""
        return tuple((each.parameter, each.values) for each in self.thresholds)

    @property
    def shape(self) -> tuple[int, ...]:
        """Values of each parameter."""
        return tuple(len(each.values) for each in self.thresholds)

    def candidates(self) -> tuple[Value, ...]:
        """Parameters of each candidate, in the order of all scores."""
        names = [each.parameter for each in self.thresholds]
        values = itertools.product(*([float(v) for v in each.values] for each in self.thresholds))
        return tuple(tuple(zip(names, chosen, strict=True)) for chosen in values)

    def columns(self) -> tuple[Column, ...]:
        """One column a parameter."""
        return tuple(Column(each.parameter, "number", "label") for each in self.thresholds)

    def query(self, *labels: Dimension) -> TableQuery:
        """The one table that all candidates are scored from: labels first, then the thresholds."""
        axes = (*labels, *(each.dimension() for each in self.thresholds))
        return TableQuery(axes, (tuple(range(len(axes))),))

    def over_matching(self, counts: IntArray) -> IntArray:
        """Sum over the records that meet each candidate, shape (candidates,).

        Args:
            counts: A number of each cell of the thresholds' axes.
        """
        for axis, threshold in enumerate(self.thresholds):
            counts = threshold.over_matching(counts, axis)
        return np.asarray(counts.reshape(-1))

    def met(self, places: IntArray, cells: Sequence[IntArray]) -> IntArray:
        """1 for each record in these cells of the axes that meets the candidate at these places."""
        axes = []
        for threshold, place, cell in zip(self.thresholds, places, cells, strict=True):
            size = threshold.dimension().size
            axes.append(threshold.over_matching(np.eye(size, dtype=np.int64), 0)[place, cell])
        return np.asarray(np.prod(axes, axis=0))
