"""Learners of tiny cost, as the default configuration makes them, and batches for them."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.learning.mixture.mixture import BayesianMixture
from streamdp.learning.mixture.release_plan import PLANS
from streamdp.mechanisms.histograms import Histograms
from streamdp.mechanisms.quantile_tree.grains import exact_quantiles
from streamdp.mechanisms.quantile_tree.planning.choice import choose_tree
from streamdp.mechanisms.quantile_tree.planning.simulation import rank_errors
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.shapes import Cauchy, shapes_from_guess
from streamdp.privacy.price import Price
from streamdp.simulation.comparison import chance
from streamdp.types import Batch, CellCounts, FloatArray, Grid, Json, Row

DECILES = tuple(Fraction(index, 10) for index in range(1, 10))
WIDE = Grid(Fraction(1, 100), -(10**8), 10**8)
BATCH = Batch("s", "b", 0, 86_400)
ROWS = 500


def kind(
    targets: tuple[Fraction, ...] = DECILES,
    epsilon: Fraction = Fraction(1, 2),
    grid: Grid = WIDE,
    guess: tuple[float, float] = (0.0, 1.0),
    rows: int = ROWS,
    plans: tuple[tuple[Fraction, ...], ...] = PLANS,
) -> Quantiles:
    """Quantiles of 500 records, first drawn as `learner: none` draws them; one alone, always."""
    tree, robust = QuantileTree(targets, epsilon, grid), Cauchy(*guess)
    form = choose_tree(len(targets), epsilon, rows)
    shapes = shapes_from_guess(targets, *guess) if form.shapes else None
    first = form.tree(targets, epsilon, grid), form.prior((robust,) * len(targets), shapes)
    counts = tuple(Histograms(Price(epsilon), grid, plan) for plan in plans if len(targets) > 1)
    learner = BayesianMixture(tree, robust, 0.05, guess, rows, first, counts)
    return Quantiles("x", targets, epsilon, grid, learner, form, expected_rows=rows, shapes=shapes)


def batch(values: FloatArray, grid: Grid = WIDE) -> CellCounts:
    """Records of some values."""
    cells = np.rint(values / float(grid.resolution)).clip(grid.lower, grid.upper).astype(np.int64)
    return CellCounts(*np.unique(cells, return_counts=True))


def run(
    made: Quantiles, batches: Iterable[CellCounts], state: Json = None, seed: int = 0
) -> tuple[list[tuple[Row, ...]], Json]:
    """Published rows of each batch, and the last state."""
    entropy, rows, state = chance(seed), [], state or made.init()
    for counts in batches:
        plan = made.plan(state, BATCH)
        outcome = made.draw(plan, counts, entropy)
        state = made.learn(state, plan, outcome)
        rows.append(made.publish(state, outcome).rows)
    return rows, state


def cells_of(made: Quantiles, rows: Iterable[Row], column: str = "value") -> FloatArray:
    """A column in cells."""
    width = float(made.grid.resolution)
    return np.array([float(row[column] or 0) / width for row in rows])


def errors(made: Quantiles, rows: Iterable[Row], counts: CellCounts) -> FloatArray:
    """Rank errors of each quantile."""
    cells = np.rint(cells_of(made, rows)).astype(np.int64)
    return rank_errors(counts, made.quantiles, cells)


def truth(made: Quantiles, counts: CellCounts) -> FloatArray:
    """The batch's own quantiles, in cells."""
    return exact_quantiles(counts, made.quantiles).astype(float)
