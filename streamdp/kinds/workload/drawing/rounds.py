"""How many items a release measures, what each of these rounds costs, and which look at the batch.

Each round measures one item. Few rounds have little noise each, and are best where past releases
predict the other items. More rounds have more noise each, and are best where nothing repeats. The
first measurement of a release shows which is the case. A course has a fixed price, which the rounds
to come share equally. Once, when a measurement shows that nothing repeats, it adds rounds.

A round chooses its item by a look at the batch, which costs a tenth of its price, or blindly: from
past releases alone. Where measurements are good, what past releases lack is known better than a
look tells, which sees what is far off today and not what is worth learning. Once nothing repeats
all rounds look.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from streamdp.mechanisms.quantile_tree.sharpness import Relation
from streamdp.privacy.filters import Measure

TURNING = 150.0
"""Epsilon·rows from which a release with a memory keeps a part of its price for a turn."""


BLIND = 250.0
"""Epsilon·rows from which rounds choose without the batch where the past foretells it."""

GAUSSIAN_BLIND = 150.0
"""√rho·rows from which rounds choose without the batch where the past foretells it."""


@dataclass(frozen=True, slots=True)
class Course:
    """The rounds of a release that are still to come.

    Args:
        left: What is not spent of the price.
        rounds: How many there are, if nothing turns.
        cold_rounds: How many there are after a turn; 0 where the course cannot turn.
        blind: Whether rounds choose without the batch until it turns.
    """

    left: Fraction
    rounds: int
    cold_rounds: int = 0
    blind: bool = False

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
        return Course(left, rounds, cold, self.blind)

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


def is_blind(amount: Fraction, rows: int, relation: Relation, loss: Measure = "epsilon") -> bool:
    """Whether rounds choose without the batch where the past foretells it.

    Args:
        amount: Price of the release, in `loss`.
        rows: Expected, public.
        relation: Substituted records need twice the noise.
        loss: The measure of the price.
    """
    least = GAUSSIAN_BLIND if loss == "rho" else BLIND
    return _strength(amount, rows, relation, loss) >= least


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
