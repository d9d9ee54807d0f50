"""Public parts of a joint draw that are found once or looked up: the law is the same."""

from fractions import Fraction

import numpy as np
import pytest

from streamdp.mechanisms.quantile_tree import joint
from streamdp.mechanisms.quantile_tree.grains import GRAINS
from streamdp.mechanisms.quantile_tree.planning.choice import CANDIDATES
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.mechanisms.quantile_tree.points import shape_points
from streamdp.priors.shapes import Cauchy, shapes_from_guess
from streamdp.types import CellCounts, Grid

SHAPES = shapes_from_guess(tuple(Fraction(q, 4) for q in (1, 2, 3)), 0.0, 20.0)


def test_points_of_shapes_are_kept_and_are_their_centres():
    """Each in its cell; what is found of distinct points is spread to all that share one."""
    grid = Grid(Fraction(1), -100, 100)
    public = shape_points(SHAPES, (0, 2), grid)
    assert shape_points(SHAPES, (0, 2), grid) is public
    assert (np.diff(public.distinct) > 0).all()
    assert (public.points == public.distinct[public.which]).all()
    cells = np.clip(np.floor(SHAPES.centres[:, [0, 2]].T + 0.5), grid.lower, grid.upper)
    assert (public.points // GRAINS == cells).all()


@pytest.mark.parametrize("records", [3, 40])
def test_a_kernel_that_is_looked_up_is_the_kernel(records, monkeypatch):
    """The same chance gives the same draw, whether terms are looked up or found one by one."""
    form, grid = CANDIDATES["tree of 4, shapes"], Grid(Fraction(1), -100, 100)
    targets = tuple(Fraction(q, 10) for q in range(1, 10))
    prior = form.prior((Cauchy(0.0, 20.0),) * 9, shapes_from_guess(targets, 0.0, 20.0))
    tree = form.tree(targets, Fraction(2), grid)
    cells = np.unique(np.random.default_rng(records).integers(-60, 60, records))
    batch = CellCounts(cells, np.full(len(cells), 2))
    drawn = []
    for tabulated in (0, joint.TABULATED):
        monkeypatch.setattr(joint, "TABULATED", tabulated)
        drawn.append([tree.draw(batch, prior, PublicEntropy(f"draw {i}")) for i in range(8)])
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) > 1
