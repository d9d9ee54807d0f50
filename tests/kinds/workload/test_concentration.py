"""Concentrations, learned of batches whose values never repeat."""

from __future__ import annotations

import numpy as np
import pytest

from streamdp.kinds.workload.fitting.distribution import NoisyMarginal, Workload, marginals_up_to
from streamdp.kinds.workload.fitting.hypotheses import (
    ExpectedErrors,
    HypothesisState,
    from_json,
    to_json,
)
from streamdp.kinds.workload.fitting.spread import Concentration, Spread
from streamdp.types import FloatArray

SIZES = (4, 3)
KNOWN = Workload.of(SIZES, marginals_up_to(2, 2))
VARIANCE = 50.0


def uneven(generator: np.random.Generator) -> FloatArray:
    """A table of two dependent axes, their values in a new order."""
    table = np.array([[60.0, 5, 5], [10, 30, 2], [4, 4, 20], [1, 1, 8]])
    return table[generator.permutation(4)][:, generator.permutation(3)]


def exact(table: FloatArray) -> FloatArray:
    """Concentrations of the axes and, over their product, of the table."""
    shares = table / table.sum()
    one, other = (shares.sum(axis=axis) for axis in (1, 0))
    alone = [4 * (one**2).sum(), 3 * (other**2).sum()]
    return np.array([*alone, 12 * (shares**2).sum() / (alone[0] * alone[1])])


@pytest.mark.parametrize("place", [0, 1, 2])
def test_concentrations_are_learned_through_noise_and_new_orders(place: int) -> None:
    """Of the measured item and of all that it contains; nothing is learned of others."""
    generator, learned = np.random.default_rng(3), Concentration.first(3)
    for _ in range(400):
        table = uneven(generator)
        counts = (table.sum(axis=1), table.sum(axis=0), table.reshape(-1))[place]
        noisy = counts + generator.laplace(0.0, (VARIANCE / 2) ** 0.5, len(counts))
        learned = learned.after(KNOWN, [NoisyMarginal(place, noisy, VARIANCE)], table.sum())
    seen = [place] if place < 2 else [0, 1, 2]
    wanted = exact(uneven(generator))
    for each in range(3):
        if each in seen:
            assert learned.sums[each] / learned.weights[each] == pytest.approx(
                wanted[each], rel=0.1
            )
        else:
            assert learned.weights[each] == 0.0


def known(*found: float) -> Concentration:
    return Concentration(tuple(100.0 * each for each in found), (100.0,) * len(found))


def test_the_uneven_axis_is_measured_first() -> None:
    """Its measurement gains most, and once it is measured the other one gains more."""
    errors = ExpectedErrors(KNOWN, known(2.0, 1.2, 1.0), 1000.0)
    first = errors.gains([], 100.0)
    assert np.argmax(first[:2]) == 0
    assert np.argmax(errors.gains([(0, 100.0)], 100.0)[:2]) == 1
    assert (first > 0).all()


def test_dependent_axes_are_measured_together() -> None:
    """A table is measured where the product of its axes says little of it, and noise is small."""
    larger = Workload.of((20, 15), marginals_up_to(2, 2))
    independent = ExpectedErrors(larger, known(2.0, 2.0, 1.0), 1000.0)
    dependent = ExpectedErrors(KNOWN, known(1.0, 1.0, 2.5), 1000.0)
    assert independent.average(2, 400.0) < independent.average(1, 100.0)
    assert dependent.average(1, 100.0) < dependent.average(2, 400.0)
    assert np.argmax(dependent.gains([], 100.0)) == 2


def test_predicates_have_uneven_cells_from_the_start() -> None:
    """One of a thousand cells is a small share: nothing is left to find if it stays so."""
    bare = Workload((1000,), ())
    holds = np.zeros(1000, dtype=np.int64)
    holds[7] = 1
    alone = Workload((1000,), (bare.item((0,), holds),))
    even = 2 * (0.999**2 + 0.001**2)
    gain = ExpectedErrors(alone, known(even), 1000.0).gains([], 1.0)
    assert gain == pytest.approx([0.0], abs=0.02)


def test_what_was_written_before_concentrations_were_kept_is_read() -> None:
    """It knows none of them; else they are written as they are."""
    memory = HypothesisState.empty(KNOWN, 100.0)
    state = to_json(memory)
    assert from_json(state, KNOWN).concentration == memory.concentration
    old = {name: value for name, value in state.items() if name not in ("concentrations", "seen")}
    assert not from_json(old, KNOWN).concentration.known


def test_a_measurement_tells_how_far_all_that_it_contains_is_from_what_was_foretold() -> None:
    """A table whose rows alone move: ω of its rows stays large, that of its columns falls."""
    table, generator, learned = np.full((4, 3), 50.0), np.random.default_rng(7), Spread.first(3)
    for _ in range(60):
        moved = table * generator.permutation([0.4, 0.8, 1.2, 1.6])[:, None]
        values = generator.poisson(moved) + generator.laplace(0.0, 2.0, table.shape)
        each = NoisyMarginal(2, values.reshape(-1), 8.0)
        learned = learned.after(KNOWN, [each], [table.reshape(-1)], uniform=False)
    rows, columns, cells = learned.omegas
    assert rows == pytest.approx(0.2, abs=0.05)
    assert cells == pytest.approx(0.2, abs=0.05)
    assert columns < 0.03


def test_noise_says_little_of_how_far_an_item_is_from_what_was_foretold() -> None:
    """One release that is nearly all noise moves ω by less than it would seem to show."""
    table = np.full(12, 50.0)
    far = NoisyMarginal(2, table + 400.0 * (-1.0) ** np.arange(12), 1e5)
    seen = Spread.first(3).after(KNOWN, [far], [table], uniform=False)
    near = NoisyMarginal(2, table + 400.0 * (-1.0) ** np.arange(12), 1.0)
    shown = Spread.first(3).after(KNOWN, [near], [table], uniform=False)
    assert abs(seen.omegas[2] - 0.2) < 0.05 < 1.0 < shown.omegas[2]
