"""First beliefs from public rows of the same kind: the surrogate, before anything is spent.

Batches of the expected size are drawn from the public rows with replacement; online gradient
descent on the surrogate at each batch's own quantiles, and the average of its iterates, give
locations and scales that are near the best for a new batch (online-to-batch). Wrong public data
cost little: the beliefs they start are forgotten like any other that releases contradict.

References:
    Khodak et al. 2023, section 5.1 (public data); Cesa-Bianchi, Conconi & Gentile 2004.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.learning.optimizers import coin_betting
from streamdp.learning.surrogate import laplace, worst_of
from streamdp.types import Entropy, FloatArray

ROUNDS = 300
"""Batches drawn from the public rows."""


@dataclass(frozen=True, slots=True)
class PublicFit:
    """What public rows say of each quantile.

    Args:
        locations: In the unit of the column, non-decreasing, shape (m,).
        scales: How far batches lie from them, shape (m,).
    """

    locations: tuple[float, ...]
    scales: tuple[float, ...]


def fit_public(
    values: FloatArray, targets: FloatArray, rows: int, resolution: float, entropy: Entropy
) -> PublicFit:
    """Fit location and scale of each quantile to public rows.

    Works on values standardised by their own quartiles, so that steps have the same meaning for
    every column.

    Args:
        values: Public rows, shape (rows of the table,).
        targets: Quantiles, shape (m,).
        rows: Expected number of rows of a batch.
        resolution: Width of a cell; intervals are at least as wide.
        entropy: Draws the batches; nothing here is private.

    Raises:
        ValueError: No finite public value.
    """
    known = np.asarray(values, dtype=np.float64)
    known = known[np.isfinite(known)]
    if not len(known):
        raise ValueError("the public table has no finite value in this column")
    middle, low, high = np.quantile(known, (0.5, 0.25, 0.75))
    unit = max(float(high - low), resolution)
    standard, half = (known - middle) / unit, resolution / unit / 2.0
    optimizer = coin_betting()
    parameters = np.column_stack((np.quantile(standard, targets), np.ones(len(targets))))
    total, state = np.zeros_like(parameters), optimizer.init(parameters.shape)
    for _ in range(ROUNDS):
        drawn = np.sort(standard[_places(len(standard), rows, entropy)])
        lower, upper = _interval(drawn, targets, half)
        losses = laplace(parameters[:, 0], parameters[:, 1], lower, upper)
        _, shares = worst_of(losses)
        gradient = np.column_stack((losses.by_theta, losses.by_phi)) * shares[:, None]
        parameters, state = optimizer.update(gradient, state, parameters)
        parameters[:, 1] = np.clip(parameters[:, 1], 1e-3, 1.0 / half)
        total += parameters
    theta, phi = (total / ROUNDS).T
    locations = np.maximum.accumulate(middle + unit * theta / phi)
    return PublicFit(tuple(locations.tolist()), tuple((unit / phi).tolist()))


def _places(size: int, count: int, entropy: Entropy) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """`count` places of a table of `size` rows, with replacement."""
    raw = entropy.bits(64 * count).to_bytes(8 * count, "little")
    return (np.frombuffer(raw, dtype=np.uint64) % np.uint64(size)).astype(np.intp)


def _interval(
    ordered: FloatArray, targets: FloatArray, half: float
) -> tuple[FloatArray, FloatArray]:
    """The neighbours of each quantile in a sorted batch, at least a cell apart."""
    ranks = targets * len(ordered)
    below = np.clip(np.ceil(ranks).astype(np.intp) - 1, 0, len(ordered) - 1)
    above = np.clip(np.floor(ranks).astype(np.intp), 0, len(ordered) - 1)
    return ordered[below] - half, ordered[above] + half
