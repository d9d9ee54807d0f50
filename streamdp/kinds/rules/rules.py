"""Rules on one record, scored from one table of counts: grids of thresholds, and halfspaces.

A grid is scored by cumulated sums. Features of halfspaces are cut at public values: a feature
counts as the largest of its values that is not above it, or as the first. So all records of a cell
of the features lie on the same side of each halfspace, and a table of counts by cell has the errors
of all of them. `RuleErrors` counts how often the rule that a release names errs about a label.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np

from streamdp.types import Column, Dimension, IntArray, Row, TableCounts, TableQuery

Operator = Literal[">=", ">", "<=", "<"]

Value = tuple[tuple[str, float], ...]
"""Name and value of each parameter of a candidate."""

Parameters = tuple[tuple[str, tuple[Fraction, ...]], ...]
"""Name and possible values of each parameter."""


@dataclass(frozen=True, slots=True)
class RuleComparison:
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

    thresholds: tuple[RuleComparison, ...]

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


THRESHOLD = "at_least"
"""Name of the parameter that a weighted sum is compared with."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A number of each record.

    Args:
        name: In releases.
        sql: In the engine's dialect; where it is null no halfspace is met.
        values: Those it counts as, increasing.
        weights: What it may be multiplied by, increasing.
    """

    name: str
    sql: str
    values: tuple[Fraction, ...]
    weights: tuple[Fraction, ...]

    def dimension(self) -> Dimension:
        """The axis of its cells: below the first value, one from each value on, null."""
        cuts = tuple(float(value) for value in self.values)
        return Dimension(self.name, self.sql, cuts=cuts, nulls="cell")


@dataclass(frozen=True)
class Halfspaces:
    """All rules Σ weight·feature >= threshold.

    Args:
        features: At least one.
        thresholds: Increasing.
    """

    features: tuple[Feature, ...]
    thresholds: tuple[Fraction, ...]

    @property
    def parameters(self) -> Parameters:
        """The weights of features that have several, and the threshold."""
        several = (each for each in self.features if len(each.weights) > 1)
        named = ((f"weight_{each.name}", each.weights) for each in several)
        return (*named, (THRESHOLD, self.thresholds))

    @property
    def shape(self) -> tuple[int, ...]:
        """Values of each parameter."""
        return tuple(len(values) for _, values in self.parameters)

    def candidates(self) -> tuple[Value, ...]:
        """Parameters of each candidate, the threshold running fastest."""
        names = [name for name, _ in self.parameters]
        values = itertools.product(*([float(v) for v in values] for _, values in self.parameters))
        return tuple(tuple(zip(names, chosen, strict=True)) for chosen in values)

    def columns(self) -> tuple[Column, ...]:
        """One column a parameter."""
        return tuple(Column(name, "number", "label") for name, _ in self.parameters)

    def query(self, *labels: Dimension) -> TableQuery:
        """The one table that all candidates are scored from: labels first, then the features."""
        axes = (*labels, *(each.dimension() for each in self.features))
        return TableQuery(axes, (tuple(range(len(axes))),))

    def over_matching(self, counts: IntArray) -> IntArray:
        """Sum over the records that meet each candidate, shape (candidates,).

        Args:
            counts: A number of each cell of the features' axes.
        """
        return np.asarray(self.matches @ counts.reshape(-1))

    def met(self, places: IntArray, cells: Sequence[IntArray]) -> IntArray:
        """1 for each record in these cells of the axes that meets the candidate at these places."""
        sizes = tuple(each.dimension().size for each in self.features)
        number = np.ravel_multi_index(tuple(places), self.shape)
        return np.asarray(self.matches[number, np.ravel_multi_index(tuple(cells), sizes)])

    @cached_property
    def matches(self) -> IntArray:
        """Whether a cell meets a candidate, shape (candidates, cells)."""
        weights = itertools.product(*(each.weights for each in self.features))
        met = [self._met(chosen) for chosen in weights]
        return np.array([row for rows in met for row in rows], dtype=np.int64)

    def _met(self, weights: tuple[Fraction, ...]) -> list[IntArray]:
        """Return the cells that meet each threshold: exact, in units of a common denominator."""
        numbers = (*self.thresholds, *weights, *(v for each in self.features for v in each.values))
        unit = math.lcm(*(number.denominator for number in numbers))
        total, known = np.zeros(1, dtype=object), np.ones(1, dtype=bool)
        for feature, weight in zip(self.features, weights, strict=True):
            values = (feature.values[0], *feature.values, Fraction(0))
            scaled = np.array([int(value * unit) * int(weight * unit) for value in values], object)
            null = np.arange(len(values)) == len(values) - 1
            total = (total[:, None] + scaled).reshape(-1)
            known = (known[:, None] & ~null).reshape(-1)
        met = (known & (total >= int(t * unit) * unit) for t in self.thresholds)
        return [each.astype(np.int64) for each in met]


def label_dimension(label: str) -> Dimension:
    """The axis that says whether a condition holds; records where it is null have no cell."""
    return Dimension(
        "label", f"CASE WHEN {label} THEN 1 WHEN NOT ({label}) THEN 0 END", cuts=(1.0,)
    )


@dataclass(frozen=True, slots=True)
class RuleErrors:
    """Errors of a grid of rules about a label.

    Args:
        grid: The rules.
        label: SQL condition in the engine's dialect; records where it is null do not count.
        where: SQL condition on one record; where it is not true the record does not count.
    """

    grid: RuleGrid | Halfspaces
    label: str
    where: str | None = None

    def query(self) -> TableQuery:
        """Records by label and cell of the thresholds."""
        return replace(self.grid.query(label_dimension(self.label)), where=self.where)

    def named(self, rows: Sequence[Row]) -> Row | None:
        """The row of a release that names its rule: the first place, or the chosen expert."""
        return next((row for row in rows if row.get("place") == 1 or row.get("chosen") == 1), None)

    def number(self, row: Row) -> int | None:
        """Place of a rule among all of the grid; None if it is none of them."""
        places = []
        for name, possible in self.grid.parameters:
            values = [float(value) for value in possible]
            if row.get(name) not in values:
                return None
            places.append(values.index(float(row[name] or 0)))
        return int(np.ravel_multi_index(places, self.grid.shape))

    def errors(self, statistic: TableCounts, number: int) -> tuple[int, int]:
        """How many records a rule is wrong about, and how many there are. Private.

        It is wrong about each record with the label that it does not match, and about each without
        the label that it matches.
        """
        errors, records = self.all_errors(statistic)
        return errors[number], records

    def all_errors(self, statistic: TableCounts) -> tuple[list[int], int]:
        """How many records each rule is wrong about, and how many there are. Private."""
        without, labelled = statistic.marginals[0]
        more = self.grid.over_matching(without - labelled) + labelled.sum()
        return [int(each) for each in more], int(without.sum() + labelled.sum())

    def rows(self) -> tuple[Row, ...]:
        """Parameters of each rule, in their order."""
        names = [name for name, _ in self.grid.parameters]
        possible = ([float(value) for value in values] for _, values in self.grid.parameters)
        return tuple(
            dict(zip(names, chosen, strict=True)) for chosen in itertools.product(*possible)
        )
