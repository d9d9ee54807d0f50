"""A backlog of a gate: its tests follow each other at a pace, and no duration is seen."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from streamdp.engine.deliver import deliver
from streamdp.engine.gate import SlotSeries, seconds_of_series
from streamdp.engine.runner import TURN_OF_A_GATE
from streamdp.sources.windows import DAY
from streamdp.store import outbox
from streamdp.store.outbox import LONGEST_WAIT
from streamdp.types import Batch, Query, Release
from tests.engine.test_gate import CAPS, Scripted, answers, gate_of
from tests.worlds import START, EventLog, ListSink, World


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
        series = SlotSeries(clock, 1)
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
    series = SlotSeries(clock, 3)
    for _ in range(tests):
        series.begin()
    series.end()
    assert 0 <= seconds_of_series(3, tests) - clock.passed < 1


def test_no_begin_is_ahead_of_a_clock_that_is_set_back() -> None:
    """What sinks are owed since a begin is owed now."""
    clock = Passing()
    series = SlotSeries(clock, 100)
    series.begin()
    clock.now = lambda: START  # type: ignore[method-assign]
    assert series.begin() == START


@dataclass
class TimedSink(ListSink):
    """Keeps what it was handed, and after how long."""

    clock: Passing = field(default_factory=Passing)
    times: list[tuple[str, float]] = field(default_factory=list)

    def deliver(self, release: Release) -> None:
        super().deliver(release)
        self.times.append((release.kind, round(self.clock.passed, 6)))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("took", [0.0, 0.04, 0.3], ids=["quick", "slow", "beyond the slot"])
@pytest.mark.parametrize("yes", [(), (20,)], ids=["noes", "a yes amid"])
def test_a_courier_that_wakes_amid_a_series_has_nothing_of_it_to_deliver(
    tmp_path: Path, yes: tuple[int, ...], took: float
) -> None:
    """It looks during each test, and so does a round of other jobs, which recovers what is left
    open: the word of all tests is handed over when their series is over."""
    world = World(tmp_path, days=41, caps=CAPS)
    clock, answer = Passing(), world.backend.answer
    sink = TimedSink(clock=clock)
    world.clock, world.log = clock, TimedLog(clock=clock)  # type: ignore[assignment]

    def woken(query: Query, batch: Batch) -> Any:
        clock.passed += took
        world.store.recover(clock.now())
        deliver(world.store, {"list": sink}, clock.now(), EventLog())
        return answer(query, batch)

    world.backend.answer = woken  # type: ignore[method-assign]
    world.open()
    world.runner.sinks = {"list": sink}
    world.runner.round([gate_of(world, Scripted(yes), (world.job(),))])
    words = [at for kind, at in sink.times if kind in ("standing", "gate")]
    ends = {int(about["said_at"]) / 1e6 for name, about in world.log.events if name == "gate.asked"}  # type: ignore[arg-type]
    assert len(words) == 40
    assert min(words) == min(ends) > 1
    assert len(ends) == (2 if yes else 1)
    assert all(any(abs(at - end) <= took for end in ends) for at in words)


def test_a_notice_that_a_death_left_held_is_due_at_the_next_start(tmp_path: Path) -> None:
    """The process is killed amid a series; the next one owes the word of each test that ended."""
    world = World(tmp_path, days=5, caps=CAPS)
    answer = world.backend.answer

    def killed(query: Query, batch: Batch) -> Any:
        if len(world.backend.asked) == 3:
            raise KeyboardInterrupt
        return answer(query, batch)

    gate = gate_of(world, Scripted(), (world.job(),))
    world.backend.answer = killed  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        world.runner.round([gate])
    deliver(world.store, {"list": world.sink}, world.clock.now(), world.log)
    assert [each.kind for each in world.sink.taken] == ["quantiles"]
    world.open()
    world.runner.round([])
    assert [each.kind for each in world.sink.taken] == ["quantiles", "standing", "standing"]


def test_what_is_held_holds_nothing_else_back(tmp_path: Path) -> None:
    """Releases on either side of a held notice are due; a failed delivery still waits for all."""
    world = World(tmp_path, days=3, caps=CAPS)
    world.sink.fails = True
    world.runner.round([world.job()])
    now = world.clock.now() + LONGEST_WAIT
    (first, second, third) = world.store.database.execute(
        "SELECT release_id FROM outbox ORDER BY seq"
    ).fetchall()
    assert not world.store.database.execute("SELECT 1 FROM outbox WHERE attempts > 1").fetchall()
    with world.store.transaction():
        world.store.database.execute("UPDATE outbox SET attempts = 0, next_at = ?", [now])
        world.store.database.execute(
            "UPDATE outbox SET next_at = ? WHERE release_id = ?", [now + LONGEST_WAIT, *second]
        )
    due = [each.release_id for each in outbox.due(world.store.database, now, ["list"])]
    assert due == [*first, *third]
