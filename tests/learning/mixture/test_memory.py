"""Memory: it survives JSON, forgets, and weights what foretold past releases."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from streamdp.learning.mixture.averages import INPUTS, Averages
from streamdp.learning.mixture.belief import BROAD
from streamdp.learning.mixture.curves import broad_curves
from streamdp.learning.mixture.distribution import Distribution
from streamdp.learning.mixture.evidence import Evidence
from streamdp.learning.mixture.memory import LEAST_BROAD, OTHERS, BatchFacts, Memory
from streamdp.learning.mixture.mixture import GroupEvidence, together
from streamdp.learning.mixture.release_plan import EVEN, cuts
from streamdp.mechanisms.histograms import Histogram
from streamdp.types import FloatArray, Grid
from streamdp.types.forms import packed, unpacked

GRID = Grid(Fraction(1), -10_000, 10_000)
GUESS = (0.0, 100.0)
ROWS, VARIANCE = 1000, 30.0
SHARES = np.linspace(0.01, 0.99, 60)
ONE = np.ones(1)
START = Memory.start(ROWS, (Averages.start(),))


def batch(location: float, scale: float = 100.0) -> Distribution:
    """Records of a logistic law."""
    return Distribution.about(location + scale * np.log(SHARES / (1.0 - SHARES)) / 1.8, SHARES)


def facts(inputs: FloatArray = ONE, others: Distribution | None = None) -> BatchFacts:
    return BatchFacts(GRID, broad_curves(GRID, GUESS), inputs, others)


def shown(
    memory: Memory, of: BatchFacts, true: Distribution, random: np.random.Generator
) -> Memory:
    """The memory after one release of counts between nine cuts."""
    belief = memory.belief(of)
    at = tuple(sorted(set(cuts(belief.marginal, EVEN))))
    sums = np.concatenate(([0.0], true.cdf(np.array(at, dtype=float)), [1.0]))
    counts = np.rint(ROWS * np.diff(sums) + random.normal(0.0, VARIANCE**0.5, len(at) + 1))
    stage = Histogram(at, tuple(counts.astype(int).tolist()))
    evidence = Evidence.counted([stage], [VARIANCE], belief.records, belief.marginal)
    return memory.updated(of, belief.after(evidence))


def along(
    places: Sequence[float],
    inputs: Sequence[FloatArray] | None = None,
    others: Sequence[Distribution] | None = None,
    memory: Memory | None = None,
) -> tuple[Memory, FloatArray]:
    """The memory after a stream, and how far each believed middle was off, in half widths."""
    random, off = np.random.default_rng(1), []
    known = memory or START
    for number, place in enumerate(places):
        of = facts(inputs[number] if inputs else ONE, others[number] if others else None)
        true = batch(place)
        off.append(abs(known.belief(of).marginal.centre - true.centre) / true.half_width)
        known = shown(known, of, true, random)
    return known, np.array(off)


def past_of(memory: Memory) -> Averages:
    (past,) = memory.predictors
    assert isinstance(past, Averages)
    return past


def test_it_survives_json_to_the_bit() -> None:
    """Also where some curves were never asked for."""
    inputs = [np.array([1.0, float(day % 2)]) for day in range(4)]
    memory, _ = along([0.0, 50.0, 20.0, 0.0], inputs, [batch(float(day)) for day in range(4)])
    text = json.dumps(packed(memory.to_json()), allow_nan=False)
    again = START.restored(unpacked(json.loads(text)))
    assert json.dumps(packed(again.to_json())) == text
    start = json.dumps(packed(START.to_json()))
    assert json.dumps(packed(START.restored(unpacked(json.loads(start))).to_json())) == start


def test_the_broad_curves_never_lose_all_weight() -> None:
    """However well the past foretells batches, as a stream may be lost tomorrow."""
    memory, off = along([0.0] * 10)
    assert off[5:].max() < 0.2
    assert LEAST_BROAD * 0.9 < memory.component_weights()[BROAD] < 0.1
    assert sum(memory.component_weights().values()) == pytest.approx(1.0)


def test_what_was_is_forgotten() -> None:
    """After a move by ten spreads, beliefs follow it, and the usual distribution later."""
    before, _ = along([0.0] * 6)
    after, off = along([1000.0] * 14, memory=before)
    assert off[0] > 5.0
    assert off[10:].max() < 0.3
    past = past_of(after)
    assert past.distributions["last"].centre == pytest.approx(1000.0, abs=30.0)
    assert past.distributions["of late"].centre == pytest.approx(1000.0, abs=30.0)
    assert 300.0 < past.distributions["usual"].centre < 990.0


def test_public_numbers_that_explain_batches_gain_weight() -> None:
    """Where half of the days lie three spreads higher, beliefs know which."""
    random = np.random.default_rng(4)
    days = random.integers(0, 2, 60).astype(float)
    places = (300.0 * days).tolist()
    inputs = [np.array([1.0, day]) for day in days.tolist()]
    memory, off = along(places, inputs)
    _, without = along(places)
    assert max(memory.component_weights(), key=memory.component_weights().__getitem__) == INPUTS
    assert off[40:].mean() < 0.6 * without[40:].mean()


def test_numbers_that_say_nothing_do_no_harm() -> None:
    """The stream stands still, and they change."""
    random = np.random.default_rng(5)
    inputs = [np.array([1.0, *random.normal(size=3)]) for _ in range(12)]
    _, off = along([0.0] * 12, inputs)
    assert off[6:].mean() < 0.15


def test_other_groups_that_agree_lower_the_first_errors() -> None:
    """A group that lies one spread above another, on days that are far apart."""
    places = np.random.default_rng(6).normal(0.0, 400.0, 8)
    others = [batch(place - 100.0) for place in places.tolist()]
    memory, off = along(places.tolist(), others=others)
    _, alone = along(places.tolist())
    assert np.median(off[2:]) < 0.5 * np.median(alone[2:])
    assert max(memory.component_weights(), key=memory.component_weights().__getitem__) == OTHERS


def test_other_numbers_than_before_are_learned_anew() -> None:
    """Their places and weights stay; nothing is read with coefficients of others."""
    before, _ = along([0.0] * 6, [np.array([1.0, 0.5])] * 6)
    after, off = along([0.0] * 3, [np.array([1.0, 2.0, 3.0])] * 3, memory=before)
    assert off.max() < 0.3
    assert past_of(after).numbers.products.shape == (2, 3, 3)


def test_groups_together_are_the_mean_of_their_places() -> None:
    """By the roots of their sizes."""
    far = together([GroupEvidence(100, batch(0.0)), GroupEvidence(900, batch(400.0))])
    assert far.centre == pytest.approx(300.0, abs=1.0)
    assert far.half_width == pytest.approx(batch(0.0).half_width, rel=0.01)
    one = batch(7.0)
    assert together([GroupEvidence(5, one)]) is one


@pytest.mark.parametrize("place", [1e4, -1e4])
def test_far_batches_leave_finite_numbers(place: float) -> None:
    """At the end of the grid and back."""
    inputs = [np.array([1.0, 1e6 * (-1.0) ** day]) for day in range(6)]
    memory, _ = along([0.0, place, 0.0, place, place, 0.0], inputs)
    assert memory.finite()
    json.dumps(packed(memory.to_json()), allow_nan=False)
