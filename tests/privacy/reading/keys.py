"""Keys that are found: the pairs of groups and units of every format, asked which keys there are.

The keys of the data set are public or have hundreds of records, so they are found but with a chance
of e^-60; a text that the record brings has one record, and is found with the chance delta.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tests.privacy.reading import columns, servers, text
from tests.privacy.reading.pairs import Pair

KIND = "keys, delta: 1e-9"
GROUPED = re.compile(r"by: \[(\w+)\], groups: \[([^,]+), .*\]")
BY_GROUP = "by: [group], public: [a]"
BY_COMMENT = "by: [comment], public: ['words of a comment']"


def pairs(quick: bool) -> Iterator[Pair]:
    """Hostile texts and units in every format, then files of real size around a cut."""
    for module in (text, columns, servers):
        for pair in module.pairs(quick):
            if grouped := GROUPED.search(pair.release):
                yield _asked(pair, f"by: [{grouped[1]}], public: [{grouped[2]}]")
            elif pair.role == "unit" and pair.format in ("CSV", "JSON lines"):
                yield _asked(pair, BY_GROUP)
    for pair in text.at_cuts(quick):
        if "512 KiB" in pair.place or not quick:
            yield _asked(pair, BY_COMMENT)


def _asked(pair: Pair, release: str) -> Pair:
    """The same data sets, asked for their keys, each in a run of its own."""
    return replace(
        pair,
        role=f"keys by {pair.role}",
        kind=KIND,
        release=release,
        base=None if pair.base is None else ("keys", pair.base),
        together=False,
    )
