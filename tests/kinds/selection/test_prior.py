"""A prior of past choices learns from what they tell beyond it: an echo moves nothing."""

from collections.abc import Sequence

import numpy as np
import pytest

from streamdp.kinds.selection.kind import ROBUST_WEIGHT, STEP, ChoicePrior
from streamdp.types import FloatArray

SHAPES = [((6,), False), ((6,), True), ((3, 4), True)]


class Echoing(ChoicePrior):
    """A mistake: what was chosen is moved up by as much whether it was expected or not."""

    def observe(self, scores: FloatArray, chosen: Sequence[int]) -> FloatArray:
        moved = scores.copy()
        moved[list(chosen)] += STEP
        return np.asarray(moved - moved.mean())


def expected_move(prior: ChoicePrior, scores: FloatArray) -> FloatArray:
    """Mean move of θ over choices of the law that the prior predicts: enumerated."""
    logits = prior.log_prior(scores) + scores
    law = np.exp(logits - logits.max())
    law /= law.sum()
    moves = [prior.observe(scores, [each]) - scores for each in range(len(scores))]
    return np.asarray(law @ np.array(moves))


def learned_from_nothing(prior: ChoicePrior) -> float:
    """Share of the heaviest candidate after 300 choices among candidates that are all alike."""
    random, scores = np.random.default_rng(5), prior.start()
    for _ in range(300):
        law = np.exp(prior.log_prior(scores))
        scores = prior.observe(scores, [int(random.choice(len(law), p=law / law.sum()))])
    return float(np.exp(prior.log_prior(scores)).max())


@pytest.mark.parametrize(("shape", "ordered"), SHAPES)
def test_an_echo_moves_nothing(shape: tuple[int, ...], ordered: bool) -> None:
    """Whatever is believed, choices as they were predicted leave the belief where it is."""
    prior = ChoicePrior(shape, ordered)
    for seed in range(5):
        scores = np.random.default_rng(seed).normal(0, 2, int(np.prod(shape)))
        scores -= scores.mean()
        assert expected_move(prior, scores) == pytest.approx(np.zeros(len(scores)), abs=1e-9)


def test_a_prior_that_moves_on_its_own_echo_is_caught() -> None:
    """By the same enumeration, and where nothing is to be learned: it locks on one candidate."""
    scores = np.array([2.0, 0.0, -1.0, -1.0])
    assert abs(expected_move(Echoing((4,), False), scores)).max() > 0.5
    assert learned_from_nothing(Echoing((20,), False)) > 0.9
    assert learned_from_nothing(ChoicePrior((20,), False)) < 0.6


def test_a_prior_is_a_law_with_a_robust_share() -> None:
    """It adds up to one however far scores are apart, and no candidate has less than its share."""
    prior = ChoicePrior((4,), False)
    for scores in ([0.0, 0.0, 0.0, 0.0], [900.0, 0.0, -900.0, 1.0]):
        law = np.exp(prior.log_prior(np.array(scores)))
        assert law.sum() == pytest.approx(1.0)
        assert law.min() >= ROBUST_WEIGHT / 4 - 1e-12
    assert law[0] == pytest.approx(1.0 - ROBUST_WEIGHT * 3 / 4)


def test_what_is_chosen_again_and_again_is_expected() -> None:
    """And nothing is ruled out."""
    prior = ChoicePrior((8,), False)
    scores = prior.start()
    for _ in range(30):
        scores = prior.observe(scores, [3])
    law = np.exp(prior.log_prior(scores))
    assert law[3] > 0.6
    assert law.min() >= 0.05 / 8
