"""AboveThreshold: the first of any number of scores that is about zero or more, for one price.

Scores have sensitivity one: neighbours move each by at most one. Once a run a noise rho is drawn,
and one nu each test; a test accepts when score + nu ≥ rho - offset. Rejections are free, the run
is over with the acceptance. Scores and noises are integers, `UNIT` to one of a score, so the
comparison is exact, ties accept, and nothing is rounded after the score.

References:
    Dwork, Naor, Reingold, Rothblum & Vadhan 2009; Lyu, Su & Li 2017 (which variants are private);
    the one-sided noise as in Chaturvedi, Henzinger & Upadhyay 2026.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from streamdp.privacy import events
from streamdp.privacy.draws import one_sided
from streamdp.types import Entropy, Json

STEP_BITS = 16
STEP = 1 << STEP_BITS
"""Units that the noise covers for a change of one of the score."""

UNIT = STEP - 1
"""Units in one of a score; the one unit between them and `STEP` covers the score's rounding."""

ACCURACY = 2.0**-18
"""Largest error of a score that is not exact: a quarter of a unit."""

_MOST = 2**20
"""Scores are cut at ± this, for both neighbours alike."""


@dataclass(frozen=True, slots=True)
class AboveThreshold:
    """A run of tests on scores of sensitivity one, up to the first acceptance.

    Args:
        epsilon: What the whole run costs, pure.
        beta: Probability that any test of the run errs.
        theta: Share of the noise: rho has mean (1 + 2/theta)/epsilon, nu (2 + theta)/epsilon.
        horizon: Tests that `beta` speaks of, or None for any number: then later tests ask more.

    Raises:
        ValueError: epsilon below 1/1000, beta not in (0, 1), theta or horizon not positive.
    """

    epsilon: Fraction
    beta: Fraction = Fraction(1, 20)
    theta: Fraction = Fraction(1)
    horizon: int | None = None

    def __post_init__(self) -> None:
        if self.epsilon < Fraction(1, 1000):
            raise ValueError("epsilon must be at least 1/1000")
        if not 0 < self.beta < 1:
            raise ValueError("beta must lie in (0, 1)")
        if self.theta <= 0 or (self.horizon is not None and self.horizon < 1):
            raise ValueError("theta and horizon must be positive")

    @property
    def losses(self) -> tuple[Fraction, Fraction]:
        """Losses of a shift of rho by one and of the accepted nu by two; they add to epsilon."""
        threshold = self.epsilon * self.theta / (2 + self.theta)
        return threshold, self.epsilon - threshold

    def event(self) -> Json:
        """The event of a run, however many tests it has."""
        return events.sequence([events.pure(self.epsilon)], mechanism="above-threshold")

    def start(self, entropy: Entropy) -> Json:
        """The hidden state of a run: its noise, in units. Private, and never drawn again."""
        return {"rho": one_sided(STEP_BITS, self.losses[0], entropy)}

    def accept(self, state: Json, score: Fraction | float, entropy: Entropy) -> bool:
        """Whether the score is about zero or more.

        Args:
            state: What `start` returned.
            score: Exact, or a float off by at most `ACCURACY`; a statistic of sensitivity s minus
                its threshold, over s.
            entropy: Source of chance.

        Privacy: the run's outputs, all rejections and the one acceptance, are pure epsilon for
        neighbours that move every score by at most one; scores may be chosen adaptively.
        """
        return units(score) + self.gap(state, entropy) >= 0

    def gap(self, state: Json, entropy: Entropy, parts: int = 2) -> int:
        """nu - tau of one test, in units, tau = rho - offset. Private."""
        noise = one_sided(STEP_BITS + 1, self.losses[1], entropy)
        return noise - int(state["rho"]) + self.offset(parts)

    def offset(self, parts: int = 2) -> int:
        """A bound on rho with probability 1 - beta/parts, in units; one more for rounding."""
        return 1 + math.ceil(STEP / float(self.losses[0]) * math.log(parts / float(self.beta)))

    def reach(self, t: int, parts: int = 2) -> int:
        """A bound on nu of test t that fails with probability beta/parts over all tests."""
        spread = 2 * STEP / float(self.losses[1])
        return math.ceil(spread * math.log(parts * self.weight(t) / float(self.beta)))

    def weight(self, t: int) -> float:
        """1/weight is test t's share of the failures; over the horizon they are one at most."""
        if self.horizon is not None and t <= self.horizon:
            return float(self.horizon)
        return 5.0 * t * float(math.log(t + 2) ** 3)

    def margin(self, t: int, parts: int = 2) -> float:
        """The distance below zero from which the score of test t is surely rejected.

        With probability 1 - beta, for all tests: scores of zero and more are accepted, scores of
        -margin and less are rejected.
        """
        return (self.offset(parts) + self.reach(t, parts) + 1) / UNIT


def units(score: Fraction | float) -> int:
    """The score rounded down to units, cut at ±2^20; what is not a number is the least."""
    if score != score:
        return -_MOST * UNIT
    return math.floor(max(-_MOST, min(_MOST, score)) * UNIT)
