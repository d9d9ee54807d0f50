"""No pair of neighbours loses more than epsilon by statistics, and mistakes would be seen."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import pytest

from streamdp.kinds.statistics.kind import Statistics
from streamdp.kinds.statistics.measures import moments
from streamdp.kinds.statistics.measures.protocol import Allowance, AskedPart
from streamdp.mechanisms.clip import Clip
from streamdp.mechanisms.noise import GaussianNoise
from streamdp.privacy.events import epsilon_of, rho_of
from streamdp.types import Grid, Term
from tests.privacy.noise.statistics import (
    BATCH,
    CASES,
    CASES_IN_RHO,
    NUMBERS,
    TEXTS,
    Case,
    hides,
    largest_loss,
)


@pytest.mark.thinned(5)
@pytest.mark.parametrize("case", [*CASES, *CASES_IN_RHO], ids=str)
def test_the_largest_loss_is_what_the_ledger_says(case: Case) -> None:
    """Never above, and reached where the bound is tight."""
    kind = case.kind()
    cost = epsilon_of if case.price.measure == "epsilon" else rho_of
    assert cost(kind.plan(kind.init(), BATCH).event) == case.price.amount
    found = largest_loss(case)
    assert found <= 1.0
    assert found >= 0.99 or not case.tight


def test_integers_add_up() -> None:
    """What is hidden of a batch is the sum of what is hidden of its records alone."""
    case = CASES[7].kind()
    empty = [number for number, _ in hides(case, ())]
    assert not any(empty)
    records = [(text, number, "g") for text, number in itertools.product(TEXTS, NUMBERS)]
    alone = [[number for number, _ in hides(case, (record,))] for record in records]
    together = [number for number, _ in hides(case, tuple(records))]
    assert together == [sum(each) for each in zip(*alone, strict=True)]


WHOLE = Fraction(1)
_noise = Allowance.noise


def _as_added(
    self: Allowance, added: int, exchanged: int, share: Fraction = WHOLE, entries: int = 1
) -> Any:
    return _noise(self, added, added, share)


def _whole(
    self: Allowance, added: int, exchanged: int, share: Fraction = WHOLE, entries: int = 1
) -> Any:
    return _noise(self, added, exchanged, WHOLE, entries)


def _spread(
    self: Allowance, added: int, exchanged: int, share: Fraction = WHOLE, entries: int = 1
) -> Any:
    return _noise(self, added, exchanged, share, 2 * entries)


def _unshared(self: Statistics) -> Any:
    return ((measure, Allowance(self.price, self.neighbours)) for measure in self.measures)


def _unclipped(self: Clip, column: Grid) -> Grid:
    return column


def _unhalved(self: GaussianNoise) -> Fraction:
    return Fraction(self.sensitivity**2, self.entries) / (4 * self.rho)


MUTANTS: dict[str, tuple[str, Callable[[], Any]]] = {
    "exchange priced as addition": (
        "histogram of texts substitute epsilon",
        lambda: patch.object(Allowance, "noise", _as_added),
    ),
    "exchange in rho priced as addition": (
        "histogram of texts substitute rho",
        lambda: patch.object(Allowance, "noise", _as_added),
    ),
    "an exchange divided between more entries than it is": (
        "histogram of texts substitute rho",
        lambda: patch.object(Allowance, "noise", _spread),
    ),
    "each part gets all": (
        "mean add-remove epsilon",
        lambda: patch.object(Allowance, "noise", _whole),
    ),
    "each part gets all of rho": (
        "mean add-remove rho",
        lambda: patch.object(Allowance, "noise", _whole),
    ),
    "each measure gets all": (
        "all together add-remove epsilon",
        lambda: patch.object(Statistics, "prices", _unshared),
    ),
    "each measure gets all of rho": (
        "all together add-remove rho",
        lambda: patch.object(Statistics, "prices", _unshared),
    ),
    "half the variance that rho asks for": (
        "count add-remove rho",
        lambda: patch.object(GaussianNoise, "squared", property(_unhalved)),
    ),
    "a square priced as a value": (
        "variance add-remove epsilon",
        lambda: patch.object(Term, "size", property(lambda self: self.grid.upper - self.centre)),
    ),
    "a square priced as a value, in rho": (
        "variance add-remove rho",
        lambda: patch.object(Term, "size", property(lambda self: self.grid.upper - self.centre)),
    ),
}


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", MUTANTS)
def test_mistakes_are_seen(name: str) -> None:
    """Each loses more than the price."""
    wanted, made = MUTANTS[name]
    case = next(each for each in (*CASES, *CASES_IN_RHO) if str(each) == wanted)
    with made():
        assert largest_loss(case) > 1.01


@pytest.mark.parametrize("cases", [CASES, CASES_IN_RHO], ids=["epsilon", "rho"])
def test_noise_for_a_narrower_clip_than_is_asked_is_seen(cases: Sequence[Case]) -> None:
    """The engine clips where the noise is scaled: values beyond the reach add no more than it."""
    case = next(each for each in cases if each.name == "sum")
    asked = moments.MomentOf.asked

    def wide(self: Any, state: Any, price: Allowance) -> Any:
        parts = asked(self, state, price)
        with patch.object(Clip, "grid", _unclipped):
            others = asked(self, state, price)
        return tuple(
            AskedPart(other.part, part.noise, other.folded)
            for part, other in zip(parts, others, strict=True)
        )

    with patch.object(moments.MomentOf, "asked", wide):
        assert largest_loss(case) > 1.5
