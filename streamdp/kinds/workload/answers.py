"""Rows of a fitted distribution: answers with intervals, or synthetic records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from streamdp.kinds.axes import labels
from streamdp.kinds.workload.fitting.distribution import (
    DomainMasses,
    Marginal,
    NoisyMarginal,
    Workload,
)
from streamdp.kinds.workload.fitting.hypotheses import UNIFORM
from streamdp.kinds.workload.fitting.spread import WIDTH
from streamdp.kinds.workload.weights import DrawnWorkload
from streamdp.privacy.draws import uniform_below
from streamdp.types import HARDLY_ANY, Column, Dimension, Entropy, FloatArray, Row

LEVEL = 0.95
TOTAL = "all records"
RECORD = "synthetic record"
"""The answer of a row that is a synthetic record."""

_DECIMALS = 3
_TICKET = 2**60

LEAST_VARIANCE = 1e-100
"""Least variance that is divided by: noise that is never drawn has none."""

FEW, FEW_SHARE, FALLEN, MANY, SURE = 5.0, 0.1, 0.3, 10.0, 4.0
"""Fewer records than five or a tenth of the usual number are hardly any, if the estimate is below
three tenths of it; a usual number below ten and four deviations of the noise tells nothing."""

FEW_RECORDS = 2**20
TIMES_EXPECTED = 16
"""A release has at most so many synthetic records, or so many times those that are expected."""


def columns(
    dimensions: Sequence[Dimension], raw: bool, records: bool, online: bool, counted: str
) -> tuple[Column, ...]:
    """Columns of a row: which cell of which item, and its answer; or a record's cells.

    Args:
        dimensions: The axes.
        raw: Whether noisy counts stand beside the answers.
        records: Whether rows are synthetic records alone.
        online: Whether tables were tested in turn.
        counted: What an answer is a number of.
    """
    axes = tuple(Column(each.name, "text", "label") for each in dimensions)
    if records:
        return axes
    bound = (Column("bound", "number", "value", counted),) if online else ()
    measured = (Column("measured", "number", "value", counted),) if raw else ()
    return (
        Column("answer", "text", "label"),
        *axes,
        Column("value", "number", "value", counted),
        Column("lower", "number", "lower", counted, "value", LEVEL),
        Column("upper", "number", "upper", counted, "value", LEVEL),
        *bound,
        *measured,
        Column("records", "number", "batch", counted),
        Column("records_lower", "number", "lower", counted, "records", LEVEL),
        Column("records_upper", "number", "upper", counted, "records", LEVEL),
        Column("flag", "text", "flag"),
    )


def rows(
    workload: Workload,
    names: Sequence[str],
    dimensions: Sequence[Dimension],
    drawn: DrawnWorkload,
    raw: bool,
    online: bool = False,
    usual: float | None = None,
) -> tuple[Row, ...]:
    """Every answer; they agree with each other, being of one distribution.

    Args:
        workload: Domain and items.
        names: Of the items.
        dimensions: The axes.
        drawn: What was measured, and the distribution.
        raw: Whether noisy counts stand beside the answers.
        online: Whether tables were tested in turn.
        usual: Records of past batches; None before there was one.
    """
    fit, measured = drawn.fit, drawn.measured
    total = fit.distribution.total()
    noise = [each.variance * len(each.values) for each in measured]
    spread = WIDTH * float(np.sqrt(min(noise, default=0.0)))
    facts = (("bound",) if online else ()) + (("measured",) if raw else ())
    found: list[Row] = [_answer(TOTAL, {}, total, spread) | dict.fromkeys(facts)]
    for place, item in enumerate(workload.items):
        masses = fit.distribution.masses(item)
        halves = fit.spread.half_widths(
            workload, place, masses, measured, fit.hypothesis == UNIFORM
        )
        noisy = next((each.values for each in measured if each.place == place), None)
        passed = drawn.passed.get(place)
        bound = None if passed is None else passed.around(masses) + 10.0**-_DECIMALS
        if bound is not None:
            halves = np.minimum(halves, bound)
        known = {"bound": bound, "measured": noisy}
        for cell, about in _cells(item, dimensions):
            row = _answer(names[place], about, masses[cell], halves[cell])
            for name in facts:
                values = known[name]
                row[name] = None if values is None else round(float(values[cell]), _DECIMALS)
            found.append(row)
    of_all = _records(measured, usual)
    return tuple({**row, **of_all} for row in found)


def _records(measured: Sequence[NoisyMarginal], usual: float | None) -> Row:
    """How many records the batch has, which is the same in each row; a flag if hardly any.

    The cells of each measured table hold every record once, so their sum is the number with the
    noise of all cells; sums of several tables are averaged by their noise. It leans on no past.
    """
    sums = [(float(each.values.sum()), each.variance * len(each.values)) for each in measured]
    if not sums:
        return dict.fromkeys(("records", "records_lower", "records_upper", "flag"))
    weights = [1.0 / max(variance, LEAST_VARIANCE) for _, variance in sums]
    value = sum(w * total for w, (total, _) in zip(weights, sums, strict=True)) / sum(weights)
    deviation = float(np.sqrt(1.0 / sum(weights)))
    value, lower, upper = (max(value + width * deviation, 0.0) for width in (0.0, -WIDTH, WIDTH))
    told = usual is not None and usual > MANY + SURE * deviation
    few = told and lower < min(FEW, FEW_SHARE * (usual or 0.0)) and value < FALLEN * (usual or 0.0)
    return {
        "records": round(value, _DECIMALS),
        "records_lower": round(lower, _DECIMALS),
        "records_upper": round(upper, _DECIMALS),
        "flag": HARDLY_ANY if few else None,
    }


def _answer(
    name: str, about: dict[str, str], value: float, half: float
) -> dict[str, float | str | int | None]:
    low, high = max(value - half, 0.0), value + half
    known = zip(("value", "lower", "upper"), (value, low, high), strict=True)
    return {"answer": name, **about, **{key: round(float(x), _DECIMALS) for key, x in known}}


def _cells(item: Marginal, dimensions: Sequence[Dimension]) -> Iterator[tuple[int, dict[str, str]]]:
    """Cells of an item that are published, with their labels: of a predicate where it holds."""
    if item.labels is not None:
        yield 1, {}
        return
    called = [labels(dimensions[axis]) for axis in item.axes]
    for cell in range(item.size):
        places = np.unravel_index(cell, item.shape)
        yield (
            cell,
            {
                dimensions[axis].name: names[int(place)]
                for axis, names, place in zip(item.axes, called, places, strict=True)
            },
        )


def records(
    dimensions: Sequence[Dimension], distribution: DomainMasses, entropy: Entropy, most: int
) -> tuple[Row, ...]:
    """Synthetic records, as many as the distribution's total; the chance touches no data.

    Args:
        dimensions: The axes, of a domain that is held as an array.
        distribution: What they are drawn from, independently.
        entropy: Source of chance.
        most: Records there may be, whatever the noise makes of the total.
    """
    masses: FloatArray = distribution.marginal(tuple(range(len(dimensions))))
    running = np.cumsum(masses.reshape(-1))
    count = min(max(round(float(running[-1])), 0), most)
    tickets = [uniform_below(_TICKET, entropy) / _TICKET for _ in range(count)]
    cells = np.minimum(
        np.searchsorted(running, np.array(tickets) * running[-1], side="right"), len(running) - 1
    )
    called = [labels(each) for each in dimensions]
    places = np.unravel_index(cells, masses.shape)
    return tuple(
        {
            each.name: names[int(place)]
            for each, names, place in zip(dimensions, called, record, strict=True)
        }
        for record in zip(*places, strict=True)
    )
