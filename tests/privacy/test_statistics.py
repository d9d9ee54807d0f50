"""No pair of neighbours loses more than epsilon by statistics, and mistakes would be seen."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import pytest

from streamdp.kinds.statistics import moments
from streamdp.kinds.statistics.clip import Clip
from streamdp.kinds.statistics.kind import Statistics
from streamdp.kinds.statistics.measure import Asked, Price
from streamdp.mechanisms.additive_noise import AdditiveNoise
from streamdp.privacy.events import epsilon_of
from streamdp.types import Grid, Term
from tests.privacy.statistics import (
    BATCH,
    CASES,
    EPSILON,
    NUMBERS,
    TEXTS,
    Case,
    hides,
    largest_loss,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name} {case.neighbours}")
def test_the_largest_loss_is_what_the_ledger_says(case: Case) -> None:
    """Never above, and reached where the bound is tight."""
    kind = case.kind()
    assert epsilon_of(kind.plan(kind.init(), BATCH).event) == EPSILON
    found = largest_loss(case)
    assert found <= 1.0
    assert found >= 0.99 or not case.tight


def test_integers_add_up() -> None:
    """What is hidden of a batch is the sum of what is hidden of its records alone."""
    case = CASES[7]
    empty = [number for number, _ in hides(case, ())]
    assert not any(empty)
    records = [(text, number, "g") for text, number in itertools.product(TEXTS, NUMBERS)]
    alone = [[number for number, _ in hides(case, (record,))] for record in records]
    together = [number for number, _ in hides(case, tuple(records))]
    assert together == [sum(each) for each in zip(*alone, strict=True)]


def _as_added(self: Price, added: int, exchanged: int, share: Fraction = Fraction(1)) -> Any:
    return AdditiveNoise(self.epsilon * share, added)


def _whole(self: Price, added: int, exchanged: int, share: Fraction = Fraction(1)) -> Any:
    sensitivity = added if self.neighbours == "add-remove" else exchanged
    return AdditiveNoise(self.epsilon, sensitivity)


def _unshared(self: Statistics) -> Any:
    return ((measure, Price(self.epsilon, self.neighbours)) for measure in self.measures)


def _unclipped(self: Clip, column: Grid) -> Grid:
    return column


MUTANTS: dict[str, tuple[str, Callable[[], Any]]] = {
    "exchange priced as addition": (
        "histogram of texts substitute",
        lambda: patch.object(Price, "noise", _as_added),
    ),
    "each part gets all": ("mean add-remove", lambda: patch.object(Price, "noise", _whole)),
    "each measure gets all": (
        "all together add-remove",
        lambda: patch.object(Statistics, "prices", _unshared),
    ),
    "a square priced as a value": (
        "variance add-remove",
        lambda: patch.object(Term, "size", property(lambda self: self.grid.upper - self.centre)),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mistakes_are_seen(name: str) -> None:
    """Each loses more than epsilon."""
    wanted, made = MUTANTS[name]
    case = next(each for each in CASES if f"{each.name} {each.neighbours}" == wanted)
    with made():
        assert largest_loss(case) > 1.01


def test_noise_for_a_narrower_clip_than_is_asked_is_seen() -> None:
    """The engine clips where the noise is scaled: values beyond the reach add no more than it."""
    case = next(each for each in CASES if each.name == "sum")
    asked = moments.MomentOf.asked

    def wide(self: Any, state: Any, price: Price) -> Any:
        parts = asked(self, state, price)
        with patch.object(Clip, "grid", _unclipped):
            others = asked(self, state, price)
        return tuple(
            Asked(other.part, part.noise, other.folded)
            for part, other in zip(parts, others, strict=True)
        )

    with patch.object(moments.MomentOf, "asked", wide):
        assert largest_loss(case) > 1.5
