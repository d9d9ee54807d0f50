"""What the learners are measured on: a stream, an epsilon, and what a user would have written."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources
from typing import Literal

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.kinds.quantiles import synthetic
from streamdp.kinds.study import Stream
from streamdp.simulation.table import table_stream
from streamdp.sources.windows import DAY, WindowSource
from streamdp.types import CellQuery, Grid
from tests.benchmarks.streams.stored import Entry, entries, stored

DECILES = tuple(Fraction(index, 10) for index in range(1, 10))

Part = Literal["development", "synthetic", "features", "quantiles", "final"]

YEAR_2013 = 1_356_998_400

BOUNDS = {
    "air_time": (0, 1440),
    "arrival_delay": (-1440, 1440),
    "departure_delay": (-1440, 1440),
    "hour": (0, 24),
}

GUESSES = {
    "air_time": (120.0, 60.0),
    "arrival_delay": (0.0, 30.0),
    "departure_delay": (0.0, 30.0),
    "hour": (12.0, 5.0),
}
"""Round numbers that a user would write down."""

LENGTH, PAPERS_LENGTH = 200, 1000
"""Batches of a stream that are measured, and of the paper's sequence, which has 2,500."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One stream at one epsilon.

    Args:
        name: As the benchmark prints it.
        epsilon: Price of a release.
        make: The stream of a seed, and of a length (None: the usual one).
        grid: Public cells.
        guess: Location and scale a user would write down, in the unit of the column.
        rows: Expected number of rows of a batch, public.
        event: Share of the stream after which recovery is counted; None where nothing happens.
        part: Of the suite: real streams are for development or final.
        length: Batches that are measured.
        quantiles: Released.
    """

    name: str
    epsilon: Fraction
    make: Callable[[int, int | None], Stream]
    grid: Grid
    guess: tuple[float, float]
    rows: int
    event: Fraction | None = None
    part: Part = "development"
    length: int = LENGTH
    quantiles: tuple[Fraction, ...] = DECILES

    @property
    def key(self) -> str:
        """Names it among all."""
        return f"{self.name} {float(self.epsilon):g}"


def settings() -> tuple[Setting, ...]:
    """All of development, the synthetic streams last."""
    return (
        _flights("air_time", "0.1", 900),
        _flights("air_time", "0.3", 900),
        _flights("arrival_delay", "0.1", 900),
        _flights("arrival_delay", "1", 900),
        _flights("departure_delay", "0.1", 900),
        _flights("departure_delay", "0.3", 320, "origin", "EWR"),
        _flights("arrival_delay", "0.3", 290, "origin", "LGA"),
        _flights("air_time", "0.3", 300, "origin", "JFK"),
        _flights("hour", "0.3", 300, "origin", "JFK"),
        _flights("arrival_delay", "0.8", 130, "carrier", "DL"),
        _flights("departure_delay", "2", 150, "carrier", "EV"),
        _flights("air_time", "1", 70, "carrier", "MQ"),
        _flights("departure_delay", "1", 55, "hour", 8),
        _flights("arrival_delay", "1", 55, "hour", 17),
        *(_stored("development", entry) for entry in entries("development")),
        _synthetic("linear", "1"),
        _synthetic("linear", "3"),
        _synthetic("level-shift", "0.2", Fraction(1, 2)),
        _synthetic("wrong-guess", "0.5", Fraction(0)),
        _synthetic("random-walk", "0.2"),
        _synthetic("seasonal", "0.2"),
        _synthetic("season-ends", "0.2", Fraction(1, 2)),
        _synthetic("strange-day", "0.2", Fraction(1, 2)),
        _synthetic("iid", "0.2"),
    )


def final() -> tuple[Setting, ...]:
    """Real streams on which nothing is tuned."""
    return tuple(_stored("final", entry) for entry in entries("final"))


def by_origin(column: str, epsilon: str) -> tuple[Setting, ...]:
    """A column of the flights by where they began: three groups, one price."""
    return tuple(_flights(column, epsilon, 300, "origin", each) for each in ("EWR", "JFK", "LGA"))


def stream_of(setting: Setting, length: int | None, seed: int) -> Stream:
    """The stream of a seed; here, since other processes cannot import from a main module."""
    return setting.make(seed, length)


def _synthetic(name: str, epsilon: str, event: Fraction | None = None) -> Setting:
    grid = Grid(synthetic.RESOLUTION, -100_000_000, 100_000_000)
    paper = name == "linear"
    return Setting(
        "synthetic" if paper else name,
        Fraction(epsilon),
        functools.partial(_moving, name),
        grid,
        synthetic.GUESS,
        synthetic.expected_rows(name),
        event,
        "synthetic",
        PAPERS_LENGTH if paper else LENGTH,
    )


def _moving(name: str, seed: int, length: int | None) -> Stream:
    return synthetic.synthetic(name, DECILES, seed, length)


def _stored(part: Part, entry: Entry) -> Setting:
    make = functools.partial(_head, part, entry.name)
    return Setting(entry.name, entry.epsilon, make, entry.grid, entry.guess, entry.rows, None, part)


def _head(part: Part, name: str, seed: int, length: int | None) -> Stream:
    stream = stored(part, name)
    return stream if length is None else stream.take(length)


def _flights(
    column: str, epsilon: str, rows: int, by: str | None = None, key: str | int | None = None
) -> Setting:
    """A column of the flights, of all or of one origin, carrier or hour."""
    where = None if by is None else f"{by} = {key!r}"
    name = "-".join(("flights", column, *(() if key is None else (str(key),))))
    grid = Grid(Fraction(1), *BOUNDS[column])
    make = functools.partial(_year, column, where)
    return Setting(name, Fraction(epsilon), make, grid, GUESSES[column], rows)


def _year(column: str, where: str | None, seed: int, length: int | None) -> Stream:
    stream = flights(column, where)
    return stream if length is None else stream.take(length)


@functools.cache
def flights(column: str, where: str | None = None) -> Stream:
    """Every day of a column of the flights shipped with the package, of those of a condition."""
    path = str(resources.files("streamdp.demo") / "flights.parquet")
    days = WindowSource("flights", YEAR_2013, DAY, YEAR_2013 + 365 * DAY)
    query = CellQuery(column, Grid(Fraction(1), *BOUNDS[column]), where=where)
    backend = DuckDBBackend(path, "parquet", "date")
    return table_stream(column, days.batches(2**40), backend, lambda batch: query)
