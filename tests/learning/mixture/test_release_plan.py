"""Cuts lie at believed quantiles, and about those in the tails."""

from __future__ import annotations

import numpy as np
import pytest

from streamdp.learning.mixture.distribution import Distribution
from streamdp.learning.mixture.release_plan import EVEN, cut_levels, cuts
from streamdp.types import FloatArray


@pytest.mark.parametrize(
    ("targets", "more"),
    [
        ([0.5], []),
        (EVEN.tolist(), []),
        ([0.9, 0.99, 0.999], [0.99, 0.995, 0.999, 0.9995]),
        ([0.01, 0.5], [0.005, 0.01]),
    ],
    ids=str,
)
def test_a_batch_is_cut_evenly_and_in_the_tails_that_are_asked_for(
    targets: list[float], more: list[float]
) -> None:
    """Few cuts: noise is by count, whatever the number, but a share of all is the sum of many."""
    found = cut_levels(np.array(targets))
    assert found == pytest.approx(sorted([*EVEN.tolist(), *more]))


def test_cuts_are_the_cells_of_the_believed_quantiles() -> None:
    """Of an even belief over a thousand cells, each tenth of them."""
    even = Distribution(np.array([-1.0, 999.0]), np.array([0.0, 1.0]))
    assert cuts(even, EVEN) == [99, 199, 299, 399, 499, 599, 699, 799, 899]


@pytest.mark.parametrize("cell", [0, 7])
def test_a_cell_of_many_records_is_cut_on_both_sides(cell: int) -> None:
    """So counts show how many of them are equal."""
    inner: FloatArray = np.array([cell - 40.0, cell - 1.0, cell, cell + 40.0])
    atom = Distribution(inner, np.array([0.0, 0.25, 0.75, 1.0]))
    found = set(cuts(atom, EVEN))
    assert {cell - 1, cell} <= found
    assert all(cell - 40 <= each <= cell + 40 for each in found)
