"""Public rows speed the start, and cost little where they are wrong."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from statistics import fmean

import numpy as np
import pytest

from streamdp.learning.experts.mixture import ExpertMixture
from streamdp.learning.public_fit import fit_public
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy, rank_error
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.families import Cauchy
from streamdp.priors.public import PublicRows
from streamdp.types import CellCounts, Grid

TARGETS = tuple(Fraction(i, 10) for i in range(1, 10))
TREE = QuantileTree(TARGETS, Fraction(1, 10), Grid(Fraction(1), -100_000, 100_000))
GUESS = (2_000.0, 3_000.0)
UNTAUGHT = ExpertMixture(TREE, Cauchy(*GUESS), 0.05, GUESS, 900)


def counted(values: np.ndarray) -> CellCounts:
    return CellCounts(*np.unique(np.rint(values).astype(np.int64), return_counts=True))


def taught(public: np.ndarray) -> ExpertMixture:
    targets = np.array([float(q) for q in TARGETS])
    values, counts = np.unique(np.rint(public), return_counts=True)
    fit = fit_public(PublicRows(values, counts, 1.0), targets, 900, PublicEntropy("a test"))
    return replace(UNTAUGHT, public=fit)


def errors(learner: ExpertMixture, days: int) -> list[float]:
    """Rank error of each of some days of normal data around 100."""
    records, entropy = np.random.default_rng(1), PublicEntropy("days")
    state, found = learner.init(), []
    for _ in range(days):
        batch, way = counted(records.normal(100.0, 30.0, 900)), learner.way(state)
        cells = learner.values(way, way.tree.draw(batch, way.prior, entropy))
        found.append(rank_error(batch, TARGETS, cells))
        state = learner.learn(way, tuple(float(cell) for cell in cells))
    return found


@pytest.fixture(scope="module")
def untaught() -> list[float]:
    return errors(UNTAUGHT, 30)


def test_the_first_releases_are_better_with_public_rows(untaught: list[float]) -> None:
    """Where the guess is poor, the first three days lose less than half their error."""
    public = np.random.default_rng(2).normal(102.0, 28.0, 5_000)
    assert fmean(errors(taught(public), 3)) < 0.5 * fmean(untaught[:3])


def test_wrong_public_rows_are_forgotten(untaught: list[float]) -> None:
    """Public rows from elsewhere and of another spread cost nothing once ten days have passed."""
    wrong = np.random.default_rng(3).normal(-9_000.0, 10.0, 5_000)
    assert fmean(errors(taught(wrong), 30)[10:]) < 1.25 * fmean(untaught[10:])
