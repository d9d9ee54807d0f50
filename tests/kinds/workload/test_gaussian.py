"""Whole releases at a price in rho on tiny domains: Rényi losses of the law, and mistakes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from streamdp.kinds.workload import design as design_module
from streamdp.kinds.workload.design import Design
from streamdp.kinds.workload.fitting.distribution import Workload, distribution, marginals_up_to
from streamdp.kinds.workload.fitting.hypotheses import HypothesisState
from streamdp.kinds.workload.weights import PrivateWeights
from streamdp.mechanisms import finite_choice
from streamdp.mechanisms import noise as noise_module
from streamdp.mechanisms.finite_choice import exponential_weights
from streamdp.mechanisms.noise import GaussianNoise
from streamdp.mechanisms.quantile_tree.sharpness import Relation
from streamdp.privacy import events
from streamdp.privacy.events import epsilon_of, rho_of
from streamdp.types import Json
from tests.kinds.workload.test_enumeration import ONE_WAY, PAIRS, law, remembered, tables
from tests.privacy.ways import AgainError, coin, even, law_of

RHO = Fraction(2)
ORDERS = (1.2, 2.0, 3.0)
REACH = 5
"""Noise that is followed; the rest is too rare to matter at these orders and prices."""


def noise(squared: Fraction, walk: Any, reach: int = REACH) -> int:
    """Discrete Gaussian noise as one fork, cut short beyond its reach."""
    weights = [math.exp(-z * z / (2 * float(squared))) for z in range(-reach, reach + 1)]
    total = 1 + 2 * sum(math.exp(-z * z / (2 * float(squared))) for z in range(1, 60))
    shares = [weight / total for weight in weights]
    drawn = walk.answer([*shares, 1 - sum(shares)])
    if drawn == len(shares):
        raise AgainError
    return int(drawn) - reach


def chosen(scores: Sequence[int], sharpness: Fraction, walk: Any) -> int:
    """The exponential mechanism as one fork, by the weights of production."""
    table = exponential_weights(sharpness)
    weights = [table.of(max(scores) - score) for score in scores]
    return int(walk.answer([weight / sum(weights) for weight in weights]))


@contextlib.contextmanager
def forking(drawn: Callable[..., int] = noise) -> Iterator[None]:
    flips = patch.multiple(finite_choice, exactly_below=even, exponential_coin=coin)
    choice = patch.object(design_module, "exponential_choice", chosen)
    with flips, choice, patch.object(noise_module, "discrete_gaussian", drawn):
        yield


def largest_loss(
    neighbours: Relation,
    rounds: int = 1,
    marginals: Sequence[tuple[int, ...]] = ONE_WAY,
    rho: Fraction = RHO,
    orders: Sequence[float] = ORDERS,
    reach: int = REACH,
) -> float:
    """Largest Rényi divergence of two neighbours' laws, over αρ of the ledger's event."""
    workload = Workload.of((2, 2), list(marginals))
    mechanism = PrivateWeights(workload, rho, 2, neighbours, rounds=rounds, loss="rho")
    start = remembered(workload)
    design, worst = mechanism.design(start), 0.0
    chance = partial(forking, partial(noise, reach=reach))
    for pair in PAIRS[neighbours][:1] if rounds > 1 else PAIRS[neighbours]:
        one, other = (law(mechanism, design, lambda cells: start, each, chance) for each in pair)
        both = one.keys() & other.keys()
        for order in orders:
            for p, q in ((one, other), (other, one)):
                total = math.fsum(p[each] ** order * q[each] ** (1 - order) for each in both)
                worst = max(worst, math.log(total) / (order - 1) / order)
    return worst / float(rho_of(design.event()))


@pytest.mark.thinned(2)
@pytest.mark.parametrize("neighbours", PAIRS)
@pytest.mark.parametrize("marginals", [ONE_WAY, [(0,)]], ids=str)
def test_neighbours_lose_rho_and_no_more(
    neighbours: Relation, marginals: list[tuple[int, ...]]
) -> None:
    """A choice and noisy counts; with one item nothing is chosen, and the noise is all of it."""
    shares = {"private": Fraction(1, 2)}
    with patch.dict(design_module.CHOICE_SHARES, shares if len(marginals) > 1 else {}):
        found = largest_loss(neighbours, marginals=marginals)
    assert (0.5 if len(marginals) > 1 else 0.85) < found <= 1 + 1e-9


@pytest.mark.long
def test_two_rounds_lose_rho_and_no_more() -> None:
    """What is chosen second depends on what was measured first."""
    with patch.dict(design_module.CHOICE_SHARES, private=Fraction(1, 4)):
        found = largest_loss("add-remove", 2, rho=Fraction(8), orders=(1.05, 1.2), reach=2)
    assert 0.6 < found <= 1 + 1e-9


def _range_halved(epsilon: Fraction, score_range: int) -> Fraction:
    return 2 * epsilon / score_range


def _once(design: Design) -> Json:
    """The event of the measurement alone."""
    return design.noise.event()


def _alike(design: Design) -> GaussianNoise:
    return GaussianNoise(design.measured, 1)


MUTANTS: dict[str, tuple[Relation, Fraction, Callable[[], Any]]] = {
    "half the range of a choice": (
        "substitute",
        Fraction(9, 10),
        lambda: patch.object(design_module, "exponent", _range_halved),
    ),
    "a choice that is not charged": (
        "add-remove",
        Fraction(9, 10),
        lambda: patch.object(Design, "event", _once),
    ),
    "an exchange with the noise of an addition": (
        "substitute",
        Fraction(1, 10),
        lambda: patch.object(Design, "noise", property(_alike)),
    ),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mistake_is_caught(name: str) -> None:
    """Each loses more rho than is booked."""
    neighbours, share, made = MUTANTS[name]
    with patch.dict(design_module.CHOICE_SHARES, private=share):
        assert largest_loss(neighbours) <= 1 + 1e-9
        with made():
            assert largest_loss(neighbours) > 1.1


def choice_loss(epsilon: Fraction, records: tuple[tuple[int, ...], ...]) -> float:
    """Of a choice between a table that is believed to be elsewhere and one that is not, over ρ."""
    workload = Workload.of((2, 2), ONE_WAY)
    sure = (np.array([-3.0, 3.0]), np.zeros(2))
    current, share = distribution(workload, sure, 2.0), 4 * epsilon**2 / 8
    with patch.dict(design_module.CHOICE_SHARES, private=Fraction(1, 4)):
        design = Design(share, 1, loss="rho")
        assert design.choice_epsilon == epsilon

        def draw(cells: tuple[int, ...]) -> Callable[[Any], int]:
            return lambda walk: design.choice(workload, tables(workload, cells), current, walk)

        with forking():
            p, q = (law_of(draw(cells), whole=False) for cells in records)
    worst = 0.0
    for order in ORDERS:
        total = math.fsum(p[each] ** order * q[each] ** (1 - order) for each in p)
        worst = max(worst, math.log(total) / (order - 1) / order)
    return worst / (float(epsilon) ** 2 / 8)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)], ids=str)
def test_a_choice_is_of_bounded_range(epsilon: Fraction) -> None:
    """ε²/8 is reached by small choices; permute-and-flip loses up to four times as much."""
    records = ((0, 0, 0, 0), (1, 0, 0, 0))
    assert choice_loss(epsilon, records) <= 1 + 1e-9
    assert choice_loss(epsilon, records[::-1]) <= 1 + 1e-9
    if epsilon <= 1:
        assert choice_loss(epsilon, records) > 0.9
        flip = patch("tests.kinds.workload.test_gaussian.chosen", finite_choice.permute_and_flip)
        with flip:
            assert max(choice_loss(epsilon, records), choice_loss(epsilon, records[::-1])) > 2


@pytest.mark.parametrize("rounds", [1, 3, 7])
@pytest.mark.parametrize("relation", PAIRS)
@pytest.mark.parametrize("choose", ["auto", "private", "public"])
def test_the_event_is_the_rho_of_all_rounds(rounds: int, relation: Relation, choose: Any) -> None:
    """To the last digit, and without epsilon; a unit of k records pays it at ρ/k² each."""
    looks = 0 if choose == "auto" else None
    design = Design(Fraction(7, 400), rounds, relation, choose, loss="rho", looks=looks)
    assert rho_of(design.event()) == Fraction(7, 400)
    assert epsilon_of(design.event()) is None
    assert design.choice_epsilon**2 / 8 <= Fraction(7, 4000) / rounds
    unit = Design(Fraction(7, 400) / 9, rounds, relation, choose, loss="rho")
    assert rho_of(events.group(unit.event(), 3)) == Fraction(7, 400)


def test_a_release_costs_its_rho_whatever_past_releases_lead_to() -> None:
    """Rounds differ, the charge does not."""
    workload = Workload.of((2, 3, 4), marginals_up_to(3, 2))
    mechanism = PrivateWeights(workload, Fraction(1, 50), 900, loss="rho")
    known = replace(HypothesisState.empty(workload, 900.0), releases=1)
    cold = replace(known, evidence=(0.0, -1e9, -1e9))
    designs = [mechanism.design(memory) for memory in (known, cold)]
    assert len({design.rounds for design in designs}) == 2
    assert {rho_of(mechanism.event(design)) for design in designs} == {Fraction(1, 50)}
