from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from streamdp.learning.online_gradient.public_fit import fit_public
from streamdp.priors.public import PublicSample

TARGETS = np.array([0.1, 0.5, 0.9])


@dataclass(slots=True)
class Seeded:
    generator: random.Random

    def bits(self, count: int) -> int:
        return self.generator.getrandbits(count)


def public(values: np.ndarray, resolution: float) -> PublicSample:
    cells, counts = np.unique(np.rint(values / resolution), return_counts=True)
    return PublicSample(cells * resolution, counts, resolution)


def test_public_rows_give_the_quantiles_and_how_far_batches_stray() -> None:
    """Locations lie at the table's quantiles; smaller batches stray further."""
    table = np.random.default_rng(0).normal(100.0, 20.0, 20_000)
    small, large = (
        fit_public(public(table, 0.01), TARGETS, rows, Seeded(random.Random(1)))
        for rows in (50, 2_000)
    )
    truth = np.quantile(table, TARGETS)
    assert np.allclose(large.locations, truth, atol=2.0)
    assert (np.array(small.scales) > np.array(large.scales)).all()


def test_a_table_of_one_value_is_no_obstacle() -> None:
    """Ties leave an interval of one cell; everything stays finite and ordered."""
    fit = fit_public(public(np.full(30, 7.0), 1.0), TARGETS, 20, Seeded(random.Random(2)))
    assert np.isfinite(fit.scales).all()
    assert np.allclose(fit.locations, 7.0, atol=1.0)
