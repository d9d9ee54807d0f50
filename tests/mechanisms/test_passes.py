"""The steps of a forward pass against sums over all pairs, in exact arithmetic."""

from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.mechanisms.quantile_tree.joint import MOST_TERMS, ROUNDINGS, joint_slack
from streamdp.mechanisms.quantile_tree.passes import (
    CLIP,
    SHARPEST,
    Gap,
    LongPass,
)

EXACT = Context(prec=40, Emin=-(10**9), Emax=10**9)


def decimal(number):
    exact = Fraction(number)
    return EXACT.divide(Decimal(exact.numerator), Decimal(exact.denominator))


def by_pairs(terms, ranks, wanted, sharpness, at):
    """ln Σ_{i' ≤ at} e^x'·K(r - r' - D), to 30 digits."""
    total, floor = Decimal(0), EXACT.exp(decimal(-CLIP))
    for term, rank in zip(terms[: at + 1].tolist(), ranks[: at + 1].tolist(), strict=True):
        cost = abs(int(ranks[at]) - rank - wanted) * Fraction(sharpness)
        kernel = EXACT.add(EXACT.exp(decimal(-cost)), floor) if cost < 200 else floor
        total = EXACT.add(total, EXACT.multiply(EXACT.exp(decimal(term)), kernel))
    return EXACT.ln(total)


def largest_error(terms, ranks, wanted, sharpness, places):
    """Of one step at some places."""
    result = LongPass(ranks, Gap.of(wanted), sharpness).step(terms)
    return max(
        float(abs(decimal(float(result[at])) - by_pairs(terms, ranks, wanted, sharpness, at)))
        for at in places
    )


def booked(size, terms):
    """What `joint_slack` pays for: the error of a logarithm of that size after one step."""
    return (ROUNDINGS * (size + 1000.0) + terms) / 2.0**53


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.sampled_from([0, 30, 64, 200, 3000, 600_000, 2**50]),
    st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(2), Fraction(40), Fraction(3, 10)]),
    st.sampled_from([1e-4, 0.005, 0.1, 3.0, 70.0, SHARPEST]),
    st.sampled_from([1.0, 30.0, 3000.0]),
)
def test_long_pass_is_the_sum_over_pairs(seed, count, spread, share, sharpness, range_of_terms):
    """Whatever ranks, gaps and terms, also where e^x would overflow or vanish."""
    rng = np.random.default_rng(seed)
    ranks = np.sort(rng.integers(0, spread + 1, count))
    wanted = share * spread if share < 1 else share * bool(spread)  # no records, no gap
    terms = rng.normal(size=count) * range_of_terms
    error = largest_error(terms, ranks, wanted, sharpness, range(count))
    assert error <= booked(float(np.abs(terms).max()), count)


@pytest.mark.thinned(5)
@pytest.mark.parametrize("records", [10**3, 2**27, 2**50])
@pytest.mark.parametrize("epsilon", [1, 20, 10**5])
def test_what_a_long_pass_is_off_by_is_booked(records, epsilon):
    """Thousands of points at one rank at the end of a gap, any epsilon and number of records.

    Running logarithms as large as c·n would be rounded to 2^-53 of that at each point, and what
    adds less than half of that would vanish.
    """
    count, gap = 4000, records * 64 // 3
    places = np.random.default_rng(5).integers(0, records * 64, count)
    crowded = np.full(count, gap - 1)
    ranks = np.sort(np.concatenate(([0], places, crowded, crowded + gap - 1)))
    terms = np.random.default_rng(6).random(len(ranks)) / 4 - 18.0
    terms[: count // 2] -= 690.0
    terms[ranks.searchsorted(gap - 1, side="right") - 1] = 0.0
    sharpness = min(epsilon / 2 / 64, SHARPEST)
    seen = [
        0,
        count // 2,
        *(int(ranks.searchsorted((gap - 1) * (1 + more))) for more in (0, 1)),
        -1,
    ]
    at = [each % len(ranks) for each in seen]
    error = largest_error(terms, ranks, Fraction(gap), sharpness, at)
    assert error <= booked(690.0, len(ranks))


def test_rounding_costs_the_same_for_any_batch_and_epsilon():
    """Nine quantiles: 1e-8, whatever else."""
    assert 1e-9 < joint_slack(9) < 1.2e-8
    assert MOST_TERMS >= 2**18


@pytest.mark.parametrize("wanted", [Fraction(0), Fraction(7, 2), Fraction(900)])
def test_a_step_keeps_its_first_terms(wanted):
    """A rise of e^5000 leaves the small sums before it as accurate as the large ones."""
    terms = np.array([-5000.0, -5001.0, 0.0, 1.0, -700.0, 600.0, 1200.0, 1199.0, 1.0])
    ranks = np.arange(9) * 100 * (wanted > 0)
    error = largest_error(terms, ranks, wanted, 0.1, range(9))
    assert error <= booked(5001.0, 9)


@pytest.mark.parametrize(
    ("wanted", "sharpness"),
    [
        (Fraction(2), SHARPEST),
        (Fraction(5, 4), SHARPEST),
        (Fraction(30), 10.0),
        (Fraction(330), 1.0),
        (Fraction(3971, 4), 0.3),
    ],
)
def test_a_step_counts_no_point_to_the_right(wanted, sharpness):
    """Points of one rank, whose terms rise by e^600, behind a gap of just two blocks."""
    rank = Gap.of(wanted).ceiling - 1
    ranks, terms = np.array([0, rank, rank]), np.array([-600.0, -600.0, 0.0])
    error = largest_error(terms, ranks, wanted, sharpness, range(3))
    assert error <= booked(600.0, 3)
