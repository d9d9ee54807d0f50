"""Clocks: far forward nothing is sealed, backwards nothing done twice, asleep nothing lost."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.errors import BudgetExhaustedError, ClockError
from streamdp.privacy.filters import Caps, Limit
from streamdp.sections.schedules import Schedule, next_times
from streamdp.sources.windows import DAY, WindowSource
from streamdp.store.clock_guard import require_not_ahead, require_not_behind
from streamdp.store.sqlite import SqliteStore
from streamdp.store.verified_open import verify
from streamdp.types import Batch, Charge
from tests.worlds import EPSILON_NANO, START, World

STEP = 30 * DAY
FIRST, LAST = 2024, 2027
"""Years whose clock changes are tried."""


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Windows without end, five of them over; the store follows its clock for 30 days."""
    made = World(tmp_path)
    made.source = WindowSource("s", made.source.start, DAY)
    made.clock.seconds = made.source.start + 5 * DAY
    reopen(made)
    return made


def reopen(world: World) -> None:
    world.store.close()
    world.open()
    world.store._longest_step = STEP


def keys(world: World) -> list[str]:
    return [release.batch for release in world.sink.taken]


def test_a_clock_far_forward_seals_nothing(world: World) -> None:
    """A year ahead: an error, no window, no charge; set right it goes on as if nothing was."""
    world.runner.round([world.job()])
    right = world.clock.seconds
    rows = world.count("SELECT count(*) FROM ledger")
    for _ in range(3):
        world.clock.seconds = world.source.start + 400 * DAY
        (error,) = world.runner.round([world.job()]).errors
        assert error.code == "clock"
        assert "accept-clock" in str(error)
        with pytest.raises(ClockError):
            world.store.beat(1, world.clock.seconds)
    assert world.count("SELECT count(*) FROM ledger") == rows
    assert world.count("SELECT count(*) FROM batch") == 5
    world.clock.seconds = right + DAY
    assert world.runner.round([world.job()]).released == 1
    assert world.store.beat(1, world.clock.seconds) == 0


@pytest.mark.parametrize("seconds", [2**33, 1000 * START, 2**62])
def test_a_clock_that_shows_no_year_at_all_is_refused_at_once(world: World, seconds: int) -> None:
    """Windows are not counted up to a time that is not followed: that would take hours."""
    world.runner.round([world.job()])
    world.source = WindowSource("s", world.source.start, 1)
    world.clock.seconds = seconds
    (error,) = world.runner.round([world.job()]).errors
    assert error.code == "clock"


def test_a_clock_that_is_right_is_accepted(world: World) -> None:
    """A person's word goes into the ledger, and the windows are caught up."""
    world.runner.round([world.job()])
    world.clock.seconds += 40 * DAY
    assert world.runner.round([world.job()]).released == 0
    world.store.accept_time(world.clock.seconds, "me")
    assert world.runner.round([world.job()]).released == 40
    assert world.count("SELECT count(*) FROM ledger WHERE purpose = 'note'") == 1


def test_a_clock_that_goes_back_does_nothing_twice(world: World) -> None:
    """No window is released again, its state is not learned from again; ahead it goes on."""
    world.runner.round([world.job()])
    world.clock.seconds -= 3 * DAY
    assert world.runner.round([world.job()]).released == 0
    assert world.store.beat(1, world.clock.seconds) == 3 * DAY
    reopen(world)
    assert world.runner.round([world.job()]).released == 0
    world.clock.seconds += 4 * DAY
    assert world.runner.round([world.job()]).released == 1
    assert len(set(keys(world))) == len(keys(world)) == 6


def test_a_clock_that_goes_back_opens_no_window_of_files(tmp_path: Path) -> None:
    """A clock at its epoch: what comes then is in the 30 days of what came before, and after."""
    limit = Limit(EPSILON_NANO, "epsilon", None, STEP)
    world = World(tmp_path, caps=Caps(EPSILON_NANO, 100 * EPSILON_NANO, (limit,)))
    now, price = world.clock.seconds, Charge({"type": "test"}, EPSILON_NANO, 0)
    files = {now: Batch("s", "a"), 1000: Batch("s", "b"), now + DAY: Batch("s", "c")}
    for at, batch in files.items():
        world.store.add_batches([(batch, None)], at)
    world.store.reserve("s", "job", files[now], price, now)
    for at in (1000, now + DAY):
        with pytest.raises(BudgetExhaustedError):
            world.store.reserve("s", "job", files[at], price, at)


@settings(max_examples=10, deadline=None)
@given(steps=st.lists(st.integers(-4 * DAY, 4 * DAY), max_size=12))
def test_whatever_the_clock_does_each_window_is_released_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int]
) -> None:
    """Asleep for three days or set back by two: no window twice, none left out, oldest first."""
    world = World(tmp_path_factory.mktemp("w"))
    world.source = WindowSource("s", world.source.start, DAY)
    latest = world.clock.seconds = world.source.start + DAY
    for step in steps:
        world.clock.seconds = max(world.clock.seconds + step, world.source.start)
        latest = max(latest, world.clock.seconds)
        world.runner.round([world.job()])
    world.clock.seconds = latest
    world.runner.round([world.job()])
    expected = [batch.key for batch in world.source.batches(latest)]
    assert keys(world) == expected


def changes(zone: ZoneInfo) -> list[int]:
    """Days (POSIX seconds of their start) on which a zone's offset changes."""
    day = datetime(FIRST, 1, 1, tzinfo=UTC)
    days = [day + timedelta(days=number) for number in range((LAST - FIRST) * 365)]
    offsets = [zone.utcoffset(each.astimezone(zone)) for each in days]
    return [
        int(days[index].timestamp())
        for index, (before, after) in enumerate(pairwise(offsets))
        if before != after
    ]


@pytest.fixture
def local_time() -> Iterator[None]:
    """Sets the zone of this process back afterwards."""
    before = os.environ.get("TZ")
    yield
    os.environ.pop("TZ", None)
    if before is not None:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.usefixtures("local_time")
@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.long)])
def test_no_clock_change_of_any_zone_loses_or_doubles_a_slot(step: int) -> None:
    """Run in each zone of the world, over each of its changes: cron and windows are UTC."""
    hourly, daily = Schedule(cron="30 * * * *"), Schedule(cron="30 2 * * *")
    tried = 0
    for name in sorted(available_timezones())[::step]:
        for day in changes(ZoneInfo(name)):
            os.environ["TZ"] = name
            time.tzset()
            slots = next_times(hourly, day - 1, 4)
            assert slots == [day + 1800 + 3600 * hour for hour in range(4)], name
            assert next_times(daily, day - 1, 2) == [day + 9000, day + DAY + 9000], name
            windows = list(WindowSource("s", day, 3600, day + 2 * DAY).batches(day + 3 * DAY))
            assert [each.start for each in windows] == list(range(day, day + 2 * DAY, 3600))
            assert len({each.key for each in windows}) == 48
            tried += 1
    assert tried > 500 // step


def test_the_limit_is_that_of_the_store(tmp_path: Path) -> None:
    """Without a limit every time is followed, as commands do that seal nothing."""
    store = SqliteStore.open(tmp_path / "s.db", 0)
    store.beat(1, 10)
    store.beat(1, 10**10)


def test_a_clock_that_was_ahead_and_was_accepted_is_set_right(world: World) -> None:
    """Accepted again: what was released ahead stays and is paid once; what follows is new."""
    job, right = world.job(), START + 31 * DAY
    world.clock.seconds = right
    done = world.runner.round([job]).released
    world.clock.seconds = right + 40 * DAY
    world.store.accept_time(world.clock.seconds, "me")
    ahead = list(world.source.batches(world.clock.seconds))[: done + 5]
    assert world.runner.round([job], lambda batch: batch in ahead).released == 5
    paid = world.count("SELECT sum(epsilon_nano) FROM ledger")
    world.clock.seconds = right
    assert world.store.beat(1, right) == 40 * DAY
    with pytest.raises(ClockError, match="accept-clock"):
        require_not_behind(world.store.database, right)
    world.store.accept_time(right, "me")
    assert world.store.beat(1, right) == 0
    with pytest.raises(ClockError, match="none of them is new"):
        require_not_ahead(world.store.database, job.name, "s", right)
    assert world.runner.round([job]).released == 0
    assert world.count("SELECT sum(epsilon_nano) FROM ledger") == paid
    world.clock.seconds = right + 6 * DAY
    assert world.runner.round([job]).released == 1
    assert len(set(keys(world))) == len(keys(world)) == done + 6
    require_not_ahead(world.store.database, job.name, "s", world.clock.seconds)
    reopen(world)


def test_files_that_came_while_the_clock_was_ahead_are_dated_back(tmp_path: Path) -> None:
    """In 30 days with what came before the jump and after it: no cap over time opens twice."""
    limit = Limit(EPSILON_NANO, "epsilon", None, STEP)
    world = World(tmp_path, caps=Caps(EPSILON_NANO, 100 * EPSILON_NANO, (limit,)))
    now, price = world.clock.seconds, Charge({"type": "test"}, EPSILON_NANO, 0)
    world.store.accept_time(now + 4000 * DAY, "me")
    world.store.add_batches([(Batch("s", "ahead"), None)], now + 4000 * DAY)
    world.store.reserve("s", "job", Batch("s", "ahead"), price, now + 4000 * DAY)
    world.store.accept_time(now + DAY, "me")
    world.store.add_batches([(Batch("s", "after"), None)], now + DAY)
    with pytest.raises(BudgetExhaustedError):
        world.store.reserve("s", "job", Batch("s", "after"), price, now + DAY)
    world.store.add_batches([(Batch("s", "later"), None)], now + 40 * DAY)
    world.store.reserve("s", "job", Batch("s", "later"), price, now + 40 * DAY)
    verify(world.store.database)


def test_a_time_that_was_past_before_the_jump_is_not_accepted(world: World) -> None:
    """Else a clock at its epoch would date what came since long ago, and free its caps."""
    right = START + 31 * DAY
    world.store.beat(1, right)
    world.store.accept_time(right + 4000 * DAY, "me")
    with pytest.raises(ClockError, match="had known"):
        world.store.accept_time(right - 2 * DAY, "me")
    world.store.accept_time(right + DAY, "me")
