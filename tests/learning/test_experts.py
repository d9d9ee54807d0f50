from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from streamdp.learning.experts import ExpertMixture
from streamdp.learning.filters import Filters
from streamdp.learning.public import PublicFit
from streamdp.learning.update import learned, posterior
from streamdp.mechanisms.grains import GRAINS
from streamdp.mechanisms.tree import QuantileTree
from streamdp.priors.families import Cauchy
from streamdp.priors.joint import JointPrior
from streamdp.types import CellCounts, FloatArray, Grid, Json

QUANTILES = tuple(Fraction(index, 10) for index in range(1, 10))
GRID = Grid(Fraction(1, 100), -10_000_000, 10_000_000)
NORMAL = np.array([-1.28, -0.84, -0.52, -0.25, 0.0, 0.25, 0.52, 0.84, 1.28])


@dataclass(slots=True)
class Seeded:
    generator: random.Random

    def bits(self, count: int) -> int:
        return self.generator.getrandbits(count)


class CoupledTree(QuantileTree):
    """Each level from priors that know the levels above."""

    def _updated(self, prior: JointPrior, points: dict[int, int]) -> JointPrior:
        width = float(self.grid.resolution)
        return prior.given({j: point // GRAINS * width for j, point in points.items()}, width)


def learner(epsilon: str = "1/2", guess: tuple[float, float] = (0.0, 1.0)) -> ExpertMixture:
    tree = CoupledTree(QUANTILES, Fraction(epsilon), GRID)
    return ExpertMixture(tree, Cauchy(*guess), 0.05, guess, 500)


def batch(generator: np.random.Generator, location: float) -> CellCounts:
    cells = np.rint(generator.normal(location, 1.0, 500) * 100).astype(np.int64)
    return CellCounts(*(part.astype(np.int64) for part in np.unique(cells, return_counts=True)))


def errors_along(locations: FloatArray, guess: tuple[float, float] = (0.0, 1.0)) -> FloatArray:
    """Mean distance of released deciles from the true ones, batch by batch."""
    mixture, entropy = learner(guess=guess), Seeded(random.Random(3))
    generator, state, errors = np.random.default_rng(3), mixture.init(), []
    for location in locations:
        priors = mixture.priors(state, 9)
        cells = mixture.tree.draw(batch(generator, location), priors, entropy)
        values = tuple(map(GRID.value, cells))
        state = mixture.learn(state, values)
        errors.append(np.abs(np.array(values) - location - NORMAL).mean())
    return np.array(errors)


def stable_state(releases: int = 15) -> Json:
    mixture, state = learner(), None
    generator = np.random.default_rng(1)
    state = mixture.init()
    for _ in range(releases):
        state = mixture.learn(state, tuple(np.sort(NORMAL + generator.normal(0, 0.02, 9))))
    return state


def test_a_guess_wrong_by_a_thousand_scales_is_recovered_in_ten_releases() -> None:
    """The learner follows what the draws show, however far from the guess."""
    errors = errors_along(np.full(16, 1000.0))
    assert errors[10:].mean() < 0.2


def test_a_level_shift_is_followed_in_ten_releases() -> None:
    """After a jump by five spreads the error is back to what it was."""
    errors = errors_along(np.concatenate((np.zeros(20), np.full(16, 5.0))))
    assert errors[30:].mean() < 1.2 * errors[10:20].mean() + 0.02


def test_a_state_survives_json_and_stays_small() -> None:
    """What is read back gives the same priors; a state is some kilobytes."""
    mixture, state = learner(), stable_state()
    text = json.dumps(state)
    again = mixture.priors(json.loads(text), 9)
    assert again.describe() == mixture.priors(state, 9).describe()
    assert len(text) < 8_000


def test_priors_narrow_where_releases_agree() -> None:
    """After releases that agree, a prior gives the middle far more mass than the first one did."""
    mixture = learner()
    low, high = np.array([-0.1]), np.array([0.1])
    before = mixture.priors(mixture.init(), 9).robust[4].log_mass(low, high)
    after = mixture.priors(stable_state(), 9).robust[4].log_mass(low, high)
    assert float(after[0]) > float(before[0]) + 1.0


def test_a_level_teaches_the_levels_below_it() -> None:
    """Where batches shift as a whole, a median one spread high moves the other priors there."""
    mixture, generator = learner(), np.random.default_rng(2)
    state = mixture.init()
    for shift in generator.normal(0.0, 0.7, 20):
        state = mixture.learn(state, tuple((NORMAL + shift).tolist()))
    prior = mixture.priors(state, 9)
    after = prior.given({4: 1.0}, 0.01)
    edges = np.array([0.28]), np.array([0.68])
    before, moved = (each.robust[2].log_mass(*edges) for each in (prior, after))
    assert float(moved[0]) > float(before[0]) + 0.5


def test_the_robust_prior_keeps_its_weight() -> None:
    """Everywhere the prior has at least λ·0.8 of the robust prior's mass, whatever was released."""
    mixture, edges = learner(), np.linspace(-1e4, 1e4, 101)
    robust = Cauchy(0.0, 1.0).log_mass(edges[:-1], edges[1:])
    for prior in mixture.priors(stable_state(), 9).robust:
        floor = robust + np.log(0.05 * 0.8) - 1e-9
        assert (prior.log_mass(edges[:-1], edges[1:]) >= floor).all()


def test_the_echo_teaches_nothing() -> None:
    """Where the data say nothing, releases drawn from the priors leave the belief as wide."""
    tree = CoupledTree(QUANTILES, Fraction(1, 10_000), GRID)
    mixture = ExpertMixture(tree, Cauchy(0.0, 1.0), 0.05, (0.0, 1.0), 500)
    empty, entropy = batch(np.random.default_rng(0), 0.0), Seeded(random.Random(0))
    state = mixture.init()
    before = Filters.start(mixture.targets, NORMAL, 1.0, 0, 0.01).forecast(np.ones(1))
    for _ in range(20):
        cells = tree.draw(empty, mixture.priors(state, 9), entropy)
        state = mixture.learn(state, tuple(map(GRID.value, cells)))
    after = Filters.from_json(state).forecast(np.ones(1))
    widths = [np.sqrt(b.weights() @ b.covariances[:, 4, 4]) for b in (before, after)]
    assert widths[1] > 0.5 * widths[0]


def test_the_smoothed_series_is_nearer_than_the_releases_and_monotone() -> None:
    """On a stable stream the posterior has the smaller error, its interval holds the truth."""
    mixture, entropy = learner("1/10"), Seeded(random.Random(7))
    generator, state, errors, held = np.random.default_rng(7), mixture.init(), [], []
    for _ in range(30):
        cells = mixture.tree.draw(batch(generator, 0.0), mixture.priors(state, 9), entropy)
        values = np.array([GRID.value(cell) for cell in cells])
        state = mixture.learn(state, tuple(values.tolist()))
        smoothed = mixture.smoothed(state)
        points = np.array([each.point for each in smoothed])
        errors.append([np.abs(values - NORMAL).mean(), np.abs(points - NORMAL).mean()])
        held += [s.lower <= v <= s.upper for s, v in zip(smoothed, NORMAL, strict=True)]
        for column in ("point", "lower", "upper"):
            assert (np.diff([getattr(each, column) for each in smoothed]) >= 0.0).all()
    released, believed = np.array(errors)[10:].mean(axis=0)
    assert believed < released
    assert np.mean(held) > 0.75


@pytest.mark.parametrize("count", [0, 2])
def test_features_may_come_and_go(count: int) -> None:
    """A state learned with other features is taken over: levels stay, nothing raises."""
    mixture = learner()
    state = mixture.learn(stable_state(), tuple(NORMAL), (1.0,))
    priors = mixture.priors(state, 9, (0.5,) * count)
    assert np.isfinite(priors.robust[4].log_mass(np.array([-1.0]), np.array([1.0]))).all()


def test_one_quantile_alone_is_learned() -> None:
    """A median needs no neighbours: the prior follows it."""
    tree = QuantileTree((Fraction(1, 2),), Fraction(1, 2), GRID)
    mixture = ExpertMixture(tree, Cauchy(0.0, 1.0), 0.05, (0.0, 1.0), 500)
    state = mixture.init()
    for _ in range(10):
        state = mixture.learn(state, (4.0,))
    mass = mixture.priors(state, 1).robust[0].log_mass(np.array([3.5]), np.array([4.5]))
    assert float(mass[0]) > np.log(0.3)


@pytest.mark.parametrize(("shift", "better"), [(0.0, True), (50.0, False)])
def test_public_rows_help_at_once_and_are_forgotten_when_wrong(shift: float, better: bool) -> None:
    """Right ones give the first prior more mass at the truth; wrong ones cost a few releases."""
    fit = PublicFit(tuple((NORMAL + shift).tolist()), (0.1,) * 9)
    tree = CoupledTree(QUANTILES, Fraction(1, 2), GRID)
    informed = ExpertMixture(tree, Cauchy(0.0, 10.0), 0.05, (0.0, 10.0), 500, fit)
    plain = ExpertMixture(tree, Cauchy(0.0, 10.0), 0.05, (0.0, 10.0), 500)
    near = np.array([-0.5]), np.array([0.5])
    first = [m.priors(m.init(), 9).robust[4].log_mass(*near)[0] for m in (informed, plain)]
    assert (first[0] > first[1]) == better
    entropy, generator = Seeded(random.Random(4)), np.random.default_rng(4)
    state: Json = {}
    for _ in range(8):
        cells = tree.draw(batch(generator, 0.0), informed.priors(state, 9), entropy)
        state = informed.learn(state, tuple(map(GRID.value, cells)))
    assert np.abs(np.array(state["point"]) - NORMAL).mean() < 0.3


def test_a_state_that_is_not_finite_starts_anew() -> None:
    """An overflow costs what was learned, never a release."""
    assert learner().learn(stable_state(), (float("nan"),) * 9) == {}


@pytest.mark.parametrize("features", [(), (1.0,)])
@pytest.mark.parametrize("expert", [0, 1, 2, -1])
def test_an_expert_of_no_weight_keeps_its_own_mind(
    expert: int, features: tuple[float, ...]
) -> None:
    """A weight that rounds to nought once made nought of what the expert believed."""
    mixture, inputs = learner(), np.array([1.0, *features])
    filters = mixture.known({}, len(features)).parts[-1]
    forecast = filters.forecast(inputs)
    behind = forecast.log_weights.reshape(len(filters.drifts), -1).copy()
    behind[expert] -= 2000.0
    values = tuple(NORMAL + 3.0)
    with np.errstate(all="raise", under="ignore"):
        belief = replace(forecast, log_weights=behind.ravel(), means=forecast.means + 3.0)
        after = posterior(forecast, belief)
        anchor = (4, values[4])
        new = learned(filters, after, after.point(), inputs, mixture.targets, anchor, 0.01)
    assert np.allclose(after.within.sum(axis=1), 1.0)
    assert np.allclose(after.means, after.means[0])
    assert all(np.isfinite(part).all() for part in (new.uncertainties, new.deviations))
