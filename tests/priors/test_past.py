"""Exact past values as a prior."""

from __future__ import annotations

import numpy as np
import pytest

from streamdp.priors.past import PastValues


def test_mass_lies_on_the_values_as_often_as_they_were_released() -> None:
    """Half-open stretches; nothing where nothing was released."""
    prior = PastValues((3.0, 1.0, 3.0, 7.5))
    low = np.array([0.0, 1.0, 1.5, 3.0, 3.5, -9.0])
    high = np.array([1.0, 1.5, 3.0, 7.5, 7.0, 9.0])
    shares = np.exp(prior.log_mass(low, high))
    assert shares == pytest.approx([0.0, 0.25, 0.0, 0.5, 0.0, 1.0])


def test_a_stretch_weighs_what_its_parts_weigh() -> None:
    """However it is cut, to the last digits."""
    prior = PastValues(tuple(np.random.default_rng(1).integers(0, 50, 20).astype(float)))
    edges = np.arange(-1.0, 52.0)
    parts = np.exp(prior.log_mass(edges[:-1], edges[1:]))
    whole = np.exp(prior.log_mass(edges[:1], edges[-1:]))[0]
    assert parts.sum() == pytest.approx(whole, rel=1e-15)
