"""How a release is drawn: which items are measured, and with how much noise.

A round chooses an item where the counts and the current distribution differ most, by
permute-and-flip over integer scores with a tenth of the round's price, and measures all its
cells with discrete Laplace noise. What past releases foretell of the items' use is added to the
scores, more of it the less such a choice can see. With `choose: public` items are chosen from past
releases alone, and the whole price buys measurements. With `choose: auto` rounds choose so,
or privately. With `choose: online` each is tested in turn, and half of epsilon buys tests.

At a price in rho the noise is discrete Gaussian, and the choice is the exponential mechanism: its
loss is of bounded range, so that epsilon_c of it cost epsilon_c²/8 of rho.

**Rounds.** Each round measures one item. Few rounds have little noise each, and are best where past
releases predict the other items. More rounds have more noise each, and are best where nothing
repeats. The first measurement of a release shows which is the case. A course has a fixed price,
which the rounds to come share equally. Once, when a measurement shows that nothing repeats, it adds
rounds.

A round chooses its item by a look at the batch, which costs a tenth of its price, or blindly: from
past releases alone. A look sees what is far off today and not what is worth learning. So with
`auto` the first round looks, and the others choose blindly. Where measurements are good, what past
releases lack is known better than a look tells, and the first is blind too. They are good where the
noise of all cells of an item of the usual size adds up to at most `BLIND` of the records. Of
releases of one round that could be blind every third looks. Once nothing repeats all rounds look.

**Questions in turn** (`choose: online`): a list is answered from what is believed, and measured
only where that is wrong. Hardt & Rothblum's mechanism over the items of a workload, in the order
they are configured. An item is tested: is some count of it off by the tolerance or more? While the
answer is no, the counts are those of the current distribution, and the test was free. On yes the
item is measured, the distribution is refitted, the test is armed anew and asks of the same item
again. A release has a fixed number of measurements. Those that no test asked for are spent at the
end on the items of which past releases say least.

The questions are a list in the configuration, not calls that come one by one after the release.
All of them belong to one draw: its cost is one charge that is known before the batch is read, no
half-answered list has to survive a crash, and no noise of a test is ever kept.

With probability 1 - beta every count of an item that passed was within the tolerance of the
distribution it was tested against. That bound is proved, not estimated.

References:
    Hardt & Rothblum 2010.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from streamdp.kinds.workload.fitting.distribution import (
    DomainMasses,
    Marginal,
    NoisyMarginal,
    Workload,
)
from streamdp.mechanisms.finite_choice import exponent, exponential_choice, permute_and_flip
from streamdp.mechanisms.noise import AdditiveNoise, Noise, noise_at
from streamdp.mechanisms.quantile_tree.sharpness import Relation
from streamdp.mechanisms.sparse_vector.above_threshold import AboveThreshold
from streamdp.privacy import events
from streamdp.privacy.filters import Measure
from streamdp.privacy.price import Price
from streamdp.types import Entropy, FloatArray, IntArray, Json

TURNING = 150.0
"""Epsilon·rows from which a release with a memory keeps a part of its price for a turn."""


BLIND = 0.28
"""Noise of all cells of an item of the usual size, over the records, up to which all rounds choose
without the batch where the past foretells it."""


@dataclass(frozen=True, slots=True)
class Course:
    """The rounds of a release that are still to come.

    Args:
        left: What is not spent of the price.
        rounds: How many there are, if nothing turns.
        cold_rounds: How many there are after a turn; 0 where the course cannot turn.
        looks: How many of them look at the batch before others choose without it, until it turns;
            None if all look.
    """

    left: Fraction
    rounds: int
    cold_rounds: int = 0
    looks: int | None = None

    @property
    def blind(self) -> bool:
        """Whether the next round chooses without the batch."""
        return self.looks == 0

    @property
    def price(self) -> Fraction:
        """Price of the next round."""
        return self.left / self.rounds

    def after(self, turn: bool) -> Course:
        """The course once the next round is drawn.

        Args:
            turn: Whether its measurement shows that nothing repeats.
        """
        left, rounds, cold = self.left - self.price, self.rounds - 1, max(self.cold_rounds - 1, 0)
        if turn and rounds:
            return Course(left, max(rounds, cold))
        return Course(left, rounds, cold, self.looks and self.looks - 1)

    def ways(self) -> tuple[tuple[tuple[Fraction, bool], ...], ...]:
        """Prices of the rounds, and whether each is blind, in each of the ways they may go.

        Every way costs `left`.
        """
        if not self.rounds:
            return ((),)
        rest = [way for turn in (False, True) for way in self.after(turn).ways()]
        first = self.price, self.blind
        return tuple(dict.fromkeys((first, *way) for way in rest))


def rounds_for(
    amount: Fraction,
    rows: int,
    relation: Relation,
    items: int,
    *,
    cold: bool = False,
    turning: bool = False,
    loss: Measure = "epsilon",
) -> int:
    """How many items to measure: more of them as epsilon·rows, or √rho·rows, grows.

    With a memory 1 below 281, or below 150 if a course may turn, then 2, 3 from 889 and so on by
    √10; without one 2 from 26, 3 from 160, 4 from 1009 and so on, more slowly.

    Args:
        amount: Price of the release, in `loss`.
        rows: Expected, public.
        relation: Substituted records need twice the noise.
        items: The most that can be measured.
        cold: Whether nothing is remembered that is of use.
        turning: Whether there may be more once the first shows that nothing repeats.
        loss: The measure of the price.
    """
    strength = max(_strength(amount, rows, relation, loss), 1.0)
    if loss == "rho":
        rounds = _gaussian_rounds(strength, cold=cold)
    elif cold:
        rounds = round(2.2 + 1.25 * math.log10(strength / 92.0))
    else:
        rounds = math.floor(2.0 + 2.0 * math.log10(strength / 281.0))
        rounds = max(rounds, 2 if turning and strength >= TURNING else 1)
    return min(max(rounds, 1), items)


def _strength(amount: Fraction, rows: int, relation: Relation, loss: Measure) -> float:
    """Epsilon·rows, or √rho·rows, at half of the price where records are substituted."""
    price = float(amount) / (1.0 if relation == "add-remove" else 2.0)
    return (math.sqrt(price) if loss == "rho" else price) * rows


def _gaussian_rounds(strength: float, *, cold: bool) -> int:
    """Number of rounds at a price in rho: noise grows with their root alone, so there are more.

    By √rho·rows: with a memory 1 below 36, 2, 3 from 115, 4 from 364; without one 3 at 32, 5 at
    122, 6 at 411.
    """
    if cold:
        return round(3.0 + 2.7 * math.log10(strength / 32.0))
    return math.floor(3.0 + 2.0 * math.log10(strength / 115.0))


BETA = Fraction(1, 20)
"""Probability that any test of a release errs."""


@dataclass(frozen=True, slots=True)
class DesignTests:
    """The tests of a release.

    Args:
        epsilon: Pure loss of one run of tests, up to its yes.
        runs: The most runs of a release.
        items: How many items are tested.
        tolerance: Records by which a count may be off.
    """

    epsilon: Fraction
    runs: int
    items: int
    tolerance: int

    @property
    def tests(self) -> AboveThreshold:
        """Tests of one run; no item is tested twice in a run."""
        return AboveThreshold(self.epsilon, BETA / self.runs, horizon=self.items)

    @property
    def margin(self) -> float:
        """How far within the tolerance counts must be for a no to be sure, in records."""
        return self.tests.margin(1)

    @property
    def bound(self) -> float:
        """Bound on the error of an item that passes; counts and rounded masses are integers."""
        return self.tolerance - 0.5

    def arm(self, entropy: Entropy) -> Json:
        """The hidden noise of a run."""
        return self.tests.start(entropy)

    def is_off(
        self, run: Json, item: Marginal, counts: IntArray, current: DomainMasses, entropy: Entropy
    ) -> bool:
        """Whether some count is off by about the tolerance or more.

        Args:
            run: What `arm` returned.
            item: What is tested.
            counts: Of its cells. Private.
            current: What is believed of the batch; public.
            entropy: Source of chance.

        Privacy: the score max_cells |count - rounded mass| - tolerance moves by at most one
        between neighbours, under add/remove (one cell moves by one) and under substitute (two
        cells move by one each). All answers of a run, up to its yes, are pure `epsilon`.
        """
        masses = np.rint(current.masses(item)).astype(np.int64)
        score = int(np.abs(counts - masses).max()) - self.tolerance
        return self.tests.accept(run, Fraction(score), entropy)


@dataclass(frozen=True, slots=True, eq=False)
class Passed:
    """An item that a test found within the tolerance. Public.

    Args:
        masses: Of its cells, as they were tested.
        bound: What each count is within.
    """

    masses: FloatArray
    bound: float

    def around(self, masses: FloatArray) -> FloatArray:
        """The bound around masses that were fitted since."""
        return np.asarray(self.bound + np.abs(masses - self.masses))


Choose = Literal["auto", "private", "public", "online"]

CHOICE_SHARES: dict[Choose, Fraction] = {
    "auto": Fraction(1, 10),
    "private": Fraction(1, 10),
    "public": Fraction(),
    "online": Fraction(1, 2),
}
"""Share of a round's price that its choice gets; with `auto` if it looks at the batch."""

FORESIGHT = 0.2
"""Deviation of an item's use from what is foretold of it, over the records."""

MOST_TRUST = 50.0
"""Weight of what is foretold, at most."""

LEAST_VARIANCE = 0.01
"""Least variance of noise in a fit: below it digits would be lost (`refit`)."""


def fitted_variance(noise: Noise) -> float:
    """Variance of noise, as fits are told it."""
    return max(noise.variance, LEAST_VARIANCE)


_GUMBEL = 1.28
"""Deviation of the noise of a choice, times its exponent."""


@dataclass(frozen=True, slots=True)
class Design:
    """The draws of one release, fixed before data is touched.

    Args:
        amount: Price of all draws together for one record, in `loss`.
        rounds: How many items are measured, at least 1.
        relation: Of neighbours.
        choose: How the items are chosen.
        tolerance: Records by which a count may be off, for `online`.
        loss: The measure of the price; with `rho` the noise is Gaussian.
        cold_rounds: How many items are measured once a measurement shows that nothing repeats; 0
            for as many.
        looks: How many rounds look at the batch before others choose without it, until a course
            turns, with `auto`; None if all look.

    Raises:
        ValueError: Tests at a price in rho: they are pure, and not of bounded range.
    """

    amount: Fraction
    rounds: int
    relation: Relation = "add-remove"
    choose: Choose = "private"
    tolerance: int = 1
    loss: Measure = "epsilon"
    cold_rounds: int = 0
    looks: int | None = None

    def __post_init__(self) -> None:
        if self.choose == "online" and self.loss == "rho":
            raise ValueError("a run of tests has a price in epsilon, none in rho")

    @property
    def choice_epsilon(self) -> Fraction:
        """Epsilon of one choice. In rho, epsilon²/8 is its share at most."""
        share = self.amount * CHOICE_SHARES[self.choose] / self.rounds
        return Price(share, self.loss).loss_range

    @property
    def measured(self) -> Fraction:
        """Price of one measurement: what a round has left."""
        chosen = self.choice_epsilon
        return self.amount / self.rounds - (chosen**2 / 8 if self.loss == "rho" else chosen)

    @property
    def moved(self) -> int:
        """Cells of a partition whose count a neighbour changes by one: its L1 sensitivity."""
        return 1 if self.relation == "add-remove" else 2

    @property
    def noise(self) -> Noise:
        """Noise of all cells of an item."""
        return noise_at(Price(self.measured, self.loss), self.moved, entries=self.moved)

    @property
    def variance(self) -> float:
        """Variance of the noise of a cell, as fits are told it."""
        return fitted_variance(self.noise)

    @property
    def size(self) -> Fraction:
        """Size of the noise of a cell: about its mean absolute value."""
        noise = self.noise
        if isinstance(noise, AdditiveNoise):
            return noise.scale
        return Fraction(math.sqrt(2.0 * noise.variance / math.pi))

    def is_good(self, workload: Workload, rows: int) -> bool:
        """Whether measurements are good enough for all rounds to choose without the batch.

        Args:
            workload: Its items; their usual size is the geometric mean, which few large ones
                hardly move.
            rows: Expected.
        """
        usual = math.exp(sum(math.log(item.size) for item in workload.items) / len(workload.items))
        return usual * float(self.size) <= BLIND * rows

    def gate(self, items: int) -> DesignTests:
        """The tests of a release with so many items."""
        return DesignTests(self.choice_epsilon, self.rounds, items, self.tolerance)

    def course(self) -> Course:
        """Return the rounds, before the first."""
        return Course(self.amount, self.rounds, self.cold_rounds, self.looks)

    def round(self, price: Fraction, blind: bool = False) -> Design:
        """The draws of one round at its price; a blind one chooses without the batch."""
        choose: Choose = self.choose
        if choose == "auto":
            choose = "public" if blind else "private"
        return replace(self, amount=price, rounds=1, cold_rounds=0, looks=None, choose=choose)

    def event(self) -> Json:
        """Event of one record, for the ledger: the dearest of the ways that rounds may go."""
        about = {"mechanism": "multiplicative-weights", "choose": self.choose}
        ways = [
            events.sequence([part for each in way for part in self.round(*each).parts()], **about)
            for way in self.course().ways()
        ]
        return ways[0] if len(ways) == 1 else events.choice(ways, **about)

    def parts(self) -> list[Json]:
        """Events of one record in one round."""
        measured = self.noise.event()
        if self.choose == "public":
            return [measured]
        chosen = events.bounded_range if self.loss == "rho" else events.pure
        return [chosen(self.choice_epsilon), measured]

    def measure(self, place: int, counts: IntArray, entropy: Entropy) -> NoisyMarginal:
        """All cells of an item with noise.

        Args:
            place: Of the item; chosen before or privately.
            counts: Of its cells. Private.
            entropy: Source of chance.

        Privacy: the cells are a partition, so neighbours differ by one in one cell (add/remove)
        or in two (substitute): L1 sensitivity `moved`, Euclidean sensitivity its root. The price
        is `measured`.
        """
        noisy = self.noise.draw(counts.tolist(), entropy)
        return NoisyMarginal(place, np.array(noisy, dtype=np.float64), self.variance, self.noise)

    def choice(
        self,
        workload: Workload,
        counts: Sequence[IntArray],
        current: DomainMasses,
        entropy: Entropy,
        gains: FloatArray | None = None,
    ) -> int:
        """The item whose counts differ most from the current distribution, beyond the noise.

        Args:
            workload: Domain and items.
            counts: Of each item's cells. Private.
            current: What is believed of the batch so far; public.
            entropy: Source of chance.
            gains: Records by which past releases foretell that a measurement of each item lowers
                the errors; public.

        Privacy: a score is Σ_cells |count - rounded mass| plus a public integer. One record more
        or less moves every score by exactly one up or down: range 2. One substituted moves it by
        at most two: range 4. Pure loss `choice_epsilon`, of bounded range at a price in rho.
        """
        expected = [np.rint(current.masses(item)).astype(np.int64) for item in workload.items]
        sharpness = exponent(self.choice_epsilon, 2 * self.moved)
        bonuses = np.array([-float(item.size * self.size) for item in workload.items])
        if gains is not None:
            bonuses += self._trust(float(sharpness), current.total()) * gains
        scores = [
            int(np.abs(count - mass).sum()) + round(float(bonus))
            for count, mass, bonus in zip(counts, expected, bonuses, strict=True)
        ]
        draw = exponential_choice if self.loss == "rho" else permute_and_flip
        return draw(scores, sharpness, entropy)

    def _trust(self, sharpness: float, total: float) -> float:
        """Weight of what is foretold: the variance of a choice over that of what is foretold."""
        seen, foretold = _GUMBEL / sharpness, FORESIGHT * max(total, 1.0)
        return min((seen / foretold) ** 2, MOST_TRUST)
