"""Made-up batches for rules and for sums: one candidate is best, for good or until half time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamdp.kinds.rules.rules import Halfspaces, RuleGrid
from streamdp.types import Batch, IntArray, Sums, TableCounts

NAMES = ("steady", "change")
LENGTH = 365
ROWS = 1000
"""Records of a batch, where the release does not say."""

FIRST = 946_857_600
"""2000-01-03, a Monday: when the first batch begins; each is a day."""

DAY = 86_400

NOISE = 0.2
"""How often a record's label is not what the best rule says."""

BEST, OTHERS = 0.35, (0.4, 0.6)
"""Mean loss of the best sum, and between which ends those of the others lie."""


def batches(stream: str, length: int) -> tuple[Batch, ...]:
    """Days of a stream."""
    starts = (FIRST + day * DAY for day in range(length))
    return tuple(Batch(stream, f"{n:05d}", at, at + DAY) for n, at in enumerate(starts))


def rule_tables(
    grid: RuleGrid | Halfspaces,
    stream: str,
    rows: int,
    seed: int,
    length: int,
    *,
    labelled: bool = True,
) -> Iterator[TableCounts]:
    """Records by cell of the rules, values spread evenly; by label too, if there is one."""
    random = np.random.default_rng(seed)
    best = [random.integers(0, grid.shape) for _ in NAMES]
    sizes = tuple(dimension.size for dimension in grid.query().dimensions)
    for day in range(length):
        rule = best[_half(stream, day, length)]
        count = random.poisson(rows)
        cells = [random.integers(0, size - 1, count) for size in sizes]
        met = grid.met(rule, cells)
        label = (met ^ (random.uniform(size=count) < NOISE)).astype(np.int64)
        table = np.zeros((2, *sizes), dtype=np.int64)
        np.add.at(table, (label, *cells), 1)
        yield TableCounts((table if labelled else table.sum(axis=0),))


def losses(candidates: int, stream: str, rows: int, seed: int, length: int) -> Iterator[IntArray]:
    """Return for each batch how many of its records a candidate wins less those it loses."""
    random = np.random.default_rng(seed)
    means = random.uniform(*OTHERS, size=(len(NAMES), candidates))
    for half in range(len(NAMES)):
        means[half, random.integers(candidates)] = BEST
    for day in range(length):
        count = random.poisson(rows)
        lost = random.binomial(count, means[_half(stream, day, length)])
        yield np.asarray(2 * lost - count)


def sums(parts: Iterator[IntArray], unit: int) -> tuple[Sums, ...]:
    """Sums as an engine answers them, in multiples of a unit."""
    return tuple(Sums(tuple(int(each) * unit for each in part)) for part in parts)


def _half(stream: str, day: int, length: int) -> int:
    return int(stream == "change" and day >= length // 2)
