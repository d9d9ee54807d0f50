"""Distribution functions: places and shares are inverse, moves are read back, knots stay few."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.learning.mixture.distribution import CELL_ROUNDING, KNOTS, LEVEL_DIGITS, Distribution
from streamdp.types import FloatArray

SHARES = np.linspace(0.0, 1.0, 101)


def of(weights: Sequence[float], widths: Sequence[float], start: float = -500.0) -> Distribution:
    """Some mass in each of some stretches, one after the other."""
    cells = start + np.concatenate(([0.0], np.cumsum(widths)))
    shares = np.concatenate(([0.0], np.cumsum(weights))) / np.sum(weights)
    return Distribution(cells, shares)


@st.composite
def distributions(draw: st.DrawFn) -> Distribution:
    count = draw(st.integers(1, 12))
    masses = st.lists(st.floats(0.01, 10.0), min_size=count, max_size=count)
    cells = st.lists(st.integers(1, 10**6), min_size=count, max_size=count)
    return of(draw(masses), draw(cells), draw(st.integers(-(10**8), 10**8)))


def normal(centre: float = 0.0, width: float = 50.0, knots: int = 60) -> Distribution:
    """Logistic, between its outer thousandths."""
    shares = np.linspace(0.001, 0.999, knots)
    inner = centre + width * np.log(shares / (1.0 - shares))
    cells = np.concatenate(([inner[0] - width], inner, [inner[-1] + width]))
    return Distribution(cells, np.concatenate(([0.0], shares, [1.0])))


@settings(max_examples=60, deadline=None)
@given(distributions(), st.lists(st.floats(0.001, 0.999), min_size=1, max_size=9))
def test_a_share_lies_where_that_share_of_records_ends(
    each: Distribution, wanted: list[float]
) -> None:
    """Where the function rises, places and shares are inverse; places stay in order."""
    shares = np.sort(wanted)
    places = each.quantile(shares)
    assert each.cdf(places) == pytest.approx(shares, abs=1e-6)
    assert (np.diff(places) >= 0.0).all()
    assert each.cells[0] <= places[0] <= places[-1] <= each.cells[-1]
    found = each.quantile_cells(shares)
    assert (found >= places - 1e-6).all()
    assert (found <= places + 1.0 + 1e-6).all()


def test_equal_records_are_one_cell() -> None:
    """A cell with most of the mass is the quantile of all shares in it, and of no other."""
    each = Distribution(np.array([-50.0, 6.0, 7.0, 60.0]), np.array([0.0, 0.2, 0.9, 1.0]))
    assert each.quantile_cells(np.array([0.2001, 0.5, 0.8999])).tolist() == [7, 7, 7]
    assert each.quantile_cells(np.array([0.2]))[0] == 6
    assert each.quantile_cells(np.array([0.91]))[0] > 7


def test_places_of_a_gap_are_at_its_start() -> None:
    """No record lies in it, so the share is reached where it begins."""
    each = Distribution(np.array([0.0, 1.0, 9.0, 10.0]), np.array([0.0, 0.5, 0.5, 1.0]))
    assert each.quantile(np.array([0.5 - 1e-6, 0.5 + 1e-6])) == pytest.approx([1.0, 9.0], abs=1e-4)


@pytest.mark.parametrize("cells", [[5.0], [-10.0, 0.0, 40.0]], ids=str)
def test_a_distribution_goes_through_points_and_ends_beyond_them(cells: list[float]) -> None:
    """Hardly anything lies beyond, as far again as the last stretch or a cell."""
    shares = np.linspace(0.0, 1.0, len(cells) + 2)[1:-1]
    each = Distribution.about(np.array(cells), shares)
    assert each.cdf(np.array(cells)) == pytest.approx(shares, abs=1e-5)
    assert each.cells[[0, -1]].tolist() == ([4.0, 6.0] if len(cells) == 1 else [-20.0, 80.0])
    assert (each.levels[0], each.levels[-1]) == (0.0, 1.0)


@settings(max_examples=60, deadline=None)
@given(distributions(), st.floats(-4.0, 4.0), st.floats(-1.0, 1.0))
def test_a_move_is_read_back(each: Distribution, shift: float, stretch: float) -> None:
    """Shift and stretch against the unmoved one, where none is narrower than a cell."""
    wide = Distribution(each.cells * 10.0, each.levels)
    assert wide.moved(wide.location_scale(), shift, stretch).away(
        wide.location_scale()
    ) == pytest.approx((shift, stretch), abs=1e-5)


def test_a_step_goes_so_far_in_places() -> None:
    """Quantiles move, so the shape of two that are alike stays; the last step is the other."""
    near, far = normal(0.0), normal(400.0)
    for step in (0.0, 0.05, 0.3, 1.0):
        between = near.towards(far, step)
        wanted = (1.0 - step) * near.quantile(SHARES) + step * far.quantile(SHARES)
        assert between.quantile(SHARES[1:-1]) == pytest.approx(wanted[1:-1], abs=1e-3)
    assert near.towards(far, 0.5).half_width == pytest.approx(near.half_width, rel=1e-6)


def test_a_tail_that_is_far_out_on_some_days_stays_near_where_it_usually_is() -> None:
    """A mean of places would follow the farthest."""
    usual = mean = normal()
    shares = usual.levels
    places = usual.quantile(shares)
    beyond = usual.centre + 1000.0 * (places - usual.centre)
    far = Distribution(np.where((shares < 0.05) | (shares > 0.95), beyond, places), shares)
    for day in range(60):
        mean = mean.towards(far if day % 10 == 9 else usual, 0.1)
    outer = np.array([0.02, 0.98])
    away, wanted = (np.abs(each.quantile(outer) - each.centre) for each in (mean, usual))
    assert (away < 1.5 * wanted).all()


def test_knots_are_thinned_where_the_function_is_straight() -> None:
    """Few are left of many, and the function hardly changes; jumps stay where they are."""
    random = np.random.default_rng(0)
    jumps = of([1.0] * 40 + [200.0] + [1.0] * 40, [3.0] * 40 + [1e-3] + [3.0] * 40)
    both = normal(3.0, 40.0, 900), jumps
    for each in both:
        other = Distribution(each.cells + 1e-3 * random.random(len(each.cells)), each.levels)
        found = each.towards(other, 0.5)
        places: FloatArray = np.linspace(-400.0, 400.0, 500)
        assert len(found.cells) <= KNOTS
        assert np.abs(found.cdf(places) - each.cdf(places)).max() < 2e-3
        assert (np.diff(found.cells) > 0.0).all()
        assert (np.diff(found.levels) >= 0.0).all()
        assert (found.levels[0], found.levels[-1]) == (0.0, 1.0)


def test_many_steps_stay_small_and_in_place() -> None:
    """A stream that stands still does not wander, nor gather knots."""
    random, mean = np.random.default_rng(1), normal()
    for _ in range(60):
        mean = mean.towards(normal(random.normal(0.0, 10.0), 50.0, 150), 0.1)
    assert len(mean.cells) <= KNOTS
    assert abs(mean.centre) < 10.0
    assert mean.half_width == pytest.approx(normal().half_width, rel=0.02)


@settings(max_examples=20, deadline=None)
@given(distributions())
def test_it_is_remembered_to_a_fraction_of_what_a_release_shows(each: Distribution) -> None:
    """Whole cells as they are, others within a small part of its width; so are levels."""
    again = Distribution.from_json(each.to_json())
    unit = CELL_ROUNDING * each.half_width
    assert (again.levels[0], again.levels[-1]) == (0.0, pytest.approx(1.0))
    assert (np.diff(again.cells) > 0.0).all()
    assert (np.diff(again.levels) >= 0.0).all()
    beside = np.stack([each.cdf(again.cells - unit), each.cdf(again.cells + unit)])
    off = 2.0**-LEVEL_DIGITS
    assert (again.levels >= beside[0] - off).all()
    assert (again.levels <= beside[1] + off).all()
    assert np.array_equal(again.cells, each.cells)


def test_a_tail_is_drawn_in_to_what_its_measured_part_says() -> None:
    """A logistic law stays, of a tail ten times as long half goes, and a shorter one stays."""
    plain = normal()
    inner = plain.quantile(SHARES[1:-1])
    assert plain.with_tails_drawn_in(0.05, 1.0).quantile(SHARES[1:-1]) == pytest.approx(inner)
    far = plain.levels > 0.98
    end = plain.quantile(np.array([0.98]))[0]
    cells = np.where(far, end + 10.0 * (plain.cells - end), plain.cells)
    longer = Distribution(cells, plain.levels)
    outer = np.array([0.985, 0.99, 0.995])
    assert (longer.quantile(outer) > 1.5 * plain.quantile(outer)).all()
    drawn_in = longer.with_tails_drawn_in(0.05, 1.0)
    assert (drawn_in.quantile(outer) > plain.quantile(outer)).all()
    assert (drawn_in.quantile(outer)[1:] < 0.55 * longer.quantile(outer)[1:]).all()
    assert (longer.with_tails_drawn_in(0.05, 0.1).quantile(outer) < longer.quantile(outer)).all()
    assert drawn_in.quantile(SHARES[1:96]) == pytest.approx(plain.quantile(SHARES[1:96]))
    shorter = Distribution(
        np.where(far, end + 0.1 * (plain.cells - end), plain.cells), plain.levels
    )
    assert shorter.with_tails_drawn_in(0.05, 1.0).quantile(outer) == pytest.approx(
        shorter.quantile(outer)
    )


@settings(max_examples=60, deadline=None)
@given(distributions(), st.floats(1e-6, 3.0), st.floats(0.0, 1.0))
def test_no_tail_becomes_longer(each: Distribution, measured: float, step: float) -> None:
    """Places stay in order, and no quantile moves outwards."""
    found = each.with_tails_drawn_in(measured, step)
    assert (np.diff(found.cells) > 0.0).all()
    assert (np.diff(found.levels) >= 0.0).all()
    before, after = (one.quantile(SHARES) - each.centre for one in (each, found))
    room = 1e-6 * (1.0 + np.abs(each.cells).max())
    assert (np.abs(after) <= np.abs(before) + room).all()
