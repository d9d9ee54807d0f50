"""The law of a choice by integer scores, over every way its chance can go."""

import functools
import itertools
import math
from fractions import Fraction
from unittest.mock import patch

import pytest

from streamdp.mechanisms import finite_choice
from streamdp.mechanisms.finite_choice import exponent, exponential_choice, permute_and_flip
from streamdp.mechanisms.quantile_tree.simulation import PublicEntropy
from tests.privacy.ways import coin, even, even_again, law_of

CHOICES = {"exponential": (exponential_choice, even_again), "permute": (permute_and_flip, even)}


def law(name, scores, sharpness):
    draw, below = CHOICES[name]
    patched = patch.multiple(finite_choice, exactly_below=below, exponential_coin=coin)
    with patched:
        return law_of(lambda walk: draw(scores, sharpness, walk))


@pytest.mark.parametrize("scores", [(0,), (0, 0), (3, 1), (0, 2, 5), (-4, 7, 7, 1)])
def test_the_exponential_mechanism_has_its_law(scores):
    """P(i) in proportion to e^(c·score)."""
    sharpness = Fraction(2, 7)
    weights = [math.exp(float(sharpness) * score) for score in scores]
    found = law("exponential", scores, sharpness)
    for place, weight in enumerate(weights):
        assert found[place] == pytest.approx(weight / sum(weights), abs=1e-11)


@pytest.mark.parametrize("scores", [(0, 0), (3, 1), (0, 2, 5), (7, 7, 1)])
def test_permute_and_flip_has_the_law_of_the_best_score_after_exponential_noise(scores):
    """P(i best) = Σ over sets of others of (-1)^|S| Π a_j / (|S| + 1), a of McKenna & Sheldon."""
    sharpness = Fraction(2, 7)
    biases = [math.exp(float(sharpness) * (score - max(scores))) for score in scores]
    found = law("permute", scores, sharpness)
    for place, bias in enumerate(biases):
        others = biases[:place] + biases[place + 1 :]
        share = sum(
            (-1) ** size / (size + 1) * sum(map(math.prod, itertools.combinations(others, size)))
            for size in range(len(others) + 1)
        )
        assert found[place] == pytest.approx(bias * share, abs=1e-11)


@functools.cache
def law_of_differences(name, behind, sharpness):
    return law(name, [-each for each in behind], sharpness)


def largest_loss(name, sharpness, changes, bonuses):
    """Largest log ratio over scores of three candidates 0 … 2, changes of a record and bonuses."""
    worst = 0.0
    for scores in itertools.product(range(3), repeat=3):
        for change, bonus in itertools.product(changes, bonuses):
            before = [score + more for score, more in zip(scores, bonus, strict=True)]
            after = [score + more for score, more in zip(before, change, strict=True)]
            laws = [
                law_of_differences(name, tuple(max(each) - score for score in each), sharpness)
                for each in (before, after)
            ]
            shares = [[one.get(place, 0.0) for one in laws] for place in range(3)]
            worst = max(worst, *(abs(math.log(a / b)) for a, b in shares if min(a, b) > 1e-6))
    return worst


BONUSES = [(0, 0, 0), (10, 0, 0), (0, 12, 6)]
OVERLAPPING = list(itertools.product((0, 1), repeat=3))
SIGNED = [(1, -1, 1), (-1, 1, -1), (1, 1, -1), (-1, -1, -1)]
SUBSTITUTED = [(2, -2, 0), (-2, 2, -2), (2, 0, 0)]


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize(
    ("changes", "score_range"), [(OVERLAPPING, 1), (SIGNED, 2), (SUBSTITUTED, 4)], ids=str
)
def test_neighbours_lose_epsilon_and_no_more(name, changes, score_range):
    """Overlapping counts, errors of marginals by addition and by substitution."""
    epsilon = Fraction(4, 5)
    worst = largest_loss(name, exponent(epsilon, score_range), changes, BONUSES)
    assert 0.8 < worst / float(epsilon) < 1 + 1e-9


@pytest.mark.parametrize("name", CHOICES)
def test_a_range_taken_too_small_is_caught(name):
    """Scores that move both ways, drawn as if they only rose."""
    epsilon = Fraction(4, 5)
    assert largest_loss(name, exponent(epsilon, 1), SIGNED, BONUSES) > 1.5 * float(epsilon)


@pytest.mark.parametrize("name", CHOICES)
def test_draws_are_total(name):
    """One candidate, ties, and scores of any size end."""
    entropy = PublicEntropy("total")
    for scores in ([5], [0] * 50, [-(10**30), 10**30, 0]):
        chosen = CHOICES[name][0](scores, Fraction(1, 3), entropy)
        assert scores[chosen] == max(scores)
