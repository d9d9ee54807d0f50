"""JointExp (Gillenwater, Joseph & Kulesza 2021), as published: one draw of all targets.

P(o) ∝ exp(-ε/(2Δ)·Σ_j |#{records in [o_j, o_{j+1})} - n_j|) over sorted tuples in the bounds,
Δ = 2(1 - min gap) under add/remove. Tuples are drawn by the intervals between records they fall
in: k targets in one interval of length v have the volume v^k/k!. The sum over the next interval
is a running sum, because exp(-c·|d - n_j|) splits in two exponentials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from streamdp.types import FloatArray
from tests.benchmarks.peers import Bounds


def release(
    values: FloatArray,
    quantiles: Sequence[float],
    epsilon: float,
    bounds: Bounds,
    generator: np.random.Generator,
) -> list[float]:
    """All targets in one draw."""
    shares = np.diff([0.0, *quantiles, 1.0])
    wanted = shares * len(values)
    sharpness = epsilon / (4.0 * (1.0 - float(shares.min())))
    edges = np.concatenate(([bounds[0]], values, [bounds[1]]))
    with np.errstate(divide="ignore"):
        log_lengths = np.log(np.diff(edges))
    ends = _forward(log_lengths, wanted, sharpness)
    picks = _backward(ends, log_lengths, wanted, sharpness, generator)
    return sorted(float(generator.uniform(edges[i], edges[i + 1])) for i in picks)


def _forward(log_lengths: FloatArray, wanted: FloatArray, sharpness: float) -> list[FloatArray]:
    """reached[j][i]: ln weight of o_1 ... o_j with o_{j+1} to be in interval i, all before it."""
    count, positions = len(wanted) - 1, np.arange(len(log_lengths))
    reached = [-sharpness * np.abs(positions - wanted[0])]
    for j in range(1, count):
        ends = np.logaddexp.reduce(_endings(reached, j, log_lengths, wanted, sharpness), axis=0)
        reached.append(_step(ends, float(wanted[j]), sharpness))
    return reached


def _endings(
    reached: list[FloatArray], j: int, log_lengths: FloatArray, wanted: FloatArray, c: float
) -> FloatArray:
    """Row k - 1: ln weight of o_1 ... o_j whose last k share the interval i."""
    rows = []
    for k in range(1, j + 1):
        inside = -c * float(wanted[j - k + 1 : j].sum()) - math.lgamma(k + 1)
        rows.append(reached[j - k] + k * log_lengths + inside)
    return np.stack(rows)


def _step(ends: FloatArray, gap: float, c: float) -> FloatArray:
    """ln Σ_{i' < i} exp(ends[i'] - c·|i - i' - gap|) for every i."""
    size = len(ends)
    positions = np.arange(size)
    rising = np.logaddexp.accumulate(ends + c * positions)
    far = positions - math.ceil(gap)
    left = np.where(far >= 0, rising[np.maximum(far, 0)] - c * (positions - gap), -np.inf)
    left[:1] = -np.inf
    if math.ceil(gap) <= 0:
        return left
    near = _window(ends - c * positions, math.ceil(gap) - 1)
    return np.logaddexp(left, near + c * (positions - gap))


def _window(terms: FloatArray, width: int) -> FloatArray:
    """ln Σ exp(terms) over the `width` places before each, without a difference of sums."""
    size = len(terms)
    if width <= 0:
        return np.full(size, -np.inf)
    blocks = -(-(size + width) // width)
    padded = np.full(blocks * width, -np.inf)
    padded[width : width + size] = terms[: blocks * width - width]
    table = padded.reshape(blocks, width)
    ahead = np.logaddexp.accumulate(table, axis=1).ravel()
    behind = np.logaddexp.accumulate(table[:, ::-1], axis=1)[:, ::-1].ravel()
    first = np.arange(size)
    last = first + width - 1
    whole = first % width == 0
    return np.where(whole, behind[first], np.logaddexp(behind[first], ahead[last]))


def _backward(
    reached: list[FloatArray],
    log_lengths: FloatArray,
    wanted: FloatArray,
    c: float,
    generator: np.random.Generator,
) -> list[int]:
    count, positions = len(wanted) - 1, np.arange(len(log_lengths))
    after = -c * np.abs(positions[-1] - positions - wanted[-1])
    j, picks = count, list[int]()
    while j:
        table = _endings(reached, j, log_lengths, wanted, c) + after
        flat = int(np.argmax(table + generator.gumbel(size=table.shape)))
        k, interval = flat // table.shape[1] + 1, flat % table.shape[1]
        picks += [interval] * k
        j -= k
        gap = float(wanted[j])
        after = np.where(positions < interval, -c * np.abs(interval - positions - gap), -np.inf)
    return picks
