"""The bits of a gate lose at most epsilon, by integration; and the mistakes lose more."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from unittest.mock import patch

import pytest
from scipy.stats import binom

from streamdp.gates.questions.growth import Growth
from streamdp.gates.run import ThresholdingGate
from streamdp.mechanisms.sparse_vector import thresholding
from streamdp.mechanisms.sparse_vector.above_threshold import AboveThreshold
from streamdp.mechanisms.sparse_vector.thresholding import Chance, Sampling, Terms, Thresholding
from streamdp.privacy.draws import one_sided
from streamdp.types import CellQuery, Grid
from tests.privacy.gates.cases import STEPS, largest_loss, scheduled
from tests.privacy.gates.law import NO_ENTROPY, coarse, counted, noise_law, share_of
from tests.privacy.gates.mutants import GATE_MUTANTS, GateMutant

ROUNDING = 1e-6
F = Fraction
NOTHING = Growth("records", F(1), F(2))
"""A question that is not asked."""


def names(mutant: GateMutant) -> str:
    return f"{mutant.name}, {'sampled' if mutant.sampled else 'computed'}"


@pytest.mark.thinned(4)
@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize(("sampled", "runs", "least"), [(False, 40, 0.98), (True, 4, 0.9)])
def test_no_run_loses_more_than_epsilon(
    sampled: bool, runs: int, least: float, delta: bool
) -> None:
    """Random tests, neighbours, levels and deltas: at most epsilon, and nearly that."""
    worst = largest_loss(sampled, delta, runs)
    assert worst <= 1.0 + ROUNDING
    assert worst >= least * (1.0 if not delta else 0.5)


def test_levels_by_schedule_lose_no_more_than_epsilon_unless_they_follow_the_batch() -> None:
    """Public levels that follow each other cost nothing; levels that tell of the data would."""
    levels = (F(1, 2), F(9, 10), F(1, 20), F(99, 100), F(3, 5))
    terms = tuple(Terms(F(1, 10), level=level) for level in levels)
    run = Thresholding(F(1), F(1, 10), horizon=100)
    kind = ThresholdingGate(CellQuery("x", Grid(F(1), 0, 9)), NOTHING, run, terms, 1, True)
    assert 0.9 <= scheduled(kind, 30) <= 1.0 + ROUNDING
    assert scheduled(kind, 30, private=True) > 1.05


@pytest.mark.long
@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize(("sampled", "runs"), [(False, 1000), (True, 100)])
def test_no_run_loses_more_than_epsilon_for_long(sampled: bool, runs: int, delta: bool) -> None:
    """The same with other seeds and more runs."""
    assert largest_loss(sampled, delta, runs, seed=2) <= 1.0 + ROUNDING


@pytest.mark.parametrize("mutant", GATE_MUTANTS, ids=names)
def test_integration_catches(mutant: GateMutant) -> None:
    """The mistake loses clearly more than epsilon in a run where production does not."""
    assert mutant.real_loss() <= 1.0 + ROUNDING
    assert mutant.loss() > 1.05


def test_the_noise_is_paid_for_exactly() -> None:
    """Without its cut tail, P(x) over P(x + step) is one constant, at most e^loss."""
    law = noise_law(lambda: one_sided(3, F(1, 3), NO_ENTROPY))[:-16]
    ratios = law[:-8] / law[8:]
    assert ratios.max() <= math.exp(1 / 3) * (1 + 1e-12)
    assert ratios.min() >= math.exp(1 / 3) * (1 - 1e-9)
    assert law.sum() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("low", [False, True])
@pytest.mark.parametrize("gap", [-3, 0, 2])
def test_a_sampled_bit_is_a_binomial_count(low: bool, gap: int) -> None:
    """Every answer of chance, through production's `accept`, adds up to the count's tail."""
    terms, chance = Terms(F(1), F(1, 4)), Chance(0.3, 0.7)
    sizes = Sampling(rate=1.5, needed=2, slots=9, low=low, kappa=terms.kappa)
    gate = Thresholding(F(1))
    with coarse(*STEPS[True]), patch.object(Thresholding, "sampling", lambda *_: sizes):
        asked = share_of(sizes, gap, terms)
        assert asked is not None
        share, extra = asked
        total = sum(
            weight
            for weight, accepted in _every_answer(gate, gap, terms, chance.success)
            if accepted
        )
    count = counted(sizes, float(share), float(extra), chance)  # type: ignore[arg-type]
    expected = count.sf(1) if low else count.cdf(2)
    assert total == pytest.approx(float(expected), rel=1e-9)


def _every_answer(
    gate: Thresholding, gap: int, terms: Terms, success: float
) -> list[tuple[float, bool]]:
    """Weight and bit for all numbers of runs, extras and successes."""
    found = []
    for runs, extras, successes in itertools.product(range(10), repeat=3):
        if extras > 9 - runs or successes > runs:
            continue
        answers, weight = iter((runs, extras)), [binom.pmf(successes, runs, success)]

        def heads(coins: int, bias: Fraction, entropy: object, answers: object = answers) -> int:
            drawn = int(next(answers))  # type: ignore[call-overload]
            weight.append(binom.pmf(drawn, coins, float(bias)))  # noqa: B023
            return drawn

        noise = patch.object(AboveThreshold, "gap", lambda *_, **__: gap)
        with noise, patch.object(thresholding, "heads", heads):
            bit = gate.accept({"rho": 0}, 1, lambda *_: successes, terms, NO_ENTROPY)  # noqa: B023
        found.append((float(weight[0] * weight[1] * weight[2]), bit))
    return found
