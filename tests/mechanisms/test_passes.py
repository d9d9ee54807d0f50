"""The steps of a forward pass against sums over all pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.mechanisms.passes import CLIP, LongPass, dense_pass, running_log_sum


def by_pairs(terms, ranks, wanted, sharpness):
    costs = sharpness * np.abs(ranks[None, :] - ranks[:, None] - wanted)
    exponents = terms[:, None] + np.logaddexp(-costs, -CLIP)
    exponents[np.tril_indices(len(terms), -1)] = -np.inf
    return np.logaddexp.reduce(exponents, axis=0)


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(1, 60),
    st.sampled_from([0.0, 0.5, 1.0, 3.0, 50.0, 1e4]),
    st.sampled_from([0.0, 1 / 3, 1.0, 2.5, 10.0, 1000.0]),
    st.sampled_from([0.01, 0.3, 7.0]),
    st.sampled_from([1.0, 30.0, 3000.0]),
)
def test_long_pass_is_the_sum_over_pairs(seed, count, spread, wanted, sharpness, range_of_terms):
    """Whatever ranks, gaps and terms, also where e^x would overflow or vanish."""
    rng = np.random.default_rng(seed)
    ranks = np.sort(np.round(rng.random(count) * spread * 64) / 64)
    ranks *= wanted > 0.0  # no records, no gap
    terms = rng.normal(size=count) * range_of_terms
    result = LongPass(ranks, wanted, sharpness).step(terms)
    booked = 1e-12 + 8 * 2**-53 * (sharpness * spread + range_of_terms)
    expected = by_pairs(terms, ranks, wanted, sharpness)
    assert result == pytest.approx(expected, rel=2e-13, abs=booked)


def test_dense_pass_is_the_sum_over_ordered_pairs():
    """Each row by itself, and nothing where no pair is ordered."""
    rng = np.random.default_rng(1)
    terms, ranks = rng.normal(size=(8, 3)) * 400, np.sort(rng.random((8, 3)) * 20, axis=0)
    misses = ranks[None, :, :] - ranks[:, None, :] - 2.0
    ordered = np.triu(np.ones((8, 8), dtype=bool))[:, :, None].repeat(3, axis=2)
    result = dense_pass(terms, misses, ordered, 0.7)
    expected = [by_pairs(t, r, 2.0, 0.7) for t, r in zip(terms.T, ranks.T, strict=True)]
    assert pytest.approx(np.array(expected), rel=1e-13) == result.T
    ordered[:, :, 1] = False
    assert np.isneginf(dense_pass(terms, misses, ordered, 0.7)[:, 1]).all()


def test_running_log_sum_keeps_its_first_terms():
    """A rise of e^5000 leaves the small sums before it as accurate as the large ones."""
    terms = np.array([-5000.0, -5001.0, 0.0, 1.0])
    assert running_log_sum(terms, -4999.0) == pytest.approx(
        np.logaddexp.accumulate(np.append(-4999.0, terms))[1:], rel=1e-14
    )
