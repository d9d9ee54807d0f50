"""The law of the ranks that released values have in their batch: from public facts, for accuracy.

A draw of the tree has P(rank r) ∝ e^(-c·n·|r - target|) within its region, times the prior's mass
per rank, which is taken as even. Ranks are shares of the batch, so nothing here has a unit, and
nothing depends on how a batch is spread. Chance is public: it decides what is simulated, never what
is released.
"""

from __future__ import annotations

import functools
import hashlib

import numpy as np

from streamdp.mechanisms.quantile_tree.tree import Node, QuantileTree
from streamdp.types import FloatArray

SWEEPS = 60
"""Rounds of exact conditional draws behind one sample of a joint node."""

SAMPLES = 400
"""Releases that intervals rest on."""


@functools.lru_cache(maxsize=64)
def uniforms(purpose: str, *shape: int) -> FloatArray:
    """Numbers in (0, 1) that anyone can repeat; the array cannot be written to."""
    count = int(np.prod(shape))
    words = hashlib.shake_128(purpose.encode()).digest(8 * count)
    drawn = np.frombuffer(words, dtype="<u8").astype(np.float64)
    found = ((drawn + 0.5) / 2.0**64).clip(1e-12, 1.0 - 1e-12).reshape(shape)
    found.flags.writeable = False
    return np.asarray(found)


@functools.lru_cache(maxsize=64)
def rank_samples(tree: QuantileTree, rows: int, samples: int) -> FloatArray:
    """Ranks of released values in many releases; found once for a tree.

    Args:
        tree: The mechanism.
        rows: Records of a batch, public.
        samples: Number of releases.

    Returns:
        Shares of the batch left of each value, non-decreasing in each row, shape (samples, m).
    """
    levels, m = tree.levels(), len(tree.quantiles)
    ranks = {-1: np.zeros(samples), m: np.ones(samples)}
    for node in tree.nodes():
        strength = float(levels[node.level].sharpness(node.quantiles)) * rows
        low, high = ranks[node.left], ranks[node.right]
        draw = _joint if tree.node == "joint" else _independent
        ranks.update(zip(node.targets, draw(node, strength, low, high), strict=True))
    found = np.stack([ranks[target] for target in range(m)], axis=1)
    found.flags.writeable = False
    return found


@functools.lru_cache(maxsize=64)
def deviations(tree: QuantileTree, rows: int) -> FloatArray:
    """Deviations of the ranks of released values from their targets, shape (m,).

    Those of all draws that lead to a value, where the strength of a node is that of its own alone.
    """
    targets = np.array([float(quantile) for quantile in tree.quantiles])
    off = rank_samples(tree, rows, SAMPLES) - targets
    found = np.sqrt((off**2).mean(axis=0))
    found.flags.writeable = False
    return np.asarray(found)


def _independent(node: Node, strength: float, low: FloatArray, high: FloatArray) -> FloatArray:
    """Sorted ranks, each with density ∝ e^(-strength·|rank - wanted|); shape (k, samples)."""
    wanted = low + np.array([float(each) for each in node.quantiles])[:, None] * (high - low)
    first, last = _integral(low - wanted, strength), _integral(high - wanted, strength)
    chance = uniforms(f"ranks {node.targets}", *wanted.shape)
    sums = first + chance * (last - first)
    left = np.log1p(-np.minimum(strength * np.abs(sums), 1.0 - 1e-15)) / strength
    return np.sort((wanted - np.sign(sums) * left).clip(low, high), axis=0)


def _integral(off: FloatArray, strength: float) -> FloatArray:
    """Integral of e^(-strength·|x|) from 0 to `off`."""
    return np.asarray(-np.sign(off) * np.expm1(-strength * np.abs(off)) / strength)


def _joint(node: Node, strength: float, low: FloatArray, high: FloatArray) -> FloatArray:
    """Ordered ranks with density ∝ e^(-strength·Σ |gap - wanted|), shape (k, samples).

    Pairs of gaps exchange what they hold by exact conditional draws.
    """
    edges = [0.0, *map(float, node.quantiles), 1.0]
    wanted = np.diff(edges)[:, None] * (high - low)
    gaps, count = wanted.copy(), len(wanted)
    for sweep in range(SWEEPS):
        chance = uniforms(f"{count} gaps, {sweep}", count, len(low))
        step = 1 + sweep % (count - 1)
        for first in range(count):
            second = (first + step) % count
            both = gaps[first] + gaps[second]
            gaps[first] = _shared(
                both, wanted[first], both - wanted[second], strength, chance[first]
            )
            gaps[second] = both - gaps[first]
    return np.asarray(low + np.cumsum(gaps[:-1], axis=0))


def _shared(
    both: FloatArray, one: FloatArray, other: FloatArray, strength: float, chance: FloatArray
) -> FloatArray:
    """x in [0, both] with density ∝ e^(-strength·(|x - one| + |x - other|)).

    Even between the two, and falling at twice the strength outside.
    """
    low = np.clip(np.minimum(one, other), 0.0, both)
    high = np.clip(np.maximum(one, other), 0.0, both)
    rate = 2.0 * strength
    left = -np.expm1(-rate * low) / rate
    right = -np.expm1(-rate * (both - high)) / rate
    middle = high - low
    total = left + middle + right
    ticket = chance * total
    into_left = -np.log1p(-np.minimum(rate * (left - ticket).clip(0.0), 1.0 - 1e-15)) / rate
    into_right = -np.log1p(-np.minimum(rate * (ticket - left - middle).clip(0.0), 1.0 - 1e-15))
    x = np.where(
        ticket < left,
        low - into_left,
        np.where(ticket < left + middle, low + ticket - left, high + into_right / rate),
    )
    return np.asarray(x.clip(0.0, both))
