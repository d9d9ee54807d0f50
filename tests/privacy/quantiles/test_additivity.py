from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.mechanisms.quantile_tree.exponential import BaseMeasure
from streamdp.mechanisms.quantile_tree.sharpness import RELATIVE_ERROR
from streamdp.priors.public import Tabulated
from streamdp.priors.shapes import Cauchy, HalfCauchy, Laplace, Mixture, Uniform
from streamdp.types import Grid, Prior

FAR = 2**45
locations = st.floats(-1e9, 1e9) | st.floats(-5.0, 5.0)
scales = st.floats(-9.0, 9.0).map(lambda power: 10.0**power)
families: st.SearchStrategy[Prior] = st.one_of(
    st.builds(Cauchy, locations, scales),
    st.builds(HalfCauchy, locations, scales),
    st.builds(Laplace, locations, scales),
    st.builds(lambda low, width: Uniform(low, low + width), locations, st.floats(1.0, 1e9)),
    st.builds(
        lambda gaps, counts: Tabulated(np.cumsum([-5e3, *gaps]), np.array(counts)),
        st.lists(st.floats(0.5, 1e6), min_size=5, max_size=5),
        st.lists(st.integers(1, 10**12), min_size=5, max_size=5),
    ),
)
priors: st.SearchStrategy[Prior] = st.one_of(
    families,
    st.builds(
        lambda one, other, weight: Mixture((1.0 - weight, weight), (one, other)),
        families,
        families,
        st.floats(1e-9, 0.5),
    ),
)
cells = st.integers(-FAR, FAR) | st.integers(-50, 50)
resolutions = st.sampled_from([Fraction(1, 1000), Fraction(1, 3), Fraction(1), Fraction(60)])


@given(priors, resolutions, st.lists(cells, min_size=3, max_size=12, unique=True))
@settings(max_examples=300, deadline=None)
def test_a_stretch_weighs_what_its_parts_weigh(
    prior: Prior, resolution: Fraction, edges: list[int]
) -> None:
    """However records cut a gap, its prior mass is the same to the error that the charge books.

    Neighbours cut the grid at different cells; a measure that is not additive would be another
    measure for each of them.
    """
    measure = BaseMeasure(prior, Grid(resolution, -FAR, FAR))
    cuts = np.array(sorted(edges), dtype=np.int64)
    (whole,) = measure.between(cuts[[0, -1]]).tolist()
    parts = math.fsum(math.exp(part - whole) for part in measure.between(cuts).tolist())
    assert abs(parts - 1.0) < RELATIVE_ERROR
