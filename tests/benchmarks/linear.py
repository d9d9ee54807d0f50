"""``python -m tests.benchmarks.linear [--json] [--quick]``: linear rules learned privately online.

Which of two features decides a label, and how they weigh against each other, is learned batch by
batch: late flights by departure delay and hour, and anomalies of the shuttle by its first and last
sensor. `error` is the share of records that the rule followed is wrong about, on average over
batches from the second on, each judged before it was learned from; `best` that of the best
halfspace in hindsight.

`thresholds` are on the first feature alone. `gradients` buys the gradient of the logistic loss of
each batch, at the same epsilon: features in [0, 1] and a constant, so that a record adds a vector
of L1 norm 1 at most, with Laplace noise on each coordinate; AdaGrad, and the average of all its
vectors beside it. Steps are the best of five in hindsight, which favours it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from streamdp.kinds.experts.kind import Action, Experts
from streamdp.kinds.experts.losses import RuleLosses
from streamdp.kinds.rules.rules import Feature, Halfspaces, RuleComparison, RuleGrid
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.types import Batch, FloatArray, IntArray, TableCounts
from tests.benchmarks import flights, shuttle
from tests.benchmarks.report import Row, main

EPSILONS = (Fraction(1), Fraction(1, 10), Fraction(1, 100))
STEPS = (0.03, 0.1, 0.3, 1.0, 3.0)


def spaced(low: float, high: float, count: int) -> tuple[Fraction, ...]:
    """Even steps of hundredths."""
    return tuple(Fraction(round(100 * each), 100) for each in np.linspace(low, high, count))


FLIGHTS = Halfspaces(
    (
        Feature("departure_delay", "departure_delay", spaced(-20, 75, 20), (Fraction(1),)),
        Feature("hour", "hour", spaced(4, 23, 20), spaced(-1, 2, 7)),
    ),
    spaced(-20, 75, 20),
)
SHUTTLE = Halfspaces(
    (
        Feature("f1", "f1", spaced(30, 125, 20), (Fraction(1),)),
        Feature("f9", "f9", spaced(-20, 75, 20), spaced(-1, 2, 7)),
    ),
    spaced(-40, 150, 20),
)


def rows(quick: bool) -> Iterator[Row]:
    """One row a stream, epsilon and way of learning."""
    seeds = 1 if quick else 5
    for stream, halves, label, records, expected in _streams():
        days = flights.tables(halves, label, records)
        first = halves.features[0]
        threshold = RuleGrid((RuleComparison(first.sql, ">=", "t", first.values),))
        plain = flights.tables(threshold, label, records)
        best = float(_errors(RuleLosses(halves, label), days)[1:].mean(axis=0).min())
        for epsilon in EPSILONS:
            ways: dict[str, list[float]] = {
                "thresholds": _experts(
                    RuleLosses(threshold, label), plain, epsilon, expected, seeds
                ),
                **{
                    f"halfspaces, {action}": _experts(
                        RuleLosses(halves, label), days, epsilon, expected, seeds, action
                    )
                    for action in ("heaviest", "average")
                },
                **_gradients(halves, days, float(epsilon), seeds),
            }
            for who, errors in ways.items():
                yield {
                    "stream": stream,
                    "who": who,
                    "epsilon": float(epsilon),
                    "error": float(np.mean(errors)),
                    "deviation": float(np.std(errors)),
                    "best": best,
                }


def _streams() -> Iterator[tuple[str, Halfspaces, str, str, int]]:
    yield "late flights", FLIGHTS, "arrival_delay > 15", f"'{flights.PATH}'", 900
    if records := shuttle.relation():
        yield "shuttle", SHUTTLE, shuttle.LABEL, records, shuttle.ROWS


def _errors(rules: RuleLosses, days: list[TableCounts]) -> FloatArray:
    """True error rate of each rule on each day, shape (days, k)."""
    found = []
    for day in days:
        wrong = (rules.level(day) or 0) + rules.matrix @ np.array(rules.integers(day), dtype=float)
        found.append(wrong / max(int(day.marginals[0].sum()), 1))
    return np.array(found)


def _experts(
    rules: RuleLosses,
    days: list[TableCounts],
    epsilon: Fraction,
    expected: int,
    seeds: int,
    action: Action = "heaviest",
) -> list[float]:
    """Mean error of what the release kind says to follow, for each seed."""
    kind, errors, found = Experts(rules, epsilon, expected, action=action), _errors(rules, days), []
    plan = kind.plan(kind.init(), Batch("s", "1"))
    for seed in range(seeds):
        state, entropy, followed = kind.init(), PublicEntropy(f"linear {seed}"), []
        for day, wrong in zip(days, errors, strict=True):
            followed.append(wrong[state["chosen"]] if "chosen" in state else np.nan)
            state = kind.learn(state, plan, kind.draw(plan, day, entropy))
        found.append(float(np.nanmean(followed)))
    return found


def _gradients(
    halves: Halfspaces, days: list[TableCounts], epsilon: float, seeds: int
) -> dict[str, list[float]]:
    """Mean errors of the last and of the average vector, each at its best step."""
    features = _scaled(halves)
    tables = [day.marginals[0].reshape(2, -1) for day in days]
    played = np.array(
        [
            [_descent(features, tables, epsilon, seed, step) for seed in range(seeds)]
            for step in STEPS
        ]
    )
    best = played.mean(axis=1).argmin(axis=0)
    return {
        name: played[best[place], :, place].tolist()
        for place, name in enumerate(("gradients", "gradients, average vector"))
    }


def _scaled(halves: Halfspaces) -> FloatArray:
    """Features of each cell in [0, 1], and a constant, shape (cells, 3); 0 where one is null."""
    axes = [
        np.append(np.linspace(0, 1, len(f.values))[[0, *range(len(f.values))]], np.nan)
        for f in halves.features
    ]
    grid = np.stack([each.reshape(-1) for each in np.meshgrid(*axes, indexing="ij")], axis=1)
    whole = np.column_stack([grid, np.ones(len(grid))])
    return np.where(np.isnan(whole).any(axis=1, keepdims=True), 0.0, whole)


def _descent(
    features: FloatArray, tables: list[IntArray], epsilon: float, seed: int, step: float
) -> tuple[float, float]:
    """Mean error of the last vector and of the average of all so far."""
    random, norm = np.random.default_rng(seed), features.shape[1]
    vector, total, squares = np.zeros(norm), np.zeros(norm), np.zeros(norm)
    wrong: list[list[float]] = []
    for number, (without, labelled) in enumerate(tables):
        if number:
            said = [features @ each > 0 for each in (vector, total / number)]
            count = max(float(without.sum() + labelled.sum()), 1.0)
            missed = [int(without[s].sum() + labelled[~s].sum()) for s in said]
            wrong.append([each / count for each in missed])
        chance = 1.0 / (1.0 + np.exp(-features @ vector))
        gradient = features.T @ (chance * without - (1.0 - chance) * labelled) / norm
        noisy = gradient + random.laplace(scale=1.0 / epsilon, size=norm)
        squares = squares + noisy**2
        vector = vector - 10.0 * step * noisy / np.sqrt(squares)
        total = total + vector
    last, average = np.mean(wrong, axis=0)
    return float(last), float(average)


if __name__ == "__main__":
    main("Error of linear rules learned privately online", rows)
