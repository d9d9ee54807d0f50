"""``python -m tests.benchmarks.selection [--json] [--quick]``: private choices of a rule a day.

Every day of 2013 the rule "late if departure delay >= t and hour >= a" that errs least is chosen
among 2,020, for flights that arrive more than 15 minutes late; then the same among the rules of
another stream that nothing was tuned on. `error` is the average excess of the chosen rule's error
rate over that of the day's best rule. The last rows time the scores of all rules over one scan.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from streamdp.kinds.rules.grid import RuleGrid, Threshold
from streamdp.kinds.selection.candidates import ThresholdRules
from streamdp.kinds.selection.kind import Selection
from streamdp.kinds.selection.scores import Errors
from streamdp.mechanisms.finite_choice import exponential_choice
from streamdp.mechanisms.quantile_tree.simulation import PublicEntropy
from streamdp.types import Batch, TableCounts
from tests.benchmarks import flights
from tests.benchmarks.report import Row, main

EPSILONS = (Fraction(3, 10), Fraction(1, 10), Fraction(3, 100))


def grid(first: tuple[str, int, int], second: tuple[str, int, int]) -> RuleGrid:
    """Rules `first >= t and second >= a` over ranges of whole numbers."""
    return RuleGrid(
        tuple(
            Threshold(name, ">=", parameter, tuple(map(Fraction, range(low, high + 1))))
            for parameter, (name, low, high) in (("t", first), ("a", second))
        )
    )


STREAMS = {
    "late flights": (
        grid(("departure_delay", -20, 80), ("hour", 4, 23)),
        "arrival_delay > 15",
    ),
    "air time (not tuned on)": (
        grid(("air_time", 50, 250), ("hour", 4, 13)),
        "arrival_delay < departure_delay",
    ),
}


def rows(quick: bool) -> Iterator[Row]:
    """One row a stream, epsilon and way of choosing."""
    for stream, (rules, label) in STREAMS.items():
        days = flights.tables(rules, label)
        days = days[:40] if quick else days
        for epsilon in EPSILONS:
            for who, kind in _ways(rules, epsilon).items():
                errors = [_errors(kind, days, seed) for seed in range(1 if quick else 5)]
                yield {
                    "stream": stream,
                    "who": who,
                    "epsilon": float(epsilon),
                    "error": float(np.mean(errors)),
                    "deviation": float(np.std(errors)),
                    "days": len(days),
                }
    yield from _times(quick)


class Textbook(Selection):
    """Half the exponent: the bound of a score that may move both ways."""

    @property
    def exponent(self) -> Fraction:
        return super().exponent / 2


def _ways(rules: RuleGrid, epsilon: Fraction) -> dict[str, Selection]:
    candidates, score = ThresholdRules(rules, Errors("late")), Errors("late")
    plain = Selection(candidates, score, epsilon, learned=False)
    return {
        "textbook exponent": Textbook(candidates, score, epsilon, learned=False),
        "by range": plain,
        "permute and flip": replace(plain, choice="permute-and-flip"),
        "learned prior": replace(plain, learned=True),
        "learned prior, permute and flip": replace(plain, learned=True, choice="permute-and-flip"),
    }


def _errors(kind: Selection, days: list[TableCounts], seed: int) -> float:
    """Average excess error rate over the days."""
    state, entropy, excess = kind.init(), PublicEntropy(f"selection {seed}"), []
    for number, day in enumerate(days):
        plan = kind.plan(state, Batch("flights", str(number)))
        outcome = kind.draw(plan, day, entropy)
        scores = kind.candidates.scores(day)
        records = max(int(day.marginals[0].sum()), 1)
        excess.append((max(scores) - scores[outcome.auxiliary[0]]) / records)
        state = kind.learn(state, plan, outcome)
    return float(np.mean(excess))


def _times(quick: bool) -> Iterator[Row]:
    """Scores and draw of 2,020 rules, over the scan that counts them; milliseconds a release."""
    rules, label = STREAMS["late flights"]
    began = time.perf_counter()
    days = flights.tables(rules, label)
    scan = (time.perf_counter() - began) / len(days)
    kind = _ways(rules, EPSILONS[1])["learned prior"]
    days = days[: 20 if quick else 100]
    began = time.perf_counter()
    _errors(kind, days, 0)
    release = (time.perf_counter() - began) / len(days)
    best = kind.candidates.scores(days[0])
    began = time.perf_counter()
    for _ in range(20):
        exponential_choice(best, kind.exponent, PublicEntropy("time"))
    draw = (time.perf_counter() - began) / 20
    for who, seconds in {"scan a day": scan, "release": release, "one draw": draw}.items():
        yield {"stream": "late flights", "who": who, "milliseconds": 1000 * seconds}


if __name__ == "__main__":
    main("Excess error of privately chosen rules", rows)
