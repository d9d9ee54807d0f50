"""Whether two paths or patterns can name one file."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable

from streamdp.files import resolve
from streamdp.objects.address import is_address, parsed

DEMO = "demo:"
"""Prefix of a source path that names a file shipped with the package."""

Ids = Callable[[str], frozenset[str]]
"""Files that are there under a path or pattern; who compares many of them looks at each once."""


def real(path: str) -> str:
    """A path without links, or an address in its one form: what two places are compared by."""
    return str(parsed(path)) if is_address(path) else os.path.realpath(path)


def file_ids(path: str) -> frozenset[str]:
    """Identities of the files, whatever their names."""
    return frozenset(file.id for file in resolve(path))


def overlap(one: str, other: str, ids: Ids = file_ids) -> bool:
    """Whether two paths can name one file: equal, one within the other's pattern, or both there.

    Files that are there are told by what they are: a link, a hard link or a second mount is no
    other file. Files that come later are told when they come (`store.ledger.origins`).
    """
    if one == other or fnmatch.fnmatch(one, other) or fnmatch.fnmatch(other, one):
        return True
    return not ids(one).isdisjoint(ids(other))


def same_records(one: str, other: str, ids: Ids = file_ids) -> bool:
    """Whether two places, files or `database#table`, can hold the same records.

    A table without its schema may be that of any schema.

    >>> same_records("wh.duckdb#rides", "wh.duckdb#main.rides"), same_records("a#s.t", "a#u.t")
    (True, False)
    """
    if overlap(one, other, ids):
        return True
    (place, _, table), (other_place, _, other_table) = one.rpartition("#"), other.rpartition("#")
    if not (place and other_place and overlap(place, other_place, ids)):
        return False
    parts = zip(reversed(table.split(".")), reversed(other_table.split(".")), strict=False)
    return all(part == other_part for part, other_part in parts)
