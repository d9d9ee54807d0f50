"""The release kind's use of the mechanisms: charge, prior, rows and accuracy statement."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from streamdp.kinds.charging import UnitCharging
from streamdp.kinds.quantiles.accuracy import RankError
from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.learning.learner import LastRelease
from streamdp.mechanisms.quantile_tree.planning.choice import CANDIDATES
from streamdp.priors.shapes import Cauchy, shapes_from_guess
from streamdp.privacy.draws import OperatingSystemEntropy
from streamdp.types import Batch, CellCounts, Grid

QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
GRID = Grid(Fraction(1, 1000), -50_000, 50_000)
BATCH = Batch("source", "2013-01-01")
LEARNER = LastRelease(Cauchy(0.0, 1.0), 0.05, 1.0, 0.1)


def kind(**options):
    return Quantiles("column", QUARTILES, Fraction(1), GRID, LEARNER, **options)


@pytest.mark.parametrize("form", CANDIDATES.values(), ids=CANDIDATES)
@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_a_release_costs_its_epsilon_and_gives_one_row_a_quantile(form, relation):
    """Whatever the form: the charge is epsilon, rho at most epsilon²/8, rows sorted, learned."""
    shapes = shapes_from_guess(QUARTILES, 0.0, 1.0) if form.shapes else None
    release = kind(form=form, relation=relation, shapes=shapes)
    state = release.init()
    for _ in range(2):
        plan = release.plan(state, BATCH)
        charge = UnitCharging().charge(plan)
        assert charge.epsilon_nano == 10**9
        assert charge.rho_nano <= 10**9 // 8
        assert plan.event["relation"] == relation
        counts = CellCounts(np.arange(-20, 20), np.full(40, 5))
        outcome = release.draw(plan, counts, OperatingSystemEntropy())
        values = [row["value"] for row in outcome.rows]
        assert [row["quantile"] for row in outcome.rows] == [0.25, 0.5, 0.75]
        assert values == sorted(values)
        assert "lower" not in outcome.rows[0]
        state = release.learn(state, plan, outcome)


def test_the_event_names_the_prior():
    """Another prior, another digest; the same prior, the same."""
    shapes = shapes_from_guess(QUARTILES, 0.0, 1.0)
    other = shapes_from_guess(QUARTILES, 0.0, 2.0)
    joint = CANDIDATES["joint, shapes"]
    digests = [
        kind(form=joint, shapes=each).plan(LEARNER.init(), BATCH).event["prior"]
        for each in (shapes, shapes, other, None)
    ]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


@pytest.mark.long
def test_expected_rows_state_the_accuracy():
    """Without rows there are no intervals and no figures; more rows, a smaller error."""
    few, many = kind(expected_rows=100), kind(expected_rows=10_000)
    plan = few.plan(few.init(), BATCH)
    outcome = few.draw(plan, CellCounts(np.array([1]), np.array([9])), OperatingSystemEntropy())
    assert all(row["lower"] <= row["value"] <= row["upper"] for row in outcome.rows)
    accuracy = RankError()
    errors: list[Any] = [accuracy.expected(each)["rank_error_95"] for each in (many, few, kind())]
    assert 0.0 < errors[0] < errors[1] < 1.0
    assert errors[2] is None
    assert accuracy.price_for(kind(), 0.1) is None
    needed: list[Any] = [accuracy.price_for(each, 0.05) for each in (many, few)]
    assert needed[0].amount <= needed[1].amount
