"""A stream that cannot be forecast is drawn as if nothing were learned, and no longer than that."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from streamdp.kinds.charging import UnitCharging
from streamdp.kinds.grouped import Grouped
from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.learning.experts import ExpertMixture
from streamdp.learning.fixed import Fixed
from streamdp.learning.opening import TURN, Opening
from streamdp.mechanisms.choice import CANDIDATES
from streamdp.mechanisms.simulation import PublicEntropy, rank_error
from streamdp.mechanisms.tree import QuantileTree
from streamdp.priors.families import Cauchy
from streamdp.priors.shapes import shapes_from_guess
from streamdp.privacy.amounts import nano_up
from streamdp.privacy.events import rho_of
from streamdp.types import Batch, CellCounts, Charge, Grid, Json

TARGETS = tuple(Fraction(i, 10) for i in range(1, 10))
EPSILON, ROWS, GUESS = Fraction(1, 10), 900, (0.0, 200.0)
GRID = Grid(Fraction(1), -10_000, 10_000)
FORM = CANDIDATES["tree of 4, shapes"]
ROBUST = (Cauchy(*GUESS),) * len(TARGETS)
SHAPES = shapes_from_guess(TARGETS, *GUESS)
EXPERTS = ExpertMixture(QuantileTree(TARGETS, EPSILON, GRID), ROBUST[0], 0.05, GUESS, ROWS)
TREE = FORM.tree(TARGETS, EPSILON, GRID)
OPENING = Opening(EXPERTS, TREE, FORM.prior(ROBUST, SHAPES))
LEARNING = Quantiles("x", TARGETS, EPSILON, GRID, EXPERTS, opening=OPENING)
BATCH = Batch("s", "k")
STATIC = Quantiles("x", TARGETS, EPSILON, GRID, Fixed(ROBUST), form=FORM, shapes=SHAPES)


def stream(days: int, moves: float) -> list[CellCounts]:
    """Normal records of spread 100 around a place that is drawn anew every day."""
    chance = np.random.default_rng(5)
    places = chance.normal(0.0, moves, days)
    records = [np.rint(chance.normal(place, 100.0, ROWS)).astype(np.int64) for place in places]
    return [CellCounts(*np.unique(each, return_counts=True)) for each in records]


def released(kind: Quantiles, batches: list[CellCounts]) -> tuple[list[float], list[bool], Json]:
    """Rank error of each day, whether it was drawn under broad shapes, and the last state."""
    entropy, state = PublicEntropy("opening"), kind.init()
    errors, opened = [], []
    for batch in batches:
        plan = kind.plan(state, Batch("s", "k"))
        outcome = kind.draw(plan, batch, entropy)
        cells = tuple(round(float(row["value"] or 0)) for row in outcome.rows)
        errors.append(rank_error(batch, TARGETS, cells))
        opened.append(plan.mechanism.learner is OPENING)
        state = json.loads(json.dumps(kind.learn(state, plan, outcome)))
    return errors, opened, state


def test_days_that_leap_are_drawn_under_broad_shapes() -> None:
    """Where places leap by three spreads most later days open, and learning costs little."""
    batches = stream(40, 300.0)
    errors, opened, _ = released(LEARNING, batches)
    unlearned, _, _ = released(STATIC, batches)
    assert sum(opened[20:]) >= 15
    assert fmean(errors[20:]) < 1.25 * fmean(unlearned[20:])


def test_days_alike_are_drawn_from_what_was_learned() -> None:
    """Where nothing moves, learned priors take over, and need no long years to mend the guess.

    The guess is twice too wide; the same learner without an opening stays far off for months.
    """
    batches = stream(50, 2.0)
    errors, opened, _ = released(LEARNING, batches)
    alone, _, _ = released(replace(LEARNING, opening=None), batches)
    assert not any(opened[20:])
    assert fmean(errors[20:]) < 0.75 * fmean(alone[20:])


def test_it_closes_when_the_leaps_end() -> None:
    """A state that opened settles again once days are alike."""
    _, opened, _ = released(LEARNING, stream(25, 300.0) + stream(60, 2.0))
    assert any(opened[10:25])
    assert not opened[-1]


@pytest.mark.parametrize("value", [1e12, -1e12, 0.0])
def test_no_release_breaks_the_state(value: float) -> None:
    """Whatever was released, the state stays finite JSON."""
    state = OPENING.learn(EXPERTS.init(), (value,) * len(TARGETS))
    json.dumps(state, allow_nan=False)
    assert isinstance(OPENING.unsettled(state), bool)


def test_a_guess_wrong_by_a_thousand_scales_is_found() -> None:
    """Broad shapes do not reach there, so they are left as soon as a release lies outside."""
    epsilon, grid, form = (
        Fraction(1, 2),
        Grid(Fraction(1), -(10**6), 10**6),
        CANDIDATES["joint, shapes"],
    )
    experts = replace(EXPERTS, tree=QuantileTree(TARGETS, epsilon, grid))
    like = Opening(experts, form.tree(TARGETS, epsilon, grid), form.prior(ROBUST, SHAPES))
    far = [CellCounts(batch.cells + 200_000, batch.counts) for batch in stream(20, 2.0)]
    errors, _, _ = released(Quantiles("x", TARGETS, epsilon, grid, experts, opening=like), far)
    assert fmean(errors[10:]) < 0.05


def test_with_features_nothing_opens_beyond_the_reach_of_broad_shapes() -> None:
    """Where the last release lies further off than any shape only the experts find the stream."""
    near = EXPERTS.learn(EXPERTS.init(), tuple(range(len(TARGETS))), (1.0,))
    far = near | {"point": [*near["point"][:-1], 9.0 * GUESS[1]]}
    assert OPENING.unsettled(EXPERTS.init(), (1.0,))
    assert OPENING.unsettled(near, (1.0,))
    assert not OPENING.unsettled(far, (1.0,))


def test_experts_and_shapes_take_turns_while_nobody_knows_where_a_stream_is() -> None:
    """Tails out of reach, the middle among them: some releases each; the count ends by itself.

    A stream whose middle lies out of reach is the experts' for good.
    """
    state = EXPERTS.learn(EXPERTS.init(), tuple(range(len(TARGETS))))
    lost = state | {"point": [*state["point"][:-1], 9.0 * GUESS[1]]}
    opened = []
    for _ in range(4 * TURN):
        opened.append(OPENING.unsettled(lost))
        lost = OPENING.counted(lost, {name: lost[name] for name in lost if name != "beyond"})
    assert opened == ([False] * TURN + [True] * TURN) * 2
    assert "beyond" not in OPENING.counted(lost, state)
    found = lost | {"point": [9.0 * GUESS[1]] * len(TARGETS)}
    assert not any(OPENING.unsettled(found | {"beyond": count}) for count in range(4 * TURN))


def charge(kind: Quantiles | Grouped, state: Json) -> Charge:
    return UnitCharging().charge(kind.plan(state, Batch("s", "k")))


def test_what_is_charged_does_not_depend_on_the_way_a_batch_is_drawn() -> None:
    """Epsilon and rho are those of the worse way, so that a sum of charges is no function of
    releases; both ways are drawn in such a stream."""
    _, opened, state = released(LEARNING, stream(12, 0.0))
    assert {opened[0], LEARNING.plan(state, BATCH).mechanism.learner is OPENING} == {True, False}
    first, later = charge(LEARNING, LEARNING.init()), charge(LEARNING, state)
    assert (first.epsilon_nano, first.rho_nano) == (later.epsilon_nano, later.rho_nano)
    assert later.rho_nano == max(nano_up(rho_of(t.event())) for t in (LEARNING.tree(), TREE))
    assert (first.event["drawn"], later.event["drawn"]) == (1, 0)


def test_groups_are_charged_the_worst_of_their_ways() -> None:
    """One group is drawn from what was learned, the other under broad shapes, in either order."""
    _, _, state = released(LEARNING, stream(12, 0.0))
    worst = nano_up(rho_of(TREE.event()))
    for name in ("settled", "new"):
        groups = ((name,), ("new" if name == "settled" else "settled",))
        grouped = Grouped(LEARNING, ("group",), groups)
        plan = grouped.plan({'["settled"]': state}, BATCH)
        assert len({each.mechanism.tree for each in plan.mechanism}) == 2
        assert UnitCharging().charge(plan).rho_nano == worst


def test_groups_of_different_trees_are_charged_the_largest_rho(monkeypatch: Any) -> None:
    """Also where a kind books one way at a time."""
    _, _, state = released(LEARNING, stream(12, 0.0))
    monkeypatch.setattr(Quantiles, "_event", lambda self, tree: tree.event())
    rhos = [
        charge(Grouped(LEARNING, ("g",), groups), {'["old"]': state}).rho_nano
        for groups in ((("old",), ("new",)), (("new",), ("old",)))
    ]
    assert rhos == [nano_up(rho_of(TREE.event()))] * 2
