"""Whether two paths or patterns can name one file."""

from __future__ import annotations

import fnmatch
import glob
import os


def overlap(one: str, other: str) -> bool:
    """Whether two paths can name one file: equal, one within the other's pattern, or both there."""
    if one == other or fnmatch.fnmatch(one, other) or fnmatch.fnmatch(other, one):
        return True
    if not (glob.has_magic(one) or glob.has_magic(other)):
        return False
    first, second = (
        {os.path.realpath(file) for file in glob.glob(path, recursive=True)}
        for path in (one, other)
    )
    return not first.isdisjoint(second)
