"""What a draw of keys at a price in rho loses: the production draw on tiny neighbours.

Of two neighbours the coins whose number begins to be enough under one of them are all that
may tell more than ρ: the chance that one falls heads is the δ. Given that none does, the laws of
coins and noisy counts are compared order by order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np

from streamdp.kinds.charging import UnitCharging
from streamdp.kinds.keys.kind import NEW, Keys
from streamdp.mechanisms.key_selection import GaussianThreshold
from streamdp.mechanisms.noise import GaussianNoise
from streamdp.privacy.draws import BIAS_BITS
from streamdp.privacy.price import Price
from streamdp.types import Batch, BoolArray, Entropy, IntArray, Key, Neighbours, UnitBound
from tests.contract.memory.keys import keys_of
from tests.worlds import ReplayedEntropy

BATCH = Batch("s", "1")
RHO, DELTA = Fraction(1, 32), Fraction(1, 20)
STATE = {"found": {'["c"]': "0"}, "series": [], "window": 1}
"""One key is known, two are not."""

ORDERS = (1.01, 1.5, 2.0, 4.0, 16.0)

UNITS = [set(each) for n in range(4) for each in itertools.combinations("abc", n)]
"""The keys that one unit may hold."""


def keys(rows: int = 1, neighbours: Neighbours = "add-remove") -> Keys:
    """A kind, and units that count for so many keys."""
    return Keys(("k",), Price(RHO, "rho"), DELTA, rows, 2, neighbours=neighbours)


@dataclass(frozen=True)
class Law:
    """Numbers that coins read, with the mechanism, and counts with their noise."""

    selection: GaussianThreshold
    units: dict[Key, int]
    noise: GaussianNoise
    counts: tuple[int, ...]

    def chance(self, key: Key) -> Fraction:
        """Chance that a key is found, in the middle of what its digits leave open."""
        low = self.selection.chance(self.units.get(key, 0))
        return (low + Fraction(1, 2)) / 2**BIAS_BITS if low else Fraction(0)


def law(kind: Keys, units: Sequence[set[str]]) -> Law:
    """The law of the production draw on a batch of units."""
    records = [{"k": key, "u": f"u{i}"} for i, held in enumerate(units) for key in sorted(held)]
    plan = kind.plan(STATE, BATCH)
    query = UnitCharging(UnitBound("u", kind.keys_per_unit)).bounded(plan.query, BATCH)
    seen: dict[str, Any] = {}

    def found(self: GaussianThreshold, numbers: IntArray, entropy: Entropy) -> BoolArray:
        seen["units"], seen["selection"] = tuple(numbers.tolist()), self
        return np.ones(len(numbers), dtype=np.bool_)

    def draw(self: GaussianNoise, values: Iterator[int], entropy: Entropy) -> tuple[int, ...]:
        seen["counts"], seen["noise"] = tuple(values), self
        return tuple(seen["counts"])

    with patch.object(GaussianThreshold, "found", found), patch.object(GaussianNoise, "draw", draw):
        outcome = kind.draw(plan, keys_of(query, records), ReplayedEntropy())  # type: ignore[arg-type]
    drawn: list[Key] = [(str(row["k"]),) for row in outcome.rows if row["flag"] == NEW]
    numbers = dict(zip(drawn, seen["units"], strict=True))
    return Law(seen["selection"], numbers, seen["noise"], seen["counts"])


def losses(one: Law, other: Law) -> tuple[float, float]:
    """Of a pair, one way: δ over the claim, and the largest D_α/α over ρ given that it is kept."""
    every = sorted({*one.units, *other.units})
    chances = [(one.chance(key), other.chance(key)) for key in every]
    beyond = 1 - math.prod((1 - max(p, q) for p, q in chances if 0 in (p, q)), start=Fraction(1))
    moved = sum((a - b) ** 2 for a, b in zip(one.counts, other.counts, strict=True))
    counts = float(Fraction(moved) / (2 * one.noise.squared))
    worst = max(
        counts + sum(_renyi(p, q, order) for p, q in chances if 0 not in (p, q)) / order
        for order in ORDERS
    )
    return float(beyond / DELTA), worst / float(RHO)


def _renyi(p: Fraction, q: Fraction, order: float) -> float:
    """D_order of two coins."""
    parts = ((p, q), (1 - p, 1 - q))
    total = sum(float(b) * math.expm1(order * math.log(a / b)) for a, b in parts)
    return math.log1p(total) / (order - 1.0)


def largest_losses(kind: Keys) -> tuple[float, float]:
    """The largest losses of any two neighbours of up to three units."""
    found = [(0.0, 0.0)]
    for base in itertools.combinations_with_replacement(UNITS, 2):
        laws = [law(kind, [*base, unit]) for unit in UNITS]
        pairs = [(law(kind, base), each) for each in laws]
        if kind.neighbours == "substitute":
            pairs = list(itertools.combinations(laws, 2))
        found += [losses(*pair) for one, other in pairs for pair in ((one, other), (other, one))]
    return max(delta for delta, _ in found), max(rho for _, rho in found)
