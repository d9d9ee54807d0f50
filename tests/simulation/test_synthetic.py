"""Synthetic streams follow the laws they state."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from streamdp.kinds.quantiles import synthetic
from streamdp.kinds.study import Stream
from streamdp.mechanisms.quantile_tree.grains import exact_quantiles
from streamdp.types import FloatArray

DECILES = tuple(Fraction(index, 10) for index in range(1, 10))
UNEVEN = (Fraction(1, 4), Fraction(1, 2), Fraction(99, 100))
WIDTH = float(synthetic.RESOLUTION)

SIZES = (200, 600)
"""Batches, records in each."""


def quantiles_of(stream: Stream, quantiles: tuple[Fraction, ...]) -> FloatArray:
    return np.array([exact_quantiles(batch, quantiles) * WIDTH for batch in stream.counts])


@pytest.mark.parametrize("name", synthetic.PATHS)
def test_batches_are_normal_around_their_location(name: str) -> None:
    """Poisson counts, and quartiles of Normal(location_t, 1), within five standard errors."""
    length, rows = SIZES
    where, _ = synthetic.locations(name, 3, length)
    stream = synthetic.moving(name, 3, length, rows)
    counts = np.array([batch.counts.sum() for batch in stream.counts])
    assert abs(counts.mean() - rows) < 5 * math.sqrt(rows / length)
    assert abs(counts.var() / rows - 1) < 5 * math.sqrt(2 / length)
    quartiles = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
    apart = quantiles_of(stream, quartiles) - where[:, None]
    for column, share in zip(apart.T, quartiles, strict=True):
        law = NormalDist()
        place = law.inv_cdf(float(share))
        error = math.sqrt(float(share * (1 - share)) / rows) / law.pdf(place)
        assert abs(column.mean() - place) < 5 * error / math.sqrt(length) + 1 / rows
        assert 0.8 < column.std() / error < 1.2


@pytest.mark.parametrize("quantiles", [DECILES, UNEVEN])
def test_linear_batches_lie_between_their_edges(quantiles: tuple[Fraction, ...]) -> None:
    """Between two edges as many records as the quantiles say; edges move with w·f alone."""
    length, rows = 300, 100
    edges, features, _ = synthetic.linear_edges(quantiles, 5, length)
    stream = synthetic.linear(quantiles, 5, length, rows)
    shares = np.diff([0.0, *map(float, quantiles), 1.0])
    for batch, row in zip(stream.counts, edges, strict=True):
        records = np.repeat(batch.cells, batch.counts) * WIDTH
        found = np.histogram(records, row + np.array([-WIDTH] + [0.0] * len(quantiles) + [WIDTH]))
        assert np.abs(found[0] - shares * rows).max() < 1.5
    assert stream.features is not None
    assert np.array_equal(stream.features, features)
    centred = features - features.mean(axis=0)
    _, unexplained, *_ = np.linalg.lstsq(centred, edges - edges.mean(axis=0), rcond=None)
    assert unexplained.max() < 1e-18 * length
    assert np.allclose(np.diff(edges, axis=1), np.diff(edges[0]))


def test_linear_weights_offsets_and_features_are_standard_normal() -> None:
    """Second moments over seeds: of an edge 1 + 10·1, of a feature 1."""
    firsts = np.array([synthetic.linear_edges(DECILES, seed, 1)[0][0] for seed in range(400)])
    assert abs(firsts.mean()) < 5 * math.sqrt(11 / 400)
    assert 0.8 < firsts.var(axis=0).mean() / 11 < 1.2
    features = synthetic.linear_edges(DECILES, 0, 2000)[1]
    assert np.abs(np.cov(features.T) - np.eye(10)).max() < 0.15


def test_paths_do_what_their_names_say() -> None:
    """Shift, season, end of season, strange day and wrong guess, exactly; walk and noise by law."""
    path = {name: synthetic.locations(name, 1, 5000)[0] for name in synthetic.PATHS}
    assert set(path["level-shift"][:2500]) == {0.0}
    assert set(path["level-shift"][2500:]) == {5.0}
    assert path["seasonal"][:7].tolist() == [0, 0, 0, 0, 0, -2, -2]
    assert np.array_equal(path["season-ends"][:2500], path["seasonal"][:2500])
    assert set(path["season-ends"][2500:]) == {0.0}
    assert np.flatnonzero(path["strange-day"]).tolist() == [2500]
    assert set(path["wrong-guess"]) == {1000.0}
    assert 0.95 < np.diff(path["random-walk"]).std() / 0.1 < 1.05
    assert 0.95 < path["iid"].std() < 1.05
    assert abs(np.corrcoef(path["iid"][1:], path["iid"][:-1])[0, 1]) < 0.07


def test_streams_repeat_by_seed_and_differ_between_seeds() -> None:
    """The same seed gives the same cells, another one others; fewer batches are the first ones."""
    for name in synthetic.NAMES:
        one, same, other = (synthetic.synthetic(name, DECILES, seed, 12) for seed in (1, 1, 2))
        assert all(
            np.array_equal(a.cells, b.cells) for a, b in zip(one.counts, same.counts, strict=True)
        )
        assert not np.array_equal(one.counts[0].cells, other.counts[0].cells)
        assert len(one.take(5).counts) == len(one.take(5).batches) == 5
