"""Intervals of answers about periods: counts, sums and means of statistics, cells of workloads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from streamdp.answers.job import Answer, Measured, mean, summed
from streamdp.answers.tables import Part
from streamdp.errors import ConfigurationError
from streamdp.kinds.spec import BuildContext
from streamdp.kinds.statistics.build import build
from streamdp.kinds.statistics.kind import Statistics
from streamdp.kinds.statistics.section import StatisticsSection
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.privacy.price import Price
from streamdp.types import (
    Batch,
    CompoundAnswer,
    CompoundQuery,
    FloatArray,
    IntArray,
    MeasuredRelease,
    Sums,
    TableCounts,
    TableQuery,
)
from tests.benchmarks.calibration_kinds.intervals import Intervals
from tests.benchmarks.calibration_kinds.statistics import DAY, START
from tests.benchmarks.calibration_kinds.values import ValueStream
from tests.benchmarks.calibration_kinds.workload import _kind, _marginal
from tests.benchmarks.report import Row

PERIODS = (1, 7, 28)
MOST, REPEATS = 8, 6
"""Periods of one length, and how often they are released."""

REASON = "what batches did not measure rests on those that did"
ROUNDED = "noise is of whole numbers"

Found = dict[str, list[tuple[float, float, float, float]]]
"""By measure: truth, value, lower and upper end of each answer."""


def of_values(stream: ValueStream, price: Price) -> Iterator[Row]:
    """Rows of a count, a sum, a mean and a quotient, by group and of all groups together."""
    values = stream.values()
    groups = [str(each) for each in range(len(values[0]))]
    section: dict[str, Any] = {
        "kind": "statistics",
        "source": "s",
        price.measure: price.amount,
        "measures": {
            "n": "count",
            "sum": {"sum": "x"} | stream.measure,
            "mean": {"mean": "x"} | stream.measure,
        },
    }
    if len(groups) > 1:
        section |= {"by": ["g"], "groups": [[each] for each in groups]}
    kind = build(
        StatisticsSection.model_validate(section),
        BuildContext("add-remove", 1, 1, "duckdb", None),  # type: ignore[arg-type]
    )
    grid = next(each.grid for each in kind.measures if hasattr(each, "grid"))
    step = float(grid.resolution)
    cells = [
        [np.clip(np.floor(x / step + 0.5), grid.lower, grid.upper) for x in day] for day in values
    ]
    found: dict[int, Found] = {length: {} for length in PERIODS}
    for repeat in range(REPEATS):
        entropy = PublicEntropy(f"periods {stream.name} {price} {repeat}")
        measured = _released(kind, cells, step, entropy)
        for length in PERIODS:
            for places in stretches(len(values), length):
                _ask_values(measured, cells, step, places, found[length])
    for length in PERIODS:
        yield from _rows("statistics", stream.name, price, length, found[length], ROUNDED)


def _released(
    kind: Statistics, cells: Sequence[Sequence[FloatArray]], step: float, entropy: PublicEntropy
) -> Measured:
    """Releases of all days, learning as production does."""
    state, releases = kind.init(), []
    for day, each in enumerate(cells):
        batch = Batch("s", str(day), START + day * DAY, START + (day + 1) * DAY)
        plan = kind.plan(state, batch)
        assert isinstance(plan.query, CompoundQuery)
        parts: tuple[CompoundAnswer, ...] = tuple(_answer(plan.query, x, step) for x in each)
        drawn = kind.draw(plan, parts if len(parts) > 1 else parts[0], entropy)
        releases.append(MeasuredRelease(batch.key, kind.name, batch, 0, kind.measured(plan, drawn)))
        state = json.loads(json.dumps(kind.learn(state, plan, drawn)))
    return Measured("job", tuple(releases))


def _answer(query: CompoundQuery, cells: FloatArray, step: float) -> CompoundAnswer:
    """What the records of one group say."""
    parts: list[Any] = []
    for part in query.parts:
        if isinstance(part, TableQuery):
            counts = np.array([len(cells)])
            for axis in part.dimensions:
                places = np.searchsorted(np.array(axis.cuts), cells * step, side="right")
                counts = np.bincount(places, minlength=axis.size)
            parts.append(TableCounts((counts.astype(np.int64),)))
        else:
            (term,) = part.terms  # type: ignore[union-attr]
            found = np.clip(cells, term.grid.lower, term.grid.upper) - term.centre
            parts.append(Sums((int(found.sum()),)))
    return CompoundAnswer(tuple(parts))


def _ask_values(
    measured: Measured,
    cells: Sequence[Sequence[FloatArray]],
    step: float,
    places: Sequence[int],
    found: Found,
) -> None:
    counts, sums = [], []
    for number, group in enumerate(measured.groups):
        records = np.concatenate([cells[place][number] for place in places])
        counts.append((measured.total("n", places, group), float(len(records))))
        whole = measured.total("sum", places, group)
        sums.append((whole, float(records.sum()) * step))
        if len(records) and counts[-1][0].lower > 0:
            quotient = mean(whole, counts[-1][0])
            _add(found, "sum over count", [quotient], [sums[-1][1] / len(records)])
        _ask_mean(measured, places, (group,), records * step, "mean", found)
    if len(counts) > 1:
        together = np.concatenate([each for place in places for each in cells[place]])
        groups = measured.groups
        _ask_mean(measured, places, groups, together * step, "mean of all groups", found)
    for what, each in (("count", counts), ("sum", sums)):
        answers, truths = [answer for answer, _ in each], [truth for _, truth in each]
        _add(found, what, answers, truths)
        if len(answers) == len(counts) > 1:
            _add(found, f"{what} of all groups", [summed(answers)], [sum(truths)])


def _ask_mean(
    measured: Measured,
    places: Sequence[int],
    groups: Sequence[tuple[str, ...]],
    records: FloatArray,
    what: str,
    found: Found,
) -> None:
    try:
        answer = measured.mean("mean", places, groups)
    except ConfigurationError:  # there may be hardly any records
        return
    _add(found, what, [answer], [float(records.mean())])


def of_tables(name: str, tables: Sequence[IntArray], price: Price) -> Iterator[Row]:
    """Rows of the cells of a workload's tables, and of conditions over two axes."""
    kind = _kind(tables, price, "private")
    state, releases = kind.init(), []
    for number, table in enumerate(tables):
        batch = Batch("s", str(number), START + number * DAY, START + (number + 1) * DAY)
        plan = kind.plan(state, batch)
        statistic = TableCounts(tuple(_marginal(table, axes) for axes in kind._marginals()))
        drawn = kind.draw(plan, statistic, PublicEntropy(f"periods {name} {price} {number}"))
        state = kind.learn(state, plan, drawn)
        releases.append(MeasuredRelease(batch.key, kind.name, batch, 0, kind.measured(plan, drawn)))
    measured = Measured("job", tuple(releases))
    chance = np.random.default_rng(7)
    for length in PERIODS:
        found: Found = {}
        for places in stretches(len(tables), length):
            whole = sum(tables[place] for place in places)
            crossed = measured.crossed(tuple(places))
            for axes in kind._marginals():
                names = tuple(kind.dimensions[axis].name for axis in axes)
                exact = _marginal(np.asarray(whole), axes)
                mask = chance.integers(0, 2, exact.shape).astype(np.float64)
                mask.flat[0] = 1.0
                try:
                    counts = crossed.tables.table(names)
                    part = crossed.part(Part("x", names, mask))
                except (ValueError, ConfigurationError):
                    continue
                if len(axes) > 1:
                    _add(found, "condition", [part], [float((exact * mask).sum())])
                cells = [
                    Answer.between(value, value - half, value + half, length)
                    for value, half in zip(counts.counts.flat, counts.halves.flat, strict=True)
                ]
                what = "records" if not axes else f"cell of {len(axes)} axes"
                _add(found, what, cells, exact.reshape(-1).tolist())
        yield from _rows("workload", name, price, length, found, REASON)


def stretches(count: int, length: int) -> Iterator[range]:
    """Some periods of a length, evenly over a stream."""
    firsts = np.unique(np.linspace(0, max(count - length, 0), MOST).astype(int))
    return (range(first, min(first + length, count)) for first in firsts.tolist())


def _add(found: Found, what: str, answers: Sequence[Answer], truths: Sequence[float]) -> None:
    rows = [
        (truth, each.value, each.lower, each.upper)
        for each, truth in zip(answers, truths, strict=True)
    ]
    found.setdefault(what, []).extend(rows)


def _rows(
    kind: str, data: str, price: Price, length: int, found: Found, reason: str
) -> Iterator[Row]:
    amount = float(price.amount)
    for what, rows in found.items():
        if not rows:
            continue
        truth, value, lower, upper = (np.array(each)[:, None] for each in zip(*rows, strict=True))
        about: dict[str, Any] = {
            "who": f"{kind}, {length} days",
            "data": data,
            "n": float(len(rows)),
            "epsilon": amount if price.measure == "epsilon" else None,
            "rho": amount if price.measure == "rho" else None,
        }
        yield Intervals(truth, value, lower, upper, 1e-6).row(about, what, 0.95, reason)
