"""What is hidden behind the noise: integers of bounded size, whatever the batch."""

from __future__ import annotations

import math
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from streamdp.mechanisms import noise as noise_module
from streamdp.mechanisms.quantile_tree.noisy_gradient import UNITS, NoisyGradient, Slope, clipped
from streamdp.types import CellCounts, FloatArray, Grid
from tests.worlds import ReplayedEntropy

HALVES = (Fraction(1, 4), Fraction(3, 4))
ANY = arrays(np.float64, st.integers(1, 30), elements=st.floats(width=64))


def counts(values: list[int]) -> CellCounts:
    cells, numbers = np.unique(np.asarray(values, dtype=np.int64), return_counts=True)
    return CellCounts(cells, numbers.astype(np.int64))


def bought(slope: Slope = lambda values: values / 100) -> NoisyGradient:
    return NoisyGradient(Fraction(1), HALVES, Grid(Fraction(1), 0, 50), slope)


@given(ANY)
def test_sizes_add_up_to_one_at_most(gradient: FloatArray) -> None:
    """Infinities, numbers that are none, and sums that overflow among them."""
    with np.errstate(all="ignore"):
        units = clipped(gradient)
    assert sum(map(abs, units)) <= UNITS
    assert all((unit > 0) == (each > 0) for unit, each in zip(units, gradient, strict=True) if unit)


@given(arrays(np.float64, 6, elements=st.floats(-3.0, 3.0)))
def test_direction_is_kept_to_a_unit(gradient: FloatArray) -> None:
    """Short gradients stay what they are, long ones are scaled, never turned."""
    wanted = gradient * UNITS / max(1.0, np.abs(gradient).sum())
    assert np.abs(np.array(clipped(gradient)) - wanted).max() <= 6.0


def test_no_slope_makes_an_error_that_a_batch_could_cause() -> None:
    """Division by zero, overflow, logarithms of nothing: noise alone, and not a word."""
    for slope in (lambda v: 1.0 / (v * 0.0), lambda v: np.exp(v * 1e9), lambda v: np.log(v - v)):
        told = bought(slope).draw(counts([3, 4, 5]), ReplayedEntropy())
        assert all(map(math.isfinite, told))


def test_an_empty_batch_is_noise_alone_and_takes_as_much_chance() -> None:
    """Zero before the noise, and no request of entropy more or less."""
    with patch.object(noise_module, "discrete_laplace", lambda scale, entropy: 0):
        assert bought(lambda values: values + 1.0).draw(counts([]), ReplayedEntropy()) == (0, 0)
        told = bought().draw(counts([20, 30]), ReplayedEntropy())
        assert told == pytest.approx((0.2, 0.3), abs=2.0 / UNITS)
    used = []
    for values in ([], [20, 30], [50] * 100):
        entropy = ReplayedEntropy()
        bought().draw(counts(values), entropy)
        used.append(entropy.requests)
    assert used[0] == used[1] == used[2] > 0


def test_noise_is_as_wide_as_epsilon_asks() -> None:
    """Mean size of noise at epsilon 1/2: two over one half."""
    half = NoisyGradient(
        Fraction(1, 2), HALVES, Grid(Fraction(1), 0, 50), lambda values: values * 0
    )
    noise = [half.draw(counts([]), ReplayedEntropy(f"{i}")) for i in range(400)]
    assert 3.4 < float(np.abs(noise).mean()) < 4.6
