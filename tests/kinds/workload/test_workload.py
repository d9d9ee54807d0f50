"""The parts of a workload: items, distributions, refits, memory, answers, configuration."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from pydantic import ValidationError

from streamdp.errors import ConfigurationError
from streamdp.kinds.axes import condition, labels
from streamdp.kinds.section import CheckContext
from streamdp.kinds.spec import BuildContext
from streamdp.kinds.workload.build import build, check
from streamdp.kinds.workload.design import BLIND, Course, Design, rounds_for
from streamdp.kinds.workload.fitting import distribution as distributions
from streamdp.kinds.workload.fitting.distribution import (
    Dense,
    Eliminated,
    NoisyMarginal,
    Workload,
    elimination_size,
    marginals_up_to,
    refit,
)
from streamdp.kinds.workload.fitting.hypotheses import (
    LAST,
    SLOW,
    UNIFORM,
    HypothesisState,
    from_json,
    to_json,
)
from streamdp.kinds.workload.fitting.spread import Concentration
from streamdp.kinds.workload.kind import WorkloadRelease
from streamdp.kinds.workload.section import WorkloadSection
from streamdp.kinds.workload.spec import ask
from streamdp.kinds.workload.weights import PrivateWeights
from streamdp.mechanisms.noise import AdditiveNoise
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.privacy.events import epsilon_of, rho_of
from streamdp.types import HARDLY_ANY, Batch, Dimension, IntArray, TableCounts

SIZES = (3, 4, 2)
BATCH = Batch("source", "2026-01-01")


def workload(sizes: Sequence[int] = SIZES, most: int = 2) -> Workload:
    return Workload.of(sizes, marginals_up_to(len(sizes), most))


def counts_of(known: Workload, table: IntArray) -> list[IntArray]:
    axes = range(table.ndim)
    return [
        item.counts(table.sum(axis=tuple(axis for axis in axes if axis not in item.axes)))
        for item in known.items
    ]


def test_elimination_and_arrays_agree() -> None:
    """Marginals of a chain of axes, tilted, with and without the domain as an array."""
    known = Workload.of((3, 4, 2, 5), [(0, 1), (1, 2), (2, 3), (0,)])
    generator = np.random.default_rng(1)
    potentials = tuple(generator.normal(size=item.size) for item in known.items)
    both = Dense(known, potentials, 70.0), Eliminated(known, potentials, 70.0)
    for each in both:
        each.tilt(1, np.linspace(-1.0, 1.0, 8))
    for axes in [(), (0,), (0, 3), (1, 2), (0, 1, 2, 3)]:
        np.testing.assert_allclose(both[0].marginal(axes), both[1].marginal(axes))
    assert elimination_size(known) == 12
    assert both[0].total() != pytest.approx(70.0)


def test_large_domains_take_the_same_answers() -> None:
    """A release on a domain that is held as potentials is that of one held as an array."""
    known = Workload.of((3, 4, 2), [(0, 1), (1, 2), (0,)])
    table = np.arange(24).reshape(3, 4, 2)
    mechanism = PrivateWeights(known, Fraction(1), 276, rounds=3)
    found = []
    for most in (2**20, 1):
        with patch.object(distributions, "MOST_CELLS", most):
            memory = HypothesisState.empty(known, 276.0)
            for _ in range(2):
                design = mechanism.design(memory)
                drawn = mechanism.draw(
                    design, memory, counts_of(known, table), PublicEntropy("one")
                )
                memory = memory.after(drawn.fit)
            found.append([drawn.fit.distribution.masses(item) for item in known.items])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def test_a_refit_is_at_the_minimum() -> None:
    """λ = (y - M A)/σ² for every item, so the gradient of the dual is nothing."""
    known, generator = workload(), np.random.default_rng(2)
    zeros = tuple(np.zeros(item.size) for item in known.items)
    fitted = Dense(known, zeros, 100.0)
    measured = [
        NoisyMarginal(place, generator.normal(100 / known.items[place].size, 5.0, size), 9.0)
        for place, size in ((1, 4), (3, 12), (5, 8))
    ]
    still = patch.multiple(
        "streamdp.kinds.workload.fitting.distribution", STILL=1e-12, MOST_SWEEPS=10_000
    )
    with still:
        tilts = refit(known, fitted, measured, [20.0] * len(measured))
    for each in measured:
        dual = tilts[each.place] / 20.0
        wanted = (each.values - fitted.masses(known.items[each.place])) / each.variance
        np.testing.assert_allclose(dual, wanted, atol=1e-6)


@pytest.mark.parametrize("table", [np.zeros(SIZES, int), np.full(SIZES, 10**12), np.eye(24)[3]])
def test_draws_are_total(table: Any) -> None:
    """Nothing, everything, all alike: a release follows, finite and not negative."""
    known = workload()
    mechanism = PrivateWeights(known, Fraction(1, 10), 100)
    memory, counts = (
        HypothesisState.empty(known, 100.0),
        counts_of(known, table.reshape(SIZES).astype(int)),
    )
    for number in range(4):
        design = mechanism.design(memory)
        drawn = mechanism.draw(design, memory, counts, PublicEntropy(f"total:{number}"))
        memory = from_json(json.loads(json.dumps(to_json(memory.after(drawn.fit)))), known)
        masses = drawn.fit.distribution.masses(known.items[0])
        assert np.isfinite(masses).all()
        assert (masses >= 0).all()


def stream(shares: Any, batches: int, relabelled: bool) -> Any:
    generator = np.random.default_rng(5)
    for _ in range(batches):
        table = generator.multinomial(2000, shares.reshape(-1)).reshape(shares.shape)
        if relabelled:
            for axis, size in enumerate(table.shape):
                table = np.take(table, generator.permutation(size), axis=axis)
        yield table


@pytest.mark.parametrize("relabelled", [False, True])
def test_what_repeats_is_learned_and_what_does_not_is_left(relabelled: bool) -> None:
    """On a stable stream a learned hypothesis leads; on one relabelled every day the uniform."""
    sizes = (6, 8, 5)
    shares = np.random.default_rng(4).dirichlet(np.full(240, 0.1)).reshape(sizes)
    known = workload(sizes)
    mechanism, memory = (
        PrivateWeights(known, Fraction(1, 5), 2000),
        HypothesisState.empty(known, 2000.0),
    )
    led, errors = [], []
    for number, table in enumerate(stream(shares, 12, relabelled)):
        counts = counts_of(known, table)
        design = mechanism.design(memory)
        drawn = mechanism.draw(design, memory, counts, PublicEntropy(f"stream:{number}"))
        memory = memory.after(drawn.fit)
        led.append(drawn.fit.hypothesis)
        errors.append(
            np.mean(
                [
                    np.abs(drawn.fit.distribution.masses(item) - count).sum()
                    for item, count in zip(known.items, counts, strict=True)
                ]
            )
        )
    if relabelled:
        assert set(led[8:]) == {UNIFORM}
    else:
        assert set(led[8:]) <= {SLOW, LAST}
        assert np.mean(errors[8:]) < 0.75 * errors[0]


def test_the_event_is_the_epsilon_of_all_rounds() -> None:
    """Whatever the rounds and the choice, the ledger is told epsilon, no more and no less."""
    for rounds in (1, 2, 7):
        for choose in ("private", "public"):
            design = Design(Fraction(1, 3), rounds, "substitute", choose)
            assert epsilon_of(design.event()) == Fraction(1, 3)
            share = Fraction(1, 3) * (1 if choose == "public" else Fraction(9, 10))
            assert design.noise == AdditiveNoise(share / rounds, 2)


def test_rho_does_not_tell_how_many_rounds_past_releases_lead_to() -> None:
    """Fewer rounds cost more rho at the same epsilon: the dearest is booked whichever is drawn."""
    mechanism = PrivateWeights(workload(), Fraction(1), 92)
    designs = [
        Design(Fraction(1), rounds_for(Fraction(1), 92, "add-remove", 10, cold=cold))
        for cold in (False, True)
    ]
    assert designs[0].rounds != designs[1].rounds
    events = [mechanism.event(design) for design in designs]
    assert {rho_of(event) for event in events} == {max(rho_of(each.event()) for each in designs)}
    assert {epsilon_of(event) for event in events} == {Fraction(1)}


def test_rho_does_not_tell_what_past_releases_foretell() -> None:
    """Rounds follow from how uneven items were; what is booked does not."""
    known = workload((12, 10, 8))
    mechanism = PrivateWeights(known, Fraction(1), 300)
    cold, found = HypothesisState.cold(known, 300.0), {}
    for axes, pairs in ((2.5, 1.0), (1.1, 3.0), (1.1, 1.0)):
        sums = tuple(9.0 * (axes if len(item.axes) == 1 else pairs) for item in known.items)
        seen = Concentration(sums, (9.0,) * len(sums))
        design = mechanism.design(replace(cold, concentration=seen))
        found[design] = mechanism.event(design)
    assert len({design.rounds for design in found}) > 1
    assert len({rho_of(event) for event in found.values()}) == 1
    assert {epsilon_of(event) for event in found.values()} == {Fraction(1)}


@pytest.mark.parametrize("loss", ["epsilon", "rho"])
def test_every_way_of_a_course_costs_its_price(loss: Any) -> None:
    """Two rounds, or two more after the first; the event says both."""
    design = Design(Fraction(1, 3), 2, loss=loss, cold_rounds=3)
    half, quarter = Fraction(1, 6), Fraction(1, 12)
    ways = design.course().ways()
    assert ways == (((half, False),) * 2, ((half, False), *[(quarter, False)] * 2))
    assert design.event()["type"] == "choice"
    assert Design(Fraction(1, 3), 1, loss=loss, cold_rounds=3).event()["type"] == "sequence"
    for rounds in range(1, 5):
        for cold in range(6):
            course = Course(Fraction(1, 7), rounds, cold)
            assert {sum(price for price, _ in way) for way in course.ways()} == {Fraction(1, 7)}
            assert len(course.ways()[0]) == rounds
    price = rho_of(design.event()) if loss == "rho" else epsilon_of(design.event())
    assert price == Fraction(1, 3)


@pytest.mark.parametrize("loss", ["epsilon", "rho"])
def test_rounds_are_blind_until_a_course_turns(loss: Any) -> None:
    """A blind one buys a measurement for all of its price; the event says which are."""
    third = Fraction(1, 3)
    courses = [Course(Fraction(1), 3, 4, looks) for looks in (0, 1)]
    blind, after = ([[each for _, each in way] for way in course.ways()] for course in courses)
    assert blind == [[True] * 3, [True, True, False, False], [True, False, False, False]]
    assert after == [[False, True, True], [False, True, False, False], [False] * 4]
    assert {sum(price for price, _ in way) for each in courses for way in each.ways()} == {1}
    design = Design(Fraction(1), 3, choose="auto", loss=loss, cold_rounds=4, looks=0)
    assert design.round(third, blind=True).measured == third
    assert design.round(third).measured < third
    assert len(design.round(third, blind=True).parts()) == 1
    assert (rho_of if loss == "rho" else epsilon_of)(design.event()) == 1


def test_rounds_are_blind_where_the_past_foretells_a_batch() -> None:
    """All where noise is small beside the records of a cell, however many cells there are.

    Else all but the first; none in a first release, nor where nothing repeats.
    """
    known, fine = workload(), workload((20, 20, 20))
    least = math.prod(item.size for item in known.items) ** (1 / len(known.items)) / BLIND
    one = Design(Fraction(1), 1, choose="public")
    rows = math.ceil(least)
    assert [one.is_good(known, each) for each in (rows - 1, rows)] == [False, True]
    assert not replace(one, relation="substitute").is_good(known, 2 * rows - 2)
    assert not replace(one, rounds=2).is_good(known, 2 * rows - 2)
    assert not one.is_good(fine, rows)
    normal, size = replace(one, loss="rho"), math.sqrt(1 / math.pi)
    assert not normal.is_good(known, math.floor(0.99 * size * least))
    assert normal.is_good(known, math.ceil(1.01 * size * least))
    mechanism = PrivateWeights(known, Fraction(1), 900, choose="auto")
    memory = HypothesisState.empty(known, 900.0)
    later = replace(memory, releases=1)
    assert mechanism.design(later).looks == 0
    assert replace(mechanism, expected_rows=9).design(later).looks == 1
    assert [
        replace(mechanism, expected_rows=90).design(replace(memory, releases=number)).looks
        for number in range(1, 7)
    ] == [0, 0, 1, 0, 0, 1]
    assert mechanism.design(replace(memory, releases=3)).looks == 0
    assert mechanism.design(memory).looks is None
    assert mechanism.design(HypothesisState.cold(known, 900.0)).looks is None
    assert replace(mechanism, choose="private").design(later).looks is None


def test_a_release_turns_to_more_rounds_when_nothing_repeats() -> None:
    """The first of two measurements shows a shift, and two more follow; the average is kept."""
    sizes = (6, 8, 5)
    shares = np.random.default_rng(4).dirichlet(np.full(240, 0.1)).reshape(sizes)
    known = workload(sizes)
    mechanism, memory = (
        PrivateWeights(known, Fraction(1, 5), 2000),
        HypothesisState.empty(known, 2000.0),
    )
    for number, table in enumerate(stream(shares, 11, relabelled=False)):
        counts = counts_of(known, table if number < 10 else np.flip(table))
        design, before = mechanism.design(memory), memory
        drawn = mechanism.draw(design, memory, counts, PublicEntropy(f"turn:{number}"))
        memory = memory.after(drawn.fit)
        if number >= 8:
            assert (design.rounds, design.cold_rounds) == (2, 3)
            assert len(drawn.measured) == (2 if number < 10 else 3)
    assert drawn.fit.hypothesis == UNIFORM
    assert all((one == other).all() for one, other in zip(memory.slow, before.slow, strict=True))


def test_rounds_follow_epsilon_and_rows() -> None:
    """One for ninety, three for nine hundred; neighbours that substitute have half as much."""
    rules = [rounds_for(Fraction(1), rows, "add-remove", 10) for rows in (90, 900, 10**9)]
    assert rules == [1, 3, 10]
    assert rounds_for(Fraction(1), 160, "add-remove", 10) == 1
    assert rounds_for(Fraction(1), 160, "add-remove", 10, turning=True) == 2
    assert rounds_for(Fraction(1), 1800, "substitute", 10) == 3
    assert [rounds_for(Fraction(1), rows, "add-remove", 10, cold=True) for rows in (92, 280)] == [
        2,
        3,
    ]


AXES = (
    Dimension("carrier", values=("AA", "UA"), other=True, nulls="other"),
    Dimension("hour", cuts=(6.0, 12.0), nulls="cell"),
)


@pytest.mark.parametrize(
    ("text", "axes", "cells"),
    [
        ("carrier = 'AA'", (0,), "100"),
        ("carrier <> 'AA'", (0,), "011"),
        ("hour < 12", (1,), "1100"),
        ("NOT hour < 12", (1,), "0010"),
        ("hour IS NULL", (1,), "0001"),
        ("carrier IN ('AA', 'UA') AND hour >= 6", (0, 1), "011001100000"),
        ("carrier = 'AA' OR hour < 6", (0, 1), "111110001000"),
    ],
)
def test_conditions_are_cells(text: str, axes: tuple[int, ...], cells: str) -> None:
    """With SQL's nulls: what is not known is not true, nor is its negation."""
    found = condition(text, AXES)
    assert found[0] == axes
    assert "".join(map(str, found[1])) == cells


@pytest.mark.parametrize(
    "text", ["hour < 7", "hour <= 6", "carrier = 'XX'", "hour = 6", "fuel < 6", "1 < 2", "hour"]
)
def test_conditions_that_cells_do_not_decide_are_refused(text: str) -> None:
    """They would have to be guessed."""
    with pytest.raises(ValueError, match=r"cut|values|dimension|write"):
        condition(text, AXES)


BASE = {
    "kind": "workload",
    "source": "flights",
    "epsilon": 1,
    "expected_rows": 100,
    "dimensions": {
        "carrier": {"values": ["AA", "UA"]},
        "hour": {"cuts": [6, 12]},
        "day": {"column": "at", "part": "weekday"},
    },
    "predicates": {"early": "carrier = 'AA' and hour < 6"},
}


def made(**keys: Any) -> WorkloadRelease:
    section = WorkloadSection.model_validate({**BASE, **keys})
    context = CheckContext("duckdb", "add-remove", 1, {})
    assert not list(check(section, context))
    public: Any = None
    return build(section, BuildContext("add-remove", 1, 1, "duckdb", public))


def released(kind: WorkloadRelease, mean: float = 2.0) -> Any:
    plan = kind.plan(json.loads(json.dumps(kind.init())), BATCH)
    shape = plan.query.shape((0, 1, 2))  # type: ignore[union-attr]
    table = np.random.default_rng(3).poisson(mean, shape)
    marginals = tuple(
        table.sum(axis=tuple(axis for axis in range(3) if axis not in axes))
        for axes in plan.query.marginals  # type: ignore[union-attr]
    )
    outcome = kind.draw(plan, TableCounts(marginals), PublicEntropy("release"))
    state = kind.learn(kind.init(), plan, outcome)
    kind.plan(json.loads(json.dumps(state)), BATCH)
    return kind.publish(state, outcome).rows


@pytest.mark.parametrize("keys", [{}, {"raw": True}, {"choose": "public"}, {"measured": 3}])
def test_answers_agree_with_each_other(keys: Any) -> None:
    """Sums of a marginal's cells are the total, and those of a larger one the smaller's."""
    kind = made(**keys)
    rows = released(kind)
    names = {column.name for column in kind.columns}
    assert all(set(row) <= names for row in rows)
    assert all(row["lower"] <= row["value"] <= row["upper"] for row in rows)
    total = rows[0]["value"]
    by_carrier = {r["carrier"]: r["value"] for r in rows if r["answer"] == "carrier"}
    assert sum(by_carrier.values()) == pytest.approx(total, abs=0.01)
    both = [r for r in rows if r["answer"] == "carrier, hour" and r["carrier"] == "AA"]
    assert sum(r["value"] for r in both) == pytest.approx(by_carrier["AA"], abs=0.01)
    early = next(row["value"] for row in rows if row["answer"] == "early")
    assert early == pytest.approx(both[0]["value"], abs=0.01)


def test_records_are_as_many_as_the_total() -> None:
    """Each has a cell of every axis."""
    kind = made(publish="records")
    rows = released(kind)
    assert 50 < len(rows) < 1000
    assert {row["carrier"] for row in rows} <= set(labels(kind.dimensions[0]))


def test_records_end_whatever_the_total_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """One noisy total may be as large as noise gets, and a batch as large as a server holds."""
    monkeypatch.setattr("streamdp.kinds.workload.answers.FEW_RECORDS", 2**7)
    kind = made(publish="records")
    rows = released(kind, 2.0**56)
    most = 16 * kind.mechanism.expected_rows
    assert len(rows) == most > len(released(made(publish="records")))


def test_records_beside_answers_are_told_from_them_and_change_no_question() -> None:
    """One table holds both; a question is answered from the answers alone."""
    rows = released(made(publish="both"))
    records = [row for row in rows if row["answer"] == "synthetic record"]
    answers = [row for row in rows if row["answer"] != "synthetic record"]
    assert len(records) == round(answers[0]["value"])
    assert all(set(row) == {"answer", "carrier", "hour", "day"} for row in records)
    section = WorkloadSection.model_validate({**BASE, "publish": "both"})
    assert ask(section, rows, "count where hour < 6") == ask(
        section, answers, "count where hour < 6"
    )


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"dimensions": {"value": {"cuts": [1]}}}, "column 'value' itself"),
        ({"dimensions": {"epsilon": {"cuts": [1]}}}, "column 'epsilon' itself"),
        ({"marginals": [["fuel"]]}, "must name dimensions"),
        ({"dimensions": {"hour": {"cuts": [2, 1]}}}, "cuts of this dimension"),
        ({"dimensions": {"hour": {"values": ["(other)"]}}}, "name of a cell"),
        ({"dimensions": {"hour": {}}}, "give values, cuts or part"),
        ({"marginals": 0, "predicates": {}}, "give marginals or predicates"),
    ],
)
def test_sections_that_do_not_hang_together_are_refused(keys: Any, said: str) -> None:
    """With the key and what to do."""
    with pytest.raises(ValidationError, match=said):
        WorkloadSection.model_validate({**BASE, **keys})


def test_a_domain_too_large_is_refused_with_its_size() -> None:
    """One that falls apart into chains is not."""
    axes = {f"x{number}": {"cuts": list(range(40))} for number in range(8)}
    context = CheckContext("duckdb", "add-remove", 1, {})
    tied = {**BASE, "dimensions": axes, "predicates": {}, "marginals": 2}
    (problem,) = check(WorkloadSection.model_validate(tied), context)
    assert str(42**8) in problem.what
    chain = [[f"x{number}", f"x{number + 1}"] for number in range(7)]
    free = WorkloadSection.model_validate({**tied, "marginals": chain})
    assert not list(check(free, context))


def test_the_largest_documented_domain_can_be_configured() -> None:
    """806,400 cells as they are listed, half as many again with those of `other` and nulls."""
    lists = {f"x{size}": {"values": list(range(size))} for size in (3, 16, 20, 105)}
    axes = {**lists, "delay": {"cuts": [-20, -10, 0, 10, 30, 60]}}
    section = WorkloadSection.model_validate({**BASE, "dimensions": axes, "predicates": {}})
    assert not list(check(section, CheckContext("duckdb", "add-remove", 1, {})))


@pytest.mark.parametrize(
    ("text", "within"),
    [
        ("count", "carrier"),
        ("count where carrier = 'AA'", "carrier"),
        ("count where carrier = 'AA' and hour < 6", "carrier, hour"),
        ("count where carrier = 'AA' and hour < 6 and day < 6", None),
    ],
)
def test_a_release_can_be_asked(text: str, within: str | None) -> None:
    """Its distribution is found again from the published answers, which are then its own."""
    kind = made()
    plan = kind.plan(kind.init(), BATCH)
    table = np.random.default_rng(3).poisson(9.0, plan.query.shape((0, 1, 2)))  # type: ignore[union-attr]
    marginals = tuple(
        table.sum(axis=tuple(axis for axis in range(3) if axis not in axes))
        for axes in plan.query.marginals  # type: ignore[union-attr]
    )
    outcome = kind.draw(plan, TableCounts(marginals), PublicEntropy("asked"))
    answer = ask(WorkloadSection.model_validate(BASE), outcome.rows, text)
    axes, cells = ((), 1) if text == "count" else condition(text[12:], kind.dimensions)
    exact = (outcome.auxiliary.fit.distribution.marginal(axes).reshape(-1) * cells).sum()
    assert answer.value == pytest.approx(exact, rel=2e-3, abs=0.05)
    assert answer.lower < answer.value < answer.upper
    assert answer.within == within


def test_questions_that_are_none_are_refused() -> None:
    """With what to write."""
    section = WorkloadSection.model_validate(BASE)
    with pytest.raises(ConfigurationError, match="count where"):
        ask(section, (), "how many")
    with pytest.raises(ConfigurationError, match="other answers"):
        ask(section, ({"answer": "carrier"},), "count")


def test_parts_of_times_are_those_of_the_zone() -> None:
    """Cells are called by the numbers that clocks show; another zone is another question."""
    section = WorkloadSection.model_validate(
        {
            "kind": "workload",
            "source": "s",
            "epsilon": "1",
            "expected_rows": 100,
            "dimensions": {"hour": {"column": "at", "part": "hour"}, "at": {"part": "weekday"}},
            "predicates": {"night": "hour IN (23, 0) OR hour < 5"},
        }
    )

    def made(zone: str) -> WorkloadRelease:
        return build(section, BuildContext("add-remove", 1, 1, "duckdb", None, zone))  # type: ignore[arg-type]

    kind = made("Europe/Berlin")
    assert labels(kind.dimensions[0]) == (*map(str, range(24)), "(null)")
    assert labels(kind.dimensions[1]) == ("1", "2", "3", "4", "5", "6", "7", "(null)")
    night = kind.mechanism.workload.items[-1].labels
    assert night is not None
    assert list(night.nonzero()[0]) == [0, 1, 2, 3, 4, 23]
    assert kind.signature() != made("UTC").signature()


def test_records_hold_and_an_empty_batch_is_flagged() -> None:
    """Each row has the number of records with an interval; a batch of none is told by it alone."""
    kind, held, flagged = made(expected_rows=600), [], []
    state = json.loads(json.dumps(kind.init()))
    chance = np.random.default_rng(11)
    for day in range(60):
        plan = kind.plan(state, BATCH)
        shape = plan.query.shape((0, 1, 2))  # type: ignore[union-attr]
        empty = day % 15 == 14
        table = chance.poisson(0.0 if empty else 600 / np.prod(shape), shape)
        marginals = tuple(
            table.sum(axis=tuple(axis for axis in range(3) if axis not in axes))
            for axes in plan.query.marginals  # type: ignore[union-attr]
        )
        outcome = kind.draw(plan, TableCounts(marginals), PublicEntropy(f"records {day}"))
        state = json.loads(json.dumps(kind.learn(state, plan, outcome)))
        rows = kind.publish(state, outcome).rows
        assert len({(row["records"], row["flag"]) for row in rows}) == 1
        held.append(rows[0]["records_lower"] <= table.sum() <= rows[0]["records_upper"])
        flagged.append((empty, rows[0]["flag"] == HARDLY_ANY))
    assert np.mean(held) >= 0.9
    assert not any(flag for empty, flag in flagged if not empty)
    assert all(flag for empty, flag in flagged if empty)


@pytest.mark.parametrize("loss", ["epsilon", "rho"])
def test_a_first_release_is_drawn_as_one_without_a_memory(loss: Any) -> None:
    """Nothing is known yet: as many rounds and the same fit, from which the next one learns."""
    known = workload()
    mechanism = PrivateWeights(known, Fraction(2), 1000, loss=loss)
    table = np.random.default_rng(2).dirichlet(np.full(24, 0.3)).reshape(SIZES) * 1000
    first, cold = HypothesisState.empty(known, 1000.0), HypothesisState.cold(known, 1000.0)
    design = mechanism.design(first)
    assert design == mechanism.design(cold) != mechanism.design(replace(first, releases=1))
    counts = counts_of(known, table.astype(int))
    drawn, other = (
        mechanism.draw(design, memory, counts, PublicEntropy("first")) for memory in (first, cold)
    )
    assert len(drawn.measured) == len(other.measured)
    for item in known.items:
        found, wanted = drawn.fit.distribution.masses(item), other.fit.distribution.masses(item)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    after = first.after(drawn.fit)
    assert max(abs(each).max() for each in after.slow) > 0.1
    assert after.leading() != UNIFORM
