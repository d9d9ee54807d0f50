"""One configuration of each release kind, and statistics that answer any typed question."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import assert_never

import numpy as np

from streamdp import wiring
from streamdp.config import Configuration, load
from streamdp.kinds.charging import UnitCharging
from streamdp.types import (
    Batch,
    CellCounts,
    CellQuery,
    CompoundAnswer,
    CompoundQuery,
    IntArray,
    KeyCounts,
    KeyQuery,
    Query,
    Statistic,
    SumQuery,
    Sums,
    TableCounts,
    TableQuery,
    UnitQuery,
)

HEAD = """
store: {path: store.db}
privacy: {unit: UNIT, caps: {batch: 1, lifetime: 10, delta: {lifetime: 1e-3}}}
sources:
  trips: {path: trips.parquet, batches: {column: at, every: 1d, start: 2024-01-01}}
releases:
  it: {kind: KIND, source: trips, epsilon: EPSILON, expected_rows: 1000, BODY}
"""

BODIES = {
    "quantiles": (
        "column: x, quantiles: quartiles, resolution: 1, bounds: [0, 100]",
        "column: x, quantiles: deciles, resolution: 1, guess: {location: 50, scale: 9},"
        " prior: {learner: online-gradient, private_gradient: 1/4}",
        "column: x, quantiles: median, resolution: 1, bounds: [0, 9], prior: {learner: none}",
    ),
    "statistics": (
        "measures: {rows: count, city: {histogram: city, values: [a, b], other: true}}",
        "measures: {rows: count, long: {mean: x, resolution: 1, bounds: [0, 50]}}",
        "measures: {rows: count, who: units}",
        "measures: {v: {variance: x, resolution: 1, guess: {location: 9, scale: 9}}, rows: count,"
        " s: {sum: x, resolution: 1/2, bounds: [-9, 9]},"
        " h: {histogram: x, cuts: [0, 5], nulls: cell, adds_up_to: rows, weight: 3}}",
    ),
    "workload": (
        "dimensions: {city: {values: [a, b]}, x: {cuts: [10, 20], nulls: cell}}, marginals: 2",
        "dimensions: {city: {values: [a, b]}, x: {cuts: [10, 20]}}, choose: online,"
        " tolerance: 0.9, measured: 1",
    ),
    "selection": (
        'among: {sql: "x >= {t}", t: {from: 0, to: 9}}, score: {errors: late}',
        "among: {conditions: {big: x > 5, small: x < 5}}, score: {sum: x, bounds: [0, 9]}",
    ),
    "experts": (
        'experts: {rules: {sql: "x >= {t}", t: {from: 0, to: 9}}, label: late}',
        "experts: {losses: {go: x, stay: 1 - x}, denominator: 10}",
    ),
    "keys": (
        "by: city, delta: 1e-9",
        "by: [city, place], delta: 1e-6, at_least: 1, public: [[a, b]], never: [[c, d]]",
    ),
}
"""What a release of each kind says beside the common keys; a kind that is registered is here."""

CASES = [(kind, body) for kind, bodies in BODIES.items() for body in bodies]
RECORD, PERSON = "trip", "{name: person, column: who, rows: 3}"
GROUPS = "by: region, groups: [u, v, w], "


def configured(
    folder: Path, kind: str, body: str, epsilon: str = "0.5", unit: str = RECORD
) -> Configuration:
    """A configuration with one release, `it`."""
    text = HEAD.replace("KIND", kind).replace("BODY", body).replace("EPSILON", epsilon)
    (folder / "config.yaml").write_text(text.replace("UNIT", unit))
    return load(folder / "config.yaml")


def charged(configuration: Configuration) -> int:
    """What the first release costs a unit, in nano units of epsilon."""
    kind = wiring.release_kind(configuration, "it")
    (batch,) = first_batches(configuration, 1)
    plan = kind.plan(kind.init(), batch)
    return UnitCharging(configuration.privacy.unit.bound()).charge(plan).epsilon_nano or 0


def first_batches(configuration: Configuration, count: int) -> list[Batch]:
    """The first windows of the source."""
    source = configuration.sources["trips"].source("trips")
    return [batch for batch, _ in zip(source.batches(2_000_000_000), range(count), strict=False)]


def empty(query: Query) -> Statistic:
    """Of no records."""
    return _of_table(query, lambda cells: np.zeros(cells, dtype=np.int64))


def all_equal(query: Query) -> Statistic:
    """Of seven records that say the same."""
    return _of_table(query, lambda cells: np.eye(1, cells, cells - 1, dtype=np.int64)[0] * 7)


def huge(query: Query) -> Statistic:
    """Of ten thousand million records, spread over all cells."""
    return _of_table(query, lambda cells: np.full(cells, 10**10 // cells, dtype=np.int64))


STATISTICS = {"empty": empty, "all equal": all_equal, "huge": huge}

Filled = Callable[[int], IntArray]


def _of_table(query: Query, filled: Filled) -> Statistic:
    match query:
        case CellQuery():
            return _cells(query, filled)
        case TableQuery():
            return _table(query, filled)
        case SumQuery():
            records = int(filled(1).sum())
            return Sums(tuple(term.span[1] * records for term in query.terms))
        case UnitQuery():
            return TableCounts((filled(query.cells),))
        case CompoundQuery():
            parts = tuple(_of_table(part, filled) for part in query.parts)
            return CompoundAnswer(parts)  # type: ignore[arg-type]
        case KeyQuery(known=known, least=least):
            found = tuple((f"found {number}",) * len(query.columns) for number in range(3))
            counts = filled(len(known) + len(found)).tolist()
            units = zip((*known, *found), counts, strict=True)
            return KeyCounts({key: n for key, n in units if n >= (1 if key in known else least)})
        case _:
            assert_never(query)


def _cells(query: CellQuery, filled: Filled) -> CellCounts:
    low, high = query.grid.lower, query.grid.upper
    counts = filled(min(high - low + 1, 1000))
    cells = low + np.flatnonzero(counts) * max(1, (high - low + 1) // 1000)
    return CellCounts(cells.astype(np.int64), counts[counts > 0])


def _table(query: TableQuery, filled: Filled) -> TableCounts:
    shape = tuple(dimension.size for dimension in query.dimensions)
    whole = filled(int(np.prod(shape))).reshape(shape)
    axes = range(len(shape))
    return TableCounts(
        tuple(
            np.asarray(whole.sum(axis=tuple(set(axes) - set(marginal))))
            for marginal in query.marginals
        )
    )
