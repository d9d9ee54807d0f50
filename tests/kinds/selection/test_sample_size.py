"""The PAC bound holds where it can be simulated, and its sample size inverts it."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from streamdp.kinds.selection.kind import LEVEL, ROBUST_WEIGHT, Choice, virtual_records
from streamdp.kinds.selection.sample_size import Generalization, shortfall
from streamdp.kinds.selection.scores import CountScore
from streamdp.mechanisms.finite_choice import exponential_choice
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.types import Sums
from tests.kinds.selection.worlds import law, listed


@pytest.mark.parametrize("least_prior", [1.0, 0.05])
@pytest.mark.parametrize("error", [0.5, 0.01, 1e-4])
def test_the_sample_size_has_the_wanted_error(error: float, least_prior: float) -> None:
    """And one record fewer has not."""
    bound = Generalization(Fraction(1, 10), 1.0, 2020, 0.05, least_prior)
    records = bound.records(error)
    assert bound.error(records) <= error < bound.error(records - 1)


def test_the_bound_is_that_of_the_sample_alone_without_privacy() -> None:
    """2·ln(2|C|/β)/α² records; with privacy more than either part takes alone."""
    alone = 2 * np.log(2 * 2020 / 0.05) / 0.01**2
    assert Generalization(Fraction(10**9), 1.0, 2020, 0.05).records(0.01) == pytest.approx(
        alone, abs=2
    )
    both = Generalization(Fraction(1, 10), 1.0, 2020, 0.05).records(0.01)
    assert alone < both < 4 * alone


def test_choices_keep_within_the_bound() -> None:
    """Rules on coins whose true errors are known: 95 % of choices, and not by miles."""
    random, entropy = np.random.default_rng(1), PublicEntropy("pac")
    errors, records, sharpness = np.linspace(0.2, 0.6, 8), 400, Fraction(1, 5)
    excess = []
    for _ in range(300):
        scores = -random.binomial(records, errors)
        excess.append(errors[exponential_choice(scores.tolist(), sharpness, entropy)] - 0.2)
    bound = Generalization(sharpness, 1.0, len(errors), 0.05).error(records)
    assert np.quantile(excess, 0.95) <= bound < 0.4


@pytest.mark.parametrize("choice", ["exponential", "permute-and-flip"])
@pytest.mark.parametrize("learned", [False, True])
def test_the_published_shortfall_holds(choice: Choice, learned: bool) -> None:
    """By the law of the production draw: all others just too far off, whatever was learned."""
    kind = replace(listed(CountScore(), "add-remove", choice), learned=learned)
    within, best, worst = kind.shortfall(), 50, 0.0
    for state in itertools.product((-9.0, 0.0, 9.0), repeat=3 if learned else 0):
        prior = kind.prior.log_prior(np.array(state or [0.0] * 3))
        scores = (best, *[best - math.floor(within) - 1] * 2)
        found = law(kind, virtual_records(prior, kind.exponent), Sums(scores))
        worst = max(worst, 1.0 - found.get((0,), 0.0))
    assert 0.1 * (1.0 - LEVEL) < worst <= 1.0 - LEVEL


def test_rounded_virtual_records_are_counted_in_the_shortfall() -> None:
    """With a robust share alone the bound would be broken: half a record is much at a large c."""
    kind = replace(listed(CountScore(), "add-remove"), epsilon=Fraction(20))
    without = shortfall(kind.exponent, kind.count, 1.0 - LEVEL, ROBUST_WEIGHT)
    assert kind.shortfall() == pytest.approx(without + 1.0)
