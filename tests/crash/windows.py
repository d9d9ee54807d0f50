"""The kill matrix of windows: keys are asked for of three days at once, each window paid once.

A charge on a window is a `reserve` row, a `join` row for each other batch, and its delta. A death
between any two of them leaves all or none, and the window is asked anew under another charge.
"""

from __future__ import annotations

import csv
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self
from unittest.mock import patch

from streamdp.config import Configuration
from streamdp.engine.attempts import Outcomes, Task
from streamdp.store.sqlite import SqliteStore
from streamdp.types import Batch, KeyCounts, KeyQuery, Query, Reservation
from tests.contract.memory.keys import keys_of
from tests.crash.home import Home
from tests.crash.tracer import Life, Point
from tests.invariants import violations

DAYS = tuple(f"2023-11-{day}" for day in range(15, 21))
WINDOW = 3
WINDOWS = tuple(DAYS[start : start + WINDOW] for start in range(0, len(DAYS), WINDOW))

DELTA_ATTO = 10**14
CONFIG = """
store: {path: store.db, anchor: vault/anchor}
privacy:
  unit: person
  neighbours: add-remove
  caps: {batch: 2, lifetime: 20, delta: {batch: 1e-3, lifetime: 1e-2}}
sources:
  stream:
    path: stream.csv
    types: {at: timestamp, town: text}
    batches: {column: at, every: 1d, start: 2023-11-15, end: 2023-11-21}
releases:
  towns: {kind: keys, source: stream, by: town, epsilon: 1, delta: 1e-4, window: 3,
    public: [Bern], sinks: [table, file]}
sinks:
  table: {kind: table, table: towns}
  file: {kind: jsonl, path: out.jsonl}
log: {path: streamdp.log, level: debug}
"""

MARK = "sendfile"
"""The call around a charge: streamdp makes none of it."""


@dataclass(frozen=True, slots=True)
class Towns:
    """A backend without an engine.

    Args:
        path: Of the file that is cut by days.
    """

    path: Path

    def check(self, query: Query, batch: Batch) -> None:
        """Any column will do."""

    def answer(self, query: Query, batch: Batch) -> KeyCounts:
        """Records by town, of all days of a window."""
        assert isinstance(query, KeyQuery), "no release asks for anything else"
        days = {each.key for each in batch.parts or (batch,)}
        with self.path.open(newline="") as file:
            return keys_of(query, [row for row in csv.DictReader(file) if row["at"][:10] in days])


@dataclass
class WindowsHome(Home):
    """An installation that releases two windows."""

    @classmethod
    def furnish(cls, path: Path, config: str = CONFIG) -> Self:
        """Make a folder with a configuration and records."""
        home = super().furnish(path, config)
        towns = ["Bern"] * 9 + ["Chur"] * 30 + ["Thun"] * 2
        rows = [f"{day}T12:00:00,{town}" for day in DAYS for town in towns]
        (path / "stream.csv").write_text("\n".join(["at,town", *rows, ""]))
        return home

    def live(self, seed: str = "first", rounds: int = 1) -> Outcomes:
        """One life, with a call of its own before and behind each charge."""
        with patch.object(SqliteStore, "reserve", marked):
            return super().live(seed, rounds)

    def _plain(self, task: Task, configuration: Configuration) -> Task:
        return replace(task, backend=Towns(self.path / "stream.csv"))

    def broken(self) -> list[str]:
        """Invariants that do not hold once all the work is done."""
        wrong = [*violations(self.store, sinks=2), *self._charges()]
        facts, lines = self.facts(), self.published()
        turns = [("towns", window[-1]) for window in WINDOWS]
        if sorted((str(row[1]), str(row[3])) for row in facts["release"]) != turns:
            wrong.append("every window is released once, under its last batch")
        released = sorted(str(row[0]) for row in facts["release"])
        if sorted(lines) != released or len(lines) != len(self.lines()):
            wrong.append("the sink has each release once")
        if self.paid() != 2 * len(WINDOWS):
            wrong.append("every debt is paid")
        return wrong

    def _charges(self) -> Iterator[str]:
        """What is wrong with charges: of rows, of their delta, and of how many there are."""
        with closing(sqlite3.connect(self.store)) as store:
            charges = store.execute(
                "SELECT r.batch, r.delta_atto, (SELECT group_concat(batch) FROM (SELECT batch FROM"
                " ledger j WHERE j.reservation = r.seq AND j.purpose = 'join' ORDER BY batch))"
                " FROM ledger r WHERE r.purpose = 'reserve' ORDER BY r.seq"
            ).fetchall()
            (delta,) = store.execute("SELECT sum(delta_atto) FROM ledger").fetchone()
            burns = "SELECT count(*) FROM ledger WHERE purpose = 'burn'"
            (burnt,) = store.execute(burns).fetchone()
        whole = {(window[-1], DELTA_ATTO, ",".join(window[:-1])) for window in WINDOWS}
        if set(charges) != whole:
            yield "a charge counts against each batch of its window, and spends its delta"
        if len(charges) != len(WINDOWS) + burnt:
            yield "each window is charged once, and once more where a charge was burnt"
        if delta != DELTA_ATTO * len(charges):
            yield "the ledger's delta is that of its charges"


def charging(life: Life) -> list[Point]:
    """Deaths while a window is charged: between its rows, before and behind their commit."""
    marks = [number for number, kind in enumerate(life.stops) if kind == MARK]
    spans = list(zip(marks[::2], marks[1::2], strict=True))
    return [
        point for point in life.deaths() if any(first < point.stop <= last for first, last in spans)
    ]


def marked(self: SqliteStore, *arguments: Any, **named: Any) -> Reservation:
    """A charge, with a call of its own before and behind it."""
    _mark()
    reservation = _reserve(self, *arguments, **named)
    _mark()
    return reservation


_reserve = SqliteStore.reserve


def _mark() -> None:
    """A call that fails, since there are no such files, and that a tracer sees."""
    with suppress(OSError):
        os.sendfile(-1, -1, 0, 0)
