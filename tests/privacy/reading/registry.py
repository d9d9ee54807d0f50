"""All pairs: a module a format, each with `pairs(quick)`; to add one is to add a line here."""

from __future__ import annotations

from collections.abc import Iterator

from tests.privacy.reading import columns, expressions, keys, servers, text
from tests.privacy.reading.pairs import Pair

FORMATS = (text, columns, expressions, servers, keys)


def pairs(quick: bool) -> Iterator[Pair]:
    """Pairs of all formats; few and small ones if it shall be quick."""
    for module in FORMATS:
        yield from module.pairs(quick)
