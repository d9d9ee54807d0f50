"""How often intervals hold over a random family of streams.

`python -m tests.benchmarks.calibration_family [--json] [--quick] [--held-back] [--first N]
[--streams N]`. Rows are those of `calibration`, with what a stream is made of. A number is a
stream: it decides the law of its records, how it moves, rows, epsilon, quantiles, grid, and how
wrong the guess is. Streams from `FIRST` on are for development; those of `--held-back` are run when
a change is finished, and nothing is tuned on them. `--first` and `--streams` choose others: a set
that nobody has run says most.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from streamdp.types import FloatArray
from tests.benchmarks.calibration import TARGETS, Data, cell
from tests.benchmarks.report import Row, main

FIRST, HELD_BACK, STREAMS, FEW = 10_000, 20_000, 240, 8

Chance = np.random.Generator
Law = Callable[[Chance, int], FloatArray]
Change = Callable[[Chance, FloatArray], FloatArray]


def _smooth(made: Chance) -> tuple[str, Law]:
    """One hump, or one slope."""
    a, b, tail = made.uniform(0.4, 5.0), made.uniform(0.4, 5.0), made.uniform(1.3, 6.0)
    spread, shape = made.uniform(0.3, 2.0), 10.0 ** made.uniform(-0.3, 1.2)
    laws: tuple[tuple[str, Law], ...] = (
        ("normal", lambda g, n: g.normal(size=n)),
        ("lognormal", lambda g, n: g.lognormal(0.0, spread, n)),
        ("student", lambda g, n: g.standard_t(tail, n)),
        ("gamma", lambda g, n: g.gamma(shape, 1.0, n)),
        ("weibull", lambda g, n: g.weibull(shape, n)),
        ("beta", lambda g, n: g.beta(a, b, n)),
        ("laplace", lambda g, n: g.laplace(size=n)),
    )
    return laws[int(made.integers(len(laws)))]


def _humps(made: Chance) -> tuple[str, Law]:
    """Two to five, with holes between some."""
    count = int(made.integers(2, 6))
    places, widths = made.normal(0.0, 4.0, count), 10.0 ** made.uniform(-1.3, 0.3, count)
    weights = made.dirichlet(np.full(count, 2.0))

    def law(chance: Chance, n: int) -> FloatArray:
        hump = chance.choice(count, n, p=weights)
        return np.asarray(places[hump] + widths[hump] * chance.normal(size=n))

    return f"{count} humps", law


def _counts(made: Chance) -> tuple[str, Law]:
    """Integers."""
    mean, share = 10.0 ** made.uniform(0.0, 1.7), made.uniform(0.05, 0.6)
    laws: tuple[tuple[str, Law], ...] = (
        ("poisson", lambda g, n: g.poisson(mean, n).astype(float)),
        ("geometric", lambda g, n: g.geometric(share, n).astype(float)),
        ("negative binomial", lambda g, n: g.negative_binomial(3, share, n).astype(float)),
    )
    return laws[int(made.integers(len(laws)))]


def _two(made: Chance) -> tuple[str, Law]:
    """A mixture of two laws, one of them moved and stretched."""
    (name, one), (second, other) = _smooth(made), _smooth(made)
    share, away, wide = made.uniform(0.1, 0.9), made.normal(0.0, 4.0), 10.0 ** made.uniform(-1, 1)

    def law(chance: Chance, n: int) -> FloatArray:
        first, moved = one(chance, n), away + wide * other(chance, n)
        return np.where(chance.random(n) < share, first, moved)

    return f"{name} and {second}", law


def _changed(made: Chance, probe: FloatArray) -> tuple[str, Change]:
    """What half of the streams have beside their law: equal values, outliers, clipping, shocks."""
    share, pile = made.uniform(0.1, 0.6), float(made.choice(probe))
    rare, factor = made.uniform(0.01, 0.05), 10.0 ** made.uniform(1.0, 3.0)
    low, high = np.quantile(probe, [0.1, 0.85])
    changes: tuple[tuple[str, Change], ...] = (
        ("ties", lambda g, x: np.where(g.random(len(x)) < share, pile, x)),
        ("outliers", lambda g, x: np.where(g.random(len(x)) < rare, factor, 1.0) * x),
        ("clipped", lambda g, x: x.clip(low, high)),
        ("shocks", lambda g, x: x * (5.0 if g.random() < 0.15 else 1.0)),
        ("slices", _slice),
    )
    plain: tuple[str, Change] = ("", lambda g, x: x)
    return changes[int(made.integers(5))] if made.random() < 0.5 else plain


def _slice(chance: Chance, values: FloatArray) -> FloatArray:
    """A tenth of the records by their size, spread again over as many."""
    start = int(chance.integers(0, 10)) / 10.0
    return np.asarray(np.quantile(values, start + 0.1 * chance.random(len(values))))


def _moves(made: Chance, chance_of: Callable[[int], Chance]) -> tuple[str, Callable[[int], float]]:
    """Where a batch lies, in spreads."""
    step, jump = 10.0 ** made.uniform(-2.0, -0.3), made.normal(0.0, 3.0)
    steps = made.normal(0.0, step, 200)
    kinds: tuple[tuple[str, Callable[[int], float]], ...] = (
        ("still", lambda number: 0.0),
        ("still", lambda number: 0.0),
        ("drift", lambda number: step * number / 5.0),
        ("shift", lambda number: jump * (number >= 12)),
        ("walk", lambda number: float(steps[:number].sum())),
        ("jumps", lambda number: jump * chance_of(number).normal()),
    )
    return kinds[int(made.integers(len(kinds)))]


def stream(number: int) -> tuple[Data, str, float, str]:
    """A stream, what is asked of it, epsilon times its rows, and who is asked."""
    made = np.random.default_rng([1311, number])
    name, law = (_smooth, _smooth, _humps, _counts, _two)[int(made.integers(5))](made)
    probe = law(np.random.default_rng([1312, number]), 4000)
    change, changed = _changed(made, probe)
    spread = max(float(np.subtract(*np.quantile(probe, [0.8413, 0.1587]))) / 2.0, 1e-3)
    motion, place = _moves(made, lambda each: np.random.default_rng([1313, number, each]))
    scale, rows = 10.0 ** made.uniform(-3.0, 4.0), int(10.0 ** made.uniform(1.3, 4.7))
    step = 10.0 ** np.floor(np.log10(spread * scale * made.choice([1e-4, 1e-3, 1e-2, 0.1])))
    if name in ("poisson", "geometric", "negative binomial"):
        scale, step = 1.0, float(made.choice([1.0, 1.0, 0.01]))
        place = partial(_whole, place, spread)
    wrong = float(np.median(probe)) + spread * made.uniform(-3.0, 3.0)
    guess = wrong * scale, spread * scale * 10.0 ** made.uniform(-1.0, 1.0)
    information = min(rows * 10.0 ** made.uniform(-1.3, 0.7), 20_000.0)

    def batch(index: int) -> FloatArray:
        chance = np.random.default_rng([1314, number, index])
        records = changed(chance, law(chance, rows)) + place(index) * spread
        return np.asarray(np.rint(records * scale / step))

    text = f"{step:.12f}".rstrip("0") if step < 1 else str(int(step))
    about = name, change, motion, f"grid {step / spread / scale:.0e}"
    title = ", ".join(each for each in about if each)
    targets = str(made.choice(list(TARGETS)))
    who = "mixture" if made.random() < 2 / 3 else "auto"
    return Data(f"{number}: {title}", batch, text, guess, rows), targets, information, who


def _whole(place: Callable[[int], float], spread: float, index: int) -> float:
    """Moves of integers are integers."""
    return round(place(index) * spread) / spread


def releases(quantiles: str) -> int:
    """Counted of a stream: more where there are few quantiles."""
    return {1: 40, 3: 24}.get(len(TARGETS[quantiles]), 14)


def rows(quick: bool, first: int, streams: int) -> Iterator[Row]:
    """Every stream of a set."""
    for number in range(first, first + (FEW if quick else streams)):
        each, quantiles, information, who = stream(number)
        yield from cell(each, quantiles, information, who, releases(quantiles))


if __name__ == "__main__":
    asked = argparse.ArgumentParser(add_help=False)
    whose = asked.add_mutually_exclusive_group()
    whose.add_argument("--held-back", action="store_true", help="streams that nothing is tuned on")
    whose.add_argument("--first", type=int, default=FIRST, help="number of the first stream")
    asked.add_argument("--streams", type=int, default=STREAMS, help="how many")
    known, _ = asked.parse_known_args()
    title = "Intervals over a random family of streams: how often they hold, and how wide they are"
    first = HELD_BACK if known.held_back else known.first
    main(title, partial(rows, first=first, streams=known.streams), parser=asked)
