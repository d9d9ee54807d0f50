"""Whether two paths or patterns can name one file."""

from __future__ import annotations

import fnmatch
import os

from streamdp.files import resolve
from streamdp.objects.address import is_address, parsed


def real(path: str) -> str:
    """A path without links, or an address in its one form: what two places are compared by."""
    return str(parsed(path)) if is_address(path) else os.path.realpath(path)


def overlap(one: str, other: str) -> bool:
    """Whether two paths can name one file: equal, one within the other's pattern, or both there.

    Files that are there are told by what they are: a link, a hard link or a second mount is no
    other file. Files that come later are told when they come (`store.ledger.origins`).
    """
    if one == other or fnmatch.fnmatch(one, other) or fnmatch.fnmatch(other, one):
        return True
    known = {file.id for file in resolve(one)}
    return not known.isdisjoint(file.id for file in resolve(other))


def same_records(one: str, other: str) -> bool:
    """Whether two places, files or `database#table`, can hold the same records.

    A table without its schema may be that of any schema.

    >>> same_records("wh.duckdb#rides", "wh.duckdb#main.rides"), same_records("a#s.t", "a#u.t")
    (True, False)
    """
    if overlap(one, other):
        return True
    (place, _, table), (other_place, _, other_table) = one.rpartition("#"), other.rpartition("#")
    if not (place and other_place and overlap(place, other_place)):
        return False
    parts = zip(reversed(table.split(".")), reversed(other_table.split(".")), strict=False)
    return all(part == other_part for part, other_part in parts)
