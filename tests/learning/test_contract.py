"""What every learner of quantiles promises, however it learns."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest

from streamdp.kinds.quantiles.kind import Quantiles, counted_rows
from streamdp.kinds.quantiles.learners import LEARNERS
from streamdp.kinds.quantiles.section import LearnerName, QuantilesSection
from streamdp.kinds.quantiles.spec import build
from streamdp.kinds.spec import BuildContext
from streamdp.learning.learner import CountedPlan, DrawnPlan, Learner, Observation
from streamdp.mechanisms.histograms import Histogram, exact_counts, within
from streamdp.priors.joint import JointPrior
from streamdp.privacy.events import epsilon_of
from streamdp.types import Batch, CellCounts, FloatArray, History, Json, Outcome, Plan
from tests.worlds import ReplayedEntropy

DAY = 86_400
FAR = 9_999.0
"""The highest cell there is."""

CASES: dict[str, Json] = {
    "mixture": {"learner": "mixture"},
    "mixture that draws all": {"learner": "mixture", "measure": "quantiles"},
    "online-gradient": {"learner": "online-gradient"},
    "online-gradient as in the paper": {
        "learner": "online-gradient",
        "loss": "log-sum-exp",
        "steps": "coin-betting",
    },
    "online-gradient that draws all": {"learner": "online-gradient", "measure": "quantiles"},
    "bought gradients": {"learner": "online-gradient", "private_gradient": "1/4"},
    "last-release": {"learner": "last-release"},
    "none": {"learner": "none"},
}
"""Each learner that is registered, with each option that makes it learn in another way."""

EXTREMES: dict[str, list[float]] = {
    "the same for ever": [5.0] * 12,
    "from end to end": [0.0, FAR] * 6,
    "at one end": [FAR] * 12,
    "one jump": [100.0] * 8 + [FAR] * 4,
}

every = pytest.mark.parametrize("case", CASES)


def kind(case: str, about_it: Json | None = None, **keys: Any) -> Quantiles:
    """Quartiles of whole numbers, as the configuration makes them."""
    about: Json = {"kind": "quantiles", "source": "s", "column": "x", "epsilon": "1/2"}
    about |= {"quantiles": "quartiles", "resolution": 1, "bounds": [0, FAR], "expected_rows": 500}
    about |= {"guess": {"location": 100, "scale": 30}, "prior": {**CASES[case], **keys}}
    about |= about_it or {}
    section = QuantilesSection.model_validate(about)
    return build(section, BuildContext("add-remove", 1, 1, "duckdb", None))  # type: ignore[arg-type]


def batches(count: int) -> list[Batch]:
    return [Batch("s", str(day), day * DAY, (day + 1) * DAY) for day in range(count)]


def after(made: Quantiles, values: list[float]) -> Json:
    """The state after releases of quartiles that lie on each other, through JSON each time."""
    state = made.init()
    for batch, value in zip(batches(len(values)), values, strict=True):
        plan = made.plan(state, batch)
        state = json.loads(json.dumps(made.learn(state, plan, released(made, plan, value))))
    return state


@pytest.mark.parametrize(
    ("case", "keys", "why"),
    [
        ("mixture", {"quantiles": "median"}, "a single quantile"),
        ("online-gradient", {"epsilon": 6}, "at least 3,000"),
        ("mixture that draws all", {}, "prior.measure"),
        ("none", {}, "its learner"),
        ("mixture", {}, "nothing was released before"),
    ],
    ids=str,
)
def test_a_lesson_says_why_quantiles_are_drawn(case: str, keys: Json, why: str) -> None:
    """From 3,000 of epsilon times the records on no batch is counted: only drawn."""
    about = kind(case, keys)
    (how, *_) = about.lessons(History((), about.init(), batches(1)[0]))
    assert why in str({row["fact"]: row["value"] for row in how.rows}["why"])


def released(made: Quantiles, plan: Plan, value: float) -> Outcome:
    """All quantiles lie at one value; where records are counted, all of them lie there."""
    release_plan = plan.mechanism.release_plan
    if isinstance(release_plan, CountedPlan):
        records = CellCounts(np.array([round(value)]), np.array([500]))
        cuts = within(made.grid, release_plan.next_cuts(()))
        counted = (Histogram(cuts, tuple(exact_counts(records, cuts))),)
        return Outcome(counted_rows(made, release_plan, counted), counted)
    bought = None if plan.mechanism.gradient is None else (value, -value, 1.0, -1.0, 0.0, 9.0)
    rows = tuple({"quantile": float(q), "value": value} for q in made.quantiles)
    return Outcome(rows, bought)


def masses(prior: JointPrior) -> FloatArray:
    """Logarithms of what each quantile's prior gives to some cells."""
    edges = np.array([-0.5, 0.5, 89.5, 110.5, 999.5, FAR - 0.5, FAR + 0.5])
    return np.array([each.log_mass(edges[:-1], edges[1:]) for each in prior.robust])


def test_every_learner_is_here() -> None:
    """One that is registered is held to what follows; the configuration names the same ones."""
    assert {case["learner"] for case in CASES.values()} == set(LEARNERS)
    assert set(LEARNERS) == set(get_args(LearnerName))


@every
def test_it_is_told_nothing_but_releases(case: str) -> None:
    """No method has an argument for data, and an observation has no place for any."""
    learner = type(kind(case).learner)
    named = {"self", "state", "seen", "release_plan", "count", "features", "calendar"}
    named |= {"rows", "shown", "counted"}
    for name in (name for name in dir(Learner) if not name.startswith("_")):
        method = getattr(learner, name)
        if callable(method):
            assert set(inspect.signature(method).parameters) <= named, name
    told = {field.name for field in fields(Observation)}
    assert told == {"values", "features", "release_plan", "gradient", "counted"}


@every
def test_it_is_pure(case: str) -> None:
    """The same state and release give the same next state, and the state given stays as it is."""
    made, state = kind(case), after(kind(case), [100.0, 130.0, 90.0])
    before = json.dumps(state)
    plan = made.plan(state, batches(4)[-1])
    outcome = released(made, plan, 120.0)
    once, again = (made.learn(state, plan, outcome) for _ in range(2))
    assert once == again
    assert json.dumps(state) == before


@every
def test_a_state_survives_json(case: str) -> None:
    """What is read back plans the same draw."""
    made, state = kind(case), after(kind(case), [100.0, 130.0, 90.0, 101.0, 99.0])
    text = json.dumps(state, allow_nan=False)
    batch = batches(6)[-1]
    plans = [made.plan(each, batch) for each in (state, json.loads(text))]
    assert plans[0].event == plans[1].event
    assert len(text) < 60_000


@pytest.mark.thinned(2)
@every
@pytest.mark.parametrize("stream", EXTREMES)
def test_it_is_total_and_its_priors_leave_no_cell_without_mass(case: str, stream: str) -> None:
    """Whatever was released: finite JSON, priors that find any cell, and a draw that goes on."""
    made = kind(case)
    state = after(made, EXTREMES[stream])
    json.dumps(state, allow_nan=False)
    prior = made.believed(state)
    found = masses(prior)
    assert np.isfinite(found).all()
    floor = masses(kind("none").believed({})) + np.log(0.05 * 0.8) - 1e-9
    assert (found >= floor).all(), "the robust prior has lost its weight"
    plan = made.plan(state, batches(13)[-1])
    empty = CellCounts(np.array([], dtype=np.int64), np.array([], dtype=np.int64))
    outcome = made.draw(plan, empty, ReplayedEntropy())
    values = [float(row["value"] or 0) for row in outcome.rows]
    assert values == sorted(values)
    assert 0.0 <= values[0] <= values[-1] <= FAR
    made.learn(state, plan, outcome)


@pytest.mark.thinned(2)
@every
def test_what_a_release_costs_does_not_depend_on_what_was_learned(case: str) -> None:
    """Each way of drawing has the same event but for its number and the digest of the prior."""
    made = kind(case)
    plain = [
        {name: told for name, told in plan.event.items() if name not in ("prior", "drawn")}
        for plan in (
            made.plan(after(made, stream), batches(13)[-1]) for stream in ([], *EXTREMES.values())
        )
    ]
    assert all(each == plain[0] for each in plain)
    assert 0 <= made.learner.gradient_share < 1
    epsilons = {epsilon_of(release_plan.event()) for release_plan in made.learner.mechanisms()}
    assert epsilons <= {made.tree().epsilon}


@every
def test_expected_rows_change_neither_price_nor_state(case: str) -> None:
    """Whatever another job counts: the same ways and event, and a state that goes on."""
    made, batch = kind(case), batches(6)[-1]
    state = after(made, [100.0, 130.0, 90.0, 101.0, 99.0])
    for rows in (1, 50_000):
        other = made.expecting({(): rows})
        assert other.signature() == made.signature()
        assert other.learner.mechanisms() == made.learner.mechanisms()
        plans = [each.plan(state, batch) for each in (made, other)]
        events = [
            {name: told for name, told in plan.event.items() if name not in ("prior", "drawn")}
            for plan in plans
        ]
        assert events[0] == events[1]
        json.dumps(after(other, [100.0, 101.0]), allow_nan=False)
    assert made.expecting({("elsewhere",): 7}) is made


@pytest.mark.thinned(2)
@every
def test_a_planned_way_is_one_of_its_ways(case: str) -> None:
    """In every state; of all quantiles."""
    made, learner = kind(case), kind(case).learner
    mechanisms = learner.mechanisms()
    for stream in ([], *EXTREMES.values()):
        release_plan = learner.plan_release(after(made, stream))
        if release_plan is None:
            assert mechanisms == ()
            continue
        mechanism = (
            release_plan.histograms if isinstance(release_plan, CountedPlan) else release_plan.tree
        )
        assert mechanisms[release_plan.number] == mechanism
        assert (
            isinstance(release_plan, CountedPlan) or release_plan.tree.quantiles == made.quantiles
        )


@pytest.mark.thinned(2)
@every
def test_quantiles_of_counts_are_in_order_in_their_intervals(case: str) -> None:
    """Whatever noise counts have, also where all of them are negative."""
    made, learner = kind(case), kind(case).learner
    for stream in EXTREMES.values():
        release_plan = learner.plan_release(after(made, stream))
        if not isinstance(release_plan, CountedPlan):
            continue
        cuts = within(made.grid, release_plan.next_cuts(()))
        for count in (-1000, 0, 7, 10**6):
            counted = (Histogram(cuts, (count,) * (len(cuts) + 1)),)
            read = np.array(learner.read(release_plan, counted).cells)
            assert (np.diff(read, axis=0) >= 0).all()
            assert (read[:, 1] <= read[:, 0]).all()
            assert (read[:, 0] <= read[:, 2]).all()
            assert made.grid.lower <= read.min() <= read.max() <= made.grid.upper


@every
def test_another_question_is_another_signature_and_another_price_is_not(case: str) -> None:
    """So the store starts a learner anew when its state would mislead, and only then."""
    made = kind(case)
    signature = made.signature()
    assert json.loads(json.dumps(signature)) == signature
    assert replace(made, epsilon=Fraction(1)).signature() == signature
    others = [replace(made, column="y"), replace(made, where="y > 1")]
    others += [replace(made, quantiles=made.quantiles[1:])]
    assert all(other.signature() != signature for other in others)
    known = [
        kind(each).signature()
        for each in CASES
        if "mixture" not in each and "draws all" not in each
    ]
    assert [json.dumps(each) for each in known].count(json.dumps(signature)) <= 1


@every
def test_weights_are_shares_and_the_smoothed_are_in_order(case: str) -> None:
    """Of the parts that it mixes; of what all releases say, where it says anything."""
    made = kind(case)
    state = after(made, [100.0, 130.0, 90.0, 101.0, 99.0])
    for each in (made.init(), state):
        weights = made.learner.weights(each)
        assert not weights or sum(weights.values()) == pytest.approx(1.0)
        assert all(weight >= 0.0 for weight in weights.values())
    smoothed = made.learner.smoothed(state)
    assert len(smoothed) in (0, len(made.quantiles))
    assert made.learner.smoothed(made.init()) == ()
    for each in smoothed:
        assert each.lower <= each.point <= each.upper
    assert [each.point for each in smoothed] == sorted(each.point for each in smoothed)


@pytest.mark.thinned(2)
@every
def test_drawing_all_draws_every_quantile(case: str) -> None:
    """As an oracle is taught, whatever was learned."""
    made, learner = kind(case), kind(case).learner.without_counts()
    for stream in ([], *EXTREMES.values()):
        release_plan = learner.plan_release(after(replace(made, learner=learner), stream))
        assert release_plan is None or isinstance(release_plan, DrawnPlan)


def test_who_counts_infers_and_only_bought_gradients_cost() -> None:
    """Columns and prices follow from these two facts alone."""
    inferring = {case for case in CASES if kind(case).learner.counts_records}
    assert inferring == CASES.keys() - {"bought gradients", "last-release", "none"}
    assert {case for case in CASES if kind(case).learner.gradient_share} == {"bought gradients"}
