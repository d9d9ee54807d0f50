"""The single draw: its work, its measure and its choices at the edges of what floats hold."""

import random
from fractions import Fraction

import numpy as np
import pytest

from streamdp.mechanisms.quantile_tree.exponential import BaseMeasure, _Exponents, _Near
from streamdp.mechanisms.quantile_tree.grains import GRAINS, Grains, Region
from streamdp.mechanisms.quantile_tree.points import MOST_POINTS, aimed_at, public_points
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.shapes import Cauchy, Laplace, Uniform
from streamdp.privacy.draws import choose
from streamdp.types import CellCounts, Grid

F = Fraction


class Fixed:
    """Entropy that answers with a share of the largest integer."""

    def __init__(self, share):
        self.share = share

    def bits(self, count):
        return int(self.share * 2**52) << count >> 52


class Seeded:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def bits(self, count):
        return self.random.getrandbits(count)


def test_work_is_set_by_sharpness_and_not_by_rows():
    """Of a thousand times more records no more cells are near the target."""
    sizes = []
    for n in (10_000, 10_000_000):
        cells = np.arange(n)
        grains = Grains.of(CellCounts(cells, np.ones(n, dtype=np.int64)))
        region = Region(0, n * GRAINS, n * GRAINS - 1)
        costs = _Exponents(grains, region, F(1, 2), 0.1)
        sizes.append(len(_Near(grains, region, *costs.window()).cells))
    assert sizes[0] == sizes[1] < 1000


def test_grains_left_of_points_agree_one_by_one():
    """The vectorised rank is the scalar one, inside, between and outside occupied cells."""
    grains = Grains.of(CellCounts(np.array([-3, 0, 4]), np.array([2, 5, 1])))
    points = np.arange(-5 * GRAINS, 7 * GRAINS, 7)
    assert grains.left_of_each(points).tolist() == [grains.left_of(int(p)) for p in points]


@pytest.mark.parametrize("equal", [100, 14_510, 10**9])
@pytest.mark.parametrize("form", [(2, "conditional"), (3, "conditional"), (3, "edge")])
def test_equal_records_are_found_however_many(equal, form):
    """A level of their cell holds the target, though ranks of levels lie far apart."""
    batch = CellCounts(np.array([0, 100, 200]), np.array([equal // 3, equal, equal // 20]))
    quantiles = F(1, 10), F(1, 2), F(9, 10)
    tree = QuantileTree(
        quantiles, F(20), Grid(F(1), -(2**40), 2**40), branching=form[0], restriction=form[1]
    )
    priors = tuple(Cauchy(1000.0, 10.0) for _ in quantiles)
    assert tree.draw(batch, priors, Seeded(equal)) == (0, 100, 100)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.999])
def test_choices_follow_their_shares(share):
    """A uniform ticket falls in the item whose stretch holds it, whatever the size of weights."""
    for shift in (0.0, -5e5, 700.0):
        weights = np.log([0.25, 0.25, 0.5]) + shift
        picks = {choose(weights, Fixed(at)) for at in np.linspace(0, 0.9999, 400)}
        assert picks == {0, 1, 2}
        chosen = choose(weights, Fixed(share))
        assert weights[chosen] > -np.inf
    tickets = [choose(np.log([0.25, 0.25, 0.5]), Fixed((i + 0.5) / 4000)) for i in range(4000)]
    assert np.bincount(tickets).tolist() == [1000, 1000, 2000]


def test_faint_and_impossible_items_are_kept_apart():
    """A weight of e^-5000 has a share and one of zero has none; nothing at all gives item 0."""
    weights = np.array([-np.inf, 0.0, -5000.0, -np.inf])
    assert choose(weights, Fixed(0.5)) == 1
    assert choose(weights[2:], Fixed(0.9)) == 0
    assert choose(np.full(3, -np.inf), Fixed(0.9)) == 0


def test_no_cell_is_impossible():
    """Far from a narrow prior, and outside a bounded one, cells keep the floor's mass."""
    grid = Grid(F(1), -(2**40), 2**40)
    for prior in (Laplace(0.0, 1.0), Uniform(-1.0, 1.0)):
        masses = BaseMeasure(prior, grid).between(np.array([2**39, 2**39 + 1, 2**39 + 1, 2**40]))
        assert np.isfinite(masses[[0, 2]]).all()
        assert masses[0] > -640.0
        assert np.isneginf(masses[1])


def test_a_draw_from_the_measure_follows_it():
    """Frequencies of three stretches of a wide grid are their masses."""
    grid = Grid(F(1), -(10**6), 10**6)
    measure = BaseMeasure(Cauchy(0.0, 50.0), grid)
    entropy = Seeded(2)
    drawn = np.array([measure.draw(-(10**6), 10**6 + 1, entropy) for _ in range(2000)])
    edges = np.array([-(10**6), -50, 51, 10**6 + 1])
    shares = np.exp(measure.between(edges))
    counts = np.histogram(drawn, edges)[0]
    assert counts / 2000 == pytest.approx(shares / shares.sum(), abs=0.05)


@pytest.mark.parametrize(
    ("prior", "grid"),
    [
        (Cauchy(0.0, 50.0), Grid(F(1, 1000), -(10**9), 10**9)),
        (Uniform(0.0, 1e6), Grid(F(1, 100), 0, 10**8)),
        (Cauchy(60.0, 30.0), Grid(F(1), 0, 120)),
        (Laplace(3.0, 0.001), Grid(F(1, 1000), -(2**40), 2**40)),
    ],
)
@pytest.mark.parametrize("targets", [1, 9, 99])
def test_public_points_cover_the_grid_once(prior, grid, targets):
    """Increasing from the grid's first point, few enough, no stretch too heavy, masses complete."""
    public = public_points((prior,) * targets, grid)
    assert public.points[0] == grid.lower * GRAINS
    assert public.points[-1] < (grid.upper + 1) * GRAINS
    assert (np.diff(public.points) > 0).all()
    assert len(public.points) <= 8 * MOST_POINTS
    whole = BaseMeasure(prior, grid).between(np.array([grid.lower, grid.upper + 1]))[0]
    assert np.logaddexp.reduce(public.log_masses[0]) == pytest.approx(whole, abs=1e-9)
    within_a_cell = np.diff(public.points) <= GRAINS
    heavy = np.exp(public.log_masses[0, :-1] - whole) * aimed_at(targets) > 1.001
    assert not (heavy & ~within_a_cell).any()
