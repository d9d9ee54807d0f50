"""When a job wakes: cron in UTC, an interval, or a look for new batches.

APScheduler's cron differs from cron's: numbers of weekdays begin with Monday, day and weekday
together mean both instead of either, and a day that never comes is accepted. Here numbers become
names, and what would mean something else, or nothing, is refused.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from pydantic import Field, field_validator, model_validator

from streamdp.config.section import Section
from streamdp.config.values import PositiveDuration

if TYPE_CHECKING:
    from apscheduler.triggers.base import BaseTrigger

_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")


class Schedule(Section):
    """One of cron, every, or on."""

    cron: str | None = Field(default=None, description="Five fields, UTC.")
    every: PositiveDuration | None = Field(default=None, description="An interval.")
    on: Literal["batch"] | None = Field(default=None, description="As soon as a batch is there.")
    poll: PositiveDuration = Field(default=60, description="With `on`: how often to look.")

    @field_validator("cron")
    @classmethod
    def _fires(cls, value: str | None) -> str | None:
        if value is not None and _next(_cron(value), 0) is None:
            raise ValueError("no such time ever comes")
        return value

    @model_validator(mode="after")
    def _one_of(self) -> Schedule:
        given = [name for name in ("cron", "every", "on") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError("give one of cron, every, or on: batch")
        if "poll" in self.model_fields_set and self.on is None:
            raise ValueError("poll goes with on: batch")
        return self


def trigger(schedule: Schedule) -> BaseTrigger:
    """The APScheduler trigger of a schedule, in UTC."""
    from apscheduler.triggers.interval import IntervalTrigger

    if schedule.cron is not None:
        return _cron(schedule.cron)
    epoch = datetime(2000, 1, 3, tzinfo=UTC)
    return IntervalTrigger(
        seconds=schedule.every or schedule.poll, start_date=epoch, timezone="UTC"
    )


def next_times(schedule: Schedule, after: int, count: int) -> list[int]:
    """The next `count` times (POSIX seconds) at which a schedule wakes its job."""
    rule, moment = trigger(schedule), after
    times: list[int] = []
    while len(times) < count:
        following = _next(rule, moment)
        if following is None:
            break
        times.append(following)
        moment = following
    return times


def _next(rule: BaseTrigger, after: int) -> int | None:
    now = datetime.fromtimestamp(after + 1, UTC)
    following = rule.get_next_fire_time(None, now)
    return int(following.timestamp()) if following is not None else None


def _cron(text: str) -> BaseTrigger:
    """Translate five fields.

    Raises:
        ValueError: Not five fields, or fields whose meaning would differ from cron's.
    """
    from apscheduler.triggers.cron import CronTrigger

    fields = text.split()
    if len(fields) != 5:
        raise ValueError("cron has five fields: minute hour day month weekday")
    minute, hour, day, month, weekday = fields
    if day != "*" and weekday != "*":
        raise ValueError("day and weekday together: cron takes either, so write two releases")
    if "/" in weekday:
        raise ValueError("steps of weekdays count from different days: list them, mon,wed,fri")
    if re.search(r"[89]|\d\d", weekday):
        raise ValueError("weekdays are 0 to 7, or sun to sat")
    names = re.sub(r"(?<![/\d])[0-7](?!\d)", lambda number: _WEEKDAYS[int(number[0])], weekday)
    try:
        return CronTrigger(
            minute=minute, hour=hour, day=day, month=month, day_of_week=names, timezone="UTC"
        )
    except ValueError as error:
        raise ValueError(f"this is no cron line: {error}") from None
