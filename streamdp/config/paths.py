"""Whether two paths or patterns can name one file."""

from __future__ import annotations

import fnmatch
import glob
import os


def overlap(one: str, other: str) -> bool:
    """Whether two paths can name one file: equal, one within the other's pattern, or both there.

    Files that are there are told by device and inode: a hard link or a second mount is no other
    file.
    """
    if one == other or fnmatch.fnmatch(one, other) or fnmatch.fnmatch(other, one):
        return True
    return not _files(one).isdisjoint(_files(other))


def _files(path: str) -> set[tuple[int, int]]:
    found = set()
    for file in glob.glob(path, recursive=True):
        if os.path.isfile(file):
            facts = os.stat(file)
            found.add((facts.st_dev, facts.st_ino))
    return found
