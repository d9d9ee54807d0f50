from __future__ import annotations

import functools
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.mechanisms.quantile_tree import exponential, passes
from streamdp.mechanisms.quantile_tree.sharpness import NodeKind, Relation
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior, Shapes
from streamdp.privacy.events import epsilon_of
from tests.privacy.quantiles.cases import (
    CASES,
    EPSILON,
    LONG,
    Case,
    largest_loss,
    loss_under,
    release_law,
)
from tests.privacy.quantiles.law import choice_law, expected_widths, forking, law_of
from tests.privacy.quantiles.neighbours import counts_of, level, log_ratio, pairs, unit_grid

QUARTILES = Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)

LOOSE = 1e-8
"""A near-point prior keeps 1e-13 elsewhere, and the numerical slack of the charge is 1e-9."""


worst_of = functools.cache(largest_loss)


def names(case: Case) -> str:
    return f"{case.relation} {case.name}"


@pytest.mark.thinned(3)
@pytest.mark.parametrize("case", CASES, ids=names)
def test_no_neighbours_and_no_prior_lose_more_than_epsilon(case: Case) -> None:
    """The supremum over neighbours, releases and priors is at most the charge, tight where said.

    Priors nearly sure of the cells found reproduce it, through the whole law of the release.
    """
    assert epsilon_of(case.tree().event()) == EPSILON
    worst = worst_of(case)
    assert worst.loss <= EPSILON
    assert worst.loss >= 0.99 or case.bound == "loose"
    found = loss_under(case, worst.pair, worst.favourites, 1)
    assert found <= EPSILON
    assert found >= worst.loss - LOOSE or case.unsorted() or case.spread


@pytest.mark.long
@pytest.mark.parametrize("case", LONG, ids=names)
def test_the_same_on_larger_batches(case: Case) -> None:
    """The supremum stays at most the charge with more records and cells."""
    worst = worst_of(case)
    assert worst.loss <= EPSILON
    assert worst.loss >= 0.99 or case.bound == "loose"


@pytest.mark.thinned(2)
@pytest.mark.parametrize("grains", [2, 3])
def test_spread_records_lose_no_more(grains: int) -> None:
    """With several grains a cell, the pair and priors that are worst with one stay in bounds."""
    for case in CASES[1:5]:
        worst = worst_of(case)
        assert loss_under(case, worst.pair, worst.favourites, grains) <= EPSILON


@pytest.mark.parametrize("node", ["independent", "joint"])
def test_the_clip_loses_no_more(node: NodeKind) -> None:
    """With the clip, or the floor of the joint kernel, within reach of small batches."""
    case = Case("1/3 2/3", 3, 4, "loose", branching=2 if node == "independent" else 3, node=node)
    with patch.object(exponential, "CLIP", 0.5), patch.object(passes, "CLIP", 0.5):
        clipped = largest_loss(case).loss
    assert 0.3 < clipped <= EPSILON


def test_the_law_is_a_law() -> None:
    """Probabilities are exact and sum to one; releases never cross."""
    with forking(2):
        law = release_law(CASES[4], (0, 1, 1, 3))
    assert sum(law.values()) == 1
    assert all(list(released) == sorted(released) for released in law)


@given(st.lists(st.floats(-900.0, 900.0), min_size=1, max_size=40))
@settings(max_examples=100, deadline=None)
def test_choose_gives_every_answer_its_share(log_weights: list[float]) -> None:
    """The real `choose` has the law exp(w)/Σexp(w) to a relative 2^-38, read off its borders."""
    weights = np.array(log_weights)
    law = dict(choice_law(weights))
    total = sum(expected_widths(weights))
    peak = weights.max()
    exact = np.exp(weights - peak) / np.exp(weights - peak).sum()
    assert total > 0
    for index, share in law.items():
        if exact[index] > 1e-290:
            assert abs(float(share) / exact[index] - 1.0) < 2.0**-38


def search_sharp_priors(relation: Relation, rounds: int, seed: int) -> float:
    """Largest loss of two levels of three-part independent nodes, priors sure of random cells."""
    case = Case("1/6 1/3 1/2 2/3 5/6", 3, 4, "loose", relation, branching=3)
    choices, generator = list(pairs(relation, case.cells, case.most)), np.random.default_rng(seed)
    losses = [
        loss_under(
            case,
            choices[generator.integers(len(choices))],
            tuple(np.sort(generator.integers(case.cells, size=5)).tolist()),
            1,
        )
        for _ in range(rounds)
    ]
    return max(losses)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_levels_of_independent_nodes_lose_no_more(relation: Relation) -> None:
    """Where the law before sorting is not enough, random sharp priors stay within the charge."""
    assert 0.3 < search_sharp_priors(relation, 10, seed=1) <= EPSILON


@pytest.mark.long
@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_levels_of_independent_nodes_lose_no_more_for_long(relation: Relation) -> None:
    """The same search, a hundred times longer."""
    assert 0.5 < search_sharp_priors(relation, 1000, seed=2) <= EPSILON


def test_shapes_whose_centres_cross_lose_no_more() -> None:
    """Points that crossed would count a record several times: 1.17 times the charge here."""
    tree = QuantileTree(QUARTILES, EPSILON, unit_grid(4), branching=4, node="joint")
    crossing = np.array([[0.0, 3.0, 0.0], [3.0, 0.0, 0.0]])
    shapes = Shapes(np.array([60.0, 60.0]), crossing, np.full_like(crossing, 0.01))
    prior = JointPrior((level(4),) * 3, shapes)
    with forking(1):
        mine, other = (
            law_of(lambda entropy, each=each: tree.draw(counts_of(each), prior, entropy))  # type: ignore[misc]
            for each in ((0, 1, 3), (0, 1, 2, 3))
        )
    assert all(list(released) == sorted(released) for released in mine)
    assert max(abs(log_ratio(mine[each], other[each])) for each in mine) <= EPSILON
