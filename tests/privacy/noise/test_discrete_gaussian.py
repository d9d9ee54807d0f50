"""Gaussian noise on integers has its law exactly, and loses what is charged for it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.privacy.draws import discrete_gaussian, discrete_gaussian_variance
from tests.privacy.noise.gaussian import (
    MUTANTS,
    VARIANCES,
    Mutant,
    largest_ratio,
    off,
    production_law,
    wanted,
)

FOUR = Fraction(4)


@pytest.mark.parametrize("squared", VARIANCES, ids=str)
def test_every_way_adds_up_to_the_law(squared: Fraction) -> None:
    """Each integer has its share of all ways; of no other σ²."""
    found = production_law(squared)
    assert off(found, wanted(squared)) < 1e-11
    for factor in (Fraction(999, 1000), Fraction(1001, 1000)):
        assert off(found, wanted(squared * factor)) > 2e-5


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mistake_in_the_sampler_is_seen(mutant: Mutant) -> None:
    """In the law always, in the loss where it loses more than is charged."""
    law = mutant.law(FOUR)
    assert off(law, wanted(FOUR)) > 1e-4
    assert (largest_ratio(FOUR, law) > 1.0) is mutant.loses


@pytest.mark.parametrize("squared", VARIANCES, ids=str)
def test_the_loss_is_what_is_charged(squared: Fraction) -> None:
    """Every Rényi loss is at most α·Δ²/(2σ²), and at whole orders just that."""
    assert 0.999 < largest_ratio(squared) <= 1.0
    assert largest_ratio(squared, wanted(squared * Fraction(99, 100))) > 1.005


@pytest.mark.parametrize("squared", [*VARIANCES, Fraction(49), Fraction(51)], ids=str)
def test_the_variance_is_that_of_the_law(squared: Fraction) -> None:
    """At most σ², and on a coarse grid well below it."""
    found = sum(z * z * share for z, share in wanted(squared, 100).items())
    assert discrete_gaussian_variance(squared) == pytest.approx(found, rel=1e-12)
    assert discrete_gaussian_variance(squared) <= float(squared)
    assert discrete_gaussian_variance(Fraction(1, 8)) < 0.3 * 0.125


def p_value(values: Sequence[int], squared: float) -> float:
    """Of a chi-square test over classes of half a deviation."""
    from scipy.stats import chisquare, norm

    edges = np.round(np.linspace(-2.5, 2.5, 11) * squared**0.5)
    below = norm.cdf((edges - 0.5) / squared**0.5)
    shares = np.diff(np.concatenate(([0.0], below, [1.0])))
    observed = np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(shares))
    return float(chisquare(observed, shares * len(values)).pvalue)


def test_draws_follow_the_law_at_a_real_size_and_no_other() -> None:
    """σ² of a third of 2^20: the fit holds, and rejects one fifteen per cent off."""
    squared, entropy = Fraction(2**20, 3), PublicEntropy("gaussian")
    draws = [discrete_gaussian(squared, entropy) for _ in range(6_000)]
    assert p_value(draws, float(squared)) > 1e-4
    assert p_value(draws, 0.85 * float(squared)) < 1e-6
    assert p_value(draws, 1.15 * float(squared)) < 1e-6
