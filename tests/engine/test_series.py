"""A backlog of a gate: its tests follow each other at a pace, and no duration is seen."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from streamdp.engine.runner import TURN_OF_A_GATE
from streamdp.engine.slots import Series, seconds_of_series
from streamdp.sources.windows import DAY
from streamdp.types import Batch, Query
from tests.engine.test_gate import CAPS, Scripted, answers, gate_of
from tests.worlds import START, EventLog, World


@dataclass
class Passing:
    """A clock that stands still but for waits and for what takes time."""

    passed: float = 0.0

    def now(self) -> int:
        return START + 400 * DAY + int(self.passed)

    def timer(self) -> float:
        return self.passed

    def wait(self, seconds: float) -> None:
        self.passed += max(seconds, 0.0)


@dataclass
class TimedLog(EventLog):
    """Keeps events with the time at which they were said."""

    clock: Passing = field(default_factory=Passing)

    def __call__(self, event: str, /, **fields: str | int | None) -> None:
        super().__call__(event, **fields, said_at=round(self.clock.passed * 1e6))


def traced(folder: Path, days: int, took: tuple[float, ...], yes: tuple[int, ...]) -> Any:
    """Rows, log, notices and end of a backlog whose tests take so long in turn."""
    world = World(folder, days=days, caps=CAPS, make=True)
    clock, seconds, answer = Passing(), itertools.cycle(took), world.backend.answer
    world.clock = clock  # type: ignore[assignment]
    world.log = TimedLog(clock=clock)

    def slowly(query: Query, batch: Batch) -> Any:
        clock.passed += next(seconds)
        return answer(query, batch)

    world.backend.answer = slowly  # type: ignore[method-assign]
    world.open()
    world.runner.round([gate_of(world, Scripted(yes))])
    rows = {
        table: world.store.database.execute(f"SELECT {names} FROM {table}").fetchall()
        for table, names in (
            ("ledger", "seq, at, purpose, job, batch"),
            ("gate_answer", "batch, accepted, slot"),
            ("gate_run", "run, ended, waits"),
            ("outbox", "sink, next_at, delivered_at"),
        )
    }
    return answers(world), rows, world.log.events, round(clock.passed, 6)


@pytest.mark.parametrize("yes", [(), (20,)], ids=["noes", "a yes amid"])
def test_a_series_leaves_the_same_times_whatever_its_tests_take(
    tmp_path: Path, yes: tuple[int, ...]
) -> None:
    """Begins in the ledger, slots, log and end follow from the number of tests."""
    slow = {"quick": (0.0,), "slow": (0.045,), "uneven": (*8 * (0.0,), 0.3, 0.01)}
    traces = [traced(tmp_path / name, 40, took, yes) for name, took in slow.items()]
    assert all(trace == traces[0] for trace in traces)
    assert traces[0][0] == 2 * ("n" * 19 + ("y" if yes else "n"))
    assert traces[0][3] == pytest.approx(2 + 38 / 20 if yes else 1 + 39 / 20)


def test_a_year_of_days_is_asked_about_in_seconds(tmp_path: Path) -> None:
    """365 tests of 20 ms: four turns, each with one slot at its end."""
    said, _, _, seconds = traced(tmp_path / "year", 365, (0.02,), ())
    assert said == "n" * 365
    turns = (TURN_OF_A_GATE,) * 3 + (365 - 3 * TURN_OF_A_GATE,)
    assert seconds == pytest.approx(sum(1 + (each - 1) / 20 for each in turns))
    assert seconds < 25


def test_tests_that_take_longer_than_their_series_take_whole_slots() -> None:
    """What a series of two does not hold is rounded up to slots, as for a single test."""
    ends = set()
    for took in (1.2, 1.5, 1.9):
        clock = Passing()
        series = Series(clock, 1)
        series.begin()
        clock.passed += took
        series.begin()
        seen = series.seen_from()
        series.end()
        ends.add((seen - START - 400 * DAY, round(clock.passed, 6)))
    assert ends == {(4, 2.05)}


@pytest.mark.parametrize("tests", [1, 2, 21, 100])
def test_the_length_that_is_announced_is_the_length(tests: int) -> None:
    """In whole seconds, rounded up."""
    clock = Passing()
    series = Series(clock, 3)
    for _ in range(tests):
        series.begin()
    series.end()
    assert 0 <= seconds_of_series(3, tests) - clock.passed < 1


def test_no_begin_is_ahead_of_a_clock_that_is_set_back() -> None:
    """What sinks are owed since a begin is owed now."""
    clock = Passing()
    series = Series(clock, 100)
    series.begin()
    clock.now = lambda: START  # type: ignore[method-assign]
    assert series.begin() == START
