"""Sequences of tests whose neighbours are as far apart as their epsilon and delta allow."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from streamdp.gates.run import ThresholdingGate
from streamdp.mechanisms.sparse_vector.thresholding import Chance, Terms, Thresholding
from streamdp.types import Past
from tests.privacy.gates.law import Asked, coarse, loss

STEPS = {False: (6, 1), True: (3, 0)}
"""Bits of a step, and units held back for rounding: computed scores are rounded, rates are not."""

LEVELS = (Fraction(1, 20), Fraction(1, 2), Fraction(9, 10), Fraction(99, 100))


def neighbour(chance: float, terms: Terms, up: bool) -> float:
    """The probability farthest up or down that an (epsilon, delta)-private test may have."""
    growth, delta = math.exp(float(terms.epsilon)), float(terms.delta)
    if up:
        return min(1.0, growth * chance + delta, 1.0 - (1.0 - chance - delta) / growth)
    return max(0.0, (chance - delta) / growth, 1.0 - growth * (1.0 - chance) - delta)


def asked(terms: Terms, chance: float, up: bool, times: int = 1, sampled: bool = False) -> Asked:
    """A test and its neighbour."""
    other = neighbour(chance, terms, up)
    return Asked(terms, Chance(chance, 1 - chance), Chance(other, 1 - other), times, sampled)


def sequences(
    sampled: bool, delta: bool, count: int, seed: int = 1
) -> Iterator[tuple[Thresholding, list[Asked]]]:
    """Random runs: many rejections while the neighbour moves one way, then it moves the other."""
    generator = np.random.default_rng(seed)
    for _run in range(count):
        theta = Fraction(int(generator.integers(1, 8)), 4)
        gate = Thresholding(Fraction(1), Fraction(1, 10), theta, horizon=100)
        up = bool(generator.integers(2))
        tests = []
        for _ in range(int(generator.integers(1, 3 if sampled else 6))):
            epsilon = Fraction(float(np.exp(generator.uniform(-4, -2 if sampled else 1))))
            spent = epsilon * Fraction(float(np.exp(generator.uniform(-9, -4)))) * delta
            terms = Terms(epsilon, spent, LEVELS[generator.integers(len(LEVELS))])
            score = generator.uniform(-40.0, 10.0)
            chance = _chance_of(score, terms)
            times = int(np.exp(generator.uniform(0, 9)))
            tests.append(asked(terms, chance, up, times, sampled))
        last = tests[-1]
        chance = _chance_of(generator.uniform(-40.0, 10.0), last.terms)
        yield gate, [*tests, asked(last.terms, chance, not up, 1, sampled)]


def scheduled(kind: ThresholdingGate, count: int, *, private: bool = False) -> float:
    """Largest loss over epsilon of random runs whose levels follow from the number of a test.

    Args:
        kind: Whose levels they are.
        count: Runs.
        private: Whether, wrongly, the level under the neighbour is that of the test after.
    """
    generator, worst, past = np.random.default_rng(3), 0.0, Past(0, ())
    for _run in range(count):
        up, tests = bool(generator.integers(2)), list[Asked]()
        tests_in_all = int(generator.integers(2, 6))
        for number in range(1, tests_in_all + 1):
            terms = kind.terms_at(number, past)
            chance = _chance_of(generator.uniform(-30.0, 10.0), terms)
            each = asked(terms, chance, up != (number == tests_in_all))
            if private:
                score = kind.terms_at(number + 1, past).score(each.other)
                moved = _chance_of(max(score, -200.0), terms)
                each = replace(each, other=Chance(moved, 1 - moved))
            tests.append(each)
        with coarse(*STEPS[False]):
            worst = max(worst, loss(kind.thresholding, tests))
    return worst


def _chance_of(score: float, terms: Terms) -> float:
    """A probability of about this score, on the side that its level stands for."""
    kappa, factor = float(terms.kappa), math.exp(score * float(terms.epsilon))
    low = (float(terms.level) + kappa) * factor - kappa
    high = 1.0 - (1.0 - float(terms.level) + kappa) / factor + kappa
    return min(1.0, max(0.0, low if terms.level < 0.8 else high))


def largest_loss(sampled: bool, delta: bool, count: int, seed: int = 1) -> float:
    """Over epsilon, of that many random runs."""
    with coarse(*STEPS[sampled]):
        return max(loss(gate, tests) for gate, tests in sequences(sampled, delta, count, seed))
