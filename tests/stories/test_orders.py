"""Sixty days of a shop: intervals hold what labels say, and an empty day makes no spike."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamdp.types import HARDLY_ANY
from tests.stories.orders import BUSY, EMPTY, NARROW, WIDE, Said, by_what, held, walk

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[Said]:
    folder = Path(tmp_path_factory.mktemp("orders"))
    return list(walk(folder, 60, 1, without=("hours", "hours-in-utc")))


def test_intervals_hold(said: list[Said]) -> None:
    """Of each kind at .93 or more of all days and rows; of each row with room for chance."""
    found = by_what(said)
    assert all(held(each) >= 0.85 for each in found.values())
    for kind in (
        "narrow orders",
        "narrow mean",
        "wide mean",
        "amounts 0",
        "amounts records",
        "capped orders",
        "capped mean",
    ):
        assert held([one for each in found if each.startswith(kind) for one in found[each]]) >= 0.93


def test_no_mean_or_quantile_lies_outside_its_bounds(said: list[Said]) -> None:
    """Nor do the ends of its interval."""
    for each in said:
        if "orders" not in each.what and "records" not in each.what:
            low, high = WIDE if each.what.startswith("wide") else NARROW
            assert low <= each.lower <= each.value <= each.upper <= high, each


def test_the_empty_day_is_flagged_and_the_next_is_as_before(said: list[Said]) -> None:
    """Quantiles and means span their bounds; `records` holds 0; no value jumps."""
    for what, each in by_what(said).items():
        days = {one.day: one for one in each}
        if what.startswith("amounts 0"):
            empty, before, after = days[EMPTY], days[EMPTY - 1], days[EMPTY + 1]
            assert (empty.lower, empty.upper) == NARROW
            assert empty.flag == HARDLY_ANY
            assert abs(empty.value - before.value) < 0.2 * before.value + 3
            assert after.flag is None
            assert after.upper - after.lower < 100
        if "mean" in what and what != "capped mean AT":  # a count of twenty or so hides it there
            low, high = WIDE if what.startswith("wide") else NARROW
            assert days[EMPTY].flag == HARDLY_ANY, what
            assert (days[EMPTY].lower, days[EMPTY].upper) == (low, high)
        if what == "amounts records":
            assert days[EMPTY].lower == 0.0
    assert not [each for each in said if each.flag and each.day != EMPTY and "AT" not in each.what]


def test_hours_of_two_zones_hold(tmp_path: Path) -> None:
    """Cells are hours of the clocks of the zone, over the day on which they change."""
    found = by_what(list(walk(tmp_path, 40, 1, without=("berlin", "customers"))))
    for each in found:
        assert each.startswith("hours")
        assert held(found[each]) >= 0.9


def test_the_bound_of_a_customer_cuts_more_on_the_busy_day(said: list[Said]) -> None:
    """So the count says what it counts; its interval holds that, and not all orders."""
    capped = {one.day: one for one in by_what(said)["capped orders DE"]}
    whole = {one.day: one for one in by_what(said)["narrow orders DE"]}
    kept = [(capped[day].truth or 0) / (whole[day].truth or 1) for day in (BUSY - 1, BUSY)]
    assert kept[1] < kept[0] < 1
    assert capped[BUSY].upper < (whole[BUSY].truth or 0)
