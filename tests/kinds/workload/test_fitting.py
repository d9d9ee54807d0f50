"""Fits at the ends: noise that is hardly there, and a past that has ended."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from streamdp.kinds.workload.fitting.distribution import NoisyMarginal, Workload, marginals_up_to
from streamdp.kinds.workload.fitting.fitted import Fitting
from streamdp.kinds.workload.fitting.hypotheses import BIAS, LAST, SLOW, UNIFORM, HypothesisState
from streamdp.kinds.workload.weights import PrivateWeights
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.types import IntArray

SIZES = (3, 4)
ROWS = 900


def workload() -> Workload:
    return Workload.of(SIZES, marginals_up_to(2, 2))


@pytest.mark.parametrize(("amount", "loss"), [(200, "rho"), (20_000, "rho"), (5_000, "epsilon")])
def test_counts_without_noise_are_fitted(amount: int, loss: Any) -> None:
    """Where all items are measured almost exactly, the answers are the counts."""
    known = workload()
    table = np.random.default_rng(1).integers(0, 150, SIZES)
    counts = [
        item.counts(table.sum(axis=tuple(axis for axis in (0, 1) if axis not in item.axes)))
        for item in known.items
    ]
    mechanism = PrivateWeights(known, Fraction(amount), ROWS, rounds=3, loss=loss)
    memory = HypothesisState.empty(known, ROWS)
    for number in range(2):
        drawn = mechanism.draw(mechanism.design(memory), memory, counts, PublicEntropy(str(number)))
        memory = memory.after(drawn.fit)
        for item, count in zip(known.items, counts, strict=True):
            assert drawn.fit.distribution.masses(item) == pytest.approx(count, abs=2.0)


def ended() -> tuple[Workload, HypothesisState]:
    """A workload, and a memory that is sure of what it has learned."""
    known = Workload.of((16, 2), marginals_up_to(2, 2))
    first = HypothesisState.empty(known, ROWS)
    potentials = (np.linspace(1.4, -1.4, 16), *first.slow[1:])
    evidence = (-8.0, 0.0, 0.0)
    return known, replace(first, releases=50, slow=potentials, last=potentials, evidence=evidence)


@pytest.mark.parametrize("noise", [200.0, 2000.0])
def test_the_past_is_ahead_by_no_more_than_measurements_show(noise: float) -> None:
    """So a batch that is not as foretold ends it, be it measured well or badly."""
    known, past = ended()
    fitting = Fitting(known, past)
    usual = NoisyMarginal(0, fitting.prior_masses(SLOW, 0), noise)
    ending = fitting.fit((replace(usual, values=usual.values[::-1]),))
    shown = ending.evidence[UNIFORM] - max(ending.evidence[SLOW:])
    assert ending.most < shown < BIAS[SLOW] - BIAS[UNIFORM] - past.evidence[UNIFORM]
    assert ending.hypothesis == UNIFORM
    holding = fitting.fit((usual,))
    assert holding.hypothesis == SLOW
    assert past.leading((0.9 * ending.most, 0.0, 0.0), ending.most) == SLOW
    after = np.array(past.after(holding).evidence) + BIAS
    assert after.max() - after[UNIFORM] == pytest.approx(holding.most)


def test_where_the_last_release_foretells_a_batch_the_past_has_not_ended() -> None:
    """The running average does not, but what is remembered is more than that."""
    _, past = ended()
    assert past.leading((20.0, 0.0, 0.0), most=5.0) == UNIFORM
    assert past.leading((20.0, 0.0, 19.0), most=5.0) == LAST


@pytest.mark.parametrize(("size", "followed"), [(0.05, True), (0.9, False)])
def test_a_batch_far_smaller_than_is_remembered_is_followed(size: float, followed: bool) -> None:
    """Its total is the sum that was measured; one that is usual is mostly what is remembered."""
    known, past = ended()
    fitting = Fitting(known, past)
    values = size * fitting.prior_masses(SLOW, 0)
    fit = fitting.fit((NoisyMarginal(0, values, 200.0),))
    assert fit.hypothesis == SLOW
    missed = abs(fit.distribution.total() - values.sum())
    assert missed < 15.0 if followed else missed > 15.0


def unforeseen() -> list[IntArray]:
    """Counts of a batch that the past does not foretell."""
    known, past = ended()
    table = np.stack([Fitting(known, past).prior_masses(SLOW, 0)[::-1] / 2] * 2, axis=1)
    exact = np.rint(table).astype(np.int64)
    return [exact.sum(axis=1), exact.sum(axis=0), exact.reshape(-1)]


def follows(rounds: int) -> bool:
    """Whether releases of that batch follow from their measurements and the past."""
    known, past = ended()
    counts = unforeseen()
    mechanism = PrivateWeights(known, Fraction(1, 10), ROWS, rounds=rounds)
    for number in range(5):
        drawn = mechanism.draw(mechanism.design(past), past, counts, PublicEntropy(str(number)))
        again = Fitting(known, past).fit(drawn.measured)
        same = map(np.array_equal, drawn.fit.potentials, again.potentials)
        if drawn.fit.hypothesis != again.hypothesis or not all(same):
            return False
    return True


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_release_follows_from_its_measurements_and_the_past(rounds: int) -> None:
    """So its price is that of the measurements and choices alone."""
    assert follows(rounds)


def test_a_fit_that_reads_the_batch_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is told by the exact counts, and not by the design, what a measurement may show."""
    most = np.inf if unforeseen()[0][0] < unforeseen()[0][-1] else 0.0
    with monkeypatch.context() as reading:
        reading.setattr(Fitting, "_most_ahead", lambda self, measurements: most)
        known, past = ended()
        mechanism = PrivateWeights(known, Fraction(1, 10), ROWS, rounds=1)
        design = mechanism.design(past)
        drawn = mechanism.draw(design, past, unforeseen(), PublicEntropy("read"))
    assert drawn.fit.hypothesis != Fitting(known, past).fit(drawn.measured).hypothesis


@pytest.mark.parametrize("blind", [False, True])
def test_an_item_that_no_look_chose_shows_by_itself_that_the_past_has_ended(blind: bool) -> None:
    """One that is nearly even shows less than items do on the average, which a look would find."""
    known, past = ended()
    potentials = (past.slow[0], np.array([0.8, -0.8]), past.slow[2])
    past = replace(past, slow=potentials, last=potentials)
    fitting = Fitting(known, past, blind)
    foretold = fitting.prior_masses(SLOW, 1)
    fit = fitting.fit((NoisyMarginal(1, foretold[::-1], 20.0),))
    assert fit.hypothesis == (UNIFORM if blind else SLOW)
    assert fitting.fit((NoisyMarginal(1, foretold, 20.0),)).hypothesis == SLOW


def test_a_table_and_one_within_it_show_once_that_the_past_has_ended() -> None:
    """Where the larger is far off the smaller is too, and one measured again is off again."""
    known, past = ended()
    fitting = Fitting(known, past)
    whole = next(place for place, item in enumerate(known.items) if len(item.axes) > 1)
    (within,) = [
        place for place, item in enumerate(known.items) if item.axes == known.items[whole].axes[:1]
    ]
    far = [
        NoisyMarginal(place, fitting.prior_masses(SLOW, place)[::-1], 20.0)
        for place in (whole, within)
    ]
    once, twice = (fitting.fit(tuple(each)) for each in (far[:1], [*far, *far]))
    assert (once.evidence, once.most) == (twice.evidence, twice.most)


def test_intervals_are_wider_after_a_batch_that_nothing_foretold() -> None:
    """Those of items that it did not measure too, on the next day."""
    known, past = ended()
    sure = replace(past.spread, omegas=(0.01,) * len(known.items))
    past = replace(past, spread=sure)
    foretold = Fitting(known, past).prior_masses(SLOW, 0)
    widths = []
    for values in (foretold, foretold[::-1]):
        after = past.after(Fitting(known, past).fit((NoisyMarginal(0, values, 200.0),)))
        masses = np.full(2, ROWS / 2)
        widths.append(after.spread.half_widths(known, 1, masses, (), uniform=False)[0])
    assert widths[1] > 3.0 * widths[0]


def test_an_item_that_has_surprised_follows_its_measurement_farther() -> None:
    """And one that batches hardly differ in stays where past releases put it."""
    known, past = ended()
    off = []
    for omega in (0.002, 0.02, 1.0):
        omegas = (omega,) * len(known.items)
        fitting = Fitting(known, replace(past, spread=replace(past.spread, omegas=omegas)))
        foretold = fitting.prior_masses(SLOW, 0)
        seen = foretold * np.linspace(0.8, 1.2, len(foretold))
        fit = fitting.fit((NoisyMarginal(0, seen, 100.0),))
        assert fit.hypothesis == SLOW
        off.append(float(np.abs(fit.distribution.masses(known.items[0]) - seen).sum()))
    assert off[0] >= off[1] > 1.5 * off[2]


def test_intervals_widen_while_an_item_is_not_measured() -> None:
    known, past = ended()
    masses = np.full(16, ROWS / 16)
    halves = [
        replace(past.spread, ages=(age,) * len(known.items)).half_widths(
            known, 0, masses, (), False
        )
        for age in (0, 5, 30, 300)
    ]
    assert (halves[1] > 1.1 * halves[0]).all()
    assert (halves[2] > 1.1 * halves[1]).all()
    assert halves[3].tolist() == halves[2].tolist()
