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

from streamdp.config.base.schedules import Schedule, next_times
from streamdp.errors import BudgetExhaustedError, ClockError
from streamdp.privacy.filters import Caps, Limit
from streamdp.sources.windows import DAY, WindowSource
from streamdp.store.sqlite import SqliteStore
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
def test_no_clock_change_of_any_zone_loses_or_doubles_a_slot() -> None:
    """Run in each zone of the world, over each of its changes: cron and windows are UTC."""
    hourly, daily = Schedule(cron="30 * * * *"), Schedule(cron="30 2 * * *")
    tried = 0
    for name in sorted(available_timezones()):
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
    assert tried > 500


def test_the_limit_is_that_of_the_store(tmp_path: Path) -> None:
    """Without a limit every time is followed, as commands do that seal nothing."""
    store = SqliteStore.open(tmp_path / "s.db", 0)
    store.beat(1, 10)
    store.beat(1, 10**10)
