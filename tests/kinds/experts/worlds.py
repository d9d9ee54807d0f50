"""Tiny batches of experts, and what one record changes of the integers they are scored from."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

from streamdp.kinds.experts.kind import Experts
from streamdp.kinds.experts.losses import Actions, RuleLosses
from streamdp.kinds.rules.rules import Feature, Halfspaces, RuleComparison, RuleGrid
from streamdp.types import Batch, IntArray, Neighbours, Sums, TableCounts

CUTS = tuple(map(Fraction, range(3)))
RULES = RuleLosses(
    RuleGrid((RuleComparison("x", ">=", "t", CUTS), RuleComparison("y", "<", "a", CUTS))), "late"
)
HALFSPACES = RuleLosses(
    Halfspaces((Feature("x", "x", CUTS, CUTS), Feature("y", "y", CUTS, CUTS)), CUTS), "late"
)
ACTIONS = Actions((("stay", "0.2"), ("go", "late"), ("wait", "x")), 10)
BATCH = Batch("s", "1")


def experts(losses: RuleLosses | Actions, relation: Neighbours) -> Experts:
    return Experts(losses, Fraction(1, 2), 100, relation)


def statistics(losses: RuleLosses | Actions) -> list[TableCounts | Sums]:
    """One record of each sort, alone."""
    if isinstance(losses, Actions):
        sums = itertools.product((-10, 0, 10), repeat=3)
        return [Sums(each) for each in sums]
    found: list[TableCounts | Sums] = []
    for place in itertools.product(range(2), range(5), range(5)):
        table = np.zeros((2, 5, 5), dtype=np.int64)
        table[place] = 1
        found.append(TableCounts((table,)))
    return found


def parts(losses: RuleLosses | Actions, statistic: TableCounts | Sums) -> IntArray:
    """The integers that noise is added to, the level last."""
    return np.array([*losses.integers(statistic), losses.level(statistic) or 0])


def largest_loss(kind: Experts) -> float:
    """Σ |change|/scale over epsilon, for the worst neighbours: discrete Laplace noise is tight."""
    noise, losses = kind.noise(), kind.losses
    ones = [parts(losses, each) for each in statistics(losses)]
    nothing = [np.zeros_like(ones[0])]
    others = ones if kind.neighbours == "substitute" else nothing
    scales = np.full(len(ones[0]), float(noise.scale))
    scales[-1] = float(noise.level or 1)
    worst = max(float((abs(a - b) / scales).sum()) for a, b in itertools.product(ones, others))
    return worst / float(kind.epsilon)
