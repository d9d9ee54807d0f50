"""How a release is drawn: which items are measured, and with how much noise.

A round chooses an item where the counts and the current distribution differ most, by
permute-and-flip over integer scores with a tenth of the round's price, and measures all its
cells with discrete Laplace noise. What past releases foretell of the items' use is added to the
scores, more of it the less such a choice can see. With `choose: public` items are chosen from past
releases alone, and the whole price buys measurements. With `choose: auto` rounds choose so,
or privately (`rounds`). With `choose: online` each is tested in turn
(`online`), and half of epsilon buys tests.

At a price in rho the noise is discrete Gaussian, and the choice is the exponential mechanism: its
loss is of bounded range, so that epsilon_c of it cost epsilon_c²/8 of rho.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from streamdp.kinds.workload.drawing.online import Gate
from streamdp.kinds.workload.drawing.rounds import Course
from streamdp.kinds.workload.fitting.distribution import Distribution
from streamdp.kinds.workload.fitting.marginals import Workload
from streamdp.kinds.workload.fitting.refit import Measurement
from streamdp.mechanisms.additive_noise import AdditiveNoise
from streamdp.mechanisms.finite_choice import exponent, exponential_choice, permute_and_flip
from streamdp.mechanisms.noise import Noise, noise_at
from streamdp.mechanisms.quantile_tree.sharpness import Relation
from streamdp.privacy import events
from streamdp.privacy.filters import Measure
from streamdp.privacy.price import Price
from streamdp.types import Entropy, FloatArray, IntArray, Json

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
        blind: Whether rounds choose without the batch until a course turns, with `auto`.

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
    blind: bool = False

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

    def gate(self, items: int) -> Gate:
        """The tests of a release with so many items."""
        return Gate(self.choice_epsilon, self.rounds, items, self.tolerance)

    def course(self) -> Course:
        """Return the rounds, before the first."""
        return Course(self.amount, self.rounds, self.cold_rounds, self.blind)

    def round(self, price: Fraction, blind: bool = False) -> Design:
        """The draws of one round at its price; a blind one chooses without the batch."""
        choose: Choose = self.choose
        if choose == "auto":
            choose = "public" if blind else "private"
        return replace(self, amount=price, rounds=1, cold_rounds=0, blind=False, choose=choose)

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

    def measure(self, place: int, counts: IntArray, entropy: Entropy) -> Measurement:
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
        return Measurement(place, np.array(noisy, dtype=np.float64), self.variance, self.noise)

    def choice(
        self,
        workload: Workload,
        counts: Sequence[IntArray],
        current: Distribution,
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
