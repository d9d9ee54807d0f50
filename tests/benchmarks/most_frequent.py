"""The most frequent values of a column: a histogram at one price, and mechanisms that peel.

The five destinations of most flights among 105, each day from the second month on, epsilon 0.1 a
day. `lost` is the share of the flights of the true five that the chosen five do not have; `recall`
is the share of the true five among the chosen. The histogram is that of `kind: statistics`: as
drawn, and as smoothed by what all releases say. The peeling mechanisms draw five times, at a fifth
of epsilon each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from streamdp.kinds.selection.candidates import Conditions
from streamdp.kinds.selection.kind import Selection
from streamdp.kinds.selection.scores import CountScore
from streamdp.privacy.draws import OperatingSystemEntropy
from streamdp.privacy.price import Price
from streamdp.types import Batch, FloatArray, IntArray, Sums
from tests.benchmarks.peers.opendp_choice import choice
from tests.benchmarks.report import Row
from tests.benchmarks.statistics import COUNTS, LATE, a_year, counts_by_day, kind_of

TOP = 5
EPSILON = Fraction(1, 10)
SMOOTHED = 3
"""Place of the smoothed counts among the columns of a release."""

Chosen = Callable[[], IntArray]
"""The chosen places of each day, shape (days, TOP)."""


def rows(quick: bool) -> Iterator[Row]:
    """One row a way of choosing."""
    truth, names = counts_by_day(COUNTS["destinations"])
    truth = truth[: LATE + 30] if quick else truth
    ways: dict[str, Chosen | None] = {
        "histogram, as drawn": lambda: _of_histogram(truth, names, 0),
        "histogram, smoothed": lambda: _of_histogram(truth, names, SMOOTHED),
        "selection, top 5": lambda: _of_selection(truth, learned=False),
        "selection, top 5, learned prior": lambda: _of_selection(truth, learned=True),
        "OpenDP noisy top k": _of_opendp(truth),
    }
    for who, chosen in ways.items():
        places = [] if chosen is None else [chosen() for _ in range(1 if quick else 3)]
        found = [_errors(truth, each) for each in places]
        yield {
            "stream": "top 5 of 105 destinations",
            "who": who if chosen is not None else f"{who}: not installed",
            "epsilon": float(EPSILON),
            "lost": float(np.mean([lost for lost, _ in found])) if found else None,
            "recall": float(np.mean([recall for _, recall in found])) if found else None,
            "days": len(truth) - LATE,
        }


def _errors(truth: FloatArray, chosen: IntArray) -> tuple[float, float]:
    best = np.argsort(-truth, axis=1, kind="stable")[:, :TOP]
    there = np.take_along_axis(truth, best, axis=1).sum(axis=1)
    had = np.take_along_axis(truth, chosen, axis=1).sum(axis=1)
    hits = [len(set(one) & set(other)) for one, other in zip(best, chosen, strict=True)]
    return float((1 - had / there)[LATE:].mean()), float(np.mean(hits[LATE:])) / TOP


def _of_histogram(truth: FloatArray, names: list[str], column: int) -> IntArray:
    kind = kind_of({"n": {"histogram": "x", "values": names}}, Price(EPSILON))
    counts = a_year(kind, lambda day: [truth[day]], len(truth))[column]
    return np.argsort(-counts, axis=1, kind="stable")[:, :TOP]


def _of_selection(truth: FloatArray, *, learned: bool) -> IntArray:
    """The draws of `kind: selection` on the counts that a backend would answer."""
    listed = Conditions(
        tuple({"candidate": str(n)} for n in range(truth.shape[1])),
        ("",) * truth.shape[1],
        CountScore(),
    )
    kind = Selection(listed, CountScore(), EPSILON, top=TOP)
    kind = replace(kind, learned=learned)
    state, entropy, found = kind.init(), OperatingSystemEntropy(), []
    for number, day in enumerate(truth):
        plan = kind.plan(state, Batch("flights", str(number)))
        drawn = kind.draw(plan, Sums(tuple(map(int, day))), entropy)
        state = kind.learn(state, plan, drawn)
        found.append(list(drawn.auxiliary))
    return np.array(found)


def _of_opendp(truth: FloatArray) -> Chosen | None:
    draw = choice(float(EPSILON), TOP, monotonic=True)
    if draw is None:
        return None
    return lambda: np.array([draw(day.astype(int).tolist()) for day in truth])
