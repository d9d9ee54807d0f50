"""The learner `online-gradient` through whole releases."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.learning.learner import CountedPlan, DrawnPlan, Fixed
from streamdp.learning.mixture import release_plan
from streamdp.learning.mixture.mixture import BayesianMixture
from streamdp.learning.online_gradient.learner import OnlineGradient
from streamdp.priors.shapes import Cauchy
from streamdp.types import CellCounts, FloatArray, Row
from tests.learning.mixture.worlds import BATCH, DECILES, batch, errors, kind, run

GUESS = (0.0, 1.0)


def all_errors(
    made: Quantiles, rows: list[tuple[Row, ...]], batches: list[CellCounts]
) -> FloatArray:
    """Rank errors of each release, shape (batches, m)."""
    return np.array([errors(made, *pair) for pair in zip(rows, batches, strict=True)])


def gradient(**keys: object) -> Quantiles:
    """The release kind of these tests with this learner."""
    made = kind(**keys)  # type: ignore[arg-type]
    known = made.learner
    assert isinstance(known, BayesianMixture)
    about = known.tree, known.robust, known.robust_weight, known.guess, known.expected_rows
    return replace(made, learner=OnlineGradient(*about, known.first, known.histograms))


@pytest.mark.long
def test_it_errs_less_than_no_learning() -> None:
    """Normal batches that move a little, with a guess that is off."""
    random = np.random.default_rng(3)
    batches = [batch(random.normal(2.0 + 0.3 * random.normal(), 1.0, 500)) for _ in range(60)]
    learned, _ = run(gradient(), batches)
    none = replace(kind(), learner=Fixed((Cauchy(*GUESS),) * len(DECILES)))
    plain, _ = run(none, batches)
    assert (
        all_errors(gradient(), learned, batches)[20:].mean()
        < 0.8 * all_errors(gradient(), plain, batches)[20:].mean()
    )


def test_a_wrong_guess_is_left() -> None:
    """Batches a thousand guessed scales away: errors of a few releases."""
    random = np.random.default_rng(4)
    batches = [batch(random.normal(1_000.0, 1.0, 500)) for _ in range(40)]
    rows, _ = run(gradient(), batches)
    assert all_errors(gradient(), rows, batches)[15:].mean() < 0.03


def test_cuts_lie_at_the_quantiles_of_the_learned_priors() -> None:
    """The second release on: a batch is counted where gradient descent believes its deciles."""
    random = np.random.default_rng(5)
    batches = [batch(random.normal(3.0, 1.0, 500)) for _ in range(30)]
    made = gradient(epsilon=Fraction(2))
    _, state = run(made, batches)
    release_plan = made.plan(state, BATCH).mechanism.release_plan
    assert isinstance(release_plan, CountedPlan)
    (learned,) = release_plan.basis.memory.predictors
    truth = 300.0 + 100.0 * np.array([-1.28, -0.84, -0.52, -0.25, 0.0, 0.25, 0.52, 0.84, 1.28])
    inputs = release_plan.basis.facts.inputs
    assert learned.quantiles(inputs) == pytest.approx(truth, abs=35.0)
    seen = made.learner.linear_priors(state)
    assert seen is not None
    assert seen.effects @ inputs * 100.0 == pytest.approx(learned.quantiles(inputs))
    assert seen.scales * 100.0 == pytest.approx(learned.descent.scales * learned.unit.half_width)
    assert np.array(release_plan.next_cuts(()))[2:7] == pytest.approx(truth[2:7], abs=60.0)


def test_a_single_quantile_is_drawn_from_the_learned_prior() -> None:
    """It learns from draws as from counts."""
    random = np.random.default_rng(6)
    batches = [batch(random.normal(5.0, 1.0, 500)) for _ in range(40)]
    made = gradient(targets=(Fraction(1, 2),), epsilon=Fraction(1, 10))
    rows, state = run(made, batches)
    assert all_errors(made, rows, batches)[15:].mean() < 0.08
    assert isinstance(made.plan(state, BATCH).mechanism.release_plan, DrawnPlan)


def test_a_state_survives_json_and_tells_its_losses() -> None:
    """The surrogate's loss falls as the stream is learned."""
    random = np.random.default_rng(7)
    batches = [batch(random.normal(2.0, 1.0, 500)) for _ in range(30)]
    made = gradient()
    _, early = run(made, batches[:2])
    _, late = run(made, batches[2:], json.loads(json.dumps(early)), seed=1)
    assert late["descent"]["losses"][1] > early["descent"]["losses"][1]
    assert late["descent"]["losses"][0] < 40.0


@pytest.mark.parametrize("targets", [(1, 50), (99, 100), (1, 4)], ids=str)
def test_a_signature_names_the_levels_of_other_cuts(
    targets: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state has a prior for each level, so it is not read where a batch is cut at others."""
    keys = {"targets": (Fraction(*targets),)}
    before = gradient(**keys).signature()
    monkeypatch.setattr(release_plan, "EVEN", np.arange(1, 20) / 20.0)
    after = gradient(**keys).signature()
    assert after != before
    assert len(after["levels"]) >= 19 > len(before["levels"])
