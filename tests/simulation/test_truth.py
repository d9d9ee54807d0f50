"""Truth and rank errors against their definitions, record by record."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamdp.mechanisms.quantile_tree.grains import exact_quantiles
from streamdp.mechanisms.quantile_tree.planning.simulation import rank_errors
from streamdp.priors.shapes import Cauchy, Laplace, Uniform, band
from streamdp.simulation.comparison import figures
from streamdp.types import CellCounts, Grid

QUANTILES = (Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(99, 100))


def counted(records: list[int]) -> CellCounts:
    cells, counts = np.unique(np.array(records, dtype=np.int64), return_counts=True)
    return CellCounts(cells, counts.astype(np.int64))


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40), st.integers(-6, 6))
def test_errors_are_distances_of_ranks(records: list[int], cell: int) -> None:
    """The share of records by which a cell misses its target; none for the true quantile."""
    batch, size = counted(records), len(records)
    ordered = sorted(records)
    truth = exact_quantiles(batch, QUANTILES)
    assert truth.tolist() == [ordered[math.ceil(q * size) - 1] for q in QUANTILES]
    assert rank_errors(batch, QUANTILES, truth).max() < 1e-12
    below = sum(record < cell for record in records) / size
    through = sum(record <= cell for record in records) / size
    wanted = [max(0.0, below - float(q), float(q) - through) for q in QUANTILES]
    found = rank_errors(batch, QUANTILES, np.full(len(QUANTILES), cell))
    assert np.allclose(found, wanted)


def test_a_batch_without_records_counts_for_nothing() -> None:
    """Its errors are no numbers, and the means leave it out."""
    empty = rank_errors(counted([]), QUANTILES, np.zeros(4, dtype=np.int64))
    assert np.isnan(empty).all()
    errors = np.array([[0.1] * 4, empty, [0.2, 0.2, 0.2, 0.6], [0.3] * 4])
    found = figures([errors])
    assert math.isclose(found.average, (0.1 + 0.3 + 0.3) / 3)
    assert math.isclose(found.largest, (0.1 + 0.6 + 0.3) / 3)
    assert math.isclose(found.late_average, 0.3)
    assert figures([empty[None]]).rounded()["average_error"] is None


def test_bands_hold_the_mass_they_say() -> None:
    """Quantiles of known laws; a grid cuts what lies outside."""
    grid = Grid(Fraction(1, 10), -10_000_000, 10_000_000)
    shares = (0.05, 0.25, 0.75, 0.95)
    cauchy = 3.0 + 2.0 * np.tan(np.pi * (np.array(shares) - 0.5))
    assert np.allclose(band(Cauchy(3.0, 2.0), grid, shares), cauchy, atol=1e-3)
    laplace = [math.log(0.1), math.log(0.5), -math.log(0.5), -math.log(0.1)]
    assert np.allclose(band(Laplace(0.0, 1.0), grid, shares), laplace, atol=1e-6)
    narrow = Grid(Fraction(1), 1, 10)
    inside = band(Uniform(-1000.0, 1000.0), narrow, shares)
    assert np.allclose(inside, 0.5 + 10.0 * np.array(shares))
