"""Killed anywhere while objects are released: nothing is paid twice, lost or left behind."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import streamdp.sinks.files as sink
from streamdp import wiring
from streamdp.backends.duckdb import objects as copies
from streamdp.config import load
from streamdp.engine.job import EngineContext
from streamdp.engine.runner import Runner
from streamdp.sources import files as objects
from streamdp.store.sqlite import SqliteStore
from streamdp.wiring import outside_sinks
from tests.children import Ending, in_child
from tests.invariants import violations
from tests.objects.servers import Storage
from tests.worlds import EventLog, HandClock, ReplayedEntropy

CANARY = 77777
CONFIG = """
store: {path: store.db, anchor: anchor}
privacy: {unit: person, caps: {batch: 1, lifetime: 20}}
sources:
  days:
    path: "s3://lake/in/day=*/*.csv"
    types: {x: number}
    batches: {partition: day, marker: "s3://lake/in/day={key}/_SUCCESS"}
releases:
  one: {kind: quantiles, source: days, column: x, quantiles: [0.5], resolution: 1,
        bounds: [0, 100], epsilon: 0.1, sinks: [out]}
  two: {kind: quantiles, source: days, column: x, quantiles: [0.5], resolution: 1,
        bounds: [0, 100], epsilon: 0.1, sinks: [out]}
sinks:
  out: {kind: objects, address: "s3://lake/out", form: csv}
"""


def life(folder: Path, point: int, now: int) -> Ending:
    """A life of the daemon in a child, killed at a step; at none if that is 0. Says its steps."""

    def lived() -> int:
        os.chdir(folder)
        tempfile.tempdir = str(folder / "temporary")
        steps = Steps(point)
        for module, names in TRACED.items():
            for name in names:
                setattr(module, name, steps.around(getattr(module, name)))
        of, clock = load(Path("config.yaml")), HandClock(now)
        store, log = SqliteStore.open(Path("store.db"), clock.now(), Path("anchor")), EventLog()
        store.database.conn.set_trace_callback(steps.take)
        wiring.declare(of, store, clock.now(), log)
        jobs = wiring.jobs(of)
        around = EngineContext(store, ReplayedEntropy(str(now)), clock, log)
        outcomes = Runner(around, outside_sinks(of, clock)).round(jobs.values())
        assert not outcomes.errors, outcomes.errors
        wiring.hang_up(jobs.values())
        return steps.taken

    return in_child(lived)


TRACED: dict[ModuleType, tuple[str, ...]] = {
    objects: ("listed", "etag"),
    copies: ("copy",),
    sink: ("listed", "write"),
}


@dataclass
class Steps:
    """Steps of a life: statements, and before and after each request; one of them kills."""

    last: int
    taken: int = 0

    def take(self, *_: object) -> None:
        self.taken += 1
        if self.taken == self.last:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, function: Callable[..., object]) -> Callable[..., object]:
        def called(*arguments: object) -> object:
            self.take()
            found = function(*arguments)
            self.take()
            return found

        return called


def home(path: Path) -> Path:
    (path / "temporary").mkdir(parents=True)
    (path / "config.yaml").write_text(CONFIG)
    return path


def wrong(folder: Path, storage: Storage) -> list[str]:
    """What two lives have left that must not be."""
    found = violations(folder / "store.db")
    with closing(sqlite3.connect(folder / "store.db")) as store:
        (reserved,), (burnt,) = (
            store.execute("SELECT count(*) FROM ledger WHERE purpose = ?", [each]).fetchone()
            for each in ("reserve", "burn")
        )
        ids = {identity for (identity,) in store.execute("SELECT id FROM release")}
        (owed,) = store.execute("SELECT count(*) FROM outbox WHERE delivered_at IS NULL").fetchone()
    if len(ids) != 4 or reserved != 4 + burnt or burnt > 1:
        found.append(f"{len(ids)} releases, {reserved} charges, {burnt} burnt")
    if owed or len(storage.keys("out/")) != 4:
        found.append(f"{owed} deliveries owed, {storage.keys('out/')}")
    for place in (folder / "temporary").rglob("*"):
        if (
            place.is_file() and not place.is_symlink()
        ):  # a link to a file that this process has open
            found.append(f"{place} is left")
    if any(
        str(CANARY).encode() in file.read_bytes() for file in folder.iterdir() if file.is_file()
    ):
        found.append("a record is left")
    return found


@pytest.mark.parametrize("points", [2, pytest.param(10_000, marks=pytest.mark.long)])
def test_killed_anywhere_while_objects_are_released(
    tmp_path: Path, lake: Storage, points: int
) -> None:
    """Two days for two jobs that share a copy, delivered to the same storage."""
    for day in (1, 2):
        for name in "ab":
            lake.put(f"in/day={day}/{name}.csv", f"x\n{CANARY}\n50\n".encode())
        lake.put(f"in/day={day}/_SUCCESS", b"")
    whole = life(home(tmp_path / "whole"), 0, 10**9)
    assert wrong(tmp_path / "whole", lake) == []
    steps, failed = whole.require(0), []
    assert steps > 100
    for point in range(1, steps + 1, max(1, steps // points)):
        for key in lake.keys("out/"):
            lake.delete(key)
        folder = home(tmp_path / str(point))
        killed = life(folder, point, 10**9)
        assert killed.code == -signal.SIGKILL, killed.trace
        after = life(folder, 0, 10**9 + 10**6)
        left = [after.trace] if after.code else wrong(folder, lake)
        failed += [f"{point}: {each}" for each in left]
    assert failed == [], json.dumps(failed, indent=1)
