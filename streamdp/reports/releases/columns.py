"""Columns of releases: as they were written down, and of older releases what their rows tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamdp.types import Column, Release


def columns_of(releases: Iterable[Release], also: Sequence[Column] = ()) -> tuple[Column, ...]:
    """Columns that some releases have, those first that they were written down with.

    Of releases from before columns were written down `also` says what it knows. What neither says
    is told from the rows: what stands before the value names a row.
    """
    releases = tuple(releases)
    written = {each.name: each for release in releases for each in release.columns}
    declared = tuple(({each.name: each for each in also} | written).values())
    names = dict.fromkeys(name for release in releases for row in release.rows for name in row)
    found = [each for each in declared if each.name in names]
    known, labels = {each.name for each in declared}, True
    for name in names:
        labels = labels and name != "value" and not (name in known and _is_number(name, declared))
        if name not in known:
            found.append(Column(name, "text", "label") if labels else _undeclared(name))
    return tuple(found)


def _is_number(name: str, declared: Sequence[Column]) -> bool:
    return any(each.name == name and each.role != "label" for each in declared)


def _undeclared(name: str) -> Column:
    return Column(name, "number", "value" if name == "value" else "estimate")
