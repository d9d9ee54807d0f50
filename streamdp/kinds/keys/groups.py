"""Groups of other releases, off what a release of keys says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamdp.types import Key, Row

if TYPE_CHECKING:
    from streamdp.config.base.releases import GroupsFrom
    from streamdp.kinds.keys.section import KeysSection


def groups_among(section: KeysSection, wanted: GroupsFrom, rows: Sequence[Row]) -> tuple[Key, ...]:
    """The largest keys by what all releases say: neither new nor quiet ones.

    Args:
        section: Of the release of keys.
        wanted: How many, and from which smoothed count on.
        rows: Of the release.
    """

    def count(row: Row) -> float:
        return float(row["smoothed"] or 0)

    kept = [row for row in rows if not row["flag"] and count(row) >= wanted.at_least]
    kept.sort(key=lambda row: (-count(row), [str(row[name]) for name in section.by]))
    return tuple(tuple(str(row[name]) for name in section.by) for row in kept[: wanted.most])
