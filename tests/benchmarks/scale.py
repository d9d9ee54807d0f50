"""CPU seconds of one release of nine deciles, by size: from an array, and from Parquet.

In memory, the cell counts are made by `numpy.unique` and count as part of the release. From
Parquet, DuckDB groups by cell; the ratio is to DuckDB's own exact `quantile_cont` of the same
nine on the same file, which is not private.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.shapes import Cauchy
from streamdp.privacy.draws import OperatingSystemEntropy
from streamdp.types import CellCounts, FloatArray, Grid
from tests.benchmarks.report import Row, main

DECILES = tuple(Fraction(index, 10) for index in range(1, 10))
GRID = Grid(Fraction(1, 1000), -10_000, 10_000)
EPSILON = Fraction(1, 10)


def release(counts: CellCounts) -> tuple[int, ...]:
    """What production does with the counts of a batch."""
    tree = QuantileTree(DECILES, EPSILON, GRID)
    priors = (Cauchy(0.0, 1.0),) * len(DECILES)
    return tree.draw(counts, priors, OperatingSystemEntropy())


def counts_of(values: FloatArray) -> CellCounts:
    """Cell counts of an array in memory."""
    cells = np.floor(values * 1000.0 + 0.5).astype(np.int64)
    np.clip(cells, GRID.lower, GRID.upper, out=cells)
    return CellCounts(*np.unique(cells, return_counts=True))


def rows(quick: bool) -> Iterator[Row]:
    """In memory for n = 10^4 ... 10^7, then from Parquet."""
    for rows_in in (10**4, 10**5, 10**6) if quick else (10**4, 10**5, 10**6, 10**7):
        values = np.random.default_rng(rows_in).normal(size=rows_in)
        yield from _array(values)
    yield from _parquet(10**6 if quick else 10**7)


def _array(values: FloatArray) -> Iterator[Row]:
    counts = counts_of(values)
    whole = _cpu_seconds(lambda: release(counts_of(values)))
    yield _row("array", len(values), whole)
    yield _row("array, draw alone", len(values), _cpu_seconds(lambda: release(counts)))


def _parquet(rows_in: int) -> Iterator[Row]:
    import duckdb

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "values.parquet"
        connection = duckdb.connect()
        connection.execute(
            "COPY (SELECT sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()) AS value"
            f" FROM range({rows_in})) TO '{path}' (FORMAT parquet)"
        )
        exact = _cpu_seconds(lambda: _exact(connection, path))
        ours = _cpu_seconds(lambda: release(_grouped(connection, path)))
        yield _row("duckdb quantile_cont", rows_in, exact, 1.0)
        yield _row("duckdb cells + release", rows_in, ours, ours / exact)


def _exact(connection: Any, path: Path) -> object:
    deciles = ", ".join(str(float(each)) for each in DECILES)
    query = f"SELECT quantile_cont(value, [{deciles}]) FROM '{path}'"
    return connection.execute(query).fetchall()


def _grouped(connection: Any, path: Path) -> CellCounts:
    found = connection.execute(
        "SELECT CAST(least(greatest(floor(value * 1000 + 0.5), -10000), 10000) AS BIGINT) AS cell,"
        f" count(*) AS records FROM '{path}' WHERE isfinite(value) GROUP BY cell ORDER BY cell"
    ).fetchnumpy()
    return CellCounts(found["cell"].astype(np.int64), found["records"].astype(np.int64))


def _cpu_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Median CPU seconds of the process, all its threads."""
    work()
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return float(np.median(seconds))


def _row(who: str, rows_in: int, seconds: float, ratio: float | None = None) -> Row:
    return {
        "who": who,
        "rows": rows_in,
        "cpu_seconds": round(seconds, 5),
        "ratio_to_quantile_cont": None if ratio is None else round(ratio, 3),
    }


if __name__ == "__main__":
    main("Cost of one release of nine deciles", rows)
