"""The kill matrix of rollups: each period once, with all its deliveries or not at all."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Self

from tests.crash.home import Home
from tests.invariants import violations

CONFIG = """
store: {path: store.db, anchor: vault/anchor}
privacy: {unit: person, neighbours: add-remove, caps: {batch: 0.3, lifetime: 20}}
sources:
  stream:
    path: stream.csv
    types: {at: timestamp, x: number}
    batches: {column: at, every: 1d, start: 2023-11-15, end: 2023-11-18}
releases:
  rows:
    {kind: statistics, source: stream, measures: {rows: count}, epsilon: 0.1, sinks: [table, file],
     rollups: {periods: [day, rolling 2d], sinks: [file, rolled]}}
sinks:
  table: {kind: table, table: counts}
  rolled: {kind: table, table: rolled}
  file: {kind: jsonl, path: out.jsonl}
log: {path: streamdp.log, level: debug}
"""

DAYS = ("2023-11-15", "2023-11-16", "2023-11-17")
PERIODS = [
    *(("day", day) for day in DAYS),
    *(("rolling 2d", f"{one}..{other}") for one, other in pairwise(DAYS)),
]
DEBTS = 2 * len(DAYS) + 2 * len(PERIODS)
"""Deliveries owed once all is released and rolled up."""


@dataclass
class RolledHome(Home):
    """Three days of records, counted, and rolled up."""

    @classmethod
    def furnish(cls, path: Path, config: str = CONFIG) -> Self:
        """Make a folder with a configuration and records."""
        home = super().furnish(path, config)
        home.engine = True
        return home

    def broken(self) -> list[str]:
        """Invariants that do not hold once all the work is done."""
        wrong = violations(self.store)
        facts, lines = self.facts(), self.published()
        with closing(sqlite3.connect(self.store)) as store:
            rollups = store.execute("SELECT id, step, period, revision FROM rollup").fetchall()
            rows = store.execute("SELECT release_id FROM rolled").fetchall()
        if sorted(str(row[3]) for row in facts["release"]) != list(DAYS):
            wrong.append("every day is released once")
        if sorted(row[1:] for row in rollups) != sorted((*each, 1) for each in PERIODS):
            wrong.append("every period is rolled up once, in its first revision")
        if sorted(rows) != sorted((row[0],) for row in rollups):
            wrong.append("the table has each rollup once")
        told = [*(str(row[0]) for row in facts["release"]), *(row[0] for row in rollups)]
        if sorted(lines) != sorted(told) or len(lines) != len(self.lines()):
            wrong.append("the file has each release and each rollup once")
        if self.paid() != DEBTS:
            wrong.append("every debt is paid")
        return wrong
