"""``python -m tests.benchmarks.selection [--json] [--quick]``: private choices of a rule a day.

Every day of 2013 the rule "late if departure delay >= t and hour >= a" that errs least is chosen
among 2,020, for flights that arrive more than 15 minutes late; then the same among the rules of
two other streams that nothing was tuned on, and of one set aside and run once. `error` is the
average excess of the chosen rule's error rate over that of the batch's best rule; `expected` is the
same computed from the weights, without a draw, where nothing is learned. OpenDP's noisy max is told
that scores may move both ways (its default), or that a record moves them all one way, as here.

Then the most frequent of 105 destinations (`most_frequent`). The last rows time one scan for all
rules on a batch of three million flights, in processor time: `ratio` is that of 2,020 rules over
the same engine's scan for one, over SQL written by hand for one, and over the least that SQL must
do for all: count records by their raw values.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from tempfile import TemporaryDirectory

import duckdb
import numpy as np

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.kinds.rules.rules import RuleComparison, RuleGrid
from streamdp.kinds.selection.candidates import Conditions, ThresholdRules
from streamdp.kinds.selection.kind import Selection
from streamdp.kinds.selection.scores import Errors
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.types import Batch, TableCounts
from tests.benchmarks import flights, most_frequent, shuttle
from tests.benchmarks.peers.opendp_choice import choice
from tests.benchmarks.report import Row, main

SHUTTLE_STEPS = (45, 45)

EPSILONS = (Fraction(3, 10), Fraction(1, 10), Fraction(3, 100))


def grid(first: tuple[str, int, int], second: tuple[str, int, int]) -> RuleGrid:
    """Rules `first >= t and second >= a` over ranges of whole numbers."""
    return RuleGrid(
        tuple(
            RuleComparison(name, ">=", parameter, tuple(map(Fraction, range(low, high + 1))))
            for parameter, (name, low, high) in (("t", first), ("a", second))
        )
    )


FLIGHTS = {
    "late flights": (
        grid(("departure_delay", -20, 80), ("hour", 4, 23)),
        "arrival_delay > 15",
    ),
    "air time (not tuned on)": (
        grid(("air_time", 50, 250), ("hour", 4, 13)),
        "arrival_delay < departure_delay",
    ),
    "from JFK (not tuned on)": (
        grid(("air_time", 100, 350), ("hour", 4, 11)),
        "origin = 'JFK'",
    ),
}


def rows(quick: bool) -> Iterator[Row]:
    """One row a stream, epsilon and way of choosing."""
    for stream, rules, every in _streams():
        days = every[:40] if quick else every
        for epsilon in EPSILONS:
            for who, kind in _ways(rules, epsilon).items():
                errors = [_errors(kind, days, seed) for seed in range(1 if quick else 5)]
                yield {
                    "stream": stream,
                    "who": who,
                    "epsilon": float(epsilon),
                    "error": float(np.mean(errors)),
                    "deviation": float(np.std(errors)),
                    "expected": _expected(kind, days),
                    "days": len(days),
                }
        yield from _of_opendp(stream, days, _ways(rules, EPSILONS[0])["by range"])
    yield from most_frequent.rows(quick)
    yield from _times(quick)


def _streams() -> Iterator[tuple[str, RuleGrid, list[TableCounts]]]:
    """Each with its rules and batches."""
    for stream, (rules, label) in FLIGHTS.items():
        yield stream, rules, flights.tables(rules, label)
    if records := shuttle.relation():
        rules = shuttle.grid(records, *SHUTTLE_STEPS)
        yield "shuttle (set aside)", rules, flights.tables(rules, shuttle.LABEL, records)


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


def _expected(kind: Selection, days: list[TableCounts]) -> float | None:
    """Average excess error rate that the exponential mechanism has; None of other ways."""
    if kind.learned or kind.choice != "exponential":
        return None
    excess = []
    for day in days:
        scores = np.array(kind.candidates.scores(day), dtype=np.float64)
        short = scores.max() - scores
        weights = np.exp(-float(kind.exponent) * short)
        records = max(int(day.marginals[0].sum()), 1)
        excess.append(float(weights @ short) / float(weights.sum()) / records)
    return float(np.mean(excess))


def _of_opendp(stream: str, days: list[TableCounts], kind: Selection) -> Iterator[Row]:
    """OpenDP on the same scores, once: a draw takes it longer than a release takes streamdp."""
    scores = [kind.candidates.scores(day) for day in days]
    records = [max(int(day.marginals[0].sum()), 1) for day in days]
    for who, monotonic in (("OpenDP noisy max", False), ("OpenDP noisy max, one way", True)):
        for epsilon in EPSILONS:
            draw = choice(float(epsilon), monotonic=monotonic)
            name = who if draw is not None else f"{who}: not installed"
            short = [] if draw is None else [max(each) - each[draw(each)[0]] for each in scores]
            yield {
                "stream": stream,
                "who": name,
                "epsilon": float(epsilon),
                "error": float(np.mean(np.array(short) / records)) if short else None,
                "days": len(days),
            }


def _times(quick: bool) -> Iterator[Row]:
    """A scan for 2,020 rules over one for a single rule, and over the barest count of one."""
    rules, label = FLIGHTS["late flights"]
    copies = 2 if quick else 10
    one = RuleGrid(tuple(replace(each, values=each.values[40:41]) for each in rules.thresholds[:1]))
    named = Conditions(({"candidate": "one"},), ("departure_delay >= 20",), Errors(label))
    with TemporaryDirectory() as folder:
        path = f"{folder}/flights.parquet"
        everything = f"SELECT f.* FROM '{flights.PATH}' AS f, range({copies})"
        duckdb.execute(f"COPY ({everything}) TO '{path}' (FORMAT parquet)")
        backend, batch = DuckDBBackend(path, "parquet"), Batch("flights", "all")
        errors = f"sum(CASE WHEN departure_delay >= 20 AND ({label}) THEN 1"
        errors += f" WHEN departure_delay >= 20 AND NOT ({label}) THEN -1 END)"
        connection = duckdb.connect()
        asked: dict[str, Callable[[], object]] = {
            "2,020 rules": partial(
                backend.answer, ThresholdRules(rules, Errors(label)).query(), batch
            ),
            "one rule": partial(backend.answer, ThresholdRules(one, Errors(label)).query(), batch),
            "one condition": partial(backend.answer, named.query(), batch),
            "plain SQL for one rule": lambda: connection.execute(
                f"SELECT {errors} FROM '{path}'"
            ).fetchall(),
            "plain SQL, records by raw values": lambda: connection.execute(
                f"SELECT departure_delay, hour, {label}, count(*) FROM '{path}' GROUP BY ALL"
            ).fetchall(),
        }
        taken = {who: min(_seconds(ask) for _ in range(7)) for who, ask in asked.items()}
    for who, seconds in taken.items():
        yield {
            "stream": f"{copies * 336_776:,} flights",
            "who": who,
            "milliseconds": 1000 * seconds,
            "ratio": taken["2,020 rules"] / seconds,
        }
    days = flights.tables(rules, label)[: 20 if quick else 100]
    kind = _ways(rules, EPSILONS[1])["learned prior"]
    whole = _seconds(lambda: _errors(kind, days, 0)) / len(days)
    yield {"stream": "late flights", "who": "plan, draw, learn", "milliseconds": 1000 * whole}


def _seconds(ask: Callable[[], object]) -> float:
    began = time.process_time()
    ask()
    return time.process_time() - began


if __name__ == "__main__":
    main("Excess error of privately chosen rules", rows)
