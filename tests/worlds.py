"""Small worlds for tests: a store in a folder, a clock to turn, chance to replay, data."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from streamdp.engine.job import EngineContext, Job
from streamdp.engine.runner import Runner
from streamdp.errors import SinkError, SourceError
from streamdp.kinds.charging import UnitCharging
from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.learning.learner import LastRelease
from streamdp.priors.shapes import Cauchy
from streamdp.privacy.filters import Caps
from streamdp.sources.windows import DAY, WindowSource
from streamdp.store.sqlite import SqliteStore
from streamdp.types import Batch, CellCounts, CellQuery, Grid, Query, Release, ReleaseKind
from tests.store.kept import terms

START = 1_700_006_400 - 1_700_006_400 % DAY
EPSILON_NANO = 100_000_000


@dataclass
class HandClock:
    """A clock that a test turns."""

    seconds: int = START + 30 * DAY

    waited: list[float] = field(default_factory=list)
    busy: float = 0.0
    timed: float = 0.0

    def now(self) -> int:
        return self.seconds

    def timer(self) -> float:
        """Each look takes `busy` seconds: work between two looks."""
        self.timed += self.busy
        return self.timed

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)


@dataclass
class ReplayedEntropy:
    """Bits that are the same in every run: the n-th request gets the n-th hash of the seed."""

    seed: str = "seed"
    requests: int = 0

    def bits(self, count: int) -> int:
        self.requests += 1
        block = b"".join(
            hashlib.sha512(f"{self.seed}/{self.requests}/{part}".encode()).digest()
            for part in range(count // 512 + 1)
        )
        return int.from_bytes(block, "big") >> (8 * len(block) - count)


@dataclass
class MemoryBackend:
    """Cell counts by batch key; may be told to fail."""

    values: Mapping[str, list[int]] = field(default_factory=dict)
    fails: bool = False
    asked: list[str] = field(default_factory=list)

    def check(self, query: Query, batch: Batch) -> None:
        pass

    def answer(self, query: Query, batch: Batch) -> CellCounts:
        self.asked.append(batch.key)
        if self.fails:
            raise SourceError("the engine is down")
        assert isinstance(query, CellQuery)
        values = np.clip(self.values.get(batch.key, []), query.grid.lower, query.grid.upper)
        cells, counts = np.unique(np.asarray(values, dtype=np.int64), return_counts=True)
        return CellCounts(cells, counts.astype(np.int64))


@dataclass
class ListSink:
    """Keeps what it is handed; may be told to fail."""

    name: str = "list"
    fails: bool = False
    taken: list[Release] = field(default_factory=list)

    def deliver(self, release: Release) -> None:
        if self.fails:
            raise SinkError("the sink is down")
        self.taken.append(release)


@dataclass
class EventLog:
    """Keeps events."""

    events: list[tuple[str, dict[str, str | int | None]]] = field(default_factory=list)

    def __call__(self, event: str, /, **fields: str | int | None) -> None:
        self.events.append((event, fields))

    def names(self) -> list[str]:
        return [name for name, _ in self.events]


@contextmanager
def without(database: sqlite3.Connection, trigger: str) -> Iterator[None]:
    """Put a trigger aside, as a forger would."""
    named = "SELECT sql FROM sqlite_master WHERE name = ?"
    (sql,) = database.execute(named, [trigger]).fetchone()
    database.execute(f"DROP TRIGGER {trigger}")
    yield
    database.execute(sql)


def parts(answer: Any) -> tuple[Any, ...]:
    """The statistic of each group, of a question with groups or without."""
    return answer if isinstance(answer, tuple) else (answer,)


def quantiles_kind(epsilon: Fraction = Fraction(1, 10), resolution: int = 1) -> Quantiles:
    learner = LastRelease(Cauchy(50.0, 20.0), 0.05, 20.0, float(resolution))
    targets = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
    return Quantiles("x", targets, epsilon, Grid(Fraction(resolution), 0, 100), learner)


class World:
    """A store and a job over `days` windows, by default five of twenty records."""

    def __init__(
        self,
        folder: Path,
        days: int = 5,
        caps: Caps = Caps(3 * EPSILON_NANO, 100 * EPSILON_NANO),  # noqa: B008
        *,
        make: bool = False,
    ) -> None:
        if make:
            folder.mkdir()
        self.path = folder / "store.db"
        self.clock, self.log, self.entropy = HandClock(), EventLog(), ReplayedEntropy()
        self.sink = ListSink()
        self.source = WindowSource("s", START, DAY, START + days * DAY)
        keys = [batch.key for batch in self.source.batches(self.clock.now())]
        self.backend = MemoryBackend({key: list(range(40, 60)) for key in keys})
        self.caps = caps
        self.open()

    def open(self) -> None:
        """Open the store as a new process would."""
        self.store = SqliteStore.open(self.path, self.clock.now())
        self.store.declare(terms(self.caps), self.clock.now())
        around = EngineContext(self.store, self.entropy, self.clock, self.log)
        self.runner = Runner(around, {"list": self.sink})

    def job(self, name: str = "job", kind: ReleaseKind | None = None) -> Job:
        made = kind or quantiles_kind()
        return Job(name, "s", self.source, self.backend, made, UnitCharging(), ("list",))

    def count(self, sql: str) -> int:
        (number,) = self.store.database.execute(sql).fetchone()
        return int(number)
