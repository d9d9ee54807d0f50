"""A series as a word of a terminal: eight heights of blocks."""

from __future__ import annotations

from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float | None], width: int = 30) -> str:
    """The last values of a series, lowest to highest; a gap is a space.

    >>> sparkline([1, 2, None, 8, 4])
    '▁▂ █▄'
    """
    shown = values[-width:]
    found = [value for value in shown if value is not None]
    if not found:
        return ""
    low, span = min(found), (max(found) - min(found)) or 1.0
    heights = (None if value is None else (value - low) / span for value in shown)
    last = len(BLOCKS) - 1
    return "".join(" " if share is None else BLOCKS[round(share * last)] for share in heights)
