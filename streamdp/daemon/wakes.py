"""Which tasks a schedule wakes, found anew at every look at the clock.

No timer is set for a time of day: it would fire late after the clock was set back. Each look asks
which schedules have come due since the last look. A clock that was stepped, in either direction,
wakes all tasks: what is due follows from the store.
"""

from __future__ import annotations

from collections.abc import Mapping

from streamdp.sections.schedules import Schedule, next_times
from streamdp.types import Clock

STEP = 60
"""Seconds by which a clock must go otherwise than an even one to have been stepped."""


class Wakes:
    """Schedules by task, and when they were last looked at.

    Args:
        schedules: Of each task.
        clock: Of the schedules, with a timer that nobody sets.
    """

    def __init__(self, schedules: Mapping[str, Schedule], clock: Clock) -> None:
        self._schedules, self._clock = schedules, clock
        self._set(clock.now(), clock.timer())

    def _set(self, now: int, timer: float) -> None:
        self._now, self._timer = now, timer
        self._next = {name: _next(each, now) for name, each in self._schedules.items()}

    def due(self) -> set[str]:
        """Tasks whose time came since the last look; all of them after a step of the clock."""
        now, timer = self._clock.now(), self._clock.timer()
        stepped = abs((now - self._now) - (timer - self._timer)) > STEP
        self._now, self._timer = now, timer
        if stepped:
            self._set(now, timer)
            return set(self._schedules)
        names = {name for name, at in self._next.items() if at is not None and at <= now}
        self._next |= {name: _next(self._schedules[name], now) for name in names}
        return names

    def wait(self, longest: float) -> float:
        """Seconds to the next wake, at most the longest."""
        times = [at for at in self._next.values() if at is not None]
        return max(0.0, min([longest, *(at - self._clock.now() for at in times)]))


def _next(schedule: Schedule, after: int) -> int | None:
    return next(iter(next_times(schedule, after, 1)), None)
