"""The two-sided noise has its law exactly: in every way its chance can go, and as it is drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.privacy import draws
from streamdp.privacy import draws as module
from streamdp.privacy.draws import OperatingSystemEntropy, discrete_laplace
from streamdp.types import Entropy
from tests.privacy.ways import Rejecting, coin, even_again, law_of


class _Uniform:
    """A uniform integer of which only is asked whether it is below a number."""

    def __init__(self, bound: int, walk: Any) -> None:
        self._bound, self._walk = bound, walk

    def __lt__(self, part: int) -> bool:
        return bool(self._walk.answer([1 - part / self._bound, part / self._bound]))


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 7, 8])
def test_uniform_integers_are_even(bound: int) -> None:
    """Every value has the same share, to the last bit."""
    found = law_of(lambda walk: draws.exactly_below(bound, walk), Rejecting)
    assert sorted(found) == list(range(bound))
    assert len(set(found.values())) == 1


@pytest.mark.parametrize(("part", "whole"), [(0, 3), (1, 1), (1, 3), (2, 3), (999, 1000), (7, 3)])
def test_coins_fall_heads_with_an_exponential_bias(part: int, whole: int) -> None:
    """e^(-part/whole), from coins of rational bias."""
    with patch.object(draws, "exactly_below", _Uniform):
        found = law_of(lambda walk: draws.exponential_coin(part, whole, walk))
    assert found[True] == pytest.approx(math.exp(-part / whole), abs=1e-11)


@pytest.mark.parametrize("text", ["1", "1/2", "3/2", "2/3", "5"])
def test_every_way_adds_up_to_the_law(text: str) -> None:
    """Each integer has its share of all ways; of no other scale."""
    scale = Fraction(text)

    below = patch.object(module, "exactly_below", even_again)
    with below, patch.object(module, "exponential_coin", coin):
        found = law_of(lambda walk: discrete_laplace(scale, walk))

    def off(other: float) -> float:
        return max(abs(found.get(each, 0.0) - wanted(other, each)) for each in range(-20, 21))

    assert off(float(scale)) < 1e-11
    assert min(off(0.999 * float(scale)), off(1.001 * float(scale))) > 1e-5


def wanted(scale: float, value: int) -> float:
    ratio = math.exp(-1 / scale)
    return (1 - ratio) / (1 + ratio) * ratio ** abs(value)


def p_value(values: Sequence[int], scale: float) -> float:
    """Of a chi-square test over classes of half a scale."""
    from scipy.stats import chisquare

    edges = np.round(np.linspace(-3.0, 3.0, 13) * scale)
    ratio = math.exp(-1 / scale)
    low, high = ratio ** np.maximum(1.0 - edges, 0.0), ratio ** np.maximum(edges, 0.0)
    below = np.where(edges < 1, low, 1.0 + ratio - high) / (1.0 + ratio)
    shares = np.diff(np.concatenate(([0.0], below, [1.0])))
    observed = np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(shares))
    return float(chisquare(observed, shares * len(values)).pvalue)


@pytest.mark.parametrize("count", [6_000, pytest.param(200_000, marks=pytest.mark.long)])
def test_draws_follow_the_law_at_a_real_scale_and_no_other(count: int) -> None:
    """2^25 over an epsilon of 1/30: the fit holds, and rejects scales ten per cent off."""
    scale = Fraction(2**25 * 30)
    entropy: Entropy = PublicEntropy("noise") if count < 10_000 else OperatingSystemEntropy()
    draws = [discrete_laplace(scale, entropy) for _ in range(count)]
    assert p_value(draws, float(scale)) > 1e-6
    assert p_value(draws, 0.9 * float(scale)) < 1e-4
    assert p_value(draws, 1.1 * float(scale)) < 1e-4
