"""Linear regression of where batches lie on public numbers of them."""

from __future__ import annotations

import numpy as np
import pytest

from streamdp.learning.mixture.averages import (
    ERROR,
    FIRST_EFFECT,
    FIRST_LEVEL,
    LARGEST,
    Regression,
)


def test_effects_are_those_of_ridge_regression() -> None:
    """Against a solution by rows, each weighted by how long ago it was."""
    random, known = np.random.default_rng(0), Regression.start(3)
    inputs = np.column_stack((np.ones(30), random.normal(size=(30, 2))))
    found = inputs @ np.array([[1.0, 0.2], [-0.5, 0.0], [2.0, 0.1]]) + random.normal(
        0.0, 0.1, (30, 2)
    )
    for row, each in zip(inputs, found, strict=True):
        known = known.updated(row, (float(each[0]), float(each[1])))
    deviations = np.array([FIRST_LEVEL, FIRST_EFFECT, FIRST_EFFECT])
    ages = np.sqrt(0.995 ** np.arange(29, -1, -1))[:, None]
    rows = np.vstack((ages * inputs / ERROR, np.diag(1.0 / deviations)))
    values = np.vstack((ages * found / ERROR, np.zeros((3, 2))))
    effects = np.linalg.lstsq(rows, values, rcond=None)[0]
    new = np.array([1.0, 0.3, -0.7])
    assert known.predict(new) == pytest.approx(tuple(new @ effects), abs=1e-9)


def test_nothing_is_foretold_before_the_first_batch_nor_beyond_the_farthest() -> None:
    """Whatever the numbers are."""
    assert Regression.start(2).predict(np.array([1.0, 1e12])) == (0.0, 0.0)
    known = Regression.start(2).updated(np.array([1.0, 1.0]), (1e9, -1e9))
    shift, stretch = known.predict(np.array([1.0, 1e12]))
    assert (shift, stretch) == (LARGEST[0], -LARGEST[1])


def test_it_is_remembered_to_three_digits() -> None:
    """And what is remembered stays as it is."""
    known = Regression.start(2).updated(np.array([1.0, 0.1]), (0.3, 0.7))
    again = Regression.from_json(known.to_json())
    assert again.products == pytest.approx(known.products, rel=2e-4)
    assert again.moments == pytest.approx(known.moments, rel=2e-4)
    assert Regression.from_json(again.to_json()).products.tolist() == again.products.tolist()
