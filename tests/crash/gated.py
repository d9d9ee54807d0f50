"""The kill matrix of a gate: a batch released unasked, one rejected, one accepted and released.

A test that a death interrupted may have been answered, and nobody knows how: its run must be over,
and its batch asked anew under another charge.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.crash import kills
from tests.crash.home import CONFIG, Home
from tests.invariants import gate_violations
from tests.invariants import violations as ledger_violations

_PLAIN = "learner: last-release}, sinks: [table, file]}"
_GATE = "gate: {test: {kind: drift, absolute: 30}, epsilon: 6, horizon: 4, sinks: [file]}"
GATED = CONFIG.replace(_PLAIN, f"{_PLAIN[:-1]},\n     {_GATE}}}").replace(
    "batch: 0.3, lifetime: 20", "batch: 20, lifetime: 60"
)

RECORDS = 200
"""In each batch of the gate: so many that one this expensive is sure of its answers."""

ANSWERS = [("2023-11-16", 0), ("2023-11-17", 1)]
RELEASED = [
    ("daily", "2023-11-15"),
    ("daily", "2023-11-17"),
    ("parts", "a.csv"),
    ("parts", "b.csv"),
]
DEBTS = 2 * 2 + 2 + 2 + 1
"""Deliveries owed in the end: of the daily releases, of the others, and of two notices."""


@dataclass
class GatedHome(Home):
    """An installation with a gate before its daily release, which the third day passes."""

    @classmethod
    def furnish(cls, path: Path, config: str = GATED) -> Self:
        """Make a folder with a configuration and records."""
        home = super().furnish(path, config)
        days = ((15, 40), (16, 40), (17, 90))
        rows = [f"2023-11-{day}T12:00:00,{value}" for day, value in days for _ in range(RECORDS)]
        (path / "stream.csv").write_text("\n".join(["at,x", *rows, ""]))
        return home

    def broken(self) -> list[str]:
        """Invariants that do not hold once all the work is done."""
        wrong = [*ledger_violations(self.store), *gate_violations(self.store, jobs=1)]
        facts, runs = self.facts(), self.runs()
        if sorted((row[1], row[4]) for row in facts["gate_answer"]) != ANSWERS:
            wrong.append("each day is answered for once, and rightly")
        if sorted((row[1], row[3]) for row in facts["release"]) != RELEASED:
            wrong.append("what was accepted is released, and nothing else")
        told = sorted(str(row[0]) for row in (*facts["release"], *facts["notice"]))
        if sorted(self.published()) != told or len(self.lines()) != len(told):
            wrong.append("the sink has each release and each notice once")
        if self.paid() != DEBTS:
            wrong.append("every debt is paid")
        lost = [run for run, asked, ended in runs if ended == "lost"]
        burnt = sum("burn" in row for row in facts["ledger"])
        if len(runs) != 1 + len(lost) or len(lost) + burnt > 1:
            wrong.append(f"one death: {len(runs)} runs, {len(lost)} lost, {burnt} charges burnt")
        return wrong

    def runs(self) -> list[tuple[int, str | None, str | None]]:
        """Number of each run, the batch of a test without its end, and how the run ended."""
        if "gate_answer" not in self.facts():
            return []
        with closing(sqlite3.connect(self.store)) as store:
            return store.execute("SELECT run, asked, ended FROM gate_run").fetchall()


def aftermath(home: GatedHome, place: Path) -> Iterator[str]:
    """That of every life, and a test that was cut off ended its run."""
    left = home.copy(place / "known")
    interrupted = {(run, "lost") for run, asked, _ in left.runs() if asked is not None}
    yield from kills.aftermath(home, place)
    if not interrupted <= {(run, ended) for run, _, ended in home.runs()}:
        yield "a run goes on after a test that was interrupted"
