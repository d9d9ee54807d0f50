"""Tests of items in turn: the law of whole releases, what a pass promises, and what is refused."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from pydantic import ValidationError

from streamdp.kinds.section import CheckContext
from streamdp.kinds.spec import BuildContext
from streamdp.kinds.workload.accuracy import AverageError
from streamdp.kinds.workload.build import build, check
from streamdp.kinds.workload.design import Design, DesignTests
from streamdp.kinds.workload.fitting.distribution import Workload, marginals_up_to
from streamdp.kinds.workload.fitting.hypotheses import HypothesisState
from streamdp.kinds.workload.section import WorkloadSection
from streamdp.kinds.workload.weights import PrivateWeights
from streamdp.mechanisms import noise as noise_module
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.mechanisms.quantile_tree.sharpness import Relation
from streamdp.mechanisms.sparse_vector import above_threshold
from streamdp.privacy.events import epsilon_of
from streamdp.types import Batch, IntArray, TableCounts
from tests.kinds.workload.test_enumeration import (
    ONE_WAY,
    REACH,
    fitted_once,
    noise,
    remembered,
    tables,
)
from tests.privacy.ways import AgainError, law_of

EPSILON = Fraction(12)
LAST = 6
"""Heads of the tests' noise that are followed, of ratio e^-2 and e^-4."""


def heads(step_bits: int, loss: Fraction, walk: Any) -> int:
    """One-sided noise of whole steps as one fork, cut short."""
    ratio = math.exp(-float(loss))
    weights = [(1 - ratio) * ratio**count for count in range(LAST)]
    drawn = int(walk.answer([*weights, 1 - sum(weights)]))
    if drawn == LAST:
        raise AgainError
    return drawn << step_bits


@contextlib.contextmanager
def forking() -> Iterator[None]:
    with (
        patch.object(above_threshold, "one_sided", heads),
        patch.object(noise_module, "discrete_laplace", noise),
        patch.object(
            above_threshold.AboveThreshold, "offset", lambda self, parts: above_threshold.STEP
        ),
    ):
        yield


def law(
    mechanism: PrivateWeights, memory: HypothesisState, cells: tuple[int, ...]
) -> dict[Any, float]:
    """Of what was measured, and what passed."""
    counts, design = tables(mechanism.workload, cells), mechanism.design(memory)

    def draw(walk: Any) -> Any:
        drawn = mechanism.draw(design, memory, counts, walk)
        measured = tuple((each.place, tuple(map(int, each.values))) for each in drawn.measured)
        return measured, tuple(drawn.passed)

    with forking(), fitted_once(mechanism.workload, memory):
        return law_of(draw, whole=False)


NEIGHBOURS: dict[Relation, list[tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "add-remove": [((0, 4, 0, 0), (1, 4, 0, 0))],
    "substitute": [((0, 0, 1, 0), (0, 1, 0, 0))],
}


def inner(measured: tuple[tuple[int, tuple[int, ...]], ...], counts: list[IntArray]) -> bool:
    """Whether the noise is one short of the reach, or less."""
    return all(np.abs(np.array(y) - counts[place]).max() < REACH for place, y in measured)


def largest_loss(neighbours: Relation, rounds: int = 1) -> float:
    """Largest log ratio of two neighbours' laws, over the epsilon of the ledger's event."""
    workload = Workload.of((2, 2), ONE_WAY)
    mechanism = PrivateWeights(workload, EPSILON * rounds, 2, neighbours, "online", rounds, 3)
    memory, worst = remembered(workload), 0.0
    for one, other in NEIGHBOURS[neighbours]:
        laws = law(mechanism, memory, one), law(mechanism, memory, other)
        counts = tables(workload, one), tables(workload, other)
        kept = [
            {outcome for outcome in found if inner(outcome[0], exact)}
            for found, exact in zip(laws, counts, strict=True)
        ]
        within = kept[0] & kept[1]
        assert within
        worst = max(worst, *(abs(math.log(laws[0][each] / laws[1][each])) for each in within))
    return worst / float(epsilon_of(mechanism.event(mechanism.design(memory))) or 0)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_neighbours_lose_epsilon_and_no_more(neighbours: Relation) -> None:
    """Answers of tests and noisy counts of a whole release, nearly all of epsilon."""
    assert 0.98 < largest_loss(neighbours) <= 1 + 1e-6


def two_runs_lose(cells: tuple[tuple[int, ...], ...]) -> float:
    """Largest log ratio of a release of two runs over one item, over the epsilon of its event."""
    workload = Workload.of((2, 2), [(0,)])
    mechanism = PrivateWeights(workload, 4 * EPSILON, 2, "add-remove", "online", 2, 1)
    memory = remembered(workload)
    with patch(f"{__name__}.LAST", 3), patch(f"{__name__}.noise", partial(noise, reach=1)):
        one, other = (law(mechanism, memory, each) for each in cells)
    both = one.keys() & other.keys()
    assert {len(measured) for measured, _ in both} == {2}
    assert {len(passed) for _, passed in both} == {0, 1}
    event = mechanism.event(mechanism.design(memory))
    return max(abs(math.log(one[each] / other[each])) for each in both) / float(
        epsilon_of(event) or 0
    )


@pytest.mark.long
def test_two_runs_lose_epsilon_and_no_more() -> None:
    """Off, measured, armed anew, tested again; a second measurement that is free is caught."""
    pair = (0, 2, 0, 0), (1, 2, 0, 0)
    assert 0.55 < two_runs_lose(pair) <= 1 + 1e-6

    def once(self: Design) -> Any:
        return replace(self, amount=self.amount / 2, rounds=1).noise.event()

    with patch.object(Design, "event", once):
        assert two_runs_lose(pair) > 1.1


@pytest.mark.long
def test_tests_of_sums_are_caught_under_substitute() -> None:
    """The sum over cells moves by two where the largest moves by one."""

    def summed(
        self: DesignTests, run: Any, item: Any, counts: Any, current: Any, entropy: Any
    ) -> bool:
        score = int(np.abs(counts - np.rint(current.masses(item)).astype(int)).sum())
        return self.tests.accept(run, Fraction(score - self.tolerance), entropy)

    with patch.object(DesignTests, "is_off", summed):
        assert largest_loss("substitute") > 1.2


def test_measuring_without_a_charge_is_caught() -> None:
    """The event holds both a run and a measurement of every round."""

    def tests_alone(self: Design) -> Any:
        return self.gate(2).tests.event()

    with patch.object(Design, "event", tests_alone):
        assert largest_loss("add-remove") > 1.2


def test_tests_have_no_price_in_rho() -> None:
    """They are pure and not of bounded range: epsilon²/8 would book a quarter of what they cost."""
    with pytest.raises(ValueError, match="epsilon"):
        Design(Fraction(1), 1, choose="online", loss="rho")


SIZES = (4, 5, 3)
KNOWN = Workload.of(SIZES, marginals_up_to(3, 2))
ROWS = 20_000


def stable(batches: int) -> Iterator[list[Any]]:
    """Exact counts of the items of batches that are alike."""
    generator = np.random.default_rng(3)
    shares = generator.dirichlet(np.full(60, 0.5))
    for _ in range(batches):
        table = generator.multinomial(ROWS, shares).reshape(SIZES)
        axes = range(3)
        yield [
            item.counts(table.sum(axis=tuple(axis for axis in axes if axis not in item.axes)))
            for item in KNOWN.items
        ]


def test_what_passes_is_within_its_bound_and_learning_makes_tests_pass() -> None:
    """The first release is off everywhere; later ones pass all items, and all bounds hold."""
    mechanism = PrivateWeights(KNOWN, Fraction(2), ROWS, "add-remove", "online", 2, 1000)
    memory, passed = HypothesisState.empty(KNOWN, float(ROWS)), []
    for number, counts in enumerate(stable(10)):
        design = mechanism.design(memory)
        drawn = mechanism.draw(design, memory, counts, PublicEntropy(f"online:{number}"))
        memory = memory.after(drawn.fit)
        passed.append(len(drawn.passed))
        assert len(drawn.measured) == 2
        for place, each in drawn.passed.items():
            masses = drawn.fit.distribution.masses(KNOWN.items[place])
            assert (np.abs(masses - counts[place]) <= each.around(masses)).all()
    assert passed[0] < 6
    assert passed[-3:] == [6, 6, 6]


@pytest.mark.parametrize(
    "table", [np.zeros(60, int), np.full(60, 10**12), np.eye(60, dtype=int)[3]]
)
def test_draws_are_total(table: Any) -> None:
    """Nothing, everything, all alike: as many measurements as are paid for."""
    mechanism = PrivateWeights(KNOWN, Fraction(1), 100, "substitute", "online", 3, 90)
    memory, whole = HypothesisState.empty(KNOWN, 100.0), table.reshape(SIZES)
    counts = [
        item.counts(whole.sum(axis=tuple(axis for axis in range(3) if axis not in item.axes)))
        for item in KNOWN.items
    ]
    drawn = mechanism.draw(mechanism.design(memory), memory, counts, PublicEntropy("total"))
    assert len(drawn.measured) == 3


BASE: dict[str, Any] = {
    "kind": "workload",
    "source": "flights",
    "epsilon": 1,
    "expected_rows": 6000,
    "dimensions": {"carrier": {"values": ["AA", "UA"]}, "hour": {"cuts": [6, 12]}},
    "choose": "online",
    "tolerance": 0.05,
    "measured": 2,
}
CONTEXT = CheckContext("duckdb", "add-remove", 1, {})


def test_a_tolerance_within_the_margin_is_refused_with_the_least() -> None:
    """The smallest group decides."""
    assert not list(check(WorkloadSection.model_validate(BASE), CONTEXT))
    (problem,) = check(WorkloadSection.model_validate({**BASE, "tolerance": 0.01}), CONTEXT)
    assert problem.path == ("tolerance",)
    groups = {"by": "origin", "groups": ["EWR", "JFK"], "group_rows": {"EWR": 500}}
    (problem,) = check(WorkloadSection.model_validate({**BASE, **groups}), CONTEXT)
    assert "25 of 500" in problem.what
    (problem,) = check(WorkloadSection.model_validate({**BASE, "epsilon": 0.001}), CONTEXT)
    assert problem.path == ("epsilon",)


@pytest.mark.parametrize("keys", [{"tolerance": None}, {"choose": "private"}, {"tolerance": 1}])
def test_tolerance_and_online_go_together(keys: Any) -> None:
    """One without the other says nothing."""
    with pytest.raises(ValidationError, match="tolerance"):
        WorkloadSection.model_validate({**BASE, **keys})


def test_rows_have_the_bound_of_what_passed_and_plans_say_when_it_pays() -> None:
    """It is at least the tolerance less a half; what did not pass has none."""
    section = WorkloadSection.model_validate(BASE)
    kind = build(section, BuildContext("add-remove", 1, 1, "duckdb", None))  # type: ignore[arg-type]
    plan = kind.plan(kind.init(), Batch("source", "2026-01-01"))
    even = TableCounts((np.full(3, 2000), np.full(4, 1500), np.full((3, 4), 500)))
    rows = kind.draw(plan, even, PublicEntropy("rows")).rows
    bounds = [row["bound"] for row in rows if row["answer"] == "carrier"]
    assert all(bound is not None and 299.5 <= float(bound) < 1000 for bound in bounds)
    assert "bound" in {column.name for column in kind.columns}
    assert all(
        float(row["upper"] or 0) - float(row["value"] or 0) <= float(row["bound"]) + 1e-3
        for row in rows
        if row["bound"] is not None
    )
    assert rows[0]["bound"] is None
    expected = AverageError().expected(kind)
    assert expected["pays_from_epsilon_rows"] == pytest.approx(
        2 * float(expected["test_margin"] or 0) * 6000 / 0.05, rel=0.01
    )
