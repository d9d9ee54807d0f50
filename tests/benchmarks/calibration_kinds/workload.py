"""Intervals of a workload's answers, and the proved bounds of tests in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from streamdp.kinds.workload.fitting.distribution import Workload, marginals_up_to
from streamdp.kinds.workload.kind import WorkloadRelease
from streamdp.kinds.workload.weights import PrivateWeights
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.privacy.price import Price
from streamdp.types import Batch, Dimension, IntArray, TableCounts
from tests.benchmarks.calibration_kinds.intervals import Intervals
from tests.benchmarks.report import Row

REASON = "what was not measured rests on what batches usually are"
PROVED = "proved for all answers of a release at once"
TOLERANCE = 0.1


def stream_row(name: str, tables: Sequence[IntArray], price: Price, choose: str = "auto") -> Row:
    """One row: all answers of all releases."""
    kind = _kind(tables, price, choose)
    state = kind.init()
    found: list[tuple[float, float, float]] = []
    truth: list[int] = []
    column = "bound" if choose == "online" else "value"
    for number, table in enumerate(tables):
        plan = kind.plan(state, Batch("s", str(number)))
        statistic = TableCounts(tuple(_marginal(table, axes) for axes in kind._marginals()))
        outcome = kind.draw(plan, statistic, PublicEntropy(f"{name} {price} {number}"))
        state = kind.learn(state, plan, outcome)
        exact = np.concatenate([[table.sum()], *kind.counts(statistic)])
        for row, count in zip(outcome.rows, exact.tolist(), strict=True):
            if row[column] is not None:
                found.append(_ends(row, column))
                truth.append(count)
    ends = np.array(found)
    point, lower, upper = ends.T
    amount = float(price.amount)
    about: dict[str, Any] = {
        "who": f"workload, {choose}",
        "data": name,
        "n": round(float(np.mean([table.sum() for table in tables])), 1),
        "epsilon": amount if price.measure == "epsilon" else None,
        "rho": amount if price.measure == "rho" else None,
    }
    counted = np.array(truth)
    intervals = Intervals(counted[:, None], point[:, None], lower[:, None], upper[:, None])
    return intervals.row(about, column, 0.95, PROVED if choose == "online" else REASON)


def _ends(row: Any, column: str) -> tuple[float, float, float]:
    if column == "bound":
        return row["value"], row["value"] - row["bound"], row["value"] + row["bound"]
    return row["value"], row["lower"], row["upper"]


def _marginal(table: IntArray, axes: tuple[int, ...]) -> IntArray:
    others = tuple(axis for axis in range(table.ndim) if axis not in axes)
    return np.asarray(table.sum(axis=others))


def _kind(tables: Sequence[IntArray], price: Price, choose: str) -> WorkloadRelease:
    shape = tables[0].shape
    axes = tuple(
        Dimension(f"d{place}", values=tuple(map(str, range(size))))
        for place, size in enumerate(shape)
    )
    workload = Workload.of(shape, marginals_up_to(len(shape), 2))
    rows = max(round(float(np.mean([table.sum() for table in tables]))), 1)
    mechanism = PrivateWeights(
        workload,
        price.amount,
        rows,
        tolerance=max(round(TOLERANCE * rows), 1),
        loss=price.measure,
    )
    names = tuple(" ".join(map(str, item.axes)) for item in workload.items)
    return WorkloadRelease(axes, names, replace(mechanism, choose=choose))  # type: ignore[arg-type]


def drawn(seed: int, number: int, days: int = 40) -> list[IntArray]:
    """A stream whose every part is drawn by a seed: sizes, law, drift, sudden changes."""
    chance = np.random.default_rng([seed, number])
    shape = tuple(int(each) for each in chance.integers(2, 12, int(chance.choice([3, 4]))))
    rows = float(np.exp(chance.uniform(np.log(100), np.log(5000))))
    even, drift = float(chance.choice([0.1, 1.0])), float(chance.choice([0.0, 0.1, 0.5]))
    logits = np.log(chance.gamma(even, size=shape) + 1e-6)
    found = []
    for _ in range(days):
        if chance.random() < 0.03:
            logits = np.log(chance.gamma(even, size=shape) + 1e-6)
        logits = logits + drift * chance.normal(size=shape)
        law = np.exp(logits - logits.max())
        found.append(chance.poisson(rows * law / law.sum()).astype(np.int64))
    return found
