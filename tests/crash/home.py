"""A small installation in a folder: a configuration, a few records, and lives of the daemon."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np

from streamdp.config import Configuration, load
from streamdp.daemon.runtime import runtime
from streamdp.engine.attempts import Outcomes, Task
from streamdp.engine.gate import GateRunner
from streamdp.engine.job import Job
from streamdp.errors import StoreError
from streamdp.log import close
from streamdp.store.release_rows import ROWS_OF_RELEASE, whole_rows
from streamdp.types import Batch, CellCounts, Query
from streamdp.types.releases import LONGEST_REST
from tests.invariants import violations
from tests.worlds import HandClock, ReplayedEntropy

CONFIG = """
store: {path: store.db, anchor: vault/anchor}
privacy:
  unit: person
  neighbours: add-remove
  caps: {batch: 0.3, lifetime: 20}
sources:
  stream:
    path: stream.csv
    types: {at: timestamp, x: number}
    batches: {column: at, every: 1d, start: 2023-11-15, end: 2023-11-18}
  drops: {path: "drops/*.csv", types: {x: number}, batches: files, settle: 0s}
releases:
  daily:
    {kind: quantiles, source: stream, column: x, quantiles: [0.5], resolution: 1, bounds: [0, 100],
     epsilon: 0.1, prior: {learner: last-release}, sinks: [table, file]}
  parts:
    {kind: quantiles, source: drops, column: x, quantiles: [0.5], resolution: 1, bounds: [0, 100],
     epsilon: 0.1, prior: {learner: last-release}, sinks: [file]}
sinks:
  table: {kind: table, table: medians}
  file: {kind: jsonl, path: out.jsonl}
log: {path: streamdp.log, level: debug}
"""

BATCHES = 3 + 2
DEBTS = 3 * 2 + 2
"""Deliveries owed once all batches are released."""

EPSILON_NANO = 100_000_000
Facts = dict[str, list[tuple[object, ...]]]
"""Rows of each table of a store."""

LASTING = {"ledger", "release", "learner", "gate_answer", "notice"}
LASTS = {
    "learner": "reservation, job, version, signature, digest",
    "release": "id, job, source, batch, kind, epsilon_nano, reservation, released_at, version,"
    f" {ROWS_OF_RELEASE}",
}
"""Of a learned state only its digest lasts, once there is a newer one; rows of releases whole."""

FAST = Path("/dev/shm")  # noqa: S108
ROOM = 1 << 30
"""Bytes that must be free there: containers give it 64 MB, and a full disk is a test of its own."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A backend without an engine: it takes a tenth of the time to start, and writes as little.

    Args:
        path: Of the file that is cut by time.
        watched: A file that gets a line before records are read: scope, batch and charge, what may
            be learned from here on. None if nobody watches.
        scope: Whose budget pays.
        epsilon_nano: What it pays.
    """

    path: Path
    watched: Path | None = None
    scope: str = ""
    epsilon_nano: int = 0

    def check(self, query: Query, batch: Batch) -> None:
        """Any column will do."""

    def answer(self, query: Query, batch: Batch) -> CellCounts:
        """Whole numbers of a small file, by the day of column `at` if there is one."""
        if self.watched is not None:
            with self.watched.open("a") as watched:
                watched.write(f"\n{self.scope} {batch.key} {self.epsilon_nano}\n")
        with Path(batch.path or self.path).open(newline="") as file:
            rows = list(csv.DictReader(file))
        values = [int(row["x"]) for row in rows if row.get("at", batch.key)[:10] == batch.key]
        cells, counts = np.unique(np.asarray(values, dtype=np.int64), return_counts=True)
        return CellCounts(cells, counts.astype(np.int64))


@contextmanager
def folder() -> Iterator[Path]:
    """A folder for a sweep, in memory where there is such a place with room."""
    fast = FAST.is_dir() and shutil.disk_usage(FAST).free > ROOM
    with tempfile.TemporaryDirectory(dir=FAST if fast else None) as made:
        yield Path(made)


@dataclass
class Home:
    """One installation.

    Args:
        path: Its folder.
        clock: What its daemons believe the time to be.
        engine: Whether they read through DuckDB.
        watched: Where it is written down that records are read.
    """

    path: Path
    clock: HandClock = field(default_factory=HandClock)
    engine: bool = False
    watched: Path | None = None

    @classmethod
    def furnish(cls, path: Path, config: str = CONFIG) -> Self:
        """Make a folder with a configuration and records."""
        (path / "drops").mkdir(parents=True)
        (path / "vault").mkdir()
        (path / "config.yaml").write_text(config)
        rows = [f"2023-11-{day}T12:00:00,{40 + day}" for day in (15, 16, 17) for _ in range(3)]
        (path / "stream.csv").write_text("\n".join(["at,x", *rows, ""]))
        for name in "ab":
            (path / "drops" / f"{name}.csv").write_text("x\n50\n60\n")
        return cls(path)

    def copy(self, path: Path) -> Self:
        """The same installation in another folder."""
        shutil.copytree(self.path, path)
        return replace(self, path=path)

    @property
    def store(self) -> Path:
        """Its store."""
        return self.path / "store.db"

    def configuration(self) -> Configuration:
        """What its file says now."""
        return load(self.path / "config.yaml")

    def live(self, seed: str = "first", rounds: int = 1) -> Outcomes:
        """One life of a daemon: what `streamdp run --once` does, with a clock to turn.

        Args:
            seed: Of its chance.
            rounds: Like the daemon, it survives a store that fails in any round but its last.
        """
        configuration = self.configuration()
        log = configuration.log.start(console=False)
        try:
            with runtime(configuration, ReplayedEntropy(seed), self.clock, log) as running:
                jobs = list(running.jobs.values())
                if not self.engine:
                    jobs = [self._plain(job, configuration) for job in jobs]
                for _ in range(rounds - 1):
                    with suppress(StoreError):
                        running.runner.round(jobs)
                    self.clock.seconds += LONGEST_REST
                return running.runner.round(jobs)
        finally:
            close()

    def _plain(self, task: Task, configuration: Configuration) -> Task:
        if isinstance(task, GateRunner):
            held = (self._plain(job, configuration) for job in task.jobs)
            jobs = tuple(job for job in held if isinstance(job, Job))
            return replace(task, backend=Reader(self.path / "stream.csv"), jobs=jobs)
        epsilon_nano = configuration.releases[task.name].price.nano
        reader = Reader(self.path / "stream.csv", self.watched, task.scope, epsilon_nano)
        return replace(task, backend=reader)

    def paid(self) -> int:
        """Number of deliveries that were made."""
        with closing(sqlite3.connect(self.store)) as database:
            made = "SELECT count(*) FROM outbox WHERE delivered_at NOT NULL"
            return int(database.execute(made).fetchone()[0])

    def published(self) -> dict[str, bytes]:
        """Lines of the sink by release id."""
        return {json.loads(line)["release_id"]: line for line in self.lines()}

    def lines(self) -> list[bytes]:
        """Whole lines that the sink has."""
        path = self.path / "out.jsonl"
        whole = path.read_bytes() if path.exists() else b""
        return whole[: whole.rfind(b"\n") + 1].splitlines()

    def facts(self) -> Facts:
        """Rows that never change once they are there; nothing where there is no store yet."""
        if not self.store.exists():
            return {}
        with closing(sqlite3.connect(self.store)) as database:
            database.create_function("whole_rows", 2, whole_rows)
            made = "SELECT name FROM sqlite_master WHERE type = 'table'"
            tables = {name for (name,) in database.execute(made)}
            return {
                table: database.execute(
                    f"SELECT {LASTS.get(table, '*')} FROM {table} r ORDER BY 1, 2"
                ).fetchall()
                for table in sorted(LASTING & tables)
            }

    def broken(self) -> list[str]:
        """Invariants that do not hold once all the work is done."""
        wrong = violations(self.store)
        facts, lines = self.facts(), self.published()
        if len(facts["release"]) != BATCHES:
            wrong.append("every batch is released")
        released = sorted(str(row[0]) for row in facts["release"])
        if sorted(lines) != released or len(lines) != len(self.lines()):
            wrong.append("the sink has each release once")
        with closing(sqlite3.connect(self.store)) as database:
            table = database.execute("SELECT release_id FROM medians").fetchall()
            daily = database.execute("SELECT id FROM release WHERE job = 'daily'").fetchall()
        if sorted(table) != sorted(daily):
            wrong.append("the table has each release once")
        if self.paid() != DEBTS:
            wrong.append("every debt is paid")
        return wrong
