"""How a release is drawn: how many items are measured, which, and with how much noise.

A round chooses an item where the counts and the current distribution differ most, by
permute-and-flip over integer scores with a tenth of the round's epsilon, and measures all its
cells with discrete Laplace noise. With `choose: public` items are chosen from past releases alone,
and the whole epsilon buys measurements. With `choose: online` each is tested in turn (`online`),
and half of epsilon buys tests.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from streamdp.kinds.workload.fitting.distribution import Distribution
from streamdp.kinds.workload.fitting.marginals import Workload
from streamdp.kinds.workload.fitting.refit import Measurement
from streamdp.kinds.workload.online import Gate
from streamdp.mechanisms.finite_choice import exponent, permute_and_flip
from streamdp.mechanisms.quantile_tree.sharpness import Relation
from streamdp.privacy import events
from streamdp.privacy.discrete_laplace import discrete_laplace, discrete_laplace_variance
from streamdp.types import Entropy, IntArray, Json

Choose = Literal["private", "public", "online"]

CHOICE_SHARES: dict[Choose, Fraction] = {
    "private": Fraction(1, 10),
    "public": Fraction(),
    "online": Fraction(1, 2),
}
"""Of a round's epsilon, for its choice."""


@dataclass(frozen=True, slots=True)
class Design:
    """The draws of one release, fixed before data is touched.

    Args:
        epsilon: Pure loss of all draws together for one record.
        rounds: How many items are measured, at least 1.
        relation: Of neighbours.
        choose: How the items are chosen.
        tolerance: Records by which a count may be off, for `online`.
    """

    epsilon: Fraction
    rounds: int
    relation: Relation = "add-remove"
    choose: Choose = "private"
    tolerance: int = 1

    @property
    def choice_epsilon(self) -> Fraction:
        """Of one choice."""
        return self.epsilon * CHOICE_SHARES[self.choose] / self.rounds

    @property
    def measured_epsilon(self) -> Fraction:
        """Of one measurement."""
        return self.epsilon / self.rounds - self.choice_epsilon

    @property
    def moved(self) -> int:
        """Cells of a partition whose count a neighbour changes by one: its L1 sensitivity."""
        return 1 if self.relation == "add-remove" else 2

    @property
    def scale(self) -> Fraction:
        """Of the noise of a cell."""
        return self.moved / self.measured_epsilon

    @property
    def variance(self) -> float:
        """Of the noise of a cell."""
        return discrete_laplace_variance(self.scale)

    def gate(self, items: int) -> Gate:
        """The tests of a release with so many items."""
        return Gate(self.choice_epsilon, self.rounds, items, self.tolerance)

    def event(self) -> Json:
        """What one record pays, for the ledger."""
        parts = [events.pure(self.measured_epsilon)]
        if self.choose != "public":
            parts.insert(0, events.pure(self.choice_epsilon))
        return events.sequence(
            parts * self.rounds, mechanism="multiplicative-weights", choose=self.choose
        )

    def measure(self, place: int, counts: IntArray, entropy: Entropy) -> Measurement:
        """All cells of an item with noise.

        Args:
            place: Of the item; chosen before or privately.
            counts: Of its cells. Private.
            entropy: Source of chance.

        Privacy: the cells are a partition, so neighbours differ by one in one cell (add/remove)
        or in two (substitute): L1 sensitivity `moved`, pure loss `measured_epsilon`.
        """
        noisy = [int(count) + discrete_laplace(self.scale, entropy) for count in counts]
        return Measurement(place, np.array(noisy, dtype=np.float64), self.variance)

    def choice(
        self,
        workload: Workload,
        counts: Sequence[IntArray],
        current: Distribution,
        entropy: Entropy,
    ) -> int:
        """The item whose counts differ most from the current distribution, beyond the noise.

        Args:
            workload: Domain and items.
            counts: Of each item's cells. Private.
            current: What is believed of the batch so far; public.
            entropy: Source of chance.

        Privacy: a score is Σ_cells |count - rounded mass| minus a public integer. One record more
        or less moves every score by exactly one up or down: range 2. One substituted moves it by
        at most two: range 4. Pure loss `choice_epsilon`.
        """
        expected = [np.rint(current.masses(item)).astype(np.int64) for item in workload.items]
        scores = [
            int(np.abs(count - mass).sum()) - round(item.size * self.scale)
            for item, count, mass in zip(workload.items, counts, expected, strict=True)
        ]
        sharpness = exponent(self.choice_epsilon, 2 * self.moved)
        return permute_and_flip(scores, sharpness, entropy)


def rounds_for(
    epsilon: Fraction, rows: int, relation: Relation, items: int, *, cold: bool = False
) -> int:
    """How many items to measure: more of them as epsilon·rows grows.

    With a memory 1 below 281, then 2, 3 from 889 and so on by √10; without one 2 at 92, 3 at 280,
    4 from 1200 and so on, more slowly.

    Args:
        epsilon: Of the release.
        rows: Expected, public.
        relation: Substituted records need twice the noise.
        items: The most that can be measured.
        cold: Whether nothing is remembered that is of use.
    """
    strength = max(float(epsilon) * rows / (1.0 if relation == "add-remove" else 2.0), 1.0)
    if cold:
        rounds = round(1.9 + 1.4 * math.log10(strength / 92.0))
    else:
        rounds = math.floor(2.0 + 2.0 * math.log10(strength / 281.0))
    return min(max(rounds, 1), items)
