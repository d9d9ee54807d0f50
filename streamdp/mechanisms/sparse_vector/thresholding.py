"""Generalized thresholding: act on the first private test that succeeds often enough.

Each test M_t is any (epsilon_t, delta_t)-private procedure that answers yes or no; p_t is its
probability of yes. All rejections together with the first acceptance cost pure epsilon, whatever
the tests, their number and their deltas. With kappa = delta_t/epsilon_t

    low  = ln((p_t + kappa)/(p* + kappa))/epsilon_t,
    high = ln((1 - p* + kappa)/(1 - p_t + kappa))/epsilon_t

have sensitivity one, as p ≤ e^epsilon·p' + delta gives p + kappa ≤ e^epsilon·(p' + kappa). Where
p_t can be computed, AboveThreshold runs on min(low, high): no sampling, so no gamma. Where it
cannot, M_t is run a random number of times on a side chosen by public rule.

How often a black-box test is run, and how many successes accept it, is public before any run. A
test's rate is e^(epsilon_t·(v + nu - tau)) times k: k at its threshold. Each of `slots` places
holds a run with probability share, and counts as a success by itself with probability kappa·share;
the count is then exactly binomial with success probability share·(p + kappa), a function of v + nu
- tau alone, however p and share make it up. (With a Poisson number of runs it would be Poisson; a
binomial number can be drawn exactly, has a ceiling, and spreads less.)

References:
    Chaturvedi, Henzinger & Upadhyay 2026 (generalized thresholding); Liu & Talwar 2019.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from streamdp.errors import ConfigurationError
from streamdp.mechanisms.sparse_vector.above_threshold import UNIT, AboveThreshold
from streamdp.privacy import events
from streamdp.privacy.draws import heads
from streamdp.types import Entropy, Json

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


MOST_RUNS = 10**7
"""Runs of one test beyond which a configuration is refused."""

_LEAST_EPSILON = Fraction(1, 2**20)


@dataclass(frozen=True, slots=True)
class Chance:
    """p_t, computed. Private.

    Args:
        success: Probability of yes, to a relative error of 2^-18·epsilon_t.
        failure: Of no, to the same *relative* error: not 1 - success where that cancels.
    """

    success: float
    failure: float

    def __repr__(self) -> str:
        return "Chance(<private>)"


Runs = Callable[[int, Entropy], int]
"""A black box: runs M_t so many times, each with its own chance, and says how often it said yes."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The public side of a test.

    Args:
        epsilon: Pure loss of one run of M_t, at least 2^-20.
        delta: Its delta.
        level: p*, in (0, 1): tests that succeed so often are to be accepted.

    Raises:
        ValueError: Out of range.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    level: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        if self.epsilon < _LEAST_EPSILON or not 0 <= self.delta < 1:
            raise ValueError("a test's epsilon must be at least 2^-20, its delta in [0, 1)")
        if not 0 < self.level < 1:
            raise ValueError("the level must lie in (0, 1)")

    @property
    def kappa(self) -> Fraction:
        """delta/epsilon."""
        return self.delta / self.epsilon

    def score(self, chance: Chance) -> float:
        """min(low, high): sensitivity one, zero and more for p_t ≥ p*. Private."""
        kappa = float(self.kappa)
        low = _log_ratio(chance.success + kappa, float(self.level + self.kappa))
        high = _log_ratio(float(1 - self.level + self.kappa), chance.failure + kappa)
        return min(low, high) / float(self.epsilon)


@dataclass(frozen=True, slots=True)
class Thresholding:
    """A run of tests, up to the first acceptance.

    Args:
        epsilon: What the whole run costs, pure.
        beta: Probability that any test of the run errs (`rejection_level`).
        theta: How the noise is shared (`AboveThreshold`).
        gamma: Slack of sampled tests, in (1, 2]: larger takes fewer runs.
        horizon: Tests that beta speaks of, or None for any number.

    Raises:
        ValueError: Out of range.
    """

    epsilon: Fraction
    beta: Fraction = Fraction(1, 20)
    theta: Fraction = Fraction(1)
    gamma: Fraction = Fraction(2)
    horizon: int | None = None

    def __post_init__(self) -> None:
        if not 1 < self.gamma <= 2:
            raise ValueError("gamma must lie in (1, 2]")
        _ = self.noise

    @property
    def noise(self) -> AboveThreshold:
        """The mechanism that compares scores with noise."""
        return AboveThreshold(self.epsilon, self.beta, self.theta, self.horizon)

    def event(self) -> Json:
        """The event of a run, however many tests it has."""
        return events.sequence(
            [events.pure(self.epsilon)],
            mechanism="thresholding",
            beta=str(self.beta),
            theta=str(self.theta),
            gamma=str(self.gamma),
        )

    def start(self, entropy: Entropy) -> Json:
        """The hidden state of a run. Private, and never drawn again."""
        return self.noise.start(entropy)

    def accept(
        self, state: Json, t: int, test: Chance | Runs, terms: Terms, entropy: Entropy
    ) -> bool:
        """The bit of test t: whether M_t succeeds about often enough.

        Args:
            state: What `start` returned.
            t: 1 for the first test of the run.
            test: p_t if it can be computed, else a black box.
            terms: What M_t loses and when it is to be accepted; may depend on earlier bits.
            entropy: Source of chance.

        Privacy: pure epsilon for the bits of a run, any number of rejections and one acceptance.
        Time, chance used and number of runs depend on private data: they are not to be shown.
        """
        if isinstance(test, Chance):
            return self.noise.accept(state, terms.score(test), entropy)
        sizes = self.sampling(t, terms)
        gap = self.noise.gap(state, entropy, parts=4)
        log_rate = float(terms.epsilon) * gap / UNIT
        share = sizes.share(log_rate if sizes.low else -log_rate)
        if share is None:
            return gap >= 0
        runs = heads(sizes.slots, share, entropy)
        extra = heads(sizes.slots - runs, share * sizes.kappa / (1 - share), entropy)
        successes = test(runs, entropy)
        if sizes.low:
            return successes + extra >= sizes.needed
        return runs - successes + extra <= sizes.needed

    def sampling(self, t: int, terms: Terms) -> Sampling:
        """Sizes of test t as a black box, from public facts."""
        failure = float(self.beta) / (4.0 * self.noise.weight(t))
        growth = float(terms.epsilon) * self.noise.margin(t, parts=4)
        return Sampling.of(terms.level, terms.kappa, self.gamma, failure, growth)

    def rejection_level(self, t: int, terms: Terms, *, sampled: bool) -> float:
        """Return the level up to which p_t is rejected for all t, with probability 1 - beta.

        With that probability, p_t ≥ p* is accepted for all t as well.

        Returns:
            max((p* + kappa)/F - kappa, 1 + kappa - F·(1 - p* + kappa)), F = gamma·Lambda_t, or
            Lambda_t for a computed p_t; not positive if no test is sure to be rejected.
        """
        log_factor = float(terms.epsilon) * self.noise.margin(t, parts=4 if sampled else 2)
        factor = math.exp(min(log_factor, 700.0)) * (float(self.gamma) if sampled else 1.0)
        kappa, level = float(terms.kappa), float(terms.level)
        return max((level + kappa) / factor - kappa, 1.0 + kappa - factor * (1.0 - level + kappa))

    def evaluations(self, t: int, terms: Terms) -> tuple[float, int]:
        """Runs of M_t as a black box at test t: expected over the noises, and the ceiling."""
        sizes, epsilon = self.sampling(t, terms), float(terms.epsilon)
        sign, (threshold, query) = 1.0 if sizes.low else -1.0, map(float, self.noise.losses)
        raised = math.exp(sign * epsilon * self.noise.offset(4) / UNIT)
        mean = (1.0 + sign * epsilon / threshold) * (1.0 - sign * 2.0 * epsilon / query)
        expected = sizes.rate * raised / mean if mean > 0.0 else math.inf
        return min(expected, float(sizes.slots)), sizes.slots

    def require_practical(self, terms: Terms, tests: int, *, sampled: bool) -> None:
        """Refuse, before data is touched, what would take too long or could not say no.

        Args:
            terms: Of the tests.
            tests: How many a run is to have.
            sampled: Whether they are black boxes.

        Raises:
            ConfigurationError: With the numbers and what to change.
        """
        least = self.rejection_level(tests, terms, sampled=sampled)
        if least <= 0.0:
            raise ConfigurationError(
                f"test {tests} of the gate can never be sure to say no: its delta over its epsilon,"
                f" {float(terms.kappa):.1e}, is more than what is left of the level",
                hint="make the delta of a test smaller, or the epsilon of the gate larger",
            )
        if not sampled:
            return
        ceiling = self.sampling(tests, terms).slots
        if ceiling > MOST_RUNS:
            growth = math.exp(float(terms.epsilon) * self.noise.margin(tests, parts=4))
            raise ConfigurationError(
                f"test {tests} of the gate may take {ceiling:.1e} runs, more than {MOST_RUNS:.0e}:"
                f" its noise multiplies them by up to {growth:.1e}",
                hint=f"make the epsilon of a test ({float(terms.epsilon):g}) smaller, the gate's"
                f" ({float(self.epsilon):g}) larger, or gamma ({float(self.gamma):g}) larger",
            )


def _log_ratio(above: float, below: float) -> float:
    """ln(above/below), with nothing in it underflowing."""
    if above <= 0.0 or below <= 0.0:
        return -math.inf if above <= 0.0 else math.inf
    return math.log(above) - math.log(below)
