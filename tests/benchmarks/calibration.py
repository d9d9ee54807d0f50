"""How often published intervals hold what they are about, and how wide they are.

`python -m tests.benchmarks.calibration [--json] [--quick]`. A row is a cell: `coverage` is the
share of intervals that hold the batch's own quantile (any value at which its rank is right), over
all quantiles and batches of the cell; `width_ratio` is their median width over the width that
would hold 95 % of the true errors, 1 at best. Rows of `plan` say whether the epsilon it recommends
reaches the rank error that was asked for. Synthetic batches are drawn anew for each release;
real ones are the days of the flights. Any learner of the configuration can be asked for; `mixture`
is the default, which draws its first release and counts later ones, so its rows `value` are of
counts but for a single quantile. `reason` says why intervals of a cell are wider than they need be,
from public facts alone.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np

from streamdp.kinds.quantiles.accuracy import RankError
from streamdp.kinds.quantiles.error_bars.intervals import faint, is_noisy
from streamdp.kinds.quantiles.section import QuantilesSection
from streamdp.kinds.quantiles.spec import build
from streamdp.kinds.spec import BuildContext
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy, rank_error
from streamdp.types import Batch, CellCounts, FloatArray, Grid
from tests.benchmarks.report import Row, main
from tests.benchmarks.streams.settings import flights

ROWS = 1000
"""Of a synthetic batch; real days have about 900."""

WARM = 5
"""Releases that are not counted where one learns."""

SURE = 0.99
"""Coverage above which a cell is wider than its level asks for."""

TARGETS = {
    "median": (Fraction(1, 2),),
    "0.99": (Fraction(99, 100),),
    "0.9 0.95 0.99": (Fraction(9, 10), Fraction(19, 20), Fraction(99, 100)),
    "deciles": tuple(Fraction(i, 10) for i in range(1, 10)),
    "0.1 0.5 0.9": (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)),
    "29": tuple(Fraction(i, 30) for i in range(1, 30)),
}

FORMS: dict[str, Any] = {
    "auto": "auto",
    "binary": {"branching": 2},
    "joint": {"branching": 10, "node": "joint"},
    "tree of 4, shapes": {"branching": 4, "node": "joint", "level_power": 5, "shapes": True},
}


INFORMATIONS = (10, 30, 100, 300, 1000, 10_000)
"""Epsilon times the records of a batch."""


@dataclass(frozen=True, slots=True)
class Data:
    """Batches, in the cells of a grid.

    Args:
        name: In the rows.
        batch: Cells of batch number i.
        resolution: Of the grid.
        guess: What a user would have written: place and spread, neither exact.
        rows: That batches have, and are expected to have.
        expected: What is expected instead.
        bounds: Of the grid; none for most.
    """

    name: str
    batch: Callable[[int], FloatArray]
    resolution: str
    guess: tuple[float, float]
    rows: int = ROWS
    expected: int | None = None
    bounds: tuple[str, str] | None = None


def _drawn(name: str, law: Callable[[np.random.Generator], FloatArray], resolution: str) -> Data:
    def batch(number: int) -> FloatArray:
        values = law(np.random.default_rng([number, len(name)]))
        return np.rint(values / float(Fraction(resolution)))

    return Data(name, batch, resolution, (0.3, 1.5))


def data() -> tuple[Data, ...]:
    """Six shapes, and two real streams."""
    n, fine = ROWS, "0.001"
    return (
        _drawn("normal", lambda g: g.normal(size=n), fine),
        _drawn("lognormal", lambda g: np.exp(g.normal(size=n)), fine),
        _drawn("heavy tails", lambda g: g.standard_t(1.5, n), fine),
        _drawn("ties", lambda g: g.poisson(2.0, n).astype(float), "1"),
        _drawn("two humps", _humps, fine),
        _drawn("uniform", lambda g: 3.4 * g.random(n) - 1.7, fine),
        _flights("air_time", (120.0, 60.0)),
        _flights("arrival_delay", (0.0, 30.0)),
    )


def _humps(generator: np.random.Generator) -> FloatArray:
    side = np.where(generator.random(ROWS) < 0.35, -1.3, 1.3)
    return np.asarray(side + 0.55 * generator.normal(size=ROWS))


def _flights(column: str, guess: tuple[float, float]) -> Data:
    @functools.cache
    def days() -> tuple[CellCounts, ...]:
        return flights(column).counts

    def batch(number: int) -> FloatArray:
        counts = days()[number % len(days())]
        return np.repeat(counts.cells, counts.counts).astype(float)

    return Data(f"flights, {column}", batch, "1", guess, 900)


def kind_of(data: Data, quantiles: str, information: float, who: str) -> Any:
    """The kind that a configuration would make; `who` is a learner or, of none, a form."""
    epsilon = Fraction(str(round(information / data.rows, 9)))
    learns = who not in FORMS
    section = QuantilesSection.model_validate(
        {
            "kind": "quantiles",
            "source": "s",
            "column": "x",
            "quantiles": [str(quantile) for quantile in TARGETS[quantiles]],
            "resolution": data.resolution,
            "bounds": data.bounds,
            "guess": {"location": data.guess[0], "scale": data.guess[1]},
            "epsilon": str(epsilon),
            "expected_rows": data.expected or data.rows,
            "mechanism": "auto" if learns else FORMS[who],
            "prior": {"learner": who if learns else "none"},
        }
    )
    return build(section, BuildContext("add-remove", 1, 1, "duckdb", cast(Any, None)))


@dataclass(frozen=True, slots=True)
class Seen:
    """Released intervals of one batch with what they are about; each of shape (m,)."""

    value: FloatArray
    first: FloatArray
    last: FloatArray
    unit: FloatArray
    rows: tuple[Any, ...]


def released(kind: Any, data: Data, repeats: int, skip: int) -> Iterator[Seen]:
    """Releases of batches one after the other, learning as production does."""
    entropy, state = PublicEntropy(f"calibration {data.name}"), kind.init()
    for number in range(repeats + skip):
        cells = np.sort(data.batch(number)).clip(kind.grid.lower, kind.grid.upper)
        plan = kind.plan(state, Batch("s", str(number)))
        counts = CellCounts(*np.unique(cells.astype(np.int64), return_counts=True))
        outcome = kind.draw(plan, counts, entropy)
        state = json.loads(json.dumps(kind.learn(state, plan, outcome)))
        if number >= skip:
            rows = kind.publish(state, outcome).rows
            yield _seen(kind.grid, kind.quantiles, cells, rows)


def _seen(
    grid: Grid, quantiles: tuple[Fraction, ...], cells: FloatArray, rows: tuple[Any, ...]
) -> Seen:
    ranks = np.array([float(quantile) for quantile in quantiles]) * len(cells)
    width, top = float(grid.resolution), len(cells) - 1
    around = [np.floor(ranks) + step for step in (-1, 1)]
    low, high = (cells[each.clip(0, top).astype(int)] * width for each in around)
    ends = (cells[each.clip(0, top).astype(int)] for each in (np.ceil(ranks) - 1, np.floor(ranks)))
    first, last = (np.array([grid.value(int(cell)) for cell in each]) for each in ends)
    value = np.array([row["value"] for row in rows])
    return Seen(value, first, last, np.maximum(high - low, width), rows)


def cell(data: Data, quantiles: str, information: float, who: str, repeats: int) -> Iterator[Row]:
    """Rows of one cell: intervals of the values and, where there are any, of the smoothed."""
    kind = kind_of(data, quantiles, information, who)
    seen = list(released(kind, data, repeats, 0 if who in FORMS else WARM))
    about: dict[str, Any] = {
        "who": who,
        "data": data.name,
        "n": data.rows,
        "epsilon": float(kind.epsilon),
        "quantiles": quantiles,
    }
    for column in kind.columns:
        if column.about != "records" and column.role == "lower" and column.name in seen[0].rows[0]:
            found = measured(seen, column.about, column.name, column.level)
            wide = found["coverage"] > SURE
            yield about | found | {"reason": reason(kind, column.about) if wide else None}


def reason(kind: Any, about: str) -> str:
    """Why intervals are wider than they need be, from public facts."""
    tree, rows = kind.first_plan()[0], kind.expected_rows
    if about == "smoothed":
        return "releases do not say that batches are alike by more than chance"
    if kind.learner.counts_records and len(kind.quantiles) > 1:
        return "between two cuts, what batches usually are decides"
    if faint(tree, rows):
        return "some were drawn with little budget: they reach from neighbour to neighbour"
    if is_noisy(tree, rows):
        return "noise reaches the ends of a batch, whose shape is not known"
    return "cells, or ties, are as wide as the noise; the shape between releases is not known"


def measured(seen: list[Seen], what: str, lower: str, level: float | None) -> dict[str, Any]:
    """Coverage and width of one sort of interval."""
    upper = lower.replace("lower", "upper")
    ends = np.array([[(row[lower], row[upper]) for row in each.rows] for each in seen])
    points = np.array([[row[what] for row in each.rows] for each in seen])
    first, last = (np.array([getattr(each, name) for each in seen]) for name in ("first", "last"))
    held = (ends[..., 0] <= last) & (ends[..., 1] >= first)
    errors = np.maximum(np.maximum(first - points, points - last), 0.0)
    unit = np.array([each.unit for each in seen]).mean(axis=0)
    needed = 2.0 * np.maximum(np.quantile(errors, 0.95, axis=0), unit)
    ratio = np.median(ends[..., 1] - ends[..., 0], axis=0) / needed
    return {
        "what": what,
        "level": level,
        "coverage": round(float(held.mean()), 3),
        "width_ratio": round(float(np.median(ratio)), 2),
    }


def planned(data: Data, quantiles: str, wanted: float, repeats: int) -> Row:
    """Whether releases at the epsilon that `plan` recommends stay within the rank error asked for.

    `width_ratio` is the error that 95 % stay within, over what was asked for.
    """
    price = RankError().price_for(kind_of(data, quantiles, 100, "auto"), wanted)
    about: dict[str, Any] = {"who": "plan", "data": data.name, "n": data.rows}
    about |= {"quantiles": quantiles, "what": f"rank error {wanted:g}", "level": 0.95}
    if price is None:
        return about | {"epsilon": None, "coverage": None, "width_ratio": None, "reason": None}
    epsilon = price.amount
    kind = kind_of(data, quantiles, float(epsilon) * data.rows, "auto")
    entropy, errors = PublicEntropy(f"plan {data.name}"), []
    release_plan = kind.plan(kind.init(), Batch("s", "plan")).mechanism.release_plan
    for number in range(repeats):
        cells = data.batch(number).clip(kind.grid.lower, kind.grid.upper).astype(np.int64)
        counts = CellCounts(*np.unique(cells, return_counts=True))
        drawn = release_plan.tree.draw(counts, release_plan.prior, entropy)
        errors.append(rank_error(counts, kind.quantiles, drawn))
    within = float(np.mean(np.array(errors) <= wanted))
    reached = round(float(np.quantile(errors, 0.95)) / wanted, 2)
    about |= {"coverage": round(within, 3), "width_ratio": reached}
    return about | {"epsilon": float(epsilon), "reason": None}


def rows(quick: bool) -> Iterator[Row]:
    """Every form of tree without learning, every learner, then what `plan` recommends."""
    if quick:
        yield from _some()
        return
    for each in data():
        for information in INFORMATIONS:
            for quantiles in TARGETS:
                yield from cell(each, quantiles, information, "auto", repeats(quantiles))
            for who in FORMS:
                if who != "auto":
                    yield from cell(each, "deciles", information, who, repeats("deciles"))
            for quantiles in ("median", "0.9 0.95 0.99", "deciles", "29"):
                yield from cell(each, quantiles, information, "mixture", repeats(quantiles))
            if information in (100, 1000):
                for who in ("last-release", "online-gradient"):
                    yield from cell(each, "deciles", information, who, repeats("deciles"))
    for each in data():
        for quantiles in ("median", "0.99", "deciles"):
            for wanted in (0.1, 0.02):
                yield planned(each, quantiles, wanted, 160)


def _some() -> Iterator[Row]:
    """A few cells of every sort."""
    for index, each in enumerate(data()):
        information = (30, 1000)[index % 2]
        yield from cell(each, "median", information, "auto", 40)
        yield from cell(each, "deciles", information, "auto", 10)
    for each in data()[:3]:
        yield from cell(each, "0.9 0.95 0.99", 1000, "auto", 12)
        yield from cell(each, "deciles", 100, "binary", 12)
        yield from cell(each, "deciles", 100, "mixture", 40)
    yield planned(data()[0], "median", 0.02, 40)


def repeats(quantiles: str) -> int:
    """Releases of a cell: coverage is within .03 or so, since quantiles of one are not alike."""
    return max(12, int(70 / math.sqrt(len(TARGETS[quantiles]))))


if __name__ == "__main__":
    main("Intervals: how often they hold, and how wide they are", rows)
