"""How keys are simulated: how many of a batch's records have a key that is known."""

from __future__ import annotations

import numpy as np

from streamdp.kinds.keys.kind import Drawn, Keys, key_texts, keys_of
from streamdp.kinds.keys.section import KeysSection
from streamdp.kinds.keys.synthetic import LENGTH, ROWS, STREAMS, counts_of_days, days
from streamdp.kinds.study import Stream, Study
from streamdp.types import Batch, FloatArray, KeyCounts, KeyQuery, Outcome, Query


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
        return Outcome((), Drawn(state, (), (), keys))

    def errors(self, kind: Keys, statistic: KeyCounts, outcome: Outcome) -> FloatArray:
        """One number: keys that a batch made known are counted from the next one on."""
        known = set(keys_of(outcome.auxiliary.state["found"]))
        total = sum(statistic.units.values())
        unknown = sum(n for key, n in statistic.units.items() if key not in known)
        return np.array([unknown / total if total else 0.0])
