"""Counts of all records or of those a condition is true of, and histograms over public axes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from streamdp.kinds.statistics.measures.protocol import LEVEL, Allowance, AskedPart, Rows
from streamdp.kinds.statistics.measures.series_filter import SeriesFilter
from streamdp.mechanisms.noise import Noise
from streamdp.types import Dimension, Json, TableQuery


@dataclass(frozen=True, slots=True)
class Count:
    """The number of records, or their numbers in each cell of an axis.

    Args:
        name: As configured.
        axis: Cells; None counts all records.
        condition: Whether the axis is a condition, whose only cell holds what it is true of.
    """

    name: str
    axis: Dimension | None = None
    condition: bool = False

    of_unit: ClassVar[bool] = False

    def statistic(self, cell: int) -> str:
        """`count`, also for each cell of a histogram."""
        return "count"

    @property
    def counts(self) -> bool:
        """True: truths are whole numbers from zero up."""
        return True

    @property
    def cells(self) -> tuple[str, ...]:
        """Labels of a histogram's cells; a count has one row without a label."""
        return ("",) if self.axis is None or self.condition else labels(self.axis)

    def signature(self) -> Json:
        """The axis that is counted over."""
        if self.axis is None:
            return {"count": "records"}
        return {"count": [self.axis.name, self.axis.sql], "cells": list(labels(self.axis))}

    def table(self) -> TableQuery:
        """The question: its cells, of all records."""
        axes = () if self.axis is None else (self.axis,)
        return TableQuery(axes, (tuple(range(len(axes))),))

    def asked(self, state: Json, price: Allowance) -> tuple[AskedPart, ...]:
        """One table of counts, with its noise.

        Privacy: a record is in one cell of one group at most: one more changes one count by one;
        exchanged, one count falls and another rises, of which there is one where there is one cell.
        """
        cells = min(2, len(self.cells))
        return (AskedPart(self.table(), price.noise(1, cells, entries=cells)),)

    def follow(
        self,
        state: Json,
        asked: Sequence[AskedPart],
        noisy: Sequence[Sequence[int]],
        groups: Sequence[tuple[str, ...]],
        weekday: int | None,
    ) -> tuple[Json, Rows]:
        """Counts with the reach of their noise, and what all releases say of them."""
        after, rows = counted(self.cells, state, asked[0].noise, noisy[0], groups, weekday)
        return after, replace(rows, empty=rows.empty & (self.axis is None))


def counted(
    cells: Sequence[str],
    state: Json,
    noise: Noise,
    noisy: Sequence[int],
    groups: Sequence[tuple[str, ...]],
    weekday: int | None,
) -> tuple[Json, Rows]:
    """The next state and the rows of noisy counts of each cell of each group."""
    values = np.array(noisy, dtype=np.float64)
    variance = np.full(len(values), noise.variance)
    keys = tuple(json.dumps([*g, c]) for g, c in itertools.product(groups, cells))
    series = SeriesFilter(keys, gaussian=noise.gaussian)
    after, found = series.step(state, values.tolist(), variance.tolist(), weekday)
    reach = noise.reach(LEVEL)
    return after, Rows(
        values,
        values - reach,
        values + reach,
        found.point,
        np.floor(found.lower),
        np.ceil(found.upper),
        variance,
        series.emptied(state, found, variance.tolist()),
    )


def labels(axis: Dimension) -> tuple[str, ...]:
    """Names of the cells of an axis.

    >>> labels(Dimension("delay", cuts=(0.0, 15.0), nulls="cell"))
    ('< 0', '0 to < 15', '>= 15', '(null)')
    """
    if axis.values is not None:
        named = list(axis.values)
    elif axis.cuts:
        cuts = [_short(cut) for cut in axis.cuts]
        between = [f"{low} to < {high}" for low, high in itertools.pairwise(cuts)]
        named = [f"< {cuts[0]}", *between, f">= {cuts[-1]}"]
    else:
        named = ["all"]
    named += ["(other)"] * axis.other + ["(null)"] * (axis.nulls == "cell")
    return tuple(named)


def _short(number: float) -> str:
    whole = Fraction(number)
    return str(whole.numerator) if whole.denominator == 1 else repr(number)
