"""Rows of a release of quantiles, from what was drawn and from public facts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamdp.kinds.quantiles.error_bars.intervals import intervals
from streamdp.learning.learner import Smoothed
from streamdp.types import Row

if TYPE_CHECKING:
    from streamdp.kinds.quantiles.kind import QuantilePlan, Quantiles


def drawn_rows(kind: Quantiles, plan: QuantilePlan, cells: tuple[int, ...]) -> tuple[Row, ...]:
    """Rows of a release, from drawn cells and public facts alone."""
    way, learner = plan.way, kind.learner
    drawn: tuple[int, ...] = tuple(range(len(cells)))
    known, ends = cells, dict[int, tuple[float, float]]()
    if way is not None:
        drawn, known = way.targets, learner.values(way, cells)
        ends = learner.inferred(way, cells, known)
    if kind.expected_rows is not None:
        values = tuple(kind.grid.value(cell) for cell in cells)
        thin = 0.0 if way is None else learner.width_of_rank(way, values[0])
        about = kind.expected_rows, values, kind.believed_batch, thin
        found = intervals(plan.tree, plan.prior, *about)
        for index, each in zip(drawn, found, strict=True):
            ends[index] = each.lower, each.upper
    rows: list[Row] = []
    for index, (quantile, cell) in enumerate(zip(kind.quantiles, known, strict=True)):
        row: Row = {"quantile": float(quantile), "value": kind.grid.value(cell)}
        if way is not None:
            row = {**row, "origin": "measured" if index in drawn else "inferred"}
        if kind.expected_rows is not None:
            row = {**row, "lower": ends[index][0], "upper": ends[index][1]}
        rows.append(row)
    return tuple(rows)


def smoothed_columns(kind: Quantiles, row: Row, each: Smoothed) -> Row:
    """Belief about a quantile, on the grid.

    Both intervals are about one quantile: where they have nothing in common, one misses, and
    that of the smoothed value reaches over both.
    """
    least, most = kind.grid.value(kind.grid.lower), kind.grid.value(kind.grid.upper)
    lower, upper = each.lower, each.upper
    if kind.expected_rows is not None:
        drawn = float(row["lower"] or 0), float(row["upper"] or 0)
        if lower > drawn[1] or upper < drawn[0]:
            lower, upper = min(lower, drawn[0]), max(upper, drawn[1])
    return {
        "smoothed": each.point,
        "smoothed_lower": min(max(lower, least), each.point),
        "smoothed_upper": max(min(upper, most), each.point),
    }
