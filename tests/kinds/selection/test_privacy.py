"""Neighbours of every score and mechanism lose epsilon and no more, by enumeration."""

from fractions import Fraction
from unittest.mock import patch

import pytest

from streamdp.kinds.selection import kind as kinds
from streamdp.kinds.selection.kind import Choice, Selection
from streamdp.kinds.selection.scores import Count, Errors, Excess, Score, score_range
from streamdp.types import Neighbours
from tests.kinds.selection.worlds import largest_loss, selection

SCORES: tuple[Score, ...] = (Count(), Errors("y"), Excess("y", Fraction(1, 4)))


@pytest.mark.parametrize("choice", ["exponential", "permute-and-flip"])
@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("score", SCORES, ids=lambda score: type(score).__name__)
def test_a_choice_loses_epsilon_and_no_more(
    score: Score, relation: Neighbours, choice: Choice
) -> None:
    """Under flat and extreme virtual records; the bound is nearly met where it is tight."""
    loss = largest_loss(selection(score, relation, choice))
    assert 0.7 < loss < 1 + 1e-6


def test_the_best_two_share_epsilon() -> None:
    """A second draw among those that are left."""
    assert largest_loss(selection(Errors("y"), "add-remove", top=2)) < 1 + 1e-6


class FullPriceEach(Selection):
    """A mutant: each of two draws has all of epsilon."""

    @property
    def exponent(self) -> Fraction:
        return super().exponent * self.top


def test_a_second_draw_at_full_price_is_caught() -> None:
    """Peeling pays for each draw."""
    kind = selection(Errors("y"), "add-remove", top=2)
    mutant = FullPriceEach(kind.candidates, kind.score, kind.epsilon, top=2)
    assert largest_loss(mutant) > 1.3


def test_the_range_of_addition_under_substitution_is_caught() -> None:
    """c = epsilon over the range of add/remove is too sharp where records are substituted."""
    with patch.object(kinds, "score_range", lambda score, _: score_range(score, "add-remove")):
        assert largest_loss(selection(Excess("y", Fraction(1, 4)), "substitute")) > 1.5
        assert largest_loss(selection(Errors("y"), "substitute")) > 1.5
