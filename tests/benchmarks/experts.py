"""``python -m tests.benchmarks.experts [--json] [--quick]``: regret of private online learning.

Experts are thresholds: on the departure delay, for which flights arrive more than 15 minutes late,
or on the air time, for which flights make up time or come from JFK. A day of 2013 is a batch.
`regret` is the average excess loss of what was played over that of the best expert in hindsight.
Where the leader is changing, the experts are turned round after half a year.

Beside it: AdaHedge without privacy; Dwork & Roth's private weighted majority, which reads all
earlier batches again each day, under pure epsilon and under zCDP with a known horizon. The latter
are not in the daemon: a record pays in every later release, so a stream without an end has no form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from streamdp.kinds.experts.hedge import Hedge
from streamdp.kinds.experts.kind import Experts
from streamdp.kinds.experts.learner import State
from streamdp.kinds.experts.losses import Rules
from streamdp.kinds.rules.grid import RuleGrid, Threshold
from streamdp.mechanisms.quantile_tree.simulation import PublicEntropy
from streamdp.types import Batch, FloatArray, TableCounts
from tests.benchmarks import flights
from tests.benchmarks.report import Row, main

EPSILONS = (Fraction(1), Fraction(1, 10), Fraction(1, 100))
EXPECTED_ROWS = 900

STREAMS = {
    "late flights": ("departure_delay", -20.0, 80.0, "arrival_delay > 15"),
    "air time (not tuned on)": ("air_time", 20.0, 400.0, "arrival_delay < departure_delay"),
    "from JFK (not tuned on)": ("air_time", 100.0, 400.0, "origin = 'JFK'"),
}

Player = Callable[[int, FloatArray, bool], FloatArray]
"""Weights played on each day, shape (days, k), by seed, true losses and whether they are turned."""


def rows(quick: bool) -> Iterator[Row]:
    """One row a stream, number of experts, epsilon and player."""
    for stream, (column, low, high, label) in STREAMS.items():
        for count in (20,) if quick else (20, 200):
            step = Fraction(high - low) / count
            values = tuple(Fraction(low) + step * number for number in range(count))
            rules = Rules(RuleGrid((Threshold(column, ">=", "t", values),)), label)
            days = flights.tables(rules.grid, label)
            losses = np.array([_losses(rules, day) for day in days])
            yield from _compared(stream, rules, days, losses, 1 if quick else 5)


def _losses(rules: Rules, day: TableCounts) -> FloatArray:
    """True error rate of each rule on a day, shape (k,)."""
    level = rules.level(day) or 0
    errors = level + rules.matrix @ np.array(rules.integers(day), dtype=float)
    return np.asarray(errors / max(int(day.marginals[0].sum()), 1))


def _compared(
    stream: str, rules: Rules, days: list[TableCounts], losses: FloatArray, seeds: int
) -> Iterator[Row]:
    players: dict[tuple[str, float | None], Player] = {
        ("AdaHedge, not private", None): lambda seed, seen, turned: _ada_hedge(seen)
    }
    for epsilon in EPSILONS:
        rate = float(epsilon)
        players["streamdp", rate] = _streamdp(rules, days, epsilon)
        players["Dwork & Roth, epsilon/T a step", rate] = _reread(rate / len(days))
        zcdp = math.sqrt(8.0 * (rate**2 / 2.0) / len(days))
        players["Dwork & Roth, zCDP, horizon known", rate] = _reread(zcdp)
    for (who, private), play in players.items():
        for turned in (False, True):
            seen = _turned(losses) if turned else losses
            played = [play(seed, seen, turned) for seed in range(seeds)]
            regrets = [float((each * seen).sum() - seen.sum(axis=0).min()) for each in played]
            yield {
                "stream": stream,
                "leader": "changing" if turned else "steady",
                "experts": rules.count,
                "who": who,
                "epsilon": private,
                "regret": float(np.mean(regrets)) / len(days),
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


def _streamdp(rules: Rules, days: list[TableCounts], epsilon: Fraction) -> Player:
    """The release kind; a stream whose experts change is told their losses the other way round."""
    kind = Experts(rules, epsilon, EXPECTED_ROWS)
    plan = kind.plan(kind.init(), Batch("flights", "1"))
    released: dict[int, FloatArray] = {}

    def play(seed: int, losses: FloatArray, turned: bool) -> FloatArray:
        if seed not in released:
            entropy = PublicEntropy(f"experts {seed}")
            outcomes = (kind.draw(plan, day, entropy) for day in days)
            found = [[row["loss"] for row in outcome.rows] for outcome in outcomes]
            released[seed] = np.array(found, dtype=float)
        told = _turned(released[seed]) if turned else released[seed]
        state, played = State.from_json(kind.init()["learner"]), []
        for each in told:
            played.append(kind.learner.weights(state))
            state = kind.learner.observe(state, each)
        return np.array(played)

    return play


def _reread(exponent: float) -> Player:
    """Each day an expert drawn by the losses of all earlier records; each draw costs `exponent`."""

    def play(seed: int, losses: FloatArray, turned: bool) -> FloatArray:
        generator = np.random.default_rng(seed)
        past, played = np.zeros(losses.shape[1]), []
        for each in losses:
            noisy = -exponent * past * EXPECTED_ROWS + generator.gumbel(size=len(past))
            played.append(np.eye(len(past))[int(noisy.argmax())])
            past = past + each
        return np.array(played)

    return play


if __name__ == "__main__":
    main("Regret of private online learning", rows)
