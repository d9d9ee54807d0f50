"""Halfspaces over features that are cut at public values, scored from one table of counts.

A feature counts as the largest of its values that is not above it, or as the first. So all records
of a cell of the features lie on the same side of each halfspace, and a table of counts by cell has
the errors of all of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from streamdp.kinds.rules.grid import Parameters, Value
from streamdp.types import Column, Dimension, IntArray, TableQuery

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
