"""How keys are simulated: how many of a batch's records have a key that is known.

Chance is seeded, so that a simulation can be repeated: no release comes of it.
"""

from __future__ import annotations

import numpy as np

from streamdp.kinds.keys.kind import DrawnKeys, Keys, key_texts, keys_of
from streamdp.kinds.keys.section import KeysSection
from streamdp.kinds.study import Stream, Study
from streamdp.types import Batch, FloatArray, KeyCounts, KeyQuery, Outcome, Query

LENGTH = 60
"""Batches, where nothing else is asked for."""

ROWS = 1_000
"""Records of a batch, where the release does not say."""

KEYS = 500
FIRST = 946_857_600
DAY = 86_400
"""2000-01-03, a Monday: when the first batch begins; each is a day."""


def stable(length: int) -> FloatArray:
    """Shares of Zipf's law, always the same, shape (batches, keys)."""
    shares = 1.0 / np.arange(1, KEYS + 1)
    return np.tile(shares / shares.sum(), (length, 1))


def arriving(length: int) -> FloatArray:
    """Rates of keys of which every tenth is there from some day on alone."""
    shares = stable(length)
    for number, key in enumerate(range(5, KEYS, 10)):
        shares[: number * length // (KEYS // 10), key] = 0.0
    shifted: FloatArray = shares / shares.sum(axis=1, keepdims=True)
    return shifted


STREAMS = {"stable": stable, "arriving": arriving}


def days(stream: str, length: int) -> tuple[Batch, ...]:
    """Batches of a stream."""
    return tuple(
        Batch(stream, f"{day:05d}", FIRST + day * DAY, FIRST + (day + 1) * DAY)
        for day in range(length)
    )


def counts_of_days(stream: str, seed: int, length: int, rows: int) -> list[dict[str, int]]:
    """Numbers of records by key, of each day."""
    drawn = np.random.default_rng(seed).poisson(STREAMS[stream](length) * rows)
    return [{f"key {key}": int(day[key]) for key in np.flatnonzero(day).tolist()} for day in drawn]


class KeysStudy(Study):
    """The share of a batch's units that are counted under a key that is not known."""

    measure = "share of units whose key is not known"
    streams: tuple[str, ...] = tuple(STREAMS)

    def synthetic(self, section: KeysSection, stream: str, seed: int, length: int | None) -> Stream:
        """One of `STREAMS`, keys of several columns having the same text in each."""
        rows, batches = section.expected_rows or ROWS, days(stream, length or LENGTH)
        found = counts_of_days(stream, seed, len(batches), rows)
        columns = len(section.by)
        counts = tuple(
            KeyCounts({(name,) * columns: n for name, n in each.items()}) for each in found
        )
        return Stream(stream, batches, counts, synthetic=True)

    def question(self, kind: Keys, batch: Batch) -> Query:
        """All keys, however few hold them."""
        return KeyQuery(kind.by, (), 1, kind.longest, kind.where)

    def rows(self, statistic: KeyCounts) -> int:
        """Units in all keys."""
        return sum(statistic.units.values())

    def taught(self, kind: Keys) -> Keys:
        """Return the kind itself: it learns from exact counts of every key."""
        return kind

    def truth(self, kind: Keys, statistic: KeyCounts) -> Outcome:
        """All keys of a batch are known."""
        keys = tuple(sorted(statistic.units))
        state = {"found": dict.fromkeys(key_texts(keys), ""), "series": [], "window": kind.window}
        return Outcome((), DrawnKeys(state, (), (), keys))

    def errors(self, kind: Keys, statistic: KeyCounts, outcome: Outcome) -> FloatArray:
        """One number: keys that a batch made known are counted from the next one on."""
        known = set(keys_of(outcome.auxiliary.state["found"]))
        total = sum(statistic.units.values())
        unknown = sum(n for key, n in statistic.units.items() if key not in known)
        return np.array([unknown / total if total else 0.0])
