"""Expected error of a workload, from public facts alone: replays of a stable stream.

Records are independent, each axis has shares in proportion to 1/(1 + cell), and neighbouring axes
lean on each other. Real streams differ: this tells sizes, not digits.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from streamdp.kinds.charging import least_price
from streamdp.kinds.workload.fitting.distribution import MOST_CELLS
from streamdp.kinds.workload.fitting.hypotheses import HypothesisState
from streamdp.kinds.workload.kind import WorkloadRelease
from streamdp.kinds.workload.weights import PrivateWeights
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.privacy.filters import Measure
from streamdp.privacy.price import Price
from streamdp.types import FloatArray, IntArray

RELEASES = 30
"""Releases of the simulated stream; the last third counts as learned."""

COLD = 5
"""Releases without a memory, of which the mean is told."""

MOST_SAMPLED = 20_000
"""Records of a synthetic batch; of larger ones shares are exact."""

MOST_SHOWN = 12
"""Items of which each error is told."""

_BETWEEN: Mapping[Measure, tuple[Fraction, Fraction]] = {
    "epsilon": (Fraction(1, 100), Fraction(20)),
    "rho": (Fraction(1, 20_000), Fraction(20)),
}
"""Prices that are tried."""

_HALVINGS = 7


class AverageError:
    """Mean over the items of the sum of absolute errors over their cells, over the records."""

    def expected(self, kind: WorkloadRelease) -> Mapping[str, float | None]:
        """Return the errors after a month on a stable stream, without a memory, and of each item.

        That of an item is its mean error over its cells: of an axis, of how many records a cell is
        off.
        """
        cold, learned, largest, each = _replayed(kind.mechanism)
        of_items = {f"{name} records_off": off for name, off in zip(kind.names, each, strict=False)}
        return {
            "average_error": learned,
            "average_error_cold": cold,
            "largest_error": largest,
            **(of_items if len(of_items) <= MOST_SHOWN else {}),
            **_of_tests(kind.mechanism),
        }

    def prices_for(self, kind: WorkloadRelease, error: float) -> Mapping[str, Price | None]:
        """Return about the least price for one record at which a cell of any item is so near.

        Args:
            kind: Of the release.
            error: In records.
        """

        def worst(price: Price) -> float:
            found = _replayed(replace(kind.mechanism, amount=price.amount))[3]
            return max(found, default=math.inf)

        measure = kind.mechanism.loss
        return {"cells": least_price(worst, error, measure, _BETWEEN[measure], _HALVINGS)}

    def price_for(self, kind: WorkloadRelease, error: float) -> Price | None:
        """Return about the least price for one record at so small an average error, if any."""

        def learned(price: Price) -> float:
            found = _replayed(replace(kind.mechanism, amount=price.amount))[1]
            return math.inf if found is None else found

        measure = kind.mechanism.loss
        return least_price(learned, error, measure, _BETWEEN[measure], _HALVINGS)


def _of_tests(mechanism: PrivateWeights) -> dict[str, float | None]:
    """Return the margin of the tests of `online`, and the epsilon·rows from which they pay.

    A test is sure to say no of errors below the tolerance less the margin. It pays once that is
    half of the tolerance: then a distribution that has learned passes, and is not measured.
    """
    if mechanism.choose != "online":
        return {}
    rows, margin = mechanism.expected_rows, mechanism.gate().margin
    pays = 2.0 * margin / mechanism.tolerance * float(mechanism.amount) * rows
    return {"test_margin": round(margin / rows, 4), "pays_from_epsilon_rows": round(pays)}


@functools.lru_cache(maxsize=64)
def _replayed(
    mechanism: PrivateWeights,
) -> tuple[float | None, float | None, float | None, tuple[float, ...]]:
    """Average error without a memory, average and largest of learned ones, and records off."""
    workload = mechanism.workload
    if workload.cells > MOST_CELLS:
        return None, None, None, ()
    rows, entropy = mechanism.expected_rows, PublicEntropy("workload")
    known = shares(workload.sizes).reshape(-1)
    fresh = HypothesisState.cold(workload, rows)
    cold = [_released(mechanism, fresh, known, entropy)[1][0] for _ in range(COLD)]
    memory, learned = HypothesisState.empty(workload, rows), []
    for _ in range(RELEASES):
        memory, errors = _released(mechanism, memory, known, entropy)
        learned.append(errors)
    average, largest, *each = np.mean(learned[-RELEASES // 3 :], axis=0).tolist()
    off = tuple(float(f"{error:.3g}") for error in each)
    first = round(float(np.mean(cold)) / rows, 4)
    return first, round(average / rows, 4), round(largest / rows, 4), off


def _released(
    mechanism: PrivateWeights, memory: HypothesisState, known: FloatArray, entropy: PublicEntropy
) -> tuple[HypothesisState, tuple[float, ...]]:
    """Release a synthetic batch: the next state, and errors in records.

    These are the average over the items, the largest of a cell, and the mean of each item's cells.
    """
    workload = mechanism.workload
    table = _batch(known, mechanism.expected_rows, entropy).reshape(workload.sizes)
    counts = [
        item.counts(table.sum(axis=tuple(a for a in range(table.ndim) if a not in item.axes)))
        for item in workload.items
    ]
    drawn = mechanism.draw(mechanism.design(memory), memory, counts, entropy)
    errors = [
        np.abs(drawn.fit.distribution.masses(item) - count)
        for item, count in zip(workload.items, counts, strict=True)
    ]
    average = float(np.mean([each.sum() for each in errors]))
    largest = max(float(each.max()) for each in errors)
    of_items = (float(each.mean()) for each in errors)
    return memory.after(drawn.fit), (average, largest, *of_items)


def shares(sizes: Sequence[int]) -> FloatArray:
    """Shares of the records in the cells of a synthetic domain."""
    logs = np.zeros(tuple(sizes))
    places = np.meshgrid(*(np.arange(size) for size in sizes), indexing="ij", sparse=True)
    for place in places:
        logs = logs - np.log1p(place)
    for one, other in itertools.pairwise(places):
        logs = logs + 0.5 * np.cos(one - other)
    found = np.exp(logs - logs.max())
    return np.asarray(found / found.sum())


def _batch(known: FloatArray, rows: int, entropy: PublicEntropy) -> IntArray:
    """Counts of a synthetic batch."""
    if rows > MOST_SAMPLED:
        return np.rint(known * rows).astype(np.int64)
    bits = entropy.bits(64 * rows).to_bytes(8 * rows, "little")
    tickets = np.frombuffer(bits, dtype="<u8") / 2.0**64
    cells = np.minimum(np.searchsorted(np.cumsum(known), tickets), len(known) - 1)
    return np.bincount(cells, minlength=len(known)).astype(np.int64)
