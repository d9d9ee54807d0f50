"""The interval of a loss holds it as often as it says, by the exact law of the noise."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from streamdp.kinds.experts.kind import LEVEL
from streamdp.types import FloatArray
from tests.kinds.experts.worlds import RULES, experts

FARTHEST = 400


def law(scale: Fraction) -> FloatArray:
    """Of discrete Laplace noise, from -FARTHEST to FARTHEST."""
    weights = np.exp(-np.abs(np.arange(-FARTHEST, FARTHEST + 1)) / float(scale))
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3, 2), Fraction(3), Fraction(20)])
def test_a_loss_lies_in_its_interval_as_often_as_it_says(epsilon: Fraction) -> None:
    """Noise of few whole numbers too: at an epsilon of 3/2 half a unit less held .89."""
    kind = replace(experts(RULES, "add-remove"), epsilon=epsilon)
    noise = kind.noise()
    assert noise.level is not None
    halves = np.rint(kind.half_widths() * kind.expected_rows).astype(int)
    for matched, half in zip(RULES.matrix, halves.tolist(), strict=True):
        error = law(noise.level)
        for _ in range(int(matched.sum())):
            error = np.convolve(error, law(noise.scale), "same")
        assert error[FARTHEST - half : FARTHEST + half + 1].sum() >= LEVEL - 1e-6
