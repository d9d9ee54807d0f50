"""Rows of a release of quantiles, from what was drawn and from public facts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamdp.kinds.quantiles.error_bars.intervals import intervals, is_noisy
from streamdp.learning.learner import CountedPlan, DrawnPlan, Observation, Reading, Smoothed
from streamdp.mechanisms.histograms import Histogram
from streamdp.types import HARDLY_ANY, Row

if TYPE_CHECKING:
    from streamdp.kinds.quantiles.kind import Quantiles


def drawn_rows(kind: Quantiles, release_plan: DrawnPlan, cells: tuple[int, ...]) -> tuple[Row, ...]:
    """Rows of drawn quantiles, from their cells and public facts alone."""
    values = tuple(kind.grid.value(cell) for cell in cells)
    ends: list[Row] = [{} for _ in cells]
    if kind.expected_rows is not None:
        seen = Observation(values, release_plan=release_plan)
        about = kind.expected_rows, values, kind.believed_batch
        past = kind.learner.drawn_before(seen) if release_plan.basis else ()
        found = intervals(release_plan.tree, release_plan.prior, *about, past)
        ends = [{"lower": each.lower, "upper": each.upper} for each in found]
    return _rows(kind, values, "measured", ends)


def counted_rows(
    kind: Quantiles, release_plan: CountedPlan, counted: tuple[Histogram, ...]
) -> tuple[Row, ...]:
    """Rows of quantiles that follow from noisy counts, and from public facts alone."""
    read = kind.learner.read(release_plan, counted)
    values = tuple(kind.grid.value(value) for value, _, _ in read.cells)
    ends: list[Row] = [{} for _ in read.cells]
    if kind.expected_rows is not None:
        value = kind.grid.value
        ends = [{"lower": value(first), "upper": value(last)} for _, first, last in read.cells]
    return _rows(kind, values, "inferred", ends, read)


def _rows(
    kind: Quantiles,
    values: tuple[float, ...],
    origin: str,
    ends: list[Row],
    read: Reading | None = None,
) -> tuple[Row, ...]:
    said: Row = {"origin": origin} if kind.learner.counts_records else {}
    return tuple(
        {"quantile": float(quantile), "value": value, **said, **each, **_about_all(kind, read)}
        for quantile, value, each in zip(kind.quantiles, values, ends, strict=True)
    )


def _about_all(kind: Quantiles, read: Reading | None) -> Row:
    """How many records the batch has, which is the same in each of its rows."""
    if not kind.counts_records:
        return {}
    records = None if read is None else read.records
    names = "records", "records_lower", "records_upper"
    few = read is not None and read.hardly_any
    return dict(zip(names, records or (None,) * 3, strict=True)) | {
        "flag": HARDLY_ANY if few else None
    }


def smoothed_columns(kind: Quantiles, row: Row, each: Smoothed) -> Row:
    """Return the smoothed value and its interval, on the grid.

    Both intervals are about one quantile: where they have nothing in common, one misses, and
    that of the smoothed value reaches over both. It does so too where a single quantile is drawn so
    near the end of a batch that the mechanism often samples outside the data, since averaging does
    not help then. Else it is no wider than that of the release.
    """
    least, most = kind.grid.value(kind.grid.lower), kind.grid.value(kind.grid.upper)
    lower, upper = each.lower, each.upper
    if kind.expected_rows is not None:
        drawn = float(row["lower"] or 0), float(row["upper"] or 0)
        if lower > drawn[1] or upper < drawn[0] or _follows_the_prior(kind):
            lower, upper = min(lower, drawn[0]), max(upper, drawn[1])
        elif drawn[1] - drawn[0] < upper - lower:
            lower, upper = drawn
    return {
        "smoothed": each.point,
        "smoothed_lower": min(max(lower, least), each.point),
        "smoothed_upper": max(min(upper, most), each.point),
    }


def _follows_the_prior(kind: Quantiles) -> bool:
    """Whether a single quantile is drawn with so much noise that past draws do not show it."""
    if len(kind.quantiles) > 1 or kind.expected_rows is None:
        return False
    return is_noisy(kind.first_plan()[0], kind.expected_rows)
