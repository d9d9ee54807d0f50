"""The nouns: frozen values that pass between the layers, and the protocols they speak."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Json = Any
"""What `json.dumps` takes: the form in which states, events and releases are stored."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The public grid of cells a column is rounded to.

    A value x falls in cell floor(x/resolution + 1/2), clamped to [lower, upper]; `backends.cells`
    says in which steps, so that every engine agrees to the last bit.

    Args:
        resolution: Width of a cell, in the unit of the column.
        lower: First cell.
        upper: Last cell.
    """

    resolution: Fraction
    lower: int
    upper: int

    def value(self, cell: int) -> float:
        """The number that is published for a cell: cell times resolution."""
        return float(cell * self.resolution)


@dataclass(frozen=True, slots=True)
class Batch:
    """One public time window or file of a source; a record belongs to exactly one.

    Args:
        source: Name of the source in the configuration.
        key: Public key, unique within the source; batches are released in key order.
        start: First second of the window (POSIX time), or None for a file.
        end: Second after its last.
        path: The file that holds it, or the folder of its files; None when cut by time.
    """

    source: str
    key: str
    start: int | None = None
    end: int | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class UnitBound:
    """At most so many records of one unit count in a batch, in all groups together.

    A unit with n > rows records counts `rows` of them, evenly spaced through its own records in
    order of cells from a start that a hash of key and unit decides: each has the chance rows/n.
    The choice looks at nothing but the unit and its own records, so one unit more changes at most
    `rows` counts. Records without a unit (null) never count: nobody could bound them.

    Args:
        column: Whose records belong together; of any scalar type.
        rows: The most that count, 1 to `MOST_ROWS_PER_UNIT`.
        key: Public; another key makes another choice.
    """

    column: str
    rows: int
    key: str = ""


MOST_ROWS_PER_UNIT = 1000
"""Keeps the arithmetic of the choice within 64 bits for 10^11 records of one unit."""


@dataclass(frozen=True, slots=True)
class Query:
    """The one question asked of a batch: how many records fall in each cell of a column.

    Args:
        column: Name of the column, or of what `expression` derives.
        grid: Its cells.
        expression: SQL of one record in the engine's own words, asked in place of the column.
        where: SQL condition on one record; where it is not true the record does not count.
        bound: How many records of one unit count.
        by: Columns that cut the batch into groups, compared as text.
        groups: The public groups, one text for each column of `by`; records of others do not
            count. Without `by` there is the one group that holds all.
    """

    column: str
    grid: Grid
    expression: str | None = None
    where: str | None = None
    bound: UnitBound | None = None
    by: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ((),)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CellCounts:
    """What a batch is reduced to: sorted occupied cells and how many records each holds.

    Private: it never leaves the engine, and its repr shows nothing.

    Args:
        cells: Occupied cells, strictly increasing, shape (d,).
        counts: Positive numbers of records, shape (d,).
    """

    cells: IntArray
    counts: IntArray

    def __repr__(self) -> str:
        return "CellCounts(<private>)"

    def __add__(self, other: CellCounts) -> CellCounts:
        """Counts of two parts of one batch together.

        With a unit bound the parts must not share a unit: each part bounds for itself.
        """
        cells, where = np.unique(np.concatenate((self.cells, other.cells)), return_inverse=True)
        counts = np.zeros(len(cells), dtype=np.int64)
        np.add.at(counts, where, np.concatenate((self.counts, other.counts)))
        return CellCounts(cells, counts)


@dataclass(frozen=True, slots=True)
class Charge:
    """What a release costs, fixed before data is touched.

    Args:
        event: The draws and their parameters, in the ledger's vocabulary (`privacy.events`).
        epsilon_nano: Pure privacy loss in units of 1e-9, rounded up.
        rho_nano: The same in zero-concentrated differential privacy.
    """

    event: Json
    epsilon_nano: int
    rho_nano: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A release before data is touched: the question, the cost, and how to draw the answer."""

    query: Query
    charge: Charge
    mechanism: Any


Row = Mapping[str, float | str | int | None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was drawn and is published: rows of a table with one set of columns."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Reservation:
    """A charge that is spent and not yet settled: row `seq` of the ledger."""

    seq: int
    scope: str
    job: str
    batch: str


@dataclass(frozen=True, slots=True)
class Run:
    """A charge for all batches that one gate ever tests, paid once: row `seq` of the ledger.

    It stays open until it is closed; every batch it tests must join it first.
    """

    seq: int
    scope: str
    job: str
    epsilon_nano: int
    rho_nano: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """A release that one sink has not confirmed."""

    release_id: str
    sink: str
    attempts: int


@dataclass(frozen=True, slots=True)
class Learned:
    """A learner's state as it is stored.

    Args:
        version: 1 after the first release of a job, and one more after each.
        signature: Public parameters of the kind that the state was learned under.
        state: What `ReleaseKind.learn` returned.
    """

    version: int
    signature: Json
    state: Json


@dataclass(frozen=True, slots=True)
class Release:
    """A committed release, as the archive holds it and the sinks receive it."""

    id: str
    job: str
    source: str
    batch: str
    window_start: int | None
    window_end: int | None
    kind: str
    epsilon_nano: int
    released_at: int
    rows: tuple[Row, ...]


class Entropy(Protocol):
    """A source of uniform random bits; the operating system's in production."""

    def bits(self, count: int) -> int:
        """A uniform integer in [0, 2**count)."""
        ...


class Clock(Protocol):
    """Where the time comes from."""

    def now(self) -> int:
        """POSIX time in whole seconds."""
        ...


class Prior(Protocol):
    """A positive measure on the real line, fixed before the data is touched."""

    def log_mass(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """ln of the measure of each interval [lower, upper); -inf where it has none."""
        ...

    def describe(self) -> Json:
        """Its parameters, enough to build it again; the ledger stores their digest."""
        ...


class ReleaseKind(Protocol):
    """Pure functions: what is published, what it costs, how it is drawn and learned from."""

    @property
    def name(self) -> str:
        """What the configuration calls this kind."""
        ...

    def signature(self) -> Json:
        """The public parameters a learned state depends on; another signature starts anew."""
        ...

    def init(self) -> Json:
        """The learner's state before the first release."""
        ...

    def plan(self, state: Json, batch: Batch) -> Plan:
        """Question and cost, from public facts alone."""
        ...

    def draw(self, plan: Plan, statistic: Any, entropy: Entropy) -> Outcome:
        """The private draw; total: no exception depends on the statistic.

        Args:
            plan: What `plan` returned.
            statistic: The `CellCounts` that answer its query, or, of a query with `by`, those of
                each group.
            entropy: Source of chance.
        """
        ...

    def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
        """The next state; has no data argument, so learning is post-processing."""
        ...

    def report(self, state: Json, outcome: Outcome) -> Outcome:
        """What is published: the outcome, and what follows from it and the state it led to."""
        ...


class Backend(Protocol):
    """Where the records are: answers the one question."""

    def check(self, query: Query, batch: Batch) -> None:
        """Raise SourceError if the question cannot be put; reads the schema, no rows."""
        ...

    def cell_counts(self, query: Query, batch: Batch) -> CellCounts:
        """The cell counts of one batch, for a question without `by`."""
        ...

    def grouped_cell_counts(self, query: Query, batch: Batch) -> tuple[CellCounts, ...]:
        """One scan, and the cell counts of each public group, in the order of `query.groups`."""
        ...


class Source(Protocol):
    """Batches in: which public windows or files there are."""

    @property
    def name(self) -> str:
        """Key of the source in the configuration."""
        ...

    def batches(self, now: int) -> Iterable[Batch]:
        """All batches sealed by `now`, in order; depends on public facts alone."""
        ...


class Log(Protocol):
    """Where the engine says what it does; takes public facts only."""

    def __call__(self, event: str, /, **fields: str | int | None) -> None:
        """Write one event of the closed list."""
        ...


class Sink(Protocol):
    """Releases out, idempotent on the release id."""

    name: str

    def deliver(self, release: Release) -> None:
        """Publish; doing it twice leaves what doing it once leaves."""
        ...
