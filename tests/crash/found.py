"""The kill matrix of found groups: keys of windows, and counts by those that were found before.

Each window brings a town that no earlier one had. Whatever dies when, the groups of a day are the
towns of the newest window that was over when the day began, and a day from before the first such
window is not released and costs nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Self
from unittest.mock import patch

from streamdp.engine.attempts import Outcomes
from streamdp.reports.statement import statement
from streamdp.store.database import connect_to_read
from streamdp.store.release_rows import ROWS_OF_RELEASE
from streamdp.store.sqlite import SqliteStore
from tests.crash import windows
from tests.crash.home import Home
from tests.invariants import violations

DAYS = tuple(f"2023-11-{day}" for day in range(15, 21))
WINDOW = 2
WINDOWS = tuple(DAYS[start : start + WINDOW] for start in range(0, len(DAYS), WINDOW))
TOWNS = ("Chur", "Thun", "Visp")
"""Each is in its own window and all later ones."""

DELTA_ATTO = 10**14
CONFIG = """
store: {path: store.db, anchor: vault/anchor}
privacy:
  unit: person
  neighbours: add-remove
  caps: {batch: 12, lifetime: 90, delta: {batch: 1e-3, lifetime: 1e-2}}
sources:
  stream:
    path: stream.csv
    types: {at: timestamp, town: text}
    batches: {column: at, every: 1d, start: 2023-11-15, end: 2023-11-21}
releases:
  sizes: {kind: statistics, source: stream, by: town, groups: {from: towns, most: 3}, epsilon: 1,
    measures: {rows: count}, sinks: [file]}
  towns: {kind: keys, source: stream, by: town, epsilon: 4, delta: 1e-4, window: 2,
    sinks: [table, file]}
sinks:
  table: {kind: table, table: towns}
  file: {kind: jsonl, path: out.jsonl}
log: {path: streamdp.log, level: debug}
"""
RECORDS = 40
"""Of each town and day: so many that each is found in its first window."""

COUNTED = DAYS[WINDOW:]
"""Days that some window was over before."""

DEBTS = 2 * len(WINDOWS) + len(COUNTED)
"""Deliveries owed once all is released."""


@dataclass
class FoundHome(Home):
    """An installation that releases three windows, and counts on four days."""

    @classmethod
    def furnish(cls, path: Path, config: str = CONFIG) -> Self:
        """Make a folder with a configuration and records."""
        home = super().furnish(path, config)
        home.engine = True
        rows = [
            f"{day}T12:00:00,{town}"
            for place, day in enumerate(DAYS)
            for town in (*TOWNS[: place // WINDOW + 1], "Ems")
            for _ in range(2 if town == "Ems" else RECORDS)
        ]
        (path / "stream.csv").write_text("\n".join(["at,town", *rows, ""]))
        return home

    def live(self, seed: str = "first", rounds: int = 1) -> Outcomes:
        """One life, with a call of its own before and behind each charge."""
        with patch.object(SqliteStore, "reserve", windows.marked):
            return super().live(seed, rounds)

    def broken(self) -> list[str]:
        """Invariants that do not hold once all the work is done."""
        wrong = [*violations(self.store), *self._charges(), *self._groups()]
        facts, lines = self.facts(), self.published()
        turns = [("sizes", day) for day in COUNTED] + [("towns", each[-1]) for each in WINDOWS]
        if sorted((str(row[1]), str(row[3])) for row in facts["release"]) != turns:
            wrong.append("each window is released once, and each day that one was over before")
        released = sorted(str(row[0]) for row in facts["release"])
        if sorted(lines) != released or len(lines) != len(self.lines()):
            wrong.append("the sink has each release once")
        if self.paid() != DEBTS:
            wrong.append("every debt is paid")
        return wrong

    def _groups(self) -> Iterator[str]:
        """What is wrong with the groups of a day: they are the keys of the windows before it."""
        with closing(connect_to_read(self.store)) as store:
            made = store.execute(f"SELECT job, batch, {ROWS_OF_RELEASE} FROM release r").fetchall()
        named = {
            (job, batch): sorted(row["town"] for row in json.loads(rows))
            for job, batch, rows in made
        }
        for place, window in enumerate(WINDOWS):
            if named.get(("towns", window[-1])) != list(TOWNS[: place + 1]):
                yield f"{window[-1]} has all towns that were found by then"
            for day in window if place else ():
                if named.get(("sizes", day)) != list(TOWNS[:place]):
                    yield f"{day} is counted by the towns that were found before it"

    def _charges(self) -> Iterator[str]:
        """What is wrong with charges, of their batches and their delta.

        One that a death cut off has the name of no job: the anchor alone knew of it.
        """
        with closing(sqlite3.connect(self.store)) as store:
            charges = store.execute(
                "SELECT r.batch, r.epsilon_nano, r.delta_atto, (SELECT group_concat(j.batch)"
                " FROM ledger j WHERE j.reservation = r.seq AND j.purpose = 'join')"
                " FROM ledger r WHERE r.purpose = 'reserve'"
            ).fetchall()
            (delta,) = store.execute("SELECT sum(delta_atto) FROM ledger").fetchone()
        whole: set[tuple[Any, ...]] = {
            (window[-1], 4 * 10**9, DELTA_ATTO, window[0]) for window in WINDOWS
        }
        whole |= {(day, 10**9, 0, None) for day in COUNTED}
        if set(charges) != whole:
            yield "a window is paid against each of its batches, and of days those that are counted"
        if delta != DELTA_ATTO * sum(joined is not None for *_, joined in charges):
            yield "the ledger's delta is that of its charges"
        with closing(connect_to_read(self.store)) as database:
            told: Any = statement(self.configuration(), database, ["towns"], Fraction(1, 100))
        (source,) = told["sources"]
        if Fraction(source["spent_for_life"]["delta_of_releases"]) * 10**18 != delta:
            yield "the statement's delta is the ledger's"
