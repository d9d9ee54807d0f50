"""How sharp a draw may be for its price: ranges, sharpness, budgets and events in one place.

A draw P(o) ∝ μ(o)·exp(-c·cost(o)) has a loss of range c·R over the outputs, where R is the range
over o of the change of the cost between neighbours (bounded range; Dong, Durfee & Rogers 2020).

A node has sorted targets q_1 < ... < q_k, rescaled to its region, and gaps Δ_0 ... Δ_k between
0, q_1, ..., q_k, 1. `addition_range` is R for one more record in its region, `substitution_range`
for one record that moves within it. A share w of a record scales both by w: its grains are added
one after the other, each changes the cost by its share of R.

Add/remove, one level: the regions are disjoint, so a record has weights w_v with Σ w_v ≤ 1. With
c_v = e/addition_range_v the level's loss has range Σ w_v·c_v·R_v ≤ e.

Substitute, one level: weights w_v go, w'_v come, each with sum at most one. In node v the smaller
of the two moves, the rest is added or removed: range min(w, w')·S_v + |w' - w|·R_v, and S_v ≤ 2R_v
because a move is a removal and an addition. With one node at the level (the root is one),
c = e/S covers it, as R_v ≤ S_v. With several, c_v = e/(2R_v) gives at most
Σ_v e·(min(w_v, w'_v) + |w'_v - w_v|/2) = Σ_v e·(w_v + w'_v)/2 ≤ e; and it cannot be more than
c_u·R_u + c_v·R_v ≤ e, attained when a record leaves u and comes to v.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from streamdp.privacy import events
from streamdp.types import Json

NodeKind = Literal["independent", "joint"]
Relation = Literal["add-remove", "substitute"]

CHOICES_PER_DRAW = 12
"""Most choices one draw makes: a block, a level, and up to eight to find one of 2^46 cells."""

RELATIVE_ERROR = Fraction(1, 2**38)
"""Relative error of any weight: 2^-40 by `privacy.draws`, 1e-12 by `log_mass`, the rest below."""


def numerical_slack(draws: int) -> Fraction:
    """Part of a release's epsilon that pays for the rounding of weights.

    Weights of relative error η make a choice cost 4η more. Every draw of a release may see the
    record (its grains can be shared by all nodes), so the slack counts all of them: 1.6e-9 for
    nine quantiles.
    """
    return draws * CHOICES_PER_DRAW * 4 * RELATIVE_ERROR


def slot_ranges(targets: tuple[Fraction, ...]) -> tuple[tuple[Fraction, ...], ...]:
    """Range of each independent draw when the record falls in slot s, right of s quantiles.

    A record right of the quantile q changes costs by [-q, q] up to itself and by exactly 1 - q
    on its right, where ranks exceed q·n already: range max(1, 2q). Left of it, max(1, 2(1 - q)).

    Returns:
        k + 1 slots of k ranges.
    """
    right = [max(Fraction(1), 2 * quantile) for quantile in targets]
    left = [max(Fraction(1), 2 * (1 - quantile)) for quantile in targets]
    return tuple((*right[:slot], *left[slot:]) for slot in range(len(targets) + 1))


@functools.lru_cache(maxsize=1024)
def addition_range(targets: tuple[Fraction, ...], node: NodeKind) -> Fraction:
    """R of a node under add/remove of one record in its region.

    Independent: the largest sum over draws of `slot_ranges`. Joint, cost
    Σ_j |grains between o_j and o_{j+1} - n·Δ_j|: a record in gap i changes that term by at most
    1 - Δ_i and each other by at most Δ_j, together 2(1 - Δ_i) up or down, so the range is
    4(1 - min Δ). It is attained with enough records: for the gap i of the smallest Δ, one output
    has all records in gap i, another next to none, which needs more than 1/min Δ records.
    """
    if node == "joint":
        return 4 * (1 - min(gaps(targets)))
    return max(sum(slot, Fraction(0)) for slot in slot_ranges(targets))


def substitution_range(targets: tuple[Fraction, ...], node: NodeKind) -> Fraction:
    """S of a node when one record moves within its region, n being fixed.

    Ranks change by at most one between the two places, so costs by [-1, 1]: 2 for each
    independent draw. A joint cost has two terms changed, by at most one each: [-2, 2], range 4.
    """
    return Fraction(4) if node == "joint" else Fraction(2 * len(targets))


def gaps(targets: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """Δ_0 ... Δ_k."""
    edges = (Fraction(0), *targets, Fraction(1))
    return tuple(high - low for low, high in itertools.pairwise(edges))


def level_budgets(
    epsilon: Fraction, levels: int, slack: Fraction, power: Fraction = Fraction(0)
) -> tuple[Fraction, ...]:
    """Shares of epsilon after the slack, e_l ∝ (l + 1)^-power; they add up exactly."""
    weights = [Fraction(round(2**40 * (level + 1) ** -float(power))) for level in range(levels)]
    return tuple((epsilon - slack) * weight / sum(weights) for weight in weights)


@dataclass(frozen=True, slots=True)
class Level:
    """The nodes of one depth of a tree, and what they may spend together.

    Args:
        budget: e, pure privacy loss of the whole level.
        nodes: Rescaled targets of each node.
        kind: How a node draws.
        relation: Neighbours.
    """

    budget: Fraction
    nodes: tuple[tuple[Fraction, ...], ...]
    kind: NodeKind
    relation: Relation

    def sharpness(self, targets: tuple[Fraction, ...]) -> Fraction:
        """c of a node of this level."""
        addition = addition_range(targets, self.kind)
        if self.relation == "add-remove":
            return self.budget / addition
        if len(self.nodes) == 1:
            return self.budget / substitution_range(targets, self.kind)
        return self.budget / (2 * addition)

    def event(self) -> Json:
        """The price of one record at this level.

        Draws of one target, and joint draws, make one bounded range `budget`, whatever the shares
        of the record in the nodes: ranges x_v with Σ x_v ≤ e have Σ x_v²/8 ≤ e²/8. Independent
        draws of several targets add up draw by draw, worst over the slot: convex in the shares.
        Substitute with several nodes: the range vectors of removal and addition, a and b, have
        |a + b|² ≤ 2|a|² + 2|b|², so twice the ranges of the worst slot cover both.
        """
        if self.kind == "joint" or all(len(targets) == 1 for targets in self.nodes):
            return events.bounded_range(self.budget)
        choices: list[Json] = []
        for targets in self.nodes:
            for ranges in self._alternatives(targets):
                draws = [events.bounded_range(each) for each in ranges]
                event = draws[0] if len(draws) == 1 else events.sequence(draws)
                if event not in choices:
                    choices.append(event)
        return choices[0] if len(choices) == 1 else events.parallel(choices)

    def _alternatives(self, targets: tuple[Fraction, ...]) -> list[tuple[Fraction, ...]]:
        sharpness = self.sharpness(targets)
        if self.relation == "substitute" and len(self.nodes) == 1:
            return [(2 * sharpness,) * len(targets)]
        both = 2 if self.relation == "substitute" else 1
        return [tuple(both * sharpness * each for each in slot) for slot in slot_ranges(targets)]
