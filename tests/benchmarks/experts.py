"""``python -m tests.benchmarks.experts [--json] [--quick]``: regret of private online learning.

Experts are thresholds: on the departure delay, for which flights arrive more than 15 minutes late,
or on the air time, for which flights make up time or come from JFK; and on the first sensor of the
shuttle, a stream set aside and run once. A day of 2013, or 500 records, is a batch. `regret` is the
average excess loss of what was played over that of the best expert in hindsight; `each_day` that
over the best expert of each day. Where the leader is changing, the experts are turned round after
half a year. Two made-up streams are for `each_day`: the best rule of one drifts over all experts in
about 400 days, that of the other jumps once in 30 days on the average. The mixture over rates of
forgetting, and what ways that forget are charged, were chosen on the made-up streams, late flights,
air time and further streams that were made up with other seeds.

`streamdp` follows the heaviest expert (`action: heaviest`); the others of its name play the same
weights as they are (what `action: drawn` does on average), the rule nearest to their average
(`action: average`), or the one nearest to the average of all that were followed so far.

Beside it: what follows the least sum of the same released losses, of all of them or forgotten by a
tenth a day; AdaHedge without privacy; Dwork & Roth's private weighted majority, which reads all
earlier batches again each day, under pure epsilon and under zCDP with a known horizon; and what the
daemon has of the latter, a `selection` over a growing source (deploy/examples/majority.yaml), drawn
from integer scores by coins. A record pays in every later release, so a stream without an end has
no such form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial

import numpy as np

from streamdp.kinds.experts.kind import Experts
from streamdp.kinds.experts.learner import Hedge
from streamdp.kinds.experts.losses import RuleLosses
from streamdp.kinds.rules.rules import RuleComparison, RuleGrid
from streamdp.kinds.selection.candidates import ThresholdRules
from streamdp.kinds.selection.kind import Selection
from streamdp.kinds.selection.scores import Errors
from streamdp.mechanisms.finite_choice import exponential_choice
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.types import Batch, FloatArray, TableCounts
from tests.benchmarks import flights, shuttle
from tests.benchmarks.report import Row, main

EPSILONS = (Fraction(1), Fraction(1, 10), Fraction(1, 100))
EXPECTED_ROWS = 900

STREAMS = {
    "late flights": ("departure_delay", -20.0, 80.0, "arrival_delay > 15"),
    "air time": ("air_time", 20.0, 400.0, "arrival_delay < departure_delay"),
    "from JFK (not tuned on)": ("air_time", 100.0, 400.0, "origin = 'JFK'"),
}

Player = Callable[[int, FloatArray, bool], FloatArray]
"""Weights played on each day, shape (days, k), by seed, true losses and whether they are turned."""


def rows(quick: bool) -> Iterator[Row]:
    """One row a stream, number of experts, epsilon and player."""
    for count in (20,) if quick else (20, 200):
        for stream, rules, days in _streams(count):
            yield from _compared(stream, rules, days, 1 if quick else 5)


def _streams(count: int) -> Iterator[tuple[str, RuleLosses, list[TableCounts]]]:
    """Each with so many experts, at most."""
    for stream, (column, low, high, label) in STREAMS.items():
        step = Fraction(high - low) / count
        values = tuple(Fraction(low) + step * number for number in range(count))
        grid = RuleGrid((RuleComparison(column, ">=", "t", values),))
        yield stream, RuleLosses(grid, label), flights.tables(grid, label)
    for world in ("drifting", "jumping"):
        values = tuple(map(Fraction, range(count)))
        rules = RuleLosses(RuleGrid((RuleComparison("x", ">=", "t", values),)), "y")
        yield f"{world} (made up)", rules, list(_made_up(world, rules))
    if records := shuttle.relation():
        grid = shuttle.grid(records, count)
        days = flights.tables(grid, shuttle.LABEL, records)
        yield "shuttle (set aside)", RuleLosses(grid, shuttle.LABEL), days


def _made_up(
    world: str, rules: RuleLosses, days: int = 365, seed: int = 1
) -> Iterator[TableCounts]:
    """Records of a rule that drifts or jumps; a tenth of the labels are not what it says."""
    random, (count,) = np.random.default_rng(seed), rules.grid.shape
    best, place, way = int(random.integers(count)), 0.0, 0.0025 * count
    for _ in range(days):
        if world == "jumping" and random.uniform() < 1 / 30:
            best = int(random.integers(count))
        if world == "drifting":
            place += way + random.normal(0.0, 0.001 * count)
            way = abs(way) if place < 0.0 else -abs(way) if place > count - 1 else way
            best = round(min(max(place, 0.0), count - 1.0))
        cells = [random.integers(0, count, random.poisson(EXPECTED_ROWS))]
        label = rules.grid.met(np.array([best]), cells) ^ (random.uniform(size=len(cells[0])) < 0.1)
        table = np.zeros((2, rules.grid.query().dimensions[0].size), dtype=np.int64)
        np.add.at(table, (label.astype(np.int64), *cells), 1)
        yield TableCounts((table,))


def _losses(rules: RuleLosses, day: TableCounts) -> FloatArray:
    """True error rate of each rule on a day, shape (k,)."""
    level = rules.level(day) or 0
    errors = level + rules.matrix @ np.array(rules.integers(day), dtype=float)
    return np.asarray(errors / max(int(day.marginals[0].sum()), 1))


def _compared(stream: str, rules: RuleLosses, days: list[TableCounts], seeds: int) -> Iterator[Row]:
    losses = np.array([_losses(rules, day) for day in days])
    players: dict[tuple[str, float | None], Player] = {
        ("AdaHedge, not private", None): lambda seed, seen, turned: _ada_hedge(seen)
    }
    rows = shuttle.ROWS if stream.startswith("shuttle") else EXPECTED_ROWS
    for epsilon in EPSILONS:
        rate, weights = float(epsilon), _streamdp(rules, days, epsilon, rows)
        for who, way in WAYS.items():
            players[who, rate] = partial(_by, weights, rules, way)
        noisy = _released(rules, days, epsilon, rows)
        players["least noisy sum", rate] = partial(_least_sum, noisy, 1.0)
        players["least noisy sum, forgotten at .9 a day", rate] = partial(_least_sum, noisy, 0.9)
        players["Dwork & Roth, epsilon/T a step", rate] = _reread(rate / len(days), rows)
        zcdp = math.sqrt(8.0 * (rate**2 / 2.0) / len(days))
        players["Dwork & Roth, zCDP, horizon known", rate] = _reread(zcdp, rows)
        players["streamdp, selection so far, horizon known", rate] = _so_far(rules, days, zcdp)
    for (who, private), play in players.items():
        for turned in (False, True):
            seen = _turned(losses) if turned else losses
            played = [play(seed, seen, turned) for seed in range(seeds)]
            regrets = [float((each * seen).sum() - seen.sum(axis=0).min()) for each in played]
            lost = float(np.mean([(each * seen).sum() for each in played]))
            yield {
                "stream": stream,
                "leader": "changing" if turned else "steady",
                "experts": rules.count,
                "who": who,
                "epsilon": private,
                "regret": float(np.mean(regrets)) / len(days),
                "each_day": (lost - float(seen.min(axis=1).sum())) / len(days),
                "deviation": float(np.std(regrets)) / len(days),
            }


def _turned(losses: FloatArray) -> FloatArray:
    half = len(losses) // 2
    return np.vstack([losses[:half], losses[half:, ::-1]])


def _ada_hedge(losses: FloatArray) -> FloatArray:
    hedge, played = Hedge.over(losses.shape[1]), []
    for each in losses:
        played.append(hedge.weights())
        hedge = hedge.observe(each)
    return np.array(played)


def _released(
    rules: RuleLosses, days: list[TableCounts], epsilon: Fraction, rows: int
) -> Callable[[int], FloatArray]:
    """Released losses of a seed, shape (days, k)."""
    kind = Experts(rules, epsilon, rows)
    plan = kind.plan(kind.init(), Batch("flights", "1"))

    @cache
    def released(seed: int) -> FloatArray:
        entropy = PublicEntropy(f"experts {seed}")
        outcomes = (kind.draw(plan, day, entropy) for day in days)
        return np.array(
            [[row["loss"] for row in outcome.rows] for outcome in outcomes], dtype=float
        )

    return released


def _least_sum(
    released: Callable[[int], FloatArray], kept: float, seed: int, losses: FloatArray, turned: bool
) -> FloatArray:
    """What follows the least sum of the released losses, of which so much is kept a day."""
    found = _turned(released(seed)) if turned else released(seed)
    sums, played = np.zeros(found.shape[1]), [np.full(found.shape[1], 1.0 / found.shape[1])]
    for each in found[:-1]:
        sums = kept * sums + each
        played.append(np.eye(len(sums))[sums.argmin()])
    return np.array(played)


def _streamdp(rules: RuleLosses, days: list[TableCounts], epsilon: Fraction, rows: int) -> Player:
    """The release kind; a stream whose experts change is told their losses the other way round."""
    kind, released = Experts(rules, epsilon, rows), _released(rules, days, epsilon, rows)

    @cache
    def weights(seed: int, turned: bool) -> FloatArray:
        state, played = kind.learner.restored(kind.init()["learner"]), []
        for each in _turned(released(seed)) if turned else released(seed):
            played.append(kind.learner.weights(state))
            state = kind.learner.observe(state, each)
        return np.array(played)

    return lambda seed, losses, turned: weights(seed, turned)


Way = Callable[[RuleLosses, FloatArray], FloatArray]
"""Weights that are played by those that were learned, shape (days, k) both."""


def _by(
    weights: Player, rules: RuleLosses, way: Way, seed: int, seen: FloatArray, turned: bool
) -> FloatArray:
    return way(rules, weights(seed, seen, turned))


def _followed(rules: RuleLosses, weights: FloatArray) -> FloatArray:
    """The heaviest; before the first release none is, and any may be played."""
    followed = np.eye(weights.shape[1])[weights.argmax(axis=1)]
    return np.vstack([weights[:1], followed[1:]])


def _averaged(rules: RuleLosses, weights: FloatArray) -> FloatArray:
    """The rule nearest to the average; before the first release any may be played."""
    played = np.eye(weights.shape[1])[[rules.average(each) for each in weights]]
    return np.vstack([weights[:1], played[1:]])


def _average_of_followed(rules: RuleLosses, weights: FloatArray) -> FloatArray:
    days = np.arange(1, len(weights) + 1)[:, None]
    return _averaged(rules, _followed(rules, weights).cumsum(axis=0) / days)


WAYS: dict[str, Way] = {
    "streamdp": _followed,
    "streamdp, weights": lambda rules, weights: weights,
    "streamdp, average": _averaged,
    "streamdp, average of the followed": _average_of_followed,
}


def _reread(exponent: float, rows: int) -> Player:
    """Each day an expert drawn by the losses of all earlier records; each draw costs `exponent`."""

    def play(seed: int, losses: FloatArray, turned: bool) -> FloatArray:
        generator = np.random.default_rng(seed)
        past, played = np.zeros(losses.shape[1]), []
        for each in losses:
            noisy = -exponent * past * rows + generator.gumbel(size=len(past))
            played.append(np.eye(len(past))[int(noisy.argmax())])
            past = past + each
        return np.array(played)

    return play


def _so_far(rules: RuleLosses, days: list[TableCounts], price: float) -> Player:
    """What the release kind `selection` draws from the scores of all days so far.

    Args:
        rules: The experts.
        days: Their counts.
        price: Epsilon of each draw.
    """
    assert isinstance(rules.grid, RuleGrid)
    score = Errors(rules.label)
    candidates = ThresholdRules(rules.grid, score)
    kind = Selection(candidates, score, Fraction(price).limit_denominator(10**9), learned=False)
    each = np.array([candidates.scores(day) for day in days])

    def play(seed: int, losses: FloatArray, turned: bool) -> FloatArray:
        entropy = PublicEntropy(f"so far {seed}")
        so_far = (_turned(each) if turned else each).cumsum(axis=0)[:-1].tolist()
        chosen = [exponential_choice(scores, kind.exponent, entropy) for scores in so_far]
        return np.asarray(np.eye(losses.shape[1])[[0, *chosen]])

    return play


if __name__ == "__main__":
    main("Regret of private online learning", rows)
