"""The law of whole releases on tiny domains: neighbours lose the charged epsilon and no more."""

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
from streamdp.kinds.workload import weights
from streamdp.kinds.workload.design import Course, Design
from streamdp.kinds.workload.fitting import hypotheses
from streamdp.kinds.workload.fitting.distribution import NoisyMarginal, Workload
from streamdp.kinds.workload.fitting.fitted import Fitting
from streamdp.kinds.workload.fitting.hypotheses import Fit, HypothesisState
from streamdp.kinds.workload.fitting.spread import Concentration
from streamdp.kinds.workload.weights import PrivateWeights
from streamdp.mechanisms import finite_choice
from streamdp.mechanisms import noise as noise_module
from streamdp.mechanisms.quantile_tree.sharpness import Relation
from streamdp.privacy import events
from streamdp.privacy.events import epsilon_of
from streamdp.types import IntArray
from tests.privacy.ways import AgainError, coin, even, law_of

EPSILON = Fraction(3, 2)
TURNING = Fraction(3)
REACH = 2
"""Noise that is followed; outcomes within its reach of both neighbours are compared."""

Law = dict[tuple[tuple[int, tuple[int, ...]], ...], float]
PAIRS: dict[Relation, list[tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "add-remove": [
        ((0, 0, 0, 0), (1, 0, 0, 0)),
        ((2, 0, 0, 1), (2, 0, 0, 0)),
        ((0, 0, 0, 0), (0, 1, 0, 0)),
    ],
    "substitute": [
        ((2, 0, 0, 0), (1, 0, 0, 1)),
        ((0, 0, 1, 0), (0, 1, 0, 0)),
    ],
}
"""Counts of the four cells of two axes."""

OPPOSED: dict[Relation, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "add-remove": ((0, 0, 0, 1), (0, 1, 0, 1)),
    "substitute": ((0, 0, 1, 1), (0, 1, 0, 1)),
}
"""Neighbours of which one axis comes nearer to even cells, and the other goes away."""


def noise(scale: Fraction, walk: Any, reach: int = REACH) -> int:
    """Discrete Laplace noise as one fork, cut short beyond its reach."""
    ratio = math.exp(-1 / scale)
    weights = [(1 - ratio) / (1 + ratio) * ratio ** abs(z) for z in range(-reach, reach + 1)]
    drawn = walk.answer([*weights, 1 - sum(weights)])
    if drawn == len(weights):
        raise AgainError
    return int(drawn) - reach


@contextlib.contextmanager
def forking(reach: int = REACH) -> Iterator[None]:
    choice = patch.multiple(finite_choice, exactly_below=even, exponential_coin=coin)
    with choice, patch.object(noise_module, "discrete_laplace", partial(noise, reach=reach)):
        yield


def remembered(workload: Workload) -> HypothesisState:
    """A memory sure of one cell, wrongly or rightly."""
    memory = HypothesisState.empty(workload, 2.0)
    sure = tuple(
        np.where(np.arange(item.size) == item.size - 1, 3.0, 0.0) for item in workload.items
    )
    return replace(memory, releases=3, slow=sure, last=sure)


def tables(workload: Workload, cells: tuple[int, ...]) -> list[IntArray]:
    table = np.array(cells, dtype=np.int64).reshape(workload.sizes)
    others = [tuple(axis for axis in range(2) if axis not in item.axes) for item in workload.items]
    return [table.sum(axis=each).reshape(-1) for each in others]


def law(
    mechanism: PrivateWeights,
    design: Design,
    memory: Callable[[tuple[int, ...]], HypothesisState],
    cells: tuple[int, ...],
    chance: Callable[[], contextlib.AbstractContextManager[None]] = forking,
) -> Law:
    counts, past = tables(mechanism.workload, cells), memory(cells)

    def draw(walk: Any) -> tuple[tuple[int, tuple[int, ...]], ...]:
        drawn = mechanism.draw(design, past, counts, walk)
        return tuple((each.place, tuple(map(int, each.values))) for each in drawn.measured)

    with chance(), fitted_once(mechanism.workload, past):
        return law_of(draw, whole=False)


class FittedOnce(Fitting):
    """Computes the fit to the same measurements once: many walks begin alike."""

    def __init__(self, workload: Workload, memory: HypothesisState) -> None:
        super().__init__(workload, memory)
        self._known: dict[Any, Fit] = {}

    def fit(self, measurements: tuple[NoisyMarginal, ...]) -> Fit:
        key = tuple((each.place, each.values.tobytes(), each.variance) for each in measurements)
        if key not in self._known:
            self._known[key] = super().fit(measurements)
        return self._known[key]


@contextlib.contextmanager
def fitted_once(workload: Workload, memory: HypothesisState) -> Iterator[None]:
    """All draws of a law fit around one memory."""
    fitting = FittedOnce(workload, memory)
    with patch.object(weights, "Fitting", lambda *arguments: fitting):
        yield


def largest_loss(
    neighbours: Relation,
    rounds: int,
    marginals: list[tuple[int, ...]],
    learned: bool = False,
    memory: Callable[[tuple[int, ...]], HypothesisState] | None = None,
    start: HypothesisState | None = None,
    pairs: Sequence[tuple[tuple[int, ...], tuple[int, ...]]] | None = None,
    reach: int = REACH,
) -> float:
    """Largest log ratio of two neighbours' laws, over the epsilon of the ledger's event."""
    workload = Workload.of((2, 2), marginals)
    mechanism = PrivateWeights(workload, EPSILON, 2, neighbours, rounds=rounds)
    if start is None:
        start = remembered(workload) if learned else HypothesisState.empty(workload, 2.0)
    memory = memory or (lambda cells: start)
    design = mechanism.design(start)
    worst = 0.0
    for one, other in pairs or PAIRS[neighbours][-1 if rounds > 1 else 0 :]:
        chance = partial(forking, reach)
        laws = [law(mechanism, design, memory, each, chance) for each in (one, other)]
        within = laws[0].keys() & laws[1].keys()
        assert within
        ratios = [abs(math.log(laws[0][each] / laws[1][each])) for each in within]
        worst = max(worst, *ratios)
    return worst / float(epsilon_of(design.event()) or 0)


def seen(cells: tuple[int, ...], workload: Workload) -> HypothesisState:
    """A memory of the batch that it is to foretell: it is right if there are two records."""
    memory, (first, _) = remembered(workload), tables(workload, cells)
    right = sum(cells) == 2
    sure = np.where(np.arange(2) == (first.argmax() if right else first.argmin()), 3.0, 0.0)
    known = (sure, memory.slow[1])
    return replace(memory, total=float(max(sum(cells), 1)), slow=known, last=known)


def foretelling(workload: Workload, uneven: int = 0) -> HypothesisState:
    """A memory without values, which foretells that one item is far more uneven than the other."""
    sums = tuple(8.0 if place == uneven else 4.0 for place in range(len(workload.items)))
    known = Concentration(sums, (4.0,) * len(sums))
    return replace(HypothesisState.cold(workload, 2.0), concentration=known)


def foretelling_of(cells: tuple[int, ...], workload: Workload) -> HypothesisState:
    """The same, of the batch that it is to foretell."""
    return foretelling(workload, uneven=sum(cells) % 2)


ONE_WAY: list[tuple[int, ...]] = [(0,), (1,)]
CASES = [
    (1, ONE_WAY, True),
    (1, [(0,), (0, 1)], False),
    pytest.param(2, ONE_WAY, True, marks=pytest.mark.long),
]


@pytest.mark.thinned(4)
@pytest.mark.parametrize("neighbours", PAIRS)
@pytest.mark.parametrize(("rounds", "marginals", "learned"), CASES)
def test_neighbours_lose_epsilon_and_no_more(
    neighbours: Relation, rounds: int, marginals: list[tuple[int, ...]], learned: bool
) -> None:
    """Choices and noisy counts of a whole release, with half of epsilon for choosing."""
    with patch.dict(design_module.CHOICE_SHARES, private=Fraction(1, 2)):
        assert 0.6 < largest_loss(neighbours, rounds, marginals, learned) <= 1 + 1e-9


@pytest.mark.parametrize("neighbours", PAIRS)
def test_a_choice_that_past_releases_lean_on_loses_no_more(neighbours: Relation) -> None:
    """Scores with what is foretold of the items added."""
    workload = Workload.of((2, 2), ONE_WAY)
    shares = patch.dict(design_module.CHOICE_SHARES, private=Fraction(1, 2))
    start, pairs = foretelling(workload), [*PAIRS[neighbours], OPPOSED[neighbours]]
    with shares, patch.object(design_module, "MOST_TRUST", 1.0):
        found = largest_loss(neighbours, 1, ONE_WAY, start=start, pairs=pairs)
    assert 0.7 < found <= 1 + 1e-9


def test_what_is_foretold_by_the_batch_itself_is_caught() -> None:
    """Scores that lean on how uneven the batch is."""
    workload = Workload.of((2, 2), ONE_WAY)
    with patch.dict(design_module.CHOICE_SHARES, private=Fraction(1, 2)):
        reading = largest_loss(
            "add-remove", 1, ONE_WAY, memory=lambda cells: foretelling_of(cells, workload)
        )
    assert reading > 1.2


def turning_loss(reach: int = 1) -> tuple[float, set[int]]:
    """Of a course that turns, over the epsilon of its event; and how many rounds there were."""
    workload = Workload.of((2, 2), [(0,)])
    mechanism = PrivateWeights(workload, TURNING, 2, choose="auto")
    unsure = (np.array([0.0, 1.5]),)
    start = replace(remembered(workload), total=6.0, slow=unsure, last=unsure)
    design = Design(TURNING, 2, choose="auto", cold_rounds=3, looks=0)
    short = partial(noise, reach=reach)
    with (
        patch.object(noise_module, "discrete_laplace", short),
        patch.object(hypotheses, "BIAS", np.zeros(3)),
        patch.dict(design_module.CHOICE_SHARES, private=Fraction(0)),
    ):
        one, other = (
            law(mechanism, design, lambda cells: start, each, contextlib.nullcontext)
            for each in ((2, 0, 4, 0), (3, 0, 4, 0))
        )
    both = one.keys() & other.keys()
    worst = max(abs(math.log(one[each] / other[each])) for each in both)
    return worst / float(epsilon_of(design.event()) or 0), {len(each) for each in both}


@pytest.mark.long
def test_a_course_that_turns_loses_epsilon_and_no_more() -> None:
    """Two rounds, or three if the first, blind one shows that nothing repeats: both are seen."""
    found, rounds = turning_loss()
    assert rounds == {2, 3}
    assert 0.99 < found <= 1 + 1e-9


def blind_laws(
    memory: Callable[[tuple[int, ...]], HypothesisState],
    looks: int = 0,
    reach: int = REACH,
    pair: tuple[tuple[int, ...], tuple[int, ...]] = ((2, 0, 0, 1), (2, 0, 0, 0)),
) -> list[Law]:
    """Laws of neighbours of a release of one round that is blind, after so many that look."""
    mechanism = PrivateWeights(Workload.of((2, 2), ONE_WAY), EPSILON, 2, choose="auto")
    design = Design(EPSILON, 1 + looks, choose="auto", looks=looks)
    return [law(mechanism, design, memory, each, partial(forking, reach)) for each in pair]


def test_a_blind_round_loses_epsilon_and_no_more() -> None:
    """It measures the same item whatever the batch is."""
    start = remembered(Workload.of((2, 2), ONE_WAY))
    one, other = blind_laws(lambda cells: start)
    both = one.keys() & other.keys()
    assert len({key[0][0] for key in both}) == 1
    worst = max(abs(math.log(one[each] / other[each])) for each in both)
    assert 0.99 < worst / float(EPSILON) <= 1 + 1e-9


def test_a_blind_round_after_one_that_looks_loses_epsilon_and_no_more() -> None:
    """A look may find either item; what it was and showed says which is measured then."""
    start = remembered(Workload.of((2, 2), ONE_WAY))
    with patch.dict(design_module.CHOICE_SHARES, private=Fraction(1, 2)):
        one, other = blind_laws(lambda cells: start, 1, 1, OPPOSED["add-remove"])
    both = one.keys() & other.keys()
    assert {key[0][0] for key in both} == {0, 1}
    assert len({(key[0], key[1][0]) for key in both}) == len({key[0] for key in both})
    worst = max(abs(math.log(one[each] / other[each])) for each in both)
    assert 0.8 < worst / float(EPSILON) <= 1 + 1e-9


def test_a_blind_round_that_reads_the_batch_is_caught() -> None:
    """Spreads that follow the batch choose another item for its neighbour, in every outcome."""
    start = remembered(Workload.of((2, 2), ONE_WAY))

    def reading(cells: tuple[int, ...]) -> HypothesisState:
        omegas = (0.0, 9.0) if sum(cells) % 2 else (9.0, 0.0)
        return replace(start, spread=replace(start.spread, omegas=omegas))

    one, other = blind_laws(reading)
    assert not one.keys() & other.keys()


@pytest.mark.long
def test_rounds_after_a_turn_at_the_price_before_it_are_caught() -> None:
    """Half of the price once more than was paid."""

    def greedy(self: Course, turn: bool) -> Course:
        left, rounds = self.left - self.price, self.rounds - 1
        if turn and rounds and self.cold_rounds:
            return Course(2 * left, 2)
        return Course(left, rounds, max(self.cold_rounds - 1, 0))

    with patch.object(Course, "after", greedy), patch.object(Design, "event", twice):
        found, rounds = turning_loss()
    assert rounds == {2, 3}
    assert found > 1.2


def unrounded(
    self: Design, workload: Workload, counts: Any, current: Any, entropy: Any, gains: Any = None
) -> int:
    """A choice whose scores are rounded after they are summed, to even numbers at ties."""
    masses = [current.masses(item) for item in workload.items]
    pairs = zip(counts, masses, strict=True)
    scores = [int(np.rint(2 * np.abs(count - mass).sum())) for count, mass in pairs]
    return finite_choice.permute_and_flip(scores, self.choice_epsilon / (2 * self.moved), entropy)


def test_half_the_range_under_substitute_is_caught() -> None:
    """A substituted record moves scores by two either way."""

    def eager(epsilon: Fraction, score_range: int) -> Fraction:
        return epsilon / 2

    shares = patch.dict(design_module.CHOICE_SHARES, private=Fraction(1, 2))
    with shares, patch.object(design_module, "exponent", eager):
        assert largest_loss("substitute", 1, ONE_WAY, learned=True) > 1.2


def test_a_choice_on_unrounded_scores_is_caught() -> None:
    """Scores in other units than records move further than the range says."""
    shares = patch.dict(design_module.CHOICE_SHARES, private=Fraction(1, 2))
    with shares, patch.object(Design, "choice", unrounded):
        assert largest_loss("add-remove", 1, ONE_WAY, learned=True) > 1.2


def test_a_round_that_is_not_charged_is_caught() -> None:
    """Two rounds at the price of one round of two."""
    with patch.object(Design, "event", once):
        assert largest_loss("add-remove", 2, ONE_WAY, reach=1) > 1.2


def once(design: Design) -> Any:
    """The event of a design with its last round left out."""
    rounds = design.rounds - 1
    parts = [events.pure(design.choice_epsilon), events.pure(design.measured)]
    return events.sequence(parts * rounds)


def twice(design: Design) -> Any:
    """The price of the course as it should be."""
    return events.pure(design.amount)


def test_a_prior_that_reads_the_batch_is_caught() -> None:
    """Masses that follow the batch's own total move with it."""
    workload = Workload.of((2, 2), ONE_WAY)
    shares = patch.dict(design_module.CHOICE_SHARES, private=Fraction(9, 10))
    with shares:
        honest = largest_loss("add-remove", 1, ONE_WAY, learned=True)
        reading = largest_loss("add-remove", 1, ONE_WAY, memory=lambda cells: seen(cells, workload))
    assert honest <= 1 + 1e-9
    assert reading > 1.2
