"""A year of flights whose planes come back: when does a gate publish anew, and how stale is it.

The unit is a plane (`tail_number`). Each day from the 28th on asks about the last 28 days, one row
a plane: about 3,150 rows, in which nearly every plane is again and again. All that is released or
tested in the year is to cost a plane epsilon = 1. Neighbours: one plane more or less, in all days.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Literal

import duckdb
import numpy as np

from streamdp.mechanisms.quantile_tree.planning.simulation import rank_error
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.mechanisms.sparse_vector.above_threshold import AboveThreshold
from streamdp.mechanisms.sparse_vector.drift import DriftChance, Tolerance, excess
from streamdp.mechanisms.sparse_vector.thresholding import Terms, Thresholding
from streamdp.priors.shapes import Cauchy
from streamdp.privacy.draws import OperatingSystemEntropy
from streamdp.types import CellCounts, Grid
from tests.benchmarks.report import Row

FLIGHTS = Path(__file__).parents[3] / "streamdp" / "demo" / "flights.parquet"
QUERY = (
    "SELECT date, tail_number, arrival_delay, hash(tail_number, date, dest, departure_delay)"
    " FROM read_parquet(?) WHERE tail_number IS NOT NULL AND arrival_delay IS NOT NULL"
)
DECILES = tuple(Fraction(i, 10) for i in range(1, 10))
GRID = Grid(Fraction(1), -100, 1300)
PRIORS = (Cauchy(0.0, 20.0),) * 9
WINDOW = 28
SLACK = Fraction(1, 20)
"""Ranks a standing decile may be off before anybody should be told."""

SYSTEM = OperatingSystemEntropy()

Gate = Literal["excess", "chance"]


@dataclass(frozen=True)
class Year:
    """What one strategy did.

    Args:
        releases: Days on which it published.
        staleness: Largest rank error of the standing release on each day.
        spent: Epsilon of a plane.
    """

    releases: list[int]
    staleness: np.ndarray
    spent: float


@cache
def windows() -> tuple[CellCounts, ...]:
    """For each day the last 28 days, one row a plane, the one of least hash."""
    columns = duckdb.execute(QUERY, [str(FLIGHTS)]).fetchnumpy()
    days = columns["date"].astype("datetime64[D]").astype(np.int64)
    days -= days.min()
    planes = np.unique(np.asarray(columns["tail_number"]).astype(str), return_inverse=True)[1]
    order = np.argsort(list(columns.values())[3])
    days, planes = days[order], planes[order]
    delays = np.clip(columns["arrival_delay"][order].astype(np.int64), GRID.lower, GRID.upper)
    found = []
    for last in range(WINDOW - 1, int(days.max()) + 1):
        rows = np.flatnonzero((days > last - WINDOW) & (days <= last))
        first = rows[np.unique(planes[rows], return_index=True)[1]]
        found.append(CellCounts(*np.unique(delays[first], return_counts=True)))
    return tuple(found)


def scheduled(every: int, epsilon: Fraction) -> Year:
    """A release each `every` days, epsilon shared among them."""
    days = list(range(0, len(windows()), every))
    tree = QuantileTree(DECILES, epsilon / len(days), GRID)
    standing: tuple[int, ...] = ()
    staleness = []
    for day, batch in enumerate(windows()):
        if day % every == 0:
            standing = tree.draw(batch, PRIORS, SYSTEM)
        staleness.append(rank_error(batch, DECILES, standing))
    return Year(days, np.array(staleness), float(epsilon))


def gated(kind: Gate, releases: int, epsilon: Fraction, share: Fraction, test: Fraction) -> Year:
    """A first release, then a new one whenever the gate says so, and the gate armed again.

    Args:
        kind: AboveThreshold on the excess in records, or thresholding on the tree's chance.
        releases: Most there can be: each after the first pays for its gate too.
        epsilon: Of a plane, for the whole year.
        share: Of epsilon that goes to releases.
        test: epsilon_t of the tree's chance.
    """
    tree = QuantileTree(DECILES, epsilon * share / releases, GRID)
    price = epsilon * (1 - share) / (releases - 1)
    beta, horizon = Fraction(1, 10), len(windows())
    noise = AboveThreshold(price, beta, Fraction(4, 5), horizon)
    gate = Thresholding(price, beta, Fraction(4, 5), horizon=horizon)
    standing, days, staleness = tree.draw(windows()[0], PRIORS, SYSTEM), [0], []
    state, spent = noise.start(SYSTEM), tree.epsilon + price
    for t, batch in enumerate(windows()):
        staleness.append(rank_error(batch, DECILES, standing))
        if len(days) == releases:
            continue
        if kind == "excess":
            tolerances = tuple(map(_tolerance, DECILES, standing))
            score = excess(batch, tolerances) - Fraction(noise.margin(1))
            accepted = noise.accept(state, score, SYSTEM)
        else:
            chance = DriftChance(QuantileTree(DECILES, test, GRID), _intervals(standing))
            accepted = gate.accept(state, t + 1, chance.chance(batch), Terms(test), SYSTEM)
        if not accepted:
            continue
        standing = tree.draw(batch, PRIORS, SYSTEM)
        days.append(t)
        spent += tree.epsilon
        if len(days) < releases:
            state, spent = noise.start(SYSTEM), spent + price
    return Year(days, np.array(staleness), float(spent))


def _tolerance(quantile: Fraction, cell: int) -> Tolerance:
    return Tolerance(quantile, cell, cell, SLACK)


def _intervals(standing: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Where the released quantile function says that the ranks q ± twice the slack lie."""
    known = np.array([0.0, *map(float, DECILES), 1.0])
    values = np.array([GRID.lower, *standing, GRID.upper], dtype=float)
    wide = 2 * float(SLACK)
    return tuple(
        (
            math.floor(np.interp(float(q) - wide, known, values)),
            math.ceil(np.interp(float(q) + wide, known, values)),
        )
        for q in DECILES
    )


def strategies(epsilon: Fraction) -> Iterator[tuple[str, Callable[[], Year]]]:
    """Name, and one year with fresh chance."""
    yield "every day", partial(scheduled, 1, epsilon)
    yield "every week", partial(scheduled, 7, epsilon)
    half = Fraction(1, 2), Fraction(1)
    for releases in (2, 3):
        every = math.ceil(len(windows()) / releases)
        yield f"{releases} on a schedule", partial(scheduled, every, epsilon)
        yield f"{releases} by AboveThreshold", partial(gated, "excess", releases, epsilon, *half)
        yield f"{releases} by thresholding", partial(gated, "chance", releases, epsilon, *half)


def rows(quick: bool) -> Iterator[Row]:
    """One row a strategy and epsilon: releases, staleness, spent, the day of the second release."""
    repeats = 1 if quick else 20
    for epsilon in (Fraction(1), Fraction(4)):
        for name, year in strategies(epsilon):
            years = [year() for _ in range(repeats)]
            staleness = np.stack([each.staleness for each in years])
            second = [each.releases[1] for each in years if len(each.releases) > 1]
            yield {
                "part": "use",
                "cell": name,
                "epsilon": float(epsilon),
                "releases": float(np.mean([len(each.releases) for each in years])),
                "spent": max(each.spent for each in years),
                "stale_mean": float(staleness.mean()),
                "stale_95": float(np.quantile(staleness, 0.95, axis=1).mean()),
                "stale_worst": float(staleness.max(axis=1).mean()),
                "second_release": float(np.median(second)) if second else None,
            }
