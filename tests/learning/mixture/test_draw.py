"""Likelihood of a single draw: a law of the draw, that of the mechanism, whatever it came from."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from streamdp.learning.mixture.curves import VARIANCES, Curves
from streamdp.learning.mixture.distribution import Distribution
from streamdp.learning.mixture.draw import Draw
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import Cauchy, Laplace, Mixture
from streamdp.types import CellCounts, FloatArray, Grid, Prior
from tests.benchmarks import outer_quantiles

GRID = Grid(Fraction(1), 0, 999)
CELLS = np.arange(1000)
ENDS = np.linspace(-0.5, 999.5, 1001)
LEVELS = np.arange(1, 200) / 200.0
LOGISTIC = Distribution.about(500.0 + 20.0 * np.log(LEVELS / (1.0 - LEVELS)), LEVELS)
CURVES = Curves(LOGISTIC, np.array([[0.0, 0.0], [3.0, 0.0], [-4.0, 0.5], [0.0, 1.2]]))
PRIORS: list[Prior] = [
    Cauchy(500.0, 60.0),
    Mixture((0.95, 0.05), (Laplace(560.0, 8.0), Cauchy(500.0, 60.0))),
]


def likelihoods(quantile: float, sharpness: float, prior: Prior, curves: Curves) -> FloatArray:
    """Of each cell, curve and size, times the mass of the cell; shape (cells, i, k)."""
    found = []
    for cell in CELLS.tolist():
        draw = Draw(cell - 0.5, quantile, sharpness, prior, GRID)
        levels = curves.cdf(np.array([draw.cell]))[:, 0]
        kernel = draw.kernel(VARIANCES[:, 0, 0])
        found.append(draw.log_likelihoods(kernel, levels, curves.quantiles))
    masses = np.exp(prior.log_mass(ENDS[:-1], ENDS[1:]))
    return np.asarray(np.exp(found) * masses[:, None, None])


@pytest.mark.parametrize("prior", PRIORS, ids=["wide", "narrow"])
@pytest.mark.parametrize(("quantile", "sharpness"), [(0.5, 5.0), (0.9, 20.0), (0.5, 200.0)])
def test_chances_of_all_draws_are_one(quantile: float, sharpness: float, prior: Prior) -> None:
    """Under every curve and size: so no draw seems likely because its prior made it so."""
    found = likelihoods(quantile, sharpness, prior, CURVES).sum(axis=0)
    assert found == pytest.approx(np.ones_like(found), rel=0.1 if sharpness < 100.0 else 0.25)


def test_it_is_the_law_of_the_mechanism() -> None:
    """Draws of a batch that has the curve's own cdf lie where its likelihood says."""
    curve = Curves(LOGISTIC, np.array([[1.0, 0.0]]))
    counts = np.diff(np.rint(100_000 * curve.cdf(np.append(-1.0, CELLS))[0])).astype(np.int64)
    batch, prior = CellCounts(CELLS[counts > 0], counts[counts > 0]), PRIORS[1]
    rows = int(counts.sum())
    tree = QuantileTree((Fraction(9, 10),), Fraction(18, rows), GRID)
    sharpness = float(tree.levels()[0].sharpness(tree.quantiles)) * rows
    told = likelihoods(0.9, sharpness, prior, curve)[:, 0, 0]
    entropy = PublicEntropy("law of a draw")
    drawn = np.array([tree.draw(batch, JointPrior((prior,)), entropy)[0] for _ in range(2000)])
    seen = np.searchsorted(np.sort(drawn), CELLS, side="right") / len(drawn)
    assert np.abs(np.cumsum(told) / told.sum() - seen).max() < 0.04


def test_a_draw_that_follows_its_prior_hardly_confirms_it() -> None:
    """A curve that the prior lies beside loses hardly anything by a draw in the prior's middle."""
    draw = Draw(560.0, 0.5, 5.0, PRIORS[1], GRID)
    there = draw.log_likelihoods(
        draw.kernel(VARIANCES[:1, 0, 0]), CURVES.cdf(np.array([560.0]))[:, 0], CURVES.quantiles
    )[:, 0]
    assert np.ptp(there) < 0.2
    wrong = draw.sharpness * np.ptp(np.abs(CURVES.cdf(np.array([560.0]))[:, 0] - 0.5))
    assert wrong > 1.0


def test_the_quantile_of_a_heavy_tail_that_draws_hardly_show_stays_within_reach() -> None:
    """Learned from by its law, it comes to a hundred times the truth in as many days."""
    found = outer_quantiles.cell("student 1.5", "0.99", 200, 100)
    assert float(found["last"]) < 4.0  # type: ignore[arg-type]
