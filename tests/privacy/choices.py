"""Selection and experts: every score, mechanism and relation, and mutants of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from unittest.mock import patch

from streamdp.kinds.experts import kind as experts_kind
from streamdp.kinds.experts.losses import Actions, RuleLosses, sensitivity
from streamdp.kinds.selection import kind as selection_kind
from streamdp.kinds.selection.kind import Selection
from streamdp.kinds.selection.scores import CountScore, Errors, Excess, Score, Total, score_range
from streamdp.types import Grid
from tests.kinds.experts.worlds import ACTIONS, HALFSPACES, RULES, experts
from tests.kinds.experts.worlds import largest_loss as experts_loss
from tests.kinds.selection.worlds import largest_loss as selection_loss
from tests.kinds.selection.worlds import listed, selection

__all__ = ["EXPERTS", "MUTANTS", "SELECTIONS", "Mutant", "experts_loss", "selection_loss"]

RATE = Fraction(1, 4)
SCORES: dict[str, Score] = {
    "count": CountScore(),
    "errors": Errors("y"),
    "excess": Excess("y", RATE),
}

BOUNDS = Grid(Fraction(1), -2, 1)
LISTED = SCORES | {"sum": Total("z", BOUNDS)}
"""Scores of named conditions, each a clipped sum; the lower bound is the larger."""

SELECTIONS = {
    f"{of} {name}, {choice}, {relation}": make(score, relation, choice)
    for of, make, scores in (("rules by", selection, SCORES), ("conditions by", listed, LISTED))
    for name, score in scores.items()
    for choice in ("exponential", "permute-and-flip")
    for relation in ("add-remove", "substitute")
} | {"rules by errors, best two": selection(Errors("y"), "add-remove", top=2)}

_LOSSES: dict[str, RuleLosses | Actions] = {
    "rules": RULES,
    "halfspaces": HALFSPACES,
    "actions": ACTIONS,
}

EXPERTS = {
    f"{name}, {relation}": experts(losses, relation)
    for name, losses in _LOSSES.items()
    for relation in ("add-remove", "substitute")
}


class FullPriceEach(Selection):
    """Each of several draws has all of epsilon."""

    @property
    def exponent(self) -> Fraction:
        return super().exponent * self.top


@dataclass(frozen=True)
class Mutant:
    """A way to be wrong, and the loss that it is found to have over its claim."""

    name: str
    mechanism: str
    relation: str
    loss: Callable[[], float]


def _range_of_addition(score: Score) -> float:
    def wrong(of: Score, _: Any) -> int:
        return score_range(of, "add-remove")

    with patch.object(selection_kind, "score_range", wrong):
        return selection_loss(selection(score, "substitute"))


def _range_of_the_upper_bound() -> float:
    with patch.object(selection_kind, "score_range", lambda of, _: of.of_record()[1]):
        return selection_loss(listed(LISTED["sum"], "add-remove"))


def _sensitivity(size: Callable[[Any], int], losses: Any, relation: Any) -> float:
    with patch.object(experts_kind, "sensitivity", lambda of, _: size(of)):
        return experts_loss(experts(losses, relation))


def _peeled() -> float:
    kind = SELECTIONS["rules by errors, best two"]
    return selection_loss(FullPriceEach(kind.candidates, kind.score, kind.epsilon, top=2))


def _one_way(losses: Any) -> float:
    return _sensitivity(lambda of: sensitivity(of, "add-remove"), losses, "substitute")


MUTANTS = (
    Mutant(
        "range of addition: excess",
        "selection",
        "substitute",
        lambda: _range_of_addition(Excess("y", RATE)),
    ),
    Mutant(
        "range of addition: errors",
        "selection",
        "substitute",
        lambda: _range_of_addition(Errors("y")),
    ),
    Mutant("a sum's lower bound forgotten", "selection", "add-remove", _range_of_the_upper_bound),
    Mutant("full price for each of two draws", "selection", "add-remove", _peeled),
    Mutant("sensitivity of addition: rules", "experts", "substitute", lambda: _one_way(RULES)),
    Mutant("sensitivity of addition: actions", "experts", "substitute", lambda: _one_way(ACTIONS)),
    Mutant(
        "one price for all actions",
        "experts",
        "add-remove",
        lambda: _sensitivity(lambda of: of.denominator, ACTIONS, "add-remove"),
    ),
)
