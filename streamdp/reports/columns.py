"""What the columns of a release are to a reader, told from the rows of releases themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from streamdp.types import Release

Role = Literal["label", "value", "estimate", "lower", "upper", "error"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the rows of a release.

    Args:
        name: In rows, tables and files.
        role: What it is to a reader.
        about: Of an interval's end: the column it is around.
        unit: Of its values, in words.
        level: Of an interval: how often it holds what it is around.
    """

    name: str
    role: Role
    about: str = ""
    unit: str = ""
    level: float | None = None


def columns_of(releases: Iterable[Release]) -> tuple[Column, ...]:
    """Columns of the rows of some releases: what stands before the value names a row."""
    names = dict.fromkeys(name for release in releases for row in release.rows for name in row)
    found, labels = [], True
    for name in names:
        labels = labels and name != "value"
        found.append(Column(name, "label") if labels else _column(name))
    return tuple(found)


def _column(name: str) -> Column:
    if name == "value":
        return Column(name, "value")
    for end in ("lower", "upper"):
        if name in (end, f"smoothed_{end}"):
            return Column(name, end, "value" if name == end else "smoothed")
    return Column(name, "error" if name.startswith("rank_error") else "estimate")
