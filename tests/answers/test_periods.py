"""Periods are those of the calendar, by the clocks of a zone."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from streamdp.answers.periods import Period, every, gaps, period
from streamdp.errors import ConfigurationError
from streamdp.types import Batch

FIRST = int(datetime(2013, 1, 1, tzinfo=UTC).timestamp())
LAST = int(datetime(2014, 1, 1, tzinfo=UTC).timestamp())


def days_of(text: str, zone: str = "UTC") -> tuple[str, str]:
    found = period(text, zone, FIRST, LAST)
    ends = (datetime.fromtimestamp(each, UTC) for each in (found.since, found.until))
    one, other = (each.isoformat()[:16] for each in ends)
    return one, other


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2013-06-03", "2013-06-03", "2013-06-04"),
        ("2013-W22", "2013-05-27", "2013-06-03"),
        ("2013-02", "2013-02-01", "2013-03-01"),
        ("2013-12", "2013-12-01", "2014-01-01"),
        ("2013-Q4", "2013-10-01", "2014-01-01"),
        ("2013", "2013-01-01", "2014-01-01"),
        ("2013-06-03..2013-06-05", "2013-06-03", "2013-06-06"),
        ("28d", "2013-12-04", "2014-01-01"),
        ("all", "2013-01-01", "2014-01-01"),
    ],
)
def test_texts_name_periods(text: str, first: str, last: str) -> None:
    """Both days of a range are in it."""
    assert days_of(text) == (f"{first}T00:00", f"{last}T00:00")


def test_days_are_those_of_the_zone() -> None:
    """The month in which clocks are changed is an hour shorter."""
    assert days_of("2013-03", "Europe/Berlin") == ("2013-02-28T23:00", "2013-03-31T22:00")


@pytest.mark.parametrize("text", ["2013-W60", "June", "2013-13", "2013-06-05..2013-06-03", "0d"])
def test_what_names_no_period_is_refused(text: str) -> None:
    """With the forms that there are."""
    with pytest.raises(ConfigurationError):
        period(text, "UTC", FIRST, LAST)


def test_every_whole_period_of_a_range_is_there_once() -> None:
    """Weeks that reach over an end are not."""
    whole = period("2013", "Europe/Berlin", FIRST, LAST)
    for step, count in (("day", 365), ("week", 51), ("month", 12), ("quarter", 4), ("year", 1)):
        found = every(step, whole, "Europe/Berlin")  # type: ignore[arg-type]
        assert len(found) == count
        assert all(one.until <= other.since for one, other in pairwise(found))
    assert every("month", whole, "Europe/Berlin")[2].name == "2013-03"


def test_gaps_between_batches_are_found() -> None:
    """Before the first, between two, and behind the last."""
    batches = [Batch("s", str(at), at, at + 10) for at in (10, 20, 40)]
    assert gaps(batches, Period("p", 0, 60)) == ((0, 10), (30, 40), (50, 60))
    assert gaps(batches[:2], Period("p", 10, 30)) == ()
