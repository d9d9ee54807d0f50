"""Cron by the clock of a zone: no day is lost or doubled at a change of clocks, in any zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from streamdp.sections.schedules import Schedule, next_times
from streamdp.zones import zones

FROM, TO = 0, 2_240_611_200


def daily(zone: str, hour: int = 2, minute: int = 30) -> Schedule:
    return Schedule(cron=f"{minute} {hour} * * *", timezone=zone)


def changes(zone: str, start: int, days: int) -> list[int]:
    """Midnights in UTC next to which the clocks of a zone are changed."""
    info = ZoneInfo(zone)
    offsets = [
        datetime.fromtimestamp(start + day * 86_400, info).utcoffset() for day in range(days + 1)
    ]
    return [start + day * 86_400 for day in range(days) if offsets[day] != offsets[day + 1]]


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(zones()),
    st.integers(FROM, TO).map(lambda moment: moment - moment % 86_400),
    st.integers(0, 23),
    st.sampled_from([0, 15, 30, 59]),
)
def test_a_daily_time_comes_once_a_day_in_every_zone(
    zone: str, start: int, hour: int, minute: int
) -> None:
    """In any zone, 1970 to 2040, about a change of clocks if one is near: one wake a local day."""
    info = ZoneInfo(zone)
    near = changes(zone, start, 200)
    begin = (near[0] if near else start) - 5 * 86_400
    times = next_times(daily(zone, hour, minute), begin, 12)
    assert times == sorted(set(times))
    days = [datetime.fromtimestamp(moment, info).date() for moment in times]
    skipped = {
        day for day in (days[0] + timedelta(days=index) for index in range(12)) if day not in days
    }
    for day in skipped:
        noon = datetime(day.year, day.month, day.day, hour, minute, tzinfo=info)
        back = noon.astimezone(UTC).astimezone(info)
        assert back.replace(tzinfo=None) != noon.replace(tzinfo=None), (day, days)
    assert len(days) - len(set(days)) <= len(skipped)
    for moment in times:
        shown = datetime.fromtimestamp(moment, info)
        wanted = shown.replace(hour=hour, minute=minute, second=0, fold=0)
        exact = (shown.hour, shown.minute) == (hour, minute)
        assert exact or shown.utcoffset() != datetime.fromtimestamp(moment - 1, info).utcoffset()
        assert not exact or int(wanted.timestamp()) == moment


@pytest.mark.parametrize(
    ("day", "shown"),
    [
        ("2024-03-31", "2024-03-31T03:00:00+02:00"),
        ("2024-10-27", "2024-10-27T02:30:00+02:00"),
        ("2024-07-01", "2024-07-01T02:30:00+02:00"),
    ],
)
def test_berlin(day: str, shown: str) -> None:
    """An hour that is skipped wakes behind the gap; of one that comes twice the first counts."""
    berlin = ZoneInfo("Europe/Berlin")
    midnight = int(datetime.fromisoformat(day).replace(tzinfo=berlin).timestamp())
    (moment,) = next_times(daily("Europe/Berlin"), midnight - 1, 1)
    assert datetime.fromtimestamp(moment, berlin).isoformat() == shown


def test_a_zone_that_is_none_is_told_its_nearest() -> None:
    with pytest.raises(ValidationError, match="did you mean 'Europe/Berlin'"):
        Schedule(cron="0 6 * * *", timezone="Europe/Berlim")
    with pytest.raises(ValidationError, match="timezone goes with cron"):
        Schedule(on="batch", timezone="Europe/Berlin")
