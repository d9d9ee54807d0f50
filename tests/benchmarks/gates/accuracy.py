"""Does a gate err no more often than beta, how far below p* is a no sure, what does a test take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.mechanisms.sparse_vector.drift import DriftChance, Tolerance, excess
from streamdp.mechanisms.sparse_vector.thresholding import Chance, Terms, Thresholding
from streamdp.priors.shapes import Cauchy
from streamdp.privacy.draws import OperatingSystemEntropy
from streamdp.types import CellCounts, Entropy, Grid
from tests.benchmarks.report import Row
from tests.privacy.gates.law import Asked, coarse, run_law

SYSTEM = OperatingSystemEntropy()
GATE = Thresholding(Fraction(1), Fraction(1, 10))
DECILES = tuple(Fraction(i, 10) for i in range(1, 10))


@dataclass(frozen=True)
class Cell:
    """Tests of one kind.

    Args:
        name: In the rows.
        terms: Public.
        sampled: Whether they are black boxes.
    """

    name: str
    terms: Terms
    sampled: bool


CELLS = (
    Cell("computed", Terms(Fraction(1, 50)), False),
    Cell("computed, delta", Terms(Fraction(1, 50), Fraction(1, 10**4)), False),
    Cell("sampled, low side", Terms(Fraction(1, 50)), True),
    Cell("sampled, delta", Terms(Fraction(1, 50), Fraction(1, 10**4)), True),
    Cell("sampled, high side", Terms(Fraction(1, 100), level=Fraction(19, 20)), True),
)


class Box:
    """A black box of known chance, which remembers how often it ran."""

    generator = np.random.default_rng(7)

    def __init__(self, chance: float) -> None:
        self._chance = chance
        self.runs = 0

    def __call__(self, runs: int, entropy: Entropy) -> int:
        self.runs += runs
        return int(self.generator.binomial(runs, self._chance))


def rows(quick: bool) -> Iterator[Row]:
    """One row a kind and number of tests; `err` is the share of runs, over beta."""
    runs = 100 if quick else 2000
    for cell in CELLS:
        for tests in (10,) if quick else (10, 100, 1000):
            yield _measured(cell, tests, runs)


def _measured(cell: Cell, tests: int, runs: int) -> Row:
    gate, terms = GATE, cell.terms
    levels = [gate.rejection_level(t, terms, sampled=cell.sampled) for t in range(1, tests + 1)]
    missed = sum(
        not gate.accept(
            gate.start(SYSTEM), t % tests + 1, _test(cell, float(terms.level)), terms, SYSTEM
        )
        for t in range(runs)
    )
    alarms = asked = ran = 0
    for _ in range(runs):
        state = gate.start(SYSTEM)
        for t, level in enumerate(levels, start=1):
            test = _test(cell, level)
            asked += 1
            accepted = gate.accept(state, t, test, terms, SYSTEM)
            ran += test.runs if isinstance(test, Box) else 0
            if accepted:
                alarms += 1
                break
    expected, ceiling = gate.evaluations(tests, terms) if cell.sampled else (0.0, 0)
    return {
        "part": "accuracy",
        "cell": cell.name,
        "tests": tests,
        "runs": runs,
        "err_at_p*": missed / runs / float(gate.beta),
        "err_at_level": alarms / runs / float(gate.beta),
        "level": levels[-1],
        "level_found": _level_found(cell, tests),
        "runs_a_test": ran / asked,
        "expected": expected,
        "ceiling": ceiling,
    }


def _test(cell: Cell, chance: float) -> Chance | Box:
    return Box(chance) if cell.sampled else Chance(chance, 1.0 - chance)


def _level_found(cell: Cell, tests: int) -> float:
    """The success probability at which a run of so many tests errs with beta, integrated."""
    low, high = 0.0, float(cell.terms.level)
    with coarse(3, 0):
        for _ in range(12):
            middle = (low + high) / 2.0
            silent = float(run_law(GATE, _run(cell, tests, middle), False)[-1])
            low, high = (middle, high) if 1.0 - silent < float(GATE.beta) else (low, middle)
    return low


def _run(cell: Cell, tests: int, success: float) -> list[Asked]:
    """Blocks of tests, each a tenth of what went before: as in a run, later ones ask for more."""
    chance, blocks, first = Chance(success, 1.0 - success), [], 1
    while first <= tests:
        times = min(first // 10 + 1, tests - first + 1)
        blocks.append(Asked(cell.terms, chance, chance, times, cell.sampled, first))
        first += times
    return blocks


def times(quick: bool) -> Iterator[Row]:
    """One row a number of records: a test of nine deciles over a release of them, interleaved."""
    for records in (1000, 10**6):
        tasks = _tasks(records)
        least = dict.fromkeys(tasks, float("inf"))
        for _ in range(10 if quick else 100):
            for name, task in tasks.items():
                start = time.process_time()
                task()
                least[name] = min(least[name], time.process_time() - start)
        for name in ("thresholding", "AboveThreshold"):
            ratio = least[name] / least["release"]
            yield {"part": "time", "cell": name, "records": records, "over_release": ratio}


def _tasks(records: int) -> dict[str, Callable[[], object]]:
    values = np.random.default_rng(0).gamma(3.0, 50.0, records).clip(0, 1000).astype(np.int64)
    batch = CellCounts(*np.unique(values, return_counts=True))
    ends = tuple(
        (int(np.quantile(values, float(q) - 0.05)), int(np.quantile(values, float(q) + 0.05)))
        for q in DECILES
    )
    terms = Terms(Fraction(1, 10))
    tree = QuantileTree(DECILES, terms.epsilon, Grid(Fraction(1), 0, 1000))
    drift = DriftChance(tree, ends)
    bounds = tuple(Tolerance(q, *end) for q, end in zip(DECILES, ends, strict=True))
    state, priors = GATE.start(SYSTEM), (Cauchy(150.0, 100.0),) * 9
    return {
        "release": lambda: tree.draw(batch, priors, SYSTEM),
        "thresholding": lambda: GATE.accept(state, 1, drift.chance(batch), terms, SYSTEM),
        "AboveThreshold": lambda: GATE.noise.accept(state, excess(batch, bounds), SYSTEM),
    }
