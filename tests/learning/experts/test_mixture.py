from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from streamdp.learning.experts.drawing.ways import BroadShapes, Way
from streamdp.learning.experts.memory.levels import DRIFT_NAMES
from streamdp.learning.experts.memory.lost import FIRST_LOST, lost_after
from streamdp.learning.experts.memory.panel import Panel
from streamdp.learning.experts.mixture import ExpertMixture
from streamdp.learning.public_fit import PublicFit
from streamdp.mechanisms.quantile_tree.planning.choice import CANDIDATES
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.families import Cauchy
from streamdp.priors.shapes import shapes_from_guess
from streamdp.types import CellCounts, FloatArray, Grid, Json

QUANTILES = tuple(Fraction(index, 10) for index in range(1, 10))
GRID = Grid(Fraction(1, 100), -10_000_000, 10_000_000)
NORMAL = np.array([-1.28, -0.84, -0.52, -0.25, 0.0, 0.25, 0.52, 0.84, 1.28])
ROWS = 500


@dataclass(slots=True)
class Seeded:
    generator: random.Random

    def bits(self, count: int) -> int:
        return self.generator.getrandbits(count)


def learner(
    epsilon: str = "1/2",
    guess: tuple[float, float] = (0.0, 1.0),
    *,
    few: bool = True,
    tree: str = "tree of 4, shapes",
) -> ExpertMixture:
    """Of deciles of 500 records, as the default configuration makes it."""
    whole = QuantileTree(QUANTILES, Fraction(epsilon), GRID)
    form, robust = CANDIDATES[tree], Cauchy(*guess)
    prior = form.prior((robust,) * len(QUANTILES), shapes_from_guess(QUANTILES, *guess))
    broad = BroadShapes(form.tree(QUANTILES, Fraction(epsilon), GRID), prior, ROWS)
    return ExpertMixture(whole, robust, 0.05, guess, ROWS, few=few, broad=broad)


def batch(generator: np.random.Generator, location: float, scale: float = 1.0) -> CellCounts:
    cells = np.rint(generator.normal(location, scale, ROWS) * 100).astype(np.int64)
    return CellCounts(*(part.astype(np.int64) for part in np.unique(cells, return_counts=True)))


def release(
    mixture: ExpertMixture, way: Way, counts: CellCounts, entropy: Seeded
) -> tuple[float, ...]:
    """All values of one release."""
    drawn = way.tree.draw(counts, way.prior, entropy)
    return tuple(map(GRID.value, mixture.values(way, drawn)))


def along(
    mixture: ExpertMixture, locations: FloatArray, seed: int = 3
) -> tuple[FloatArray, list[Way], Json]:
    """Distances of released deciles from the true ones, ways of drawing, and the last state."""
    generator, entropy = np.random.default_rng(seed), Seeded(random.Random(seed))
    state, errors, ways = mixture.init(), [], []
    for location in locations:
        way = mixture.way(state)
        values = release(mixture, way, batch(generator, float(location)), entropy)
        state = mixture.learn(way, values)
        errors.append(np.abs(np.array(values) - location - NORMAL))
        ways.append(way)
    return np.array(errors), ways, state


def stable_state(releases: int = 15) -> Json:
    mixture, generator = replace(learner(), few=False, broad=None), np.random.default_rng(1)
    state = mixture.init()
    for _ in range(releases):
        way = mixture.way(state)
        state = mixture.learn(way, tuple(np.sort(NORMAL + generator.normal(0, 0.02, 9))))
    return state


def test_a_guess_wrong_by_a_thousand_scales_is_recovered_in_ten_releases() -> None:
    """The learner follows what the draws show, however far from the guess."""
    errors = along(learner(), np.full(20, 1000.0))[0]
    assert errors[12:].mean() < 0.2


@pytest.mark.parametrize(("tree", "seed"), [("joint, shapes", 0), ("joint, faint shapes", 2)])
def test_shapes_that_find_nothing_are_given_up(tree: str, seed: int) -> None:
    """All nine are drawn at once about a guess that is wrong by 10,000 spreads."""
    mixture = learner(guess=(0.0, 0.1), tree=tree)
    errors, _, state = along(mixture, np.full(10, 1000.0), seed)
    assert errors[7:].max() < 5.0
    assert state["lost"] < 0.5


def test_broad_shapes_are_drawn_under_only_if_one_is_as_wide_as_the_batches() -> None:
    """All else equal: what was learned is wider than a thousandth of the guess allows."""
    panel = replace(Panel.from_json(stable_state()), missed=0.04)
    drawn = []
    for scale in (1.0, 0.001):
        mixture = learner("1/2", (0.0, scale), tree="joint, faint shapes")
        usual = panel.usual(mixture.facts)
        wide = usual.in_values(np.eye(9))
        seen = panel.forecast((np.ones(1),), usual, mixture.facts.targets)
        vague = replace(seen.belief, covariances=np.tile(wide, (len(seen.belief.means), 1, 1)))
        drawn.append(mixture.plans.best(panel, replace(seen, belief=vague), usual))
    assert drawn == ["broad", "all"]


def test_draws_that_repeat_the_prior_tell_that_nothing_is_found() -> None:
    """Evidence of either side moves the probability, and no single release decides."""
    said = FIRST_LOST
    for _ in range(3):
        assert said < lost_after(said, -50.0) < 12.0 * said
        said = lost_after(said, -50.0)
    assert said > 0.5 > lost_after(said, 5.0)
    assert lost_after(0.999, 1e9) < 0.01


def test_a_level_shift_is_followed_in_ten_releases() -> None:
    """After a jump by five spreads the error is back to what it was."""
    errors = along(learner(), np.concatenate((np.zeros(20), np.full(16, 5.0))))[0].mean(axis=1)
    assert errors[30:].mean() < 1.2 * errors[10:20].mean() + 0.02


def test_few_are_measured_in_turn_and_the_others_follow() -> None:
    """Three at a time, all of them in three releases; inferred ones err little more."""
    errors, ways, _ = along(learner("1/5"), np.zeros(40))
    measured = [set(way.targets) for way in ways]
    assert all(len(each) == 9 for each in measured[:3])
    assert [len(each) for each in measured[3:]].count(3) > 30
    turns = [each for each in measured[20:] if len(each) == 3]
    assert set.union(*turns[:3]) == set(range(9))
    inferred = np.array([[j not in way.targets for j in range(9)] for way in ways])
    assert errors[12:][inferred[12:]].mean() < 1.5 * errors[12:][~inferred[12:]].mean()


def test_all_are_measured_where_noise_is_small() -> None:
    """Where a draw errs less than quantiles move beside the common directions, none is inferred."""
    ways = along(learner("20"), np.random.default_rng(0).normal(0.0, 0.5, 14))[1]
    assert all(len(way.targets) == 9 for way in ways)


@pytest.mark.parametrize(("clumps", "missed"), [(False, False), (True, True)])
def test_full_draws_show_what_a_turn_would_have_missed(clumps: bool, missed: bool) -> None:
    """Where the share of a far clump changes from batch to batch, three quantiles do not tell."""
    mixture, generator = learner("20"), np.random.default_rng(8)
    entropy, state, few = Seeded(random.Random(8)), mixture.init(), 0
    for _ in range(12):
        records = generator.normal(0.0, 1.0, ROWS)
        records += 30.0 * (generator.random(ROWS) < generator.uniform(0.25, 0.75)) * clumps
        cells, counts = np.unique(np.rint(records * 100).astype(np.int64), return_counts=True)
        way = mixture.way(state)
        few += len(way.targets) == 3
        state = mixture.learn(way, release(mixture, way, CellCounts(cells, counts), entropy))
    assert (state["missed"] > 0.05**2) == missed
    assert few == 0 or not clumps


def test_what_a_turn_missed_is_forgotten_when_the_stream_opens_anew() -> None:
    """It was seen of other batches."""
    state = stable_state()
    panel = Panel.from_json(state | {"missed": 0.04})
    gaps = panel.log_gaps
    assert panel.missed == 0.04
    assert panel.opened(gaps, (4, 0.0), learner().facts, afresh=False).missed == 0.0


@pytest.mark.parametrize(("afresh", "kept"), [(False, True), (True, False)])
def test_a_stream_that_opens_anew_keeps_beliefs_unless_they_are_of_other_batches(
    afresh: bool, kept: bool
) -> None:
    """Noise may look like a move; a move beyond doubt leaves nothing of what was believed."""
    panel = Panel.from_json(stable_state())
    opened = panel.opened(panel.log_gaps, (4, 50.0), learner().facts, afresh=afresh)
    before, after = (each.groups[0].coefficients[0] for each in (panel, opened))
    assert np.array_equal(before, after) == kept


def test_releases_never_cross_and_measured_values_stay_as_they_were_drawn() -> None:
    """Whatever the belief says of the others, even far from it."""
    mixture, state = learner("1/5"), along(learner("1/5"), np.zeros(6))[2]
    way, generator = mixture.way(state), np.random.default_rng(5)
    assert len(way.targets) == 3
    for _ in range(50):
        drawn = tuple(np.sort(generator.integers(-400, 400, 3)).tolist())
        values = mixture.values(way, drawn)
        assert list(values) == sorted(values)
        assert tuple(values[j] for j in way.targets) == drawn


def test_a_state_survives_json_and_stays_small() -> None:
    """What is read back gives the same priors; a state is some kilobytes."""
    mixture, state = learner(), stable_state()
    text = json.dumps(state)
    again = mixture.priors(json.loads(text), 9)
    assert again.describe() == mixture.priors(state, 9).describe()
    assert len(text) < 16_000


def test_priors_narrow_where_releases_agree() -> None:
    """After releases that agree, a prior gives the middle far more mass than the first one did."""
    mixture = learner()
    low, high = np.array([-0.1]), np.array([0.1])
    before = mixture.priors(mixture.init(), 9).robust[4].log_mass(low, high)
    after = mixture.priors(stable_state(), 9).robust[4].log_mass(low, high)
    assert float(after[0]) > float(before[0]) + 1.0


def test_a_level_teaches_the_levels_below_it() -> None:
    """Where batches shift as a whole, a median one spread high moves the other priors there."""
    mixture, generator = learner(few=False), np.random.default_rng(2)
    mixture = replace(mixture, broad=None)
    state = mixture.init()
    for shift in generator.normal(0.0, 0.7, 20):
        state = mixture.learn(mixture.way(state), tuple((NORMAL + shift).tolist()))
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


@pytest.mark.parametrize("few", [True, False])
def test_the_echo_teaches_nothing(few: bool) -> None:
    """Where the data say nothing, releases drawn from the priors leave the belief as wide."""
    mixture = replace(learner("1/10000", few=few), broad=None)
    empty, entropy = batch(np.random.default_rng(0), 0.0), Seeded(random.Random(0))
    state = mixture.init()
    before = mixture.way(state).seen.belief
    for _ in range(20):
        way = mixture.way(state)
        state = mixture.learn(way, release(mixture, way, empty, entropy))
    after = mixture.way(state).seen.belief
    widths = [np.sqrt(b.weights() @ b.covariances[:, 4, 4]) for b in (before, after)]
    assert widths[1] > 0.5 * widths[0]


def test_the_smoothed_series_is_monotone_and_its_intervals_hold_the_truth() -> None:
    """About 95 % of the true quantiles lie within; points and ends do not decrease."""
    mixture, entropy = learner("1/5"), Seeded(random.Random(7))
    generator, state, held = np.random.default_rng(7), mixture.init(), []
    for day in range(60):
        location = float(generator.normal(0.0, 0.3))
        counts, way = batch(generator, location), mixture.way(state)
        state = mixture.learn(way, release(mixture, way, counts, entropy))
        smoothed = mixture.smoothed(state)
        if day >= 10:
            truth = zip(smoothed, location + NORMAL, strict=True)
            held += [each.lower <= value <= each.upper for each, value in truth]
        assert all(each.lower <= each.point <= each.upper for each in smoothed)
        for column in ("point", "lower", "upper"):
            assert (np.diff([getattr(each, column) for each in smoothed]) >= 0.0).all()
    assert np.mean(held) > 0.9


@pytest.mark.parametrize("count", [0, 2])
def test_features_may_come_and_go(count: int) -> None:
    """A state learned with other features is taken over: levels stay, nothing raises."""
    mixture = replace(learner(), few=False, broad=None)
    state = mixture.learn(mixture.way(stable_state(), (1.0,), (0.0, 1.0)), tuple(NORMAL))
    priors = mixture.priors(state, 9, (0.5,) * count)
    near = priors.robust[4].log_mass(np.array([-0.3]), np.array([0.3]))
    assert float(near[0]) > np.log(0.3)


def test_what_a_feature_does_is_learned() -> None:
    """Where batches lie two spreads higher on half of the days, forecasts know which."""
    mixture = replace(learner("2", few=False), broad=None)
    generator, state = np.random.default_rng(4), mixture.init()
    for _ in range(40):
        feature = float(generator.integers(0, 2))
        way = mixture.way(state, (feature,))
        state = mixture.learn(way, tuple((NORMAL + 2.0 * feature).tolist()))
    points = [mixture.way(state, (each,)).seen.belief.point()[4] for each in (0.0, 1.0)]
    assert points == pytest.approx([0.0, 2.0], abs=0.2)


@pytest.mark.parametrize("count", [1, 2, 4, 19])
def test_any_number_of_quantiles_is_learned(count: int) -> None:
    """One alone needs no neighbours; many have many turns."""
    quantiles = tuple(Fraction(index, count + 1) for index in range(1, count + 1))
    tree = QuantileTree(quantiles, Fraction(1), GRID)
    mixture = ExpertMixture(tree, Cauchy(0.0, 1.0), 0.05, (0.0, 1.0), ROWS, few=True)
    generator, entropy, state = np.random.default_rng(6), Seeded(random.Random(6)), mixture.init()
    for _ in range(24):
        way = mixture.way(state)
        state = mixture.learn(way, release(mixture, way, batch(generator, 4.0), entropy))
    middle, exact = state["point"][count // 2], NormalDist(4.0, 1.0)
    assert middle == pytest.approx(exact.inv_cdf(float(quantiles[count // 2])), abs=0.2)


@pytest.mark.parametrize(("shift", "better"), [(0.0, True), (50.0, False)])
def test_public_rows_help_at_once_and_are_forgotten_when_wrong(shift: float, better: bool) -> None:
    """Right ones give the first prior more mass at the truth; wrong ones cost a few releases."""
    fit = PublicFit(tuple((NORMAL + shift).tolist()), (0.1,) * 9)
    plain = replace(learner(guess=(0.0, 10.0)), broad=None)
    informed = replace(plain, public=fit)
    near = np.array([-0.5]), np.array([0.5])
    first = [m.priors(m.init(), 9).robust[4].log_mass(*near)[0] for m in (informed, plain)]
    assert (first[0] > first[1]) == better
    state = along(informed, np.zeros(12), seed=4)[2]
    assert np.abs(np.array(state["point"]) - NORMAL).mean() < 0.3


def test_a_state_that_is_not_finite_starts_anew() -> None:
    """An overflow costs what was learned, never a release."""
    mixture = replace(learner(), few=False, broad=None)
    with np.errstate(all="ignore"):
        assert mixture.learn(mixture.way(stable_state()), (float("nan"),) * 9) == {}


@pytest.mark.parametrize("expert", [0, 1, 2, -1])
def test_an_expert_of_no_weight_stays_finite(expert: int) -> None:
    """A weight that rounds to nought once made nought of what the expert believed."""
    mixture = replace(learner(few=False), broad=None)
    way = mixture.way(stable_state())
    group = way.panel.groups[0]
    behind = group.log_weights.copy()
    behind[expert] -= 2000.0
    groups = (replace(group, log_weights=behind), *way.panel.groups[1:])
    again = mixture.way(replace(way.panel, groups=groups).to_json() | {"point": NORMAL.tolist()})
    with np.errstate(all="raise", under="ignore"):
        state = mixture.learn(again, tuple(NORMAL + 3.0))
    assert np.isfinite(state["point"]).all()
    assert mixture.way(state).panel.finite()


def test_shares_of_the_drifts_sum_to_one_and_have_names() -> None:
    """Equal at first; one share and one name a drift; a jump takes the trust from the steady."""
    mixture = replace(learner("10"), few=False, broad=None)
    first = mixture.weights(mixture.init())
    assert tuple(first) == DRIFT_NAMES
    assert set(first.values()) == {1.0 / len(first)}
    before = list(mixture.weights(stable_state(40)).values())
    assert sum(before) == pytest.approx(1.0)
    state = mixture.learn(mixture.way(stable_state(40)), tuple(NORMAL + 5.0))
    after = list(mixture.weights(state).values())
    assert after[-1] / after[0] > 10 * before[-1] / before[0]
