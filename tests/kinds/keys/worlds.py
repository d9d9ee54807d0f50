"""Tiny batches of keys, and the law of the production draw on neighbours among them."""

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
from streamdp.mechanisms.key_selection import ONE, TruncatedGeometric
from streamdp.mechanisms.noise import AdditiveNoise
from streamdp.privacy.price import Price
from streamdp.types import Batch, BoolArray, IntArray, Key, Neighbours, UnitBound
from tests.contract.memory.keys import keys_of
from tests.worlds import ReplayedEntropy

BATCH = Batch("s", "1")
EPSILON, DELTA = Fraction(1), Fraction(1, 20)
STATE = {"found": {'["c"]': "0"}, "series": [], "window": 1}
"""One key is known, two are not."""

UNITS = [set(each) for n in range(4) for each in itertools.combinations("abc", n)]
"""The keys that one unit may hold."""


def keys(rows: int = 1, neighbours: Neighbours = "add-remove", at_least: int = 2) -> Keys:
    """A kind, and units that count for so many keys."""
    return Keys(("k",), Price(EPSILON), DELTA, rows, at_least, neighbours=neighbours)


@dataclass(frozen=True)
class Law:
    """What a draw reads: numbers of units by key with the mechanism, and counts by key."""

    selection: TruncatedGeometric
    coins: dict[Key, int]
    counts: tuple[int, ...]

    def chance(self, key: Key) -> Fraction:
        """Chance that a key is found."""
        table = self.selection.chances
        step = max(self.coins.get(key, 0) - (self.selection.at_least - 1), 0)
        return Fraction(table[min(step, len(table) - 1)], ONE)

    def of(self, found: Sequence[Key], keys: Sequence[Key]) -> Fraction:
        """Chance that these keys are found, and no others."""
        parts = (self.chance(k) if k in found else 1 - self.chance(k) for k in keys)
        return math.prod(parts, start=Fraction(1))


def law(kind: Keys, units: Sequence[set[str]]) -> Law:
    """The law of the production draw on a batch of units."""
    records = [{"k": key, "u": f"u{i}"} for i, held in enumerate(units) for key in sorted(held)]
    plan = kind.plan(STATE, BATCH)
    query = UnitCharging(UnitBound("u", kind.keys_per_unit)).bounded(plan.query, BATCH)
    seen: dict[str, Any] = {"counts": (), "units": ()}

    def found(self: TruncatedGeometric, units: IntArray, entropy: object) -> BoolArray:
        seen["units"], seen["selection"] = tuple(units.tolist()), self
        return np.ones(len(units), dtype=np.bool_)

    def draw(self: AdditiveNoise, values: Iterator[int], entropy: object) -> tuple[int, ...]:
        seen["counts"] = tuple(values)
        return tuple(seen["counts"])

    with (
        patch.object(TruncatedGeometric, "found", found),
        patch.object(AdditiveNoise, "draw", draw),
    ):
        outcome = kind.draw(plan, keys_of(query, records), ReplayedEntropy())  # type: ignore[arg-type]
    drawn: list[Key] = [(str(row["k"]),) for row in outcome.rows if row["flag"] == NEW]
    coins: dict[Key, int] = dict(zip(drawn, seen["units"], strict=True))
    return Law(seen["selection"], coins, seen["counts"])


def delta_of(one: Law, other: Law, epsilon: Fraction) -> float:
    """The least δ at which two laws are (ε, δ)-close, one way: what noise costs is taken off ε."""
    moved = sum(abs(a - b) for a, b in zip(one.counts, other.counts, strict=True))
    left = math.exp(
        float(epsilon - moved * one.selection.noise.epsilon / one.selection.noise.sensitivity)
    )
    every = sorted({*one.coins, *other.coins})
    sets = itertools.chain.from_iterable(
        itertools.combinations(every, n) for n in range(len(every) + 1)
    )
    pairs = ((float(one.of(each, every)), float(other.of(each, every))) for each in sets)
    return sum(max(0.0, p - left * q) for p, q in pairs)


def largest_delta(kind: Keys) -> float:
    """The largest δ of any two neighbours of up to four units."""
    found = 0.0
    for base in itertools.combinations_with_replacement(UNITS, 3):
        laws = [law(kind, [*base, unit]) for unit in UNITS]
        empty = law(kind, base)
        pairs = [(empty, each) for each in laws]
        if kind.neighbours == "substitute":
            pairs = list(itertools.combinations(laws, 2))
        for one, other in pairs:
            found = max(found, delta_of(one, other, EPSILON), delta_of(other, one, EPSILON))
    return found
