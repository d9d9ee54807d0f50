"""How often a black-box test is run, and how many successes accept it: public, before any run.

A test's rate is e^(epsilon_t·(v + nu - tau)) times k: k at its threshold. Each of `slots` places
holds a run with probability share, and counts as a success by itself with probability
kappa·share; the count is then exactly binomial with success probability share·(p + kappa), a
function of v + nu - tau alone, however p and share make it up. (With a Poisson number of runs it
would be Poisson; a binomial number can be drawn exactly, has a ceiling, and spreads less.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from streamdp.errors import ConfigurationError

MOST_SLOTS = 2**36
"""The most slots: with more, rates would need more digits than are booked, and no test end."""

_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sizes of one test.

    Args:
        rate: Runs per count of one at the threshold: k/(p* + kappa), or k/(1 - p* + kappa).
        needed: Successes from which the low side accepts; failures up to which the high side does.
        slots: Most runs there can be.
        low: Whether successes are counted; else failures.
        kappa: delta_t/epsilon_t.
    """

    rate: float
    needed: int
    slots: int
    low: bool
    kappa: Fraction

    @classmethod
    def of(
        cls, level: Fraction, kappa: Fraction, gamma: Fraction, failure: float, log_growth: float
    ) -> Self:
        """Sizes with which a ratio gamma is told apart.

        k·D(x) = ln(1/failure) with D(x) = x·ln x - x + 1 (Chernoff, for the lower tail of mean k
        and the upper of k/gamma on the low side; of k and k·gamma on the high side), x where both
        tails are alike.

        Args:
            level: p*.
            kappa: delta_t/epsilon_t.
            gamma: In (1, 2].
            failure: Probability that sampling misleads one test, for either side.
            log_growth: ln Lambda_t: what the noises can ask for, but with probability beta/2.

        Raises:
            ConfigurationError: More than 2^36 slots. Or less than one run at the threshold: a
                bit is yes where the noise asks for less than one run above it, so it might be no
                again further up, and a bit that does not rise with its score is not private.
        """
        slack, growth = float(gamma), math.exp(min(log_growth, _LARGEST_EXPONENT))
        factor, extra = slack * growth, float(kappa)
        low = float(level + kappa) / factor - extra >= 1.0 + extra - factor * float(
            1 - level + kappa
        )
        cut = (1.0 - 1.0 / slack if low else slack - 1.0) / math.log(slack)
        count = math.log(1.0 / failure) / (cut * math.log(cut) - cut + 1.0)
        needed = math.ceil(cut * count) if low else math.floor(cut * count)
        rate = count / float(level + kappa if low else 1 - level + kappa)
        if rate < 1.0:
            raise ConfigurationError(
                f"a test would be run {rate:.1e} times where its chance is at the level",
                hint=f"its delta over its epsilon, {extra:.1e}, is too large: make delta smaller",
            )
        slots = rate * (growth if low else 1.0) * float(1 + kappa) * (1.0 + 1e-9)
        if slots > MOST_SLOTS:
            raise ConfigurationError(
                f"a test may need {slots:.1e} runs",
                hint="make the epsilon of a test smaller, that of the gate larger, or gamma larger",
            )
        return cls(rate, needed, math.ceil(slots), low, kappa)

    def share(self, log_rate: float) -> Fraction | None:
        """Probability that a slot holds a run; None where the test is decided without any.

        Args:
            log_rate: epsilon_t·(nu - tau), its sign turned on the high side.

        Returns:
            None if more than `slots` would be needed, or less than one run is to be expected: the
            noise is then so far on one side that the count could say nothing else.
        """
        runs = self.rate * math.exp(max(-_LARGEST_EXPONENT, min(log_rate, _LARGEST_EXPONENT)))
        if runs < 1.0 or runs * float(1 + self.kappa) > self.slots:
            return None
        return Fraction(runs) / self.slots
