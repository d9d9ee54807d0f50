"""Groups of quantiles share strength: later groups know what earlier ones of a batch released."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from streamdp.kinds.grouped import Grouped
from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.learning.learner import LastRelease
from streamdp.learning.mixture.memory import OTHERS
from streamdp.learning.mixture.mixture import BayesianMixture
from streamdp.mechanisms.histograms import Histograms
from streamdp.mechanisms.quantile_tree.planning.choice import choose_tree
from streamdp.mechanisms.quantile_tree.planning.simulation import rank_errors
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.shapes import Cauchy, shapes_from_guess
from streamdp.privacy.price import Price
from streamdp.simulation.comparison import chance
from streamdp.types import Batch, CellCounts, Grid, Json, Outcome, ReleaseKind
from tests.privacy.quantiles.neighbours import counts_of

GRID, GUESS = Grid(Fraction(1), -10_000, 10_000), (0.0, 100.0)
EPSILON, BATCH = Fraction(1), Batch("s", "b", 0, 86_400)
QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
Counts = tuple[CellCounts, ...]
SMALL, LARGE = ("small",), ("large",)


def quantiles(rows: int, targets: tuple[Fraction, ...] = QUARTILES) -> Quantiles:
    """As the configuration makes it of experts."""
    tree, form = QuantileTree(targets, EPSILON, GRID), choose_tree(len(targets), EPSILON, rows)
    shapes = shapes_from_guess(targets, *GUESS) if form.shapes else None
    prior = form.prior((Cauchy(*GUESS),) * len(targets), shapes)
    first, counts = form.tree(targets, EPSILON, GRID), (Histograms(Price(EPSILON), GRID),)
    learner = BayesianMixture(tree, Cauchy(*GUESS), 0.05, GUESS, rows, (first, prior), counts)
    return Quantiles("x", targets, EPSILON, GRID, learner, expected_rows=rows)


def grouped(targets: tuple[Fraction, ...] = QUARTILES) -> Grouped:
    """The small group is listed first, and drawn last."""
    own: dict[tuple[str, ...], ReleaseKind] = {
        SMALL: quantiles(30, targets),
        LARGE: quantiles(1000, targets),
    }
    return Grouped(own[LARGE], ("g",), (SMALL, LARGE), own=own)


def days(count: int, seed: int = 0) -> Sequence[Counts]:
    """Both groups move by the same, each day elsewhere."""
    random = np.random.default_rng(seed)
    moves = random.normal(0.0, 150.0, count)
    return [
        tuple(
            counts_of(tuple(np.rint(random.normal(move, 60.0, rows)).astype(int).tolist()))
            for rows in (30, 1000)
        )
        for move in moves
    ]


def run(kind: Grouped, batches: Sequence[Counts], state: Json, seed: int) -> Json:
    """Rows of each batch, and the state after them."""
    entropy, released = chance(seed), []
    for counts in batches:
        plan = kind.plan(state, BATCH)
        outcome = kind.draw(plan, counts, entropy)
        state = json.loads(json.dumps(kind.learn(state, plan, outcome)))
        released.append(kind.publish(state, outcome).rows)
    return released, state


def error(rows: list[Json], counts: CellCounts, group: str) -> float:
    cells = np.array([round(row["value"]) for row in rows if row["g"] == group])
    return float(rank_errors(counts, QUARTILES, cells).mean())


@pytest.fixture(scope="module")
def moving() -> Sequence[Counts]:
    return days(14)


@pytest.mark.long
def test_a_small_group_is_nearer_for_what_the_large_one_released(
    moving: Sequence[Counts],
) -> None:
    """Against the same group alone, over days on which both move together."""
    together, alone = [], []
    one = Grouped(quantiles(30), ("g",), (SMALL,))
    for seed in range(2):
        both, _ = run(grouped(), moving, {}, seed)
        apart, _ = run(one, [(small,) for small, _ in moving], {}, seed)
        for rows, others, (counts, _) in zip(both[4:], apart[4:], moving[4:], strict=True):
            together.append(error(rows, counts, "small"))
            alone.append(error(others, counts, "small"))
    assert np.mean(together) < 0.9 * np.mean(alone)


@pytest.mark.long
@pytest.mark.parametrize(("common", "least", "most"), [(True, 0.7, 1.0), (False, 0.0, 0.45)])
def test_groups_that_move_apart_soon_trust_their_own_past(
    common: bool, least: float, most: float
) -> None:
    """Weight of what is believed beside the other group, after some days."""
    random = np.random.default_rng(2)
    batches = []
    for move, other in random.normal(0.0, 40.0, (20, 2)):
        moves = zip((move, move if common else other), (300, 1000), strict=True)
        batches.append(
            tuple(
                counts_of(tuple(np.rint(random.normal(at, 60.0, rows)).astype(int).tolist()))
                for at, rows in moves
            )
        )
    kind = grouped()
    kind = replace(kind, own={**kind.own, SMALL: quantiles(300)})
    _, state = run(kind, batches, {}, 0)
    beside = quantiles(300).learner.weights(state[json.dumps(SMALL)])[OTHERS]
    assert least <= beside <= most


def test_rows_are_in_the_order_of_the_list_whatever_is_drawn_first(
    moving: Sequence[Counts],
) -> None:
    released, state = run(grouped(), moving[:2], {}, 0)
    assert [row["g"] for row in released[-1]] == ["small"] * 3 + ["large"] * 3
    assert OTHERS in state[json.dumps(SMALL)]["weights"]
    assert OTHERS not in state[json.dumps(LARGE)]["weights"]


def test_the_first_group_is_drawn_as_if_alone(
    moving: Sequence[Counts],
) -> None:
    """The same rows and state as of a release without groups, with the same chance."""
    released, state = run(grouped(), moving[:1], {}, 0)
    kind, entropy = quantiles(1000), chance(0)
    plan = kind.plan(kind.init(), BATCH)
    outcome = kind.draw(plan, moving[0][1], entropy)
    rows = [{name: row[name] for name in row if name != "g"} for row in released[0][3:]]
    learned = kind.learn(kind.init(), plan, outcome)
    assert rows == [dict(row) for row in kind.publish(learned, outcome).rows]
    assert state[json.dumps(LARGE)] == json.loads(json.dumps(learned))


def test_learners_that_share_nothing_are_drawn_from_the_plan(
    moving: Sequence[Counts],
) -> None:
    learner = LastRelease(Cauchy(*GUESS), 0.05, 100.0, 1.0)
    one = replace(quantiles(1000), learner=learner)
    kind = Grouped(one, ("g",), (SMALL, LARGE))
    plan = kind.plan({}, BATCH)
    outcome = kind.draw(plan, moving[0], chance(0))
    assert tuple(each.plan for each in outcome.auxiliary) == plan.mechanism


def test_groups_of_unknown_size_share_nothing(moving: Sequence[Counts]) -> None:
    """Nobody knows how noisy they are."""
    one = replace(quantiles(1000), expected_rows=None)
    kind = Grouped(one, ("g",), (SMALL, LARGE))
    plan = kind.plan({}, BATCH)
    outcome = kind.draw(plan, moving[0], chance(0))
    assert tuple(each.plan for each in outcome.auxiliary) == plan.mechanism


def test_a_group_may_come_later_and_others_may_go(
    moving: Sequence[Counts],
) -> None:
    """What was learned of a group stays, whoever else is in the list."""
    kind = grouped()
    _, state = run(kind, moving[:3], {}, 0)
    more = replace(kind, groups=(SMALL, LARGE, ("new",)))
    batches = [(*both, both[0]) for both in moving[3:5]]
    released, later = run(more, batches, state, 1)
    assert len(released[-1]) == 9
    assert set(later) == {*state, '["new"]'}
    alone = replace(kind, groups=(SMALL,))
    _, left = run(alone, [(both[0],) for both in moving[5:6]], later, 2)
    assert OTHERS in left[json.dumps(SMALL)]["weights"]
    assert left[json.dumps(LARGE)] == later[json.dumps(LARGE)]


@pytest.mark.parametrize("first", [(), (3,) * 5, (-10_000, 10_000) * 50])
def test_any_batch_is_drawn(first: tuple[int, ...]) -> None:
    """Of none, of equal and of far records, of one quantile and of several."""
    for targets in (QUARTILES, (Fraction(1, 2),)):
        kind, counts = grouped(targets), (counts_of((7,)), counts_of(first))
        released, _ = run(kind, [counts] * 4, {}, 0)
        for rows in released:
            for each in ("small", "large"):
                values = [row["value"] for row in rows if row["g"] == each]
                assert values == sorted(values)
                assert len(values) == len(targets)


def test_the_price_is_that_of_one_group_whatever_was_released(
    moving: Sequence[Counts],
) -> None:
    """The event holds the worst way that any group may be drawn in, before and after."""
    kind = grouped()
    _, state = run(kind, moving[:5], {}, 0)
    states: tuple[Json, ...] = ({}, state)
    events = [kind.plan(each, BATCH).event for each in states]
    known = [{name: event[name] for name in event if name != "prior"} for event in events]
    assert known[0] == known[1]


def test_what_is_shown_follows_from_the_rows_alone() -> None:
    """Not from anything else of an outcome."""
    kind = quantiles(1000)
    plan = kind.plan(kind.init(), BATCH)
    outcome = kind.draw(plan, counts_of((1, 2, 3)), chance(0))
    (one,) = kind.shown(plan, outcome)
    (other,) = kind.shown(plan, Outcome(outcome.rows, "something else"))
    assert one.rows == other.rows == 1000
    assert np.array_equal(one.distribution.cells, other.distribution.cells)
    assert np.array_equal(one.distribution.levels, other.distribution.levels)
