"""Releases that measure a few quantiles and infer the others, enumerated as they are published."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from streamdp.kinds.quantiles.build import build
from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.kinds.quantiles.section import QuantilesSection
from streamdp.kinds.spec import BuildContext
from streamdp.learning.experts.mixture import ExpertMixture
from streamdp.learning.experts.plans import Plans
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.families import Cauchy
from streamdp.privacy.events import epsilon_of
from streamdp.types import Batch, CellCounts, Entropy, Json, Outcome, Plan
from tests.privacy.quantiles.law import Law, forking, law_of
from tests.privacy.quantiles.neighbours import Records, counts_of, log_ratio, pairs, unit_grid

EPSILON = Fraction(1)
CELLS, MOST = 4, 4
TARGETS = tuple(Fraction(index, 5) for index in range(1, 5))
BATCH = Batch("s", "2024-03-01")
SURE = 1e-6
"""Robust weight of a learner that is nearly sure of itself: the worst for privacy."""


def kind(robust_weight: float = SURE) -> Quantiles:
    """Four quantiles in two turns, over four cells."""
    tree = QuantileTree(TARGETS, EPSILON, unit_grid(CELLS))
    learner = ExpertMixture(tree, Cauchy(1.0, 1.0), robust_weight, (1.0, 1.0), 3, few=True)
    return Quantiles("x", TARGETS, EPSILON, tree.grid, learner)


def learned(made: Quantiles, values: tuple[float, ...], releases: int) -> Json:
    """The state after releases that were all alike: past values and narrow beliefs."""
    state = made.init()
    for _ in range(releases):
        plan = made.plan(state, BATCH)
        rows = tuple(
            {"quantile": float(q), "value": v} for q, v in zip(TARGETS, values, strict=True)
        )
        state = made.learn(state, plan, Outcome(rows))
    return state


def published(made: Quantiles, plan: Plan, records: Records) -> Law[Any]:
    """The law of all values of a release."""
    statistic = counts_of(records)

    def draw(entropy: Entropy) -> tuple[Any, ...]:
        return tuple(row["value"] for row in made.draw(plan, statistic, entropy).rows)

    return law_of(draw)


def largest_loss(made: Quantiles, state: Json, enough: float = math.inf) -> float:
    """Over all neighbours of a few records, or the first that is enough."""
    plan = made.plan(state, BATCH)
    with forking(1):
        laws: dict[Records, Law[Any]] = {}
        worst = 0.0
        for pair in pairs("add-remove", CELLS, MOST):
            for records in pair:
                if records not in laws:
                    laws[records] = published(made, plan, records)
            first, second = laws[pair[0]], laws[pair[1]]
            assert sum(first.values()) == 1
            for values in first.keys() | second.keys():
                nothing = Fraction(0)
                ratio = log_ratio(first.get(values, nothing), second.get(values, nothing))
                worst = max(worst, ratio)
            if worst > enough:
                break
    return worst


@pytest.mark.parametrize("releases", [3, 4, 12])
@pytest.mark.parametrize("values", [(0.0, 1.0, 2.0, 3.0), (2.0, 2.0, 2.0, 2.0)])
def test_what_is_measured_and_inferred_loses_no_more_than_epsilon(
    values: tuple[float, ...], releases: int
) -> None:
    """In every turn, from beliefs that are nearly sure, with exact past values in the prior."""
    made = kind()
    state = learned(made, values, releases)
    plan = made.plan(state, BATCH)
    assert epsilon_of(plan.event) == EPSILON
    assert 0.3 < largest_loss(made, state) <= EPSILON


class WayOfTheBatch(Quantiles):
    """A mistake: what is measured depends on how many records there are."""

    def draw(self, plan: Plan, statistic: CellCounts, entropy: Entropy) -> Outcome:
        made = plan.mechanism
        if statistic.counts.sum() > 1:
            learner = made.way and self.learner
            assert isinstance(learner, ExpertMixture)
            panel = replace(made.way.panel, turns=made.way.panel.turns + 1)
            way = learner.way(panel.to_json() | {"point": [1.0] * 4})
            made = replace(made, tree=way.tree, prior=way.prior, way=way)
        return Quantiles.draw(self, replace(plan, mechanism=made), statistic, entropy)


class ReadWithTheRecords(Quantiles):
    """A mistake: quantiles that are not measured are those of the batch."""

    def draw(self, plan: Plan, statistic: CellCounts, entropy: Entropy) -> Outcome:
        rows = [dict(row) for row in Quantiles.draw(self, plan, statistic, entropy).rows]
        middle = float(np.repeat(statistic.cells, statistic.counts).sum() % CELLS)
        for row in rows:
            if row["origin"] == "inferred":
                row["value"] = middle
        return Outcome(tuple(rows))


@pytest.mark.parametrize("mistake", [WayOfTheBatch, ReadWithTheRecords])
def test_mistakes_are_caught(mistake: Callable[..., Quantiles]) -> None:
    """What looks at the batch beside the draws loses more than is charged."""
    right = kind()
    names = "column", "quantiles", "epsilon", "grid", "learner"
    wrong = mistake(**{name: getattr(right, name) for name in names})
    most = 1.05 * float(EPSILON)
    assert largest_loss(wrong, learned(right, (0.0, 1.0, 2.0, 3.0), 4), most) > most


def test_every_way_costs_the_same_epsilon_whatever_was_released() -> None:
    """The price is fixed before the first release; how a batch is drawn cannot change it."""
    made = kind()
    learner = made.learner
    assert isinstance(learner, ExpertMixture)
    assert len(learner.trees()) == 3
    assert {epsilon_of(tree.event()) for tree in learner.trees()} == {EPSILON}
    states = [made.init(), *(learned(made, (0.0, 1.0, 2.0, 3.0), count) for count in range(1, 6))]
    events = [made.plan(state, BATCH).event for state in states]
    assert {epsilon_of(event) for event in events} == {EPSILON}
    assert len({event["drawn"] for event in events}) > 1
    assert all(event["events"] == events[0]["events"] for event in events)


@pytest.mark.parametrize("count", [3, 4, 7])
@pytest.mark.parametrize("drawn", ["few", "all", "broad"])
def test_the_ledger_names_the_way_that_is_drawn(
    count: int, drawn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where one turn holds all quantiles, and is itself the way that measures them all."""
    section = QuantilesSection.model_validate(
        {
            "kind": "quantiles",
            "source": "s",
            "column": "x",
            "epsilon": 1,
            "quantiles": [f"{index}/{count + 1}" for index in range(1, count + 1)],
            "resolution": 1,
            "bounds": [0, 100],
            "expected_rows": 100,
            "prior": {"learner": "experts", "measure": "few"},
        }
    )
    made = build(section, BuildContext("add-remove", 1, 1, "duckdb", None))  # type: ignore[arg-type]
    monkeypatch.setattr(Plans, "best", lambda *_: drawn)
    plan = made.plan(made.init(), BATCH)
    assert plan.event["events"][plan.event["drawn"]] == plan.mechanism.tree.event()
