"""Evidence of counts and of drawn quantiles: its errors have the covariance that it says."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from streamdp.learning.mixture.distribution import Distribution
from streamdp.learning.mixture.evidence import Evidence
from streamdp.learning.mixture.records import RecordsPrior
from streamdp.mechanisms.histograms import Histogram
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import Cauchy
from streamdp.types import CellCounts, FloatArray, Grid

CUTS = ((100, 200, 300), (150, 250))
COUNTS = (np.array([50, 100, 150, 200]), np.array([120, 60, 320]))
"""Of 500 records, in the bins of two stages."""

TRUE = np.array([0.1, 0.3, 0.6, 0.24, 0.36])
VARIANCES = (8.0, 30.0)
BELIEVED = Distribution(
    np.array([0.0, 100.0, 150.0, 200.0, 250.0, 300.0, 400.0]),
    np.array([0.0, 0.1, 0.24, 0.3, 0.36, 0.6, 1.0]),
)
"""The distribution of these records."""


def noisy(random: np.random.Generator, records: RecordsPrior) -> Evidence:
    """What two stages show, with Gaussian noise rounded to integers."""
    stages = [
        Histogram(cuts, tuple(np.rint(counts + random.normal(0.0, size, len(counts))).astype(int)))
        for cuts, counts, size in zip(CUTS, COUNTS, np.sqrt(VARIANCES), strict=True)
    ]
    return Evidence.counted(stages, VARIANCES, records, BELIEVED)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("known", [True, False])
def test_shares_of_counts_err_as_they_say(known: bool) -> None:
    """Around the truth, with the covariance of the noise, two stages together."""
    random, records = np.random.default_rng(0), RecordsPrior(500.0, 1e-4 if known else 1e6)
    found = [noisy(random, records) for _ in range(4000)]
    off: FloatArray = np.array([each.y for each in found]) - TRUE
    assert off.mean(axis=0) == pytest.approx(np.zeros(5), abs=5e-4)
    seen, told = np.cov(off.T), found[0].noise
    assert np.diag(seen) == pytest.approx(np.diag(told), rel=0.12)
    scale = np.sqrt(np.outer(np.diag(told), np.diag(told)))
    assert (np.abs(seen - told) / scale)[:3, :3].max() < 0.12
    assert (np.abs(seen - told) / scale)[3:, 3:].max() < 0.12


@pytest.mark.parametrize("counts", [(0, 0, 0), (-9, -900, 2), (10**15, 0, -5), (0, 10**15, 0)])
@pytest.mark.parametrize("variance", [0.0, 1e-300, 2.0, 1e14])
def test_any_counts_are_evidence(counts: tuple[int, ...], variance: float) -> None:
    """Finite, of a record at least, with a covariance that is one."""
    stages = [Histogram((1, 2), counts)]
    found = Evidence.counted(stages, (variance,), RecordsPrior.expected(100), BELIEVED)
    assert found.records >= 1.0
    assert np.isfinite(found.y).all()
    assert np.isfinite(found.noise).all()
    assert np.allclose(found.noise, found.noise.T)
    assert np.linalg.eigvalsh(found.noise).min() >= -1e-9 * np.abs(found.noise).max()


def test_stages_without_cuts_say_nothing_of_shares() -> None:
    """As on a grid of one cell."""
    found = Evidence.counted([Histogram((), (90,))], (2.0,), RecordsPrior.expected(100), BELIEVED)
    assert found.y.shape == (0,)
    assert found.noise.shape == (0, 0)
    assert found.records == pytest.approx(90.0, abs=0.1)


def test_drawn_quantiles_err_in_rank_as_they_say() -> None:
    """Against production draws from an even batch, under an even prior."""
    targets = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
    tree = QuantileTree(targets, Fraction(1, 4), Grid(Fraction(1), 0, 999))
    batch = CellCounts(np.arange(1000), np.ones(1000, dtype=np.int64))
    entropy, even = PublicEntropy("ranks"), JointPrior((Cauchy(500.0, 1e6),) * 3)
    drawn = np.array([tree.draw(batch, even, entropy) for _ in range(300)])
    told = Evidence.drawn(tree, drawn[0].astype(float), 1000.0, even)
    assert told.cells.tolist() == (drawn[0] - 0.5).tolist()
    off = (drawn + 0.5) / 1000.0 - told.y
    assert (off**2).mean(axis=0) == pytest.approx(np.diag(told.noise), rel=0.35)


@pytest.mark.parametrize("count", [9, 29])
def test_quantiles_that_are_drawn_in_one_cell_say_that_records_are_equal(count: int) -> None:
    """Shares are those below and up to the cell, and err as they say; those between say nothing.

    Were each taken for the share at its place, they would be off by up to half of the equal ones.
    """
    targets = tuple(Fraction(i, count + 1) for i in range(1, count + 1))
    tree = QuantileTree(targets, Fraction(5), Grid(Fraction(1), 0, 9_999))
    cells = np.concatenate((np.arange(330), np.full(340, 400), 500 + np.arange(330)))
    batch, entropy = CellCounts(*np.unique(cells, return_counts=True)), PublicEntropy("ties")
    even = (Cauchy(400.0, 400.0),) * count
    ratios, told_at_all = [], 0
    for _ in range(60):
        drawn = np.array(tree.draw(batch, even, entropy), dtype=float)
        told = Evidence.drawn(tree, drawn, 1000.0, JointPrior(even))
        says = np.diag(told.noise) < 1.0
        tied = says & (np.abs(told.cells - 400.0) <= 1.0)
        assert sorted(told.cells[tied]) == [399.0, 400.0]
        told_at_all += int(says.sum())
        off = np.searchsorted(cells, told.cells, side="right") / 1000.0 - told.y
        ratios.append((off**2 / np.diag(told.noise))[tied])
    assert told_at_all < 60 * count
    assert np.sqrt(ratios).max() < 4.0
    assert np.sqrt(ratios).mean() < 2.0
    blind = np.abs(np.searchsorted(cells, 399.5, side="right") / 1000.0 - 0.5)
    assert blind > 4.0 * np.sqrt(told.noise.diagonal()[tied].max())
