"""A release that buys a gradient for its learner: its price, what is published, what is learned."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamdp import wiring
from streamdp.config import load
from streamdp.kinds.charging import UnitCharging
from streamdp.kinds.grouped import Grouped
from streamdp.kinds.quantiles.accuracy import RankError
from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.learning.online_gradient.point_gradient import PointGradient, PrivateGradient
from streamdp.priors.shapes import Cauchy
from streamdp.privacy.events import epsilon_of
from streamdp.store.ledger.privacy_guarantee import loss_of, parameters_over_time, recompute
from streamdp.types import Batch, CellCounts, Grid, Plan, UnitBound
from tests.worlds import START, ReplayedEntropy, World

TARGETS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
BATCH = Batch("s", "k", START, START + 86_400)
GUESS = (50.0, 20.0)
DEMO = (Path(__file__).parents[2] / "config.yaml").read_text()


def bought(epsilon: str = "1/10", share: str = "1/5", rows: int = 1, groups: int = 1) -> Quantiles:
    """At what one record of a unit gets of epsilon."""
    learner = PrivateGradient(Cauchy(*GUESS), 0.1, GUESS, 0.5, 0.5, gradient_share=Fraction(share))
    grid = Grid(Fraction(1), 0, 100)
    price = Fraction(epsilon) / rows
    return Quantiles("x", TARGETS, price, grid, learner, unit_rows=rows, groups=groups)


def counts(values: list[int]) -> CellCounts:
    cells, numbers = np.unique(np.asarray(values, dtype=np.int64), return_counts=True)
    return CellCounts(cells, numbers.astype(np.int64))


def parts(plan: Plan, bound: UnitBound | None) -> tuple[Fraction, Fraction]:
    """What the trees of a unit cost, and its gradients."""
    trees, gradients = UnitCharging(bound).charge(plan).event["events"]
    return epsilon_of(trees) or Fraction(0), epsilon_of(gradients) or Fraction(0)


UNIT = UnitBound("plane", 4)


@pytest.mark.parametrize("bound", [None, UNIT])
@pytest.mark.parametrize("groups", [0, 2, 7])
def test_shares_add_up_to_the_price(bound: UnitBound | None, groups: int) -> None:
    """Of records, units and groups; the noise of a gradient is for as many as a unit can turn."""
    rows = bound.rows if bound else 1
    kind: Quantiles | Grouped = bought(rows=rows, groups=groups or 1)
    if groups:
        kind = Grouped(kind, ("o",), tuple((f"{i}",) for i in range(groups)))
    plan = kind.plan(kind.init(), BATCH)
    assert parts(plan, bound) == (Fraction(4, 50), Fraction(1, 50))
    assert UnitCharging(bound).charge(plan).epsilon_nano == 10**8
    mechanism = plan.mechanism[0].mechanism if groups else plan.mechanism
    assert mechanism.gradient.turned == min(4 if bound else 1, max(groups, 1))
    assert mechanism.gradient.epsilon == Fraction(1, 50)
    assert mechanism.release_plan.tree.epsilon == Fraction(4, 50) / (4 if bound else 1)


def test_what_is_not_bought_costs_and_tells_nothing() -> None:
    """Without the option: the event of the tree alone, and nothing beside the rows."""
    free = PointGradient(Cauchy(*GUESS), 0.1, GUESS, 0.5, 0.5)
    kind = replace(bought(), learner=free)
    plan = kind.plan(kind.init(), BATCH)
    assert plan.event["mechanism"] == "quantile-tree"
    assert plan.mechanism.release_plan.tree.epsilon == Fraction(1, 10)
    assert kind.draw(plan, counts([40, 50]), ReplayedEntropy()).auxiliary is None
    assert "private_gradient" not in kind.signature()
    assert kind.signature() != bought().signature()


def test_the_ledger_is_charged_and_read_as_for_any_release(tmp_path: Path) -> None:
    """Five days: five times epsilon; today's accountants agree, a statement names what was asked.

    Published rows are those of a release, and what was learned is in the store.
    """
    world = World(tmp_path)
    assert world.runner.round([world.job(kind=bought())]).released == 5
    charged = list(recompute(world.store.database))
    assert [each.epsilon_nano for each in charged] == [10**8] * 5
    assert not any(each.differs for each in charged)
    assert loss_of(world.store.database, "s", Fraction(1, 10**9)).pure == 5 * 10**8
    (asked,) = parameters_over_time(world.store.database, "job")
    assert (asked["column"], asked["mechanism"]) == ("x", "quantile-tree")
    assert {name for each in world.sink.taken for row in each.rows for name in row} == {
        "quantile",
        "value",
    }
    (state,) = world.store.database.execute(
        "SELECT state FROM learned_state JOIN learner USING (reservation)"
        " ORDER BY version DESC LIMIT 1"
    ).fetchone()
    assert np.shape(json.loads(state)["parameters"]) == (3, 2)


@pytest.mark.long
def test_a_large_epsilon_teaches_the_truth() -> None:
    """Locations leave a wrong guess for the quantiles; at a small one they stay about the guess."""
    batch, away = counts([80] * 10 + [85] * 10 + [90] * 10), {}
    for epsilon in ("1/10", "10000"):
        kind = bought(epsilon)
        state = kind.init()
        for day in range(300):
            plan = kind.plan(state, BATCH)
            outcome = kind.draw(plan, batch, ReplayedEntropy(f"{day}"))
            state = json.loads(json.dumps(kind.learn(state, plan, outcome)))
        parameters = np.array(state["parameters"])
        locations = parameters[:, 0] / parameters[:, 1]
        away[epsilon] = float(np.abs(locations - [80.0, 85.0, 90.0]).max())
    assert away["10000"] < 6.0 < 20.0 < away["1/10"] < 60.0


def test_an_empty_batch_is_told_as_a_full_one() -> None:
    """As many rows and numbers, and a state to go on from."""
    for values in ([], list(range(100))):
        kind = bought()
        plan = kind.plan(kind.init(), BATCH)
        outcome = kind.draw(plan, counts(values), ReplayedEntropy())
        assert (len(outcome.auxiliary), len(outcome.rows)) == (6, 3)
        following = kind.plan(kind.learn(kind.init(), plan, outcome), BATCH)
        paid = [UnitCharging().charge(each).epsilon_nano for each in (plan, following)]
        assert paid[0] == paid[1]


def test_each_group_learns_from_its_own_gradient() -> None:
    """Rows and numbers are split over groups as they were drawn."""
    kind = Grouped(bought("10000", groups=2), ("o",), (("low",), ("high",)))
    state = kind.init()
    for day in range(60):
        plan = kind.plan(state, BATCH)
        batches = (counts([10, 11, 12]), counts([80, 81, 82]))
        outcome = kind.draw(plan, batches, ReplayedEntropy(f"{day}"))
        assert len(outcome.rows) == 6
        assert [len(each.outcome.auxiliary) for each in outcome.auxiliary] == [6, 6]
        state = kind.learn(state, plan, outcome)
    learned = [np.array(each["parameters"]) for each in state.values()]
    low, high = (each[:, 0] / each[:, 1] for each in learned)
    assert low.max() < 48.0 < 52.0 < high.min()


@pytest.mark.long
def test_accuracy_is_that_of_what_the_release_gets(tmp_path: Path) -> None:
    """Half of epsilon for the gradient: the error of half of epsilon, and twice as much needed.

    First priors differ (Laplace and Cauchy, or Cauchy alone), so the bounds do, if little.
    """
    kinds: dict[str | None, Any] = {}
    for share, epsilon in (("1/2", "1/5"), (None, "1/10")):
        wanted = "learner: online-gradient"
        wanted += f", private_gradient: {share}" if share else ""
        text = DEMO.replace("epsilon: 0.1 ", f"epsilon: {epsilon} ")
        start = text.index("    prior:")
        end = text.index("    sinks:", start)
        prior = f"    mechanism: {{branching: 2}}\n    prior: {{{wanted}, robust: cauchy}}\n"
        text = text[:start] + prior + text[end:]
        (tmp_path / "config.yaml").write_text(text)
        kinds[share] = wiring.release_kind(load(tmp_path / "config.yaml"), "air_time")
    half, free = kinds["1/2"], kinds[None]
    accuracy = RankError()
    bought, own = accuracy.expected(half), accuracy.expected(free)
    assert half.first_plan()[0] == free.first_plan()[0]
    assert bought["rank_error_95"] == own["rank_error_95"]
    assert bought["rank_error_bound_95"] == pytest.approx(own["rank_error_bound_95"], rel=0.05)
    needed = accuracy.price_for(free, 0.1)
    assert needed is not None
    doubled = accuracy.price_for(half, 0.1)
    assert doubled is not None
    assert float(doubled.amount) == pytest.approx(2 * float(needed.amount), rel=0.1)
