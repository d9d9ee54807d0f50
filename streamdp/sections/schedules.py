"""Schedule of a job: cron in a time zone, an interval, or on new batches.

APScheduler's cron differs from cron's: numbers of weekdays begin with Monday, day and weekday
together mean both instead of either, and a day that never comes is accepted. Here numbers become
names, and what would mean something else, or nothing, is refused.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal
from zoneinfo import ZoneInfo

from pydantic import Field, field_validator, model_validator

from streamdp.sections.section import Section
from streamdp.sections.values import PositiveDuration, TimeZone
from streamdp.zones import first_shown

if TYPE_CHECKING:
    from apscheduler.triggers.base import BaseTrigger

MONDAY = 946_857_600
"""2000-01-03, from which intervals are counted."""

SPAN = timedelta(days=2)
"""How long before a moment the search begins: no clock was ever set back or forward by more."""

_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")


class Schedule(Section):
    """When a job wakes: by cron, at an interval, or on new batches."""

    cron: str | None = Field(
        default=None,
        description="Wake at these times: minute, hour, day, month and weekday, by the clock of"
        " `timezone`.",
        examples=["0 6 * * *"],
    )
    timezone: TimeZone = Field(
        default="UTC",
        description="Time zone of `cron`. A time that is skipped when clocks change wakes at the"
        " next moment; one that comes twice wakes once. Default UTC.",
        examples=["Europe/Berlin"],
    )
    every: PositiveDuration | None = Field(
        default=None,
        description="Wake at a fixed interval, as a duration, counted from a Monday 00:00 UTC.",
        examples=["6h"],
    )
    on: Literal["batch"] | None = Field(
        default=None,
        description="Wake as soon as a batch is complete. This is the default schedule.",
    )
    poll: PositiveDuration = Field(
        default=60,
        description="Interval at which `on: batch` looks for new batches, as a duration. Default"
        " 1m.",
        examples=["5m"],
    )

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
        if "timezone" in self.model_fields_set and self.cron is None:
            raise ValueError("timezone goes with cron")
        return self


def next_times(schedule: Schedule, after: int, count: int) -> list[int]:
    """The next `count` times (POSIX seconds) at which a schedule wakes its job.

    Cron is read by a clock on the wall: its times are found without a zone and put into the zone
    afterwards. A time that is skipped when clocks go forward is that of the first moment behind the
    gap; of one that comes twice the first counts.
    """
    if schedule.cron is None:
        length = schedule.every or schedule.poll
        first = MONDAY + ((after - MONDAY) // length + 1) * length
        return [first + index * length for index in range(count)]
    rule, zone = _cron(schedule.cron), ZoneInfo(schedule.timezone)
    wall = datetime.fromtimestamp(after, zone).replace(tzinfo=None) - SPAN
    times: list[int] = []
    while len(times) < count:
        following = _next(rule, int(wall.replace(tzinfo=UTC).timestamp()))
        if following is None:
            break
        wall = datetime.fromtimestamp(following, UTC).replace(tzinfo=None)
        moment = first_shown(wall, zone)
        if moment > after and moment not in times:
            times.append(moment)
    return times


def _next(rule: BaseTrigger, after: int) -> int | None:
    now = datetime.fromtimestamp(after + 1, UTC)
    following = rule.get_next_fire_time(None, now)
    return int(following.timestamp()) if following is not None else None


_VALUES = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day": "1 to 31",
    "month": "1 to 12, or jan to dec",
    "day_of_week": "0 to 7, or sun to sat",
}
"""Values that each field of cron takes."""


def _cron(text: str) -> BaseTrigger:
    """Translate the five fields of cron.

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
    read = {"minute": minute, "hour": hour, "day": day, "month": month, "day_of_week": names}
    for (name, value), field in zip(read.items(), fields, strict=True):
        try:
            CronTrigger(**{name: value}, timezone="UTC")
        except ValueError:
            what, values = ("weekday" if name == "day_of_week" else name), _VALUES[name]
            text = f"the {what} {field!r} is not understood: {values}, *, lists, ranges or steps"
            raise ValueError(f"this is no cron line: {text}") from None
    return CronTrigger(**read, timezone="UTC")
