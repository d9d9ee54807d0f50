"""Tiny batches of a selection, and the law of its production draw on them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

import numpy as np

from streamdp.kinds.rules.rules import RuleComparison, RuleGrid
from streamdp.kinds.selection import kind as kinds
from streamdp.kinds.selection.candidates import Conditions, ThresholdRules
from streamdp.kinds.selection.kind import Choice, Selection
from streamdp.kinds.selection.scores import Score, label_of
from streamdp.mechanisms import finite_choice
from streamdp.types import Batch, Neighbours, Sums, TableCounts
from tests.privacy.ways import Walk, coin, even, law_of

CUTS = (Fraction(0), Fraction(1))
GRID = RuleGrid((RuleComparison("x", ">=", "t", CUTS), RuleComparison("y", ">=", "a", CUTS)))
"""Four rules; a record may match any one of two and not the other."""

BONUSES = ((0, 0, 0, 0), (30, 0, 0, 0), (0, 14, 7, 0))
BATCH = Batch("s", "1")

Statistic = TableCounts | Sums

Record = tuple[int, ...]
"""Label and cells of a record; of conditions, what it adds to the score of each."""


def selection(
    score: Score, neighbours: Neighbours, choice: Choice = "exponential", top: int = 1
) -> Selection:
    """The best of four rules."""
    rules = ThresholdRules(GRID, score)
    return Selection(rules, score, Fraction(4, 5), neighbours, choice, top=top)


def listed(score: Score, neighbours: Neighbours, choice: Choice = "exponential") -> Selection:
    """The best of three named conditions, of which a record may match any."""
    names = tuple({"candidate": name} for name in "abc")
    conditions = Conditions(names, ("a", "b", "c"), score)
    return Selection(conditions, score, Fraction(4, 5), neighbours, choice)


def records(kind: Selection) -> list[Record]:
    candidates, score = kind.candidates, kind.score
    if isinstance(candidates, Conditions):
        parts = {0, *score.of_record()}
        matches = itertools.product((0, 1), repeat=len(candidates.conditions))
        pairs = itertools.product(parts, matches)
        return sorted({tuple(part * match for match in which) for part, which in pairs})
    labels = (0,) if label_of(score) is None else (0, 1)
    return list(itertools.product(labels, range(3), range(3)))


def statistic(kind: Selection, batch: Sequence[Record]) -> Statistic:
    candidates = kind.candidates
    if isinstance(candidates, Conditions):
        zero = (0,) * len(candidates.conditions)
        return Sums(tuple(map(sum, zip(zero, *batch, strict=True))))
    table = np.zeros((2, 4, 4), dtype=np.int64)
    for record in batch:
        table[record] += 1
    return TableCounts((table[0] if label_of(kind.score) is None else table,))


def neighbours_of(kind: Selection) -> Iterator[tuple[Statistic, Statistic]]:
    """Pairs of batches of up to two records."""
    every = records(kind)
    for size in (0, 1):
        for base in itertools.combinations_with_replacement(every, size):
            for record in every:
                more = statistic(kind, [*base, record])
                if kind.neighbours == "add-remove":
                    yield statistic(kind, base), more
                else:
                    for other in every:
                        yield statistic(kind, [*base, other]), more


def softmax(scores: Sequence[int], sharpness: Fraction, walk: Walk) -> int:
    """The exponential mechanism as one fork; `tests.mechanisms.test_finite_choice` has its law."""
    best = max(scores)
    weights = [math.exp(float(sharpness) * (score - best)) for score in scores]
    return walk.answer([weight / sum(weights) for weight in weights])


def law(kind: Selection, bonuses: Sequence[int], found: Statistic) -> dict[object, float]:
    plan = replace(kind.plan(kind.init(), BATCH), mechanism=list(bonuses[: kind.count]))
    with (
        patch.multiple(finite_choice, exactly_below=even, exponential_coin=coin),
        patch.object(kinds, "exponential_choice", softmax),
    ):

        def drawn(walk: Walk) -> object:
            return kind.draw(plan, found, walk).auxiliary

        return law_of(drawn)


def largest_loss(kind: Selection) -> float:
    """Largest log ratio over epsilon, over pairs of neighbours, bonuses and outcomes."""
    worst, laws = 0.0, {}

    def of(bonuses: Sequence[int], found: Statistic) -> dict[object, float]:
        scores = [a + b for a, b in zip(kind.candidates.scores(found), bonuses, strict=False)]
        key = tuple(max(scores) - score for score in scores)
        if key not in laws:
            laws[key] = law(kind, bonuses, found)
        return laws[key]

    for one, other in neighbours_of(kind):
        for bonuses in BONUSES:
            first, second = of(bonuses, one), of(bonuses, other)
            for outcome in first.keys() | second.keys():
                ends = first.get(outcome, 0.0), second.get(outcome, 0.0)
                if min(ends) > 1e-7:
                    worst = max(worst, abs(math.log(ends[0] / ends[1])))
    return worst / float(kind.epsilon)
