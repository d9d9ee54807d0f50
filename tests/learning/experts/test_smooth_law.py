from __future__ import annotations

import numpy as np
import pytest

from streamdp.learning.experts.belief.density import densities, log_gaps
from streamdp.learning.experts.publishing.smooth_law import LEAST_MISFIT, SmoothLaw, standard_laws
from streamdp.types import FloatArray

TARGETS = np.arange(1, 10) / 10.0
LAWS = standard_laws(tuple(TARGETS.tolist()))
TURN = (1, 4, 7)
SKEWED = LAWS[11]
"""Light on the left, heavy on the right."""

TWO_CLUMPS = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 10.0, 10.1, 10.2, 10.3])


def law_of(profile: FloatArray) -> SmoothLaw:
    logs = log_gaps(profile, 1e-9)
    return SmoothLaw.of(TARGETS, logs, densities(TARGETS, logs))


def released(values: FloatArray) -> dict[int, float]:
    return {j: float(values[j]) for j in TURN}


@pytest.mark.parametrize("law", [0, 13, 24, 30, 48])
@pytest.mark.parametrize("scale", [0.5, 1.0, 7.0])
def test_a_batch_of_the_same_law_is_filled_exactly(law: int, scale: float) -> None:
    """Wherever it lies and however far it is stretched, between the measured and beyond them."""
    batch = 100.0 + scale * LAWS[law]
    np.testing.assert_allclose(law_of(LAWS[law]).through(released(batch)), batch, rtol=1e-9)


@pytest.mark.parametrize(("profile", "fits"), [(SKEWED, True), (TWO_CLUMPS, False)])
def test_gaps_that_follow_no_law_count_as_noise_of_it(profile: FloatArray, fits: bool) -> None:
    """Skewed ones follow one; those of two clumps follow none."""
    assert (law_of(profile).variance < 1.5 * LEAST_MISFIT**2) == fits


def test_noise_of_the_gaps_is_smoothed() -> None:
    """Gaps of few releases are off by a third; the law through the same values is off by less."""
    generator, rough, smooth = np.random.default_rng(0), [], []
    for _ in range(50):
        steps = np.diff(SKEWED) * np.exp(generator.normal(0.0, 0.35, 8))
        usual = np.concatenate(([0.0], np.cumsum(steps)))
        rough.append(np.abs(np.interp(usual, usual[list(TURN)], SKEWED[list(TURN)])[2:7]))
        rough[-1] = np.abs(rough[-1] - SKEWED[2:7]).mean()
        filled = law_of(usual).through(released(SKEWED))
        smooth.append(np.abs(filled - SKEWED)[2:7].mean())
    assert np.mean(smooth) < 0.6 * np.mean(rough)


def test_the_law_speaks_where_the_belief_is_unsure_and_values_do_not_repeat() -> None:
    """A sure belief stays, as do released values and quantiles that repeat exact values."""
    law, point = law_of(SKEWED), SKEWED + np.where(np.isin(range(9), TURN), 0.0, 0.05)
    seen, none = released(SKEWED), np.zeros(9)
    assert law.filled(point, np.full(9, 1e-6), seen, none) == pytest.approx(point)
    assert law.filled(point, np.ones(9), seen, np.ones(9)) == pytest.approx(point)
    told = law.filled(point, np.ones(9), seen, none)
    assert np.array_equal(told[list(TURN)], SKEWED[list(TURN)])
    assert np.abs(told - law.through(seen)).max() < 0.1 * np.abs(point - law.through(seen)).max()


def test_a_single_quantile_has_a_law_of_finite_variance() -> None:
    """There are no gaps that a law could follow."""
    targets = np.array([0.5])
    law = SmoothLaw.of(targets, np.empty(0), np.ones(1))
    assert law.places.tolist() == [0.0]
    assert 0.0 < law.variance < 0.01
