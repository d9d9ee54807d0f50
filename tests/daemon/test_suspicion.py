"""What is odd about a release is told, and nothing else: planted faults and ordinary days."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamdp.reports.releases.series import picture
from streamdp.reports.releases.suspicion import odd
from streamdp.types import HARDLY_ANY, Column, Release, Row

COLUMNS = (
    Column("quantile", "number", "label"),
    Column("value", "number", "value"),
    Column("lower", "number", "lower", about="value", level=0.95),
    Column("upper", "number", "upper", about="value", level=0.95),
    Column("flag", "text", "flag"),
)


def release(day: int, **changed: Any) -> Release:
    value = 50.0 + float(np.random.default_rng(day).normal(0.0, 2.0))
    row: Row = {"quantile": 0.5, "value": value, "lower": value - 1, "upper": value + 1}
    rows = ({**row, "flag": None, **changed},)
    start = day * 86_400
    about = ("s", str(day), start, start + 86_400, "quantiles", 1, start)
    return Release(f"{day:024x}", "job", *about, rows, COLUMNS)


def reasons(**changed: Any) -> tuple[str, ...]:
    past = [release(day) for day in range(30)]
    return odd([release(30, **changed), *reversed(past)], lambda row: (0.0, 400.0))


def test_ordinary_days_are_not_suspect() -> None:
    """Of a year of them none is."""
    days = [release(day) for day in range(365)][::-1]
    assert not any(odd(days[at : at + 31], lambda row: (0.0, 400.0)) for at in range(365))


@pytest.mark.parametrize(
    ("planted", "told"),
    [
        ({"flag": HARDLY_ANY}, f"{HARDLY_ANY}: 0.5"),
        ({"value": 400.0, "lower": 399.0, "upper": 400.0}, "at a bound"),
        ({"value": 300.0, "lower": 299.0, "upper": 301.0}, "far from all"),
        ({"value": 5.0, "lower": 4.0, "upper": 6.0}, "far from all"),
        ({"lower": 0.0, "upper": 400.0}, "an interval wider"),
    ],
)
def test_what_is_planted_is_told(planted: dict[str, Any], told: str) -> None:
    """One reason each, which names the row."""
    (reason,) = reasons(**planted)
    assert reason.startswith(told)
    assert reason.endswith("0.5")


@pytest.mark.parametrize(
    "ordinary",
    [
        {"value": 60.0, "lower": 59.0, "upper": 61.0},
        {"lower": 47.0, "upper": 54.0},
    ],
)
def test_a_large_day_is_not_told(ordinary: dict[str, Any]) -> None:
    """Its interval is near those before."""
    assert reasons(**ordinary) == ()


def test_noise_that_ends_at_a_bound_is_not_told() -> None:
    """The interval reaches to values before, as every day."""
    wide = [release(day, lower=20.0, upper=80.0) for day in range(30)]
    assert odd([release(30, value=0.0, lower=0.0, upper=60.0), *wide], lambda row: (0, 400)) == ()


def test_a_job_of_few_releases_is_compared_with_nothing() -> None:
    """Its flags are told all the same."""
    assert odd([release(1, lower=0.0, upper=400.0), release(0)], lambda row: None) == ()
    assert odd([release(1, flag=HARDLY_ANY)], lambda row: None)


def test_a_key_that_was_found_is_marked_and_not_suspect() -> None:
    """Nor is one that is quiet, which it may be in all releases to come."""
    columns = (*COLUMNS[1:4], Column("city", "text", "label"), Column("flag", "text", "state"))
    none: Row = {"city": "Bern", "value": None, "lower": None, "upper": None, "flag": "found now"}
    about = ("s", "1", 0, 86_400, "keys", 1, 0)
    found = Release("f" * 24, "job", *about, (none,), columns)
    assert odd([found], lambda _: None) == ()
    assert picture([found]).series[0].flags == ("found now",)
