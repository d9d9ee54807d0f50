"""Schedules against clocks that are stepped: nothing waits for a time that a clock once showed."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from streamdp.config import Schedule
from streamdp.daemon.wakes import STEP, Wakes
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
