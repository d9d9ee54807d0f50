"""The law of a choice by integer scores, over every way its chance can go."""

import functools
import gc
import itertools
import math
import sys
from decimal import Decimal, localcontext
from fractions import Fraction
from unittest.mock import patch

import pytest

from streamdp.mechanisms import finite_choice
from streamdp.mechanisms import finite_choice as weighing
from streamdp.mechanisms.finite_choice import (
    exponent,
    exponential_choice,
    exponential_weights,
    permute_and_flip,
)
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from tests.privacy.ways import coin, even, law_of

CHOICES = {"exponential": exponential_choice, "permute": permute_and_flip}


def law(name, scores, sharpness):
    if name == "exponential":
        weights = integer_weights(scores, sharpness)
        return {place: weight / sum(weights) for place, weight in enumerate(weights)}
    patched = patch.multiple(finite_choice, exactly_below=even, exponential_coin=coin)
    with patched:
        return law_of(lambda walk: permute_and_flip(scores, sharpness, walk))


def integer_weights(scores, sharpness):
    return [exponential_weights(sharpness).of(max(scores) - score) for score in scores]


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
        chosen = CHOICES[name](scores, Fraction(1, 3), entropy)
        assert scores[chosen] == max(scores)


SHARP = [Fraction(69), Fraction(70), Fraction(71), Fraction(200), Fraction(10**9)]
"""Exponents under which one point behind the best is as far as any, or nearly."""


@pytest.mark.parametrize("sharpness", SHARP, ids=str)
def test_a_best_candidate_is_chosen_however_sharp_the_choice(sharpness):
    """Of scores 5, 0 and 0 the others have some weight, and hardly any."""
    best, *others = integer_weights((5, 0, 0), sharpness)
    assert all(0 < other < best / 10**29 for other in others)
    drawn = [
        CHOICES["exponential"]((0, 5, 4), sharpness, PublicEntropy(str(at))) for at in range(9)
    ]
    assert drawn == [1] * 9


@pytest.mark.parametrize(
    "sharpness", [Fraction(1, 3), Fraction(5), Fraction(7, 10**6), *SHARP[:4]], ids=str
)
@pytest.mark.parametrize("deep", [0, 1, 2, 10**9], ids=str)
def test_weights_lose_what_is_written_with_nothing_on_top(sharpness, deep):
    """Exact ratios of neighbours' laws, beyond the deepest score too: below e^(c·range), always."""
    with localcontext(prec=60):
        limit = (Decimal(sharpness.numerator) / Decimal(sharpness.denominator)).exp()
        edge = exponential_weights(sharpness).deepest
        for base in ((0, 0, 0), (0, deep, edge), (edge - 1, edge, edge + 1), (edge, 0, 3)):
            for change in itertools.product((0, 1), repeat=3):
                before = integer_weights(base, sharpness)
                after = integer_weights(
                    [a + b for a, b in zip(base, change, strict=True)], sharpness
                )
                for one, other in zip(before, after, strict=True):
                    ratio = Fraction(one, sum(before)) / Fraction(other, sum(after))
                    for each in (ratio, 1 / ratio):
                        assert Decimal(each.numerator) / Decimal(each.denominator) < limit


def test_rounding_without_its_margin_would_be_seen(monkeypatch):
    """The same comparison fails where c is not lowered: it looks at the last digits."""
    monkeypatch.setattr(weighing, "MARGIN", -weighing.MARGIN)
    exponential_weights.cache_clear()
    with pytest.raises(AssertionError):
        test_weights_lose_what_is_written_with_nothing_on_top(Fraction(1, 3), 2)
    exponential_weights.cache_clear()


class Counting:
    """Chance that counts what is asked of it."""

    def __init__(self, chance):
        self.chance, self.asked = chance, []

    def bits(self, count):
        self.asked.append(count)
        return self.chance.bits(count)


def steps_of(scores):
    """Lines that a choice runs through, and the chance it asks for."""
    entropy, lines = Counting(PublicEntropy("steps")), []

    def trace(frame, event, argument):
        lines.append((frame.f_code.co_name, frame.f_lineno))
        return trace

    exponential_choice(scores, Fraction(1, 7), entropy)
    entropy.asked.clear()
    before = sys.gettrace()
    gc.disable()  # a collection may run lines of its own
    sys.settrace(trace)
    try:
        exponential_choice(scores, Fraction(1, 7), entropy)
    finally:
        sys.settrace(before)
        gc.enable()
    return lines, entropy.asked


def test_the_exponential_mechanism_takes_the_same_steps_whatever_the_scores():
    """Ties, one far ahead, and scores of any size: every line as often, as many random bits."""
    steps = [
        steps_of(scores)
        for scores in ([0] * 9, [0] * 8 + [1000], list(range(0, 10**9, 10**8 + 9))[:9])
    ]
    lines, asked = steps[0]
    assert all(each == steps[0] for each in steps)
    assert len(lines) > 9
    assert asked == [weighing.CHANCE]


def test_chance_falls_among_the_weights():
    """The first of all places is the first candidate's, the last the last one's."""

    class Fixed:
        def __init__(self, place):
            self.place = place

        def bits(self, count):
            return self.place

    whole = 2**weighing.CHANCE
    scores, sharpness = (3, 1, 0), Fraction(1, 2)
    weights = integer_weights(scores, sharpness)
    for place, chosen in ((0, 0), (whole - 1, 2)):
        assert exponential_choice(scores, sharpness, Fixed(place)) == chosen
    edge = -(-whole * weights[0] // sum(weights))
    assert exponential_choice(scores, sharpness, Fixed(edge - 1)) == 0
    assert exponential_choice(scores, sharpness, Fixed(edge)) == 1
