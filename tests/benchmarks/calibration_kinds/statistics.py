"""Intervals of statistics: as drawn and smoothed, of counts and of moments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamdp.kinds.spec import BuildContext
from streamdp.kinds.statistics.build import build
from streamdp.kinds.statistics.kind import Statistics
from streamdp.kinds.statistics.section import StatisticsSection
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.privacy.price import Price
from streamdp.types import Batch, CompoundAnswer, CompoundQuery, FloatArray, Sums, TableCounts
from tests.benchmarks.calibration_kinds.counts import CountStream
from tests.benchmarks.calibration_kinds.intervals import Intervals
from tests.benchmarks.calibration_kinds.values import Values, ValueStream
from tests.benchmarks.report import Row

DAY = 86_400
START = 1_356_998_400  # 2013-01-01

COLUMNS = {"value": ("lower", "upper"), "smoothed": ("smoothed_lower", "smoothed_upper")}
REASONS = {
    "value": "noise is of whole numbers, and clipping hides an unknown part of a tail",
    "smoothed": "releases do not say that batches are alike by more than chance",
}

Answer = Callable[[CompoundQuery, int], CompoundAnswer | tuple[CompoundAnswer, ...]]


@dataclass(frozen=True, slots=True)
class Stream:
    """A kind as a configuration builds it, what a backend answers it, and what is true.

    Args:
        kind: Of one measure.
        answer: To a query about a day.
        truth: Shape (days, series); not a number where nothing is true.
        least: Step of the values.
    """

    kind: Statistics
    answer: Answer
    truth: FloatArray
    least: float


def counted(counts: FloatArray, price: Price, rows: int = 1) -> Stream:
    """Rows of a histogram; of a count, where there is one series."""
    names = [str(each) for each in range(counts.shape[1])]
    kind = _kind({"histogram": "x", "values": names}, price, rows=rows)

    def answer(_: CompoundQuery, day: int) -> CompoundAnswer:
        return CompoundAnswer((TableCounts((counts[day].astype(np.int64),)),))

    return Stream(kind, answer, counts, 1.0)


def measured(
    values: Values, moment: str, measure: dict[str, Any], price: Price, rows: int = 1
) -> Stream:
    """Rows of a sum, a mean or a variance, by group where there are some."""
    groups = len(values[0])
    kind = _kind({moment: "x"} | measure, price, groups=groups if groups > 1 else 0, rows=rows)
    grid = kind.measures[0].grid  # type: ignore[attr-defined]
    step = float(grid.resolution)

    def cells(found: FloatArray) -> FloatArray:
        return np.clip(np.floor(found / step + 0.5), grid.lower, grid.upper)

    def answer(query: CompoundQuery, day: int) -> CompoundAnswer | tuple[CompoundAnswer, ...]:
        each = tuple(_of_group(query, cells(found), step) for found in values[day])
        return each if groups > 1 else each[0]

    truth = np.array([[_moment(moment, cells(found) * step) for found in day] for day in values])
    return Stream(kind, answer, truth, step)


def of_counts(
    stream: CountStream, price: Price, days: int | None = None, rows: int = 1
) -> Iterator[Row]:
    """How often intervals of counts hold."""
    counts = stream.counts()[:days]
    about = _about(
        "statistics, count" + _units(rows), stream.name, float(counts.sum(axis=1).mean()), price
    )
    yield from _intervals(about, counted(counts, price, rows))


def of_moment(
    stream: ValueStream, moment: str, price: Price, days: int | None = None, rows: int = 1
) -> Iterator[Row]:
    """How often intervals of a sum, a mean or a variance hold."""
    values = stream.values()[:days]
    mean = float(np.mean([sum(map(len, day)) for day in values]))
    about = _about(f"statistics, {moment}" + _units(rows), stream.name, mean, price)
    yield from _intervals(about, measured(values, moment, stream.measure, price, rows))


def _moment(moment: str, values: FloatArray) -> float:
    """Of an empty batch nothing is true: what is released of it is not counted."""
    if not len(values):
        return 0.0 if moment == "sum" else float("nan")
    found = {"sum": values.sum(), "mean": values.mean(), "variance": values.var()}
    return float(found[moment])


def _of_group(query: CompoundQuery, cells: FloatArray, step: float) -> CompoundAnswer:
    table, *sums = query.parts
    (axis,) = table.dimensions  # type: ignore[union-attr]
    places = np.searchsorted(np.array(axis.cuts), cells * step, side="right")
    parts: list[Any] = [TableCounts((np.bincount(places, minlength=axis.size).astype(np.int64),))]
    for part in sums:
        (term,) = part.terms  # type: ignore[union-attr]
        found = np.clip(cells, term.grid.lower, term.grid.upper) - term.centre
        parts.append(Sums((int((found**2 if term.square else found).sum()),)))
    return CompoundAnswer(tuple(parts))


def _intervals(about: dict[str, Any], stream: Stream) -> Iterator[Row]:
    rows = list(released(stream, f"calibration {about}"))
    known = np.isfinite(stream.truth)
    for point, (lower, upper) in COLUMNS.items():
        names = (point, lower, upper)
        ends = (np.array([[row[name] for row in each] for each in rows]) for name in names)
        points, lowers, uppers = (np.where(known, each, 0.0) for each in ends)
        level = next(each.level for each in stream.kind.columns if each.name == lower)
        truth = np.where(known, stream.truth, 0.0)
        intervals = Intervals(truth, points, lowers, uppers, stream.least)
        yield intervals.row(about, point, level, REASONS[point])


def released(stream: Stream, chance: str) -> Iterator[Sequence[Any]]:
    """Rows of each release, learning as production does, with chance that can be repeated."""
    kind, entropy = stream.kind, PublicEntropy(chance)
    state = kind.init()
    for day in range(len(stream.truth)):
        plan = kind.plan(state, Batch("s", str(day), START + day * DAY, START + (day + 1) * DAY))
        assert isinstance(plan.query, CompoundQuery)
        drawn = kind.draw(plan, stream.answer(plan.query, day), entropy)
        state = json.loads(json.dumps(kind.learn(state, plan, drawn)))
        yield kind.publish(state, drawn).rows


def _kind(measure: dict[str, Any], price: Price, groups: int = 0, rows: int = 1) -> Statistics:
    section: dict[str, Any] = {"kind": "statistics", "source": "s", price.measure: price.amount}
    section |= {"measures": {"n": measure}}
    if groups:
        section |= {"by": ["g"], "groups": [[str(each)] for each in range(groups)]}
    context = BuildContext("add-remove", rows, 1, "duckdb", None)  # type: ignore[arg-type]
    return build(StatisticsSection.model_validate(section), context)


def _units(rows: int) -> str:
    return f", units of {rows} rows" if rows > 1 else ""


def _about(who: str, data: str, n: float, price: Price) -> dict[str, Any]:
    amount = float(price.amount)
    epsilon, rho = (amount, None) if price.measure == "epsilon" else (None, amount)
    return {"who": who, "data": data, "n": round(float(n), 1), "epsilon": epsilon, "rho": rho}
