"""Schedules against clocks that are stepped: nothing waits for a time that a clock once showed."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from threading import Event
from typing import Any
from unittest.mock import patch

from apscheduler.schedulers import base
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger
from hypothesis import given
from hypothesis import strategies as st

from streamdp.daemon.daemon import STEP, Wakes
from streamdp.sections.schedules import Schedule
from streamdp.sources.windows import DAY
from tests.worlds import START, HandClock

HOURLY, DAILY = Schedule(every="1h"), Schedule(cron="0 6 * * *")  # type: ignore[arg-type]
SCHEDULES = {"hourly": HOURLY, "daily": DAILY}


@dataclass
class Wall(HandClock):
    """A clock on the wall, and an even one behind it."""

    seconds: int = START

    def pass_by(self, seconds: int) -> None:
        self.seconds += seconds
        self.timed += seconds


def test_a_task_wakes_at_its_times() -> None:
    """Once an hour, once a day; the wait is never longer than the heartbeat."""
    clock = Wall()
    wakes = Wakes(SCHEDULES, clock)
    woken = []
    for _ in range(DAY // 15):
        clock.pass_by(15)
        assert 0 <= wakes.wait(15) <= 15
        woken += sorted(wakes.due())
    assert woken.count("hourly") == 24
    assert woken.count("daily") == 1


def test_a_clock_that_jumps_and_is_set_right_wakes_all() -> None:
    """Ten years ahead and back: all is looked at each time, and the hours go on as before."""
    clock = Wall()
    wakes = Wakes(SCHEDULES, clock)
    for step in (3650 * DAY, -3650 * DAY):
        clock.seconds += step
        assert wakes.due() == set(SCHEDULES)
    clock.pass_by(3600)
    assert "hourly" in wakes.due()


@given(st.lists(st.integers(-400 * DAY, 400 * DAY), max_size=6))
def test_whatever_the_clock_did_an_hour_later_the_hourly_task_wakes(steps: list[int]) -> None:
    """Any steps, large and small, in either direction."""
    clock = Wall(seconds=START + 3000 * DAY)
    wakes = Wakes(SCHEDULES, clock)
    for step in steps:
        clock.seconds += step
        found = wakes.due()
        assert abs(step) <= STEP or found == set(SCHEDULES)
        clock.pass_by(3600 + STEP)
        assert "hourly" in wakes.due()


def test_a_late_look_is_one_wake() -> None:
    """A round that took days, while the clock went evenly: each task wakes once."""
    clock = Wall()
    wakes = Wakes(SCHEDULES, clock)
    clock.pass_by(3 * DAY)
    assert wakes.due() == set(SCHEDULES)
    assert wakes.due() == set()


def test_the_scheduler_of_apscheduler_sleeps_through_a_step_of_the_clock() -> None:
    """Why its triggers alone are used: half an hour's step is slept through for half an hour.

    It hands an event the seconds to the next time of day, and looks at no clock before these are
    over. Here a heartbeat passes, and all tasks wake.
    """
    noon, waits, looked = datetime(2024, 1, 1, 12, tzinfo=UTC), list[float](), Event()

    class Noon(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return noon.astimezone(tz)

    class Told(BackgroundScheduler):  # type: ignore[misc]
        def _process_jobs(self) -> float | None:
            waits.append(super()._process_jobs())
            looked.set()
            return waits[-1]

    scheduler = Told(timezone="UTC")
    scheduler.add_job(print, CronTrigger(hour=13, timezone="UTC"))
    with patch.object(base, "datetime", Noon):
        scheduler.start()
        assert looked.wait(600)
        scheduler.shutdown()
    assert waits[0] == timedelta(hours=1).total_seconds()
    clock = Wall(seconds=int(noon.timestamp()))
    wakes = Wakes({"at one": Schedule(cron="0 13 * * *")}, clock)
    clock.seconds += 3600
    assert wakes.wait(15) <= 15
    assert wakes.due() == {"at one"}
