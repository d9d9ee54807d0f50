from __future__ import annotations

import math
from datetime import UTC, date, datetime

from hypothesis import given
from hypothesis import strategies as st

from streamdp.learning import features
from streamdp.types import Batch


def day(text: str) -> Batch:
    start = int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
    return Batch("flights", text, start, start + 86_400)


def test_weekdays_and_months_are_indicators_of_the_window() -> None:
    """2013-01-02 is a Wednesday in January: one weekday indicator, no month."""
    assert features.weekday(day("2013-01-02")) == (0.0, 1.0, 0.0, 0.0, 0.0, 0.0)
    assert features.month(day("2013-01-02")) == (0.0,) * 11
    assert sum(features.month(day("2013-12-31"))) == 1.0


def test_holidays_reach_the_days_beside_them() -> None:
    """The eve of a holiday has the second indicator, the day after the third."""
    holiday = features.holidays({date(2013, 7, 4)})
    found = [holiday(day(f"2013-07-0{each}")) for each in (3, 4, 5, 6)]
    assert found == [(0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)]


def test_missing_and_constant_columns_become_zero() -> None:
    """A key that is not in the table, a gap in it and a constant column say nothing."""
    public = features.table({"a": (1.0, 7.0), "b": (3.0, 7.0), "c": (math.nan, 7.0)}, 2)
    assert public(Batch("s", "a")) == (-1.0, 0.0)
    assert public(Batch("s", "c")) == public(Batch("s", "unknown")) == (0.0, 0.0)
    assert features.table({}, 2)(Batch("s", "a")) == (0.0, 0.0)


def test_a_file_has_its_date_in_its_key() -> None:
    """The first date of a key stands for the window; digits that are no date do not."""
    assert features.weekday(Batch("s", "part-99999999-sales_2013-01-02.csv"))[1] == 1.0
    assert features.month(Batch("s", "20131231.parquet")) == features.month(day("2013-12-31"))
    assert features.trend(0)(Batch("s", "no date")) == (0.0,)


@given(st.integers(0, 4 * 10**9))
def test_circles_and_trend_stay_small(start: int) -> None:
    """Whatever the time, features are finite, and circular ones on the unit circle."""
    batch = Batch("s", "k", start, start + 1)
    everything = features.together(
        (features.hour, features.season, features.weekday, features.trend(0))
    )(batch)
    assert all(math.isfinite(number) for number in everything)
    assert math.hypot(*features.season(batch)) - 1.0 < 1e-9
