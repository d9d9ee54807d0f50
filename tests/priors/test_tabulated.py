from __future__ import annotations

import numpy as np

from streamdp.priors.public import PIECES, PublicSample, tabulated


def half_cells(cells: np.ndarray) -> PublicSample:
    """Rows of cells as wide as a half."""
    values, counts = np.unique(cells, return_counts=True)
    return PublicSample(values * 0.5, counts, 0.5)


def test_a_table_has_the_quantiles_of_its_rows() -> None:
    """The share below each quantile of the rows is that quantile, to a piece's width."""
    cells = np.random.default_rng(0).normal(0.0, 100.0, 50_000).round()
    prior = tabulated(half_cells(cells))
    for share in (0.05, 0.5, 0.95):
        end = np.array([np.quantile(cells, share) * 0.5])
        assert abs(np.exp(prior.log_mass(np.array([-600.0]), end)[0]) - share) < 2.0 / PIECES
    assert len(prior.counts) <= PIECES


def test_all_mass_lies_within_the_rows_and_gaps_have_some() -> None:
    """A gap between public rows keeps positive mass; beyond the last row there is none."""
    prior = tabulated(half_cells(np.array([-10, 10, 10, 30])))
    inside = prior.log_mass(np.array([-5.25, 0.0, 20.0]), np.array([15.25, 1.0, 30.0]))
    assert inside[0] == 0.0
    assert np.isfinite(inside[1])
    assert inside[2] == -np.inf


def test_one_public_value_is_one_piece() -> None:
    """Ties make one cell of mass one."""
    prior = tabulated(half_cells(np.full(9, 4)))
    assert prior.log_mass(np.array([1.75]), np.array([2.25]))[0] == 0.0
