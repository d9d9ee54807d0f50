"""Totals that agree with their parts: least squares over released values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamdp.kinds.statistics.measures.protocol import Rows
from streamdp.types import FloatArray

LEAST = 1e-100
"""Least variance that is divided by: that of noise which is never drawn is 0."""


@dataclass(frozen=True, slots=True)
class Tie:
    """A count that the cells of a histogram add up to, in each group.

    Args:
        total: Number of the count among the measures.
        parts: Number of the histogram, whose cells hold every record.
    """

    total: int
    parts: int


def agreed(ties: Sequence[Tie], rows: Sequence[Rows], groups: int) -> list[FloatArray]:
    """Values of all measures, of which tied ones agree; the others as they are.

    With a total t of noise variance R and k parts p_i of variance Q each, several histograms of one
    total being ties of their own, the least squares solution is the mean of t and of the sums of
    parts, weighted by 1/R and 1/(k·Q), and each part moves by the same.

    Args:
        ties: Which; a histogram is in one tie.
        rows: Of each measure, group after group.
        groups: How many there are.
    """
    values = [each.value.copy() for each in rows]
    for total in {tie.total for tie in ties}:
        parts = [tie.parts for tie in ties if tie.total == total]
        tables = [values[part].reshape(groups, -1) for part in parts]
        weights = [1.0 / max(rows[total].variance[0], LEAST)]
        weights += [
            1.0 / (table.shape[1] * max(rows[part].variance[0], LEAST))
            for part, table in zip(parts, tables, strict=True)
        ]
        sums = [values[total], *(table.sum(axis=1) for table in tables)]
        best = sum(w * each for w, each in zip(weights, sums, strict=True)) / sum(weights)
        for part, table in zip(parts, tables, strict=True):
            moved = (best - table.sum(axis=1)) / table.shape[1]
            values[part] = (table + moved[:, None]).reshape(-1)
        values[total] = best
    return values
