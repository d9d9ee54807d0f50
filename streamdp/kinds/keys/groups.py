"""Groups of other releases, off what a release of keys says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamdp.types import Key, Row

if TYPE_CHECKING:
    from streamdp.config.base.releases import GroupsFrom
    from streamdp.kinds.keys.section import KeysSection


def groups_among(section: KeysSection, wanted: GroupsFrom, rows: Sequence[Row]) -> tuple[Key, ...]:
    """The largest keys by what all releases say; quiet ones are left out.

    Keys that were found just now have no count yet. They come last, where the fewest units of a key
    that is found are enough.

    Args:
        section: Of the release of keys.
        wanted: How many, and from which smoothed count on.
        rows: Of the release.
    """

    def rank(row: Row) -> tuple[float, list[str]]:
        return -float(row["smoothed"] or 0), [str(row[name]) for name in section.by]

    def large(row: Row) -> bool:
        if row["smoothed"] is None:
            return section.at_least >= wanted.at_least
        return not row["flag"] and float(row["smoothed"]) >= wanted.at_least

    kept = sorted(filter(large, rows), key=rank)
    return tuple(tuple(str(row[name]) for name in section.by) for row in kept[: wanted.most])
