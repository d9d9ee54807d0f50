"""Real streams that are stored beside this file; README.md says how they were chosen."""

from __future__ import annotations

import functools
import itertools
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from streamdp.kinds.study import Stream
from streamdp.sources.windows import DAY
from streamdp.types import Batch, CellCounts, Grid

FOLDER = Path(__file__).parent / "stored"

FIRST = 1_356_998_400
"""2013-01-01: every batch is a day from here on, however long it was."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is written down of a stream.

    Args:
        name: Of the stream.
        epsilon: Price of a release.
        grid: Public cells.
        guess: Location and scale, in the unit of the values.
        rows: Expected number of rows of a batch, public.
    """

    name: str
    epsilon: Fraction
    grid: Grid
    guess: tuple[float, float]
    rows: int


def entries(part: str) -> Iterator[Entry]:
    """All streams of a part, in the order of its table."""
    table = tomllib.loads((FOLDER / f"{part}.toml").read_text(encoding="utf-8"))
    for name, row in table.items():
        location, scale = row["guess"]
        yield Entry(
            name, Fraction(row["epsilon"]), _grid(row), (float(location), float(scale)), row["rows"]
        )


def _grid(row: dict[str, Any]) -> Grid:
    resolution = Fraction(row["resolution"])
    lower, upper = (round(bound / resolution) for bound in row["bounds"])
    return Grid(resolution, lower, upper)


@functools.cache
def stored(part: str, name: str) -> Stream:
    """The batches of a stream."""
    found = duckdb.execute(
        "SELECT batch, cell, count FROM read_parquet(?) WHERE stream = ? ORDER BY batch, cell",
        [str(FOLDER / f"{part}.parquet"), name],
    ).fetchnumpy()
    cells, counts = (found[each].astype(np.int64) for each in ("cell", "count"))
    length = int(found["batch"][-1]) + 1
    edges = np.searchsorted(found["batch"], np.arange(length + 1))
    days = [FIRST + number * DAY for number in range(length + 1)]
    return Stream(
        name,
        tuple(Batch(name, f"{i:05d}", days[i], days[i + 1]) for i in range(length)),
        tuple(
            CellCounts(cells[start:end], counts[start:end])
            for start, end in itertools.pairwise(edges)
        ),
    )
