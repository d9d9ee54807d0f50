"""Which real files a path or pattern names, whether two name one, and which format they have.

Engines expand patterns in ways of their own: one takes hidden files, another a backslash for a
slash, a third braces. So no engine is handed a pattern: it gets the files that are found here.
A file is its inode and its time of birth, so links, hard links and renames make no other file, and
a new file that is given the inode of a deleted one is another.
"""

from __future__ import annotations

import ctypes
import difflib
import errno
import fnmatch
import glob
import os
import stat
import struct
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from streamdp.objects import is_address, parsed
from streamdp.types import UNREADABLE, File, Format

_AT_FDCWD, _BASIC_AND_BIRTH, _BIRTH = -100, 0xFFF, 0x800
_MASK_AT, _BIRTH_AT = 0, 80
"""Offsets in `struct statx` of Linux, the same on all its machines."""


def resolve(pattern: str) -> tuple[File, ...]:
    """The regular files that a path or pattern names, each once, in the order of their paths.

    `*` and `?` stand within a name, `**` for any folders, `[…]` for one letter; none of them stands
    for a dot at the beginning of a name. Links are followed.
    """
    found = {file.id: file for file in sorted(_named(pattern), key=lambda file: file.path)}
    return tuple(sorted(found.values(), key=lambda file: file.path))


def names(pattern: str) -> list[str]:
    """Names that a pattern finds, those of links behind those of files."""
    found, real = glob.glob(pattern, recursive=True), real_paths()
    return sorted(found, key=lambda name: (real(name) != name, name))


def real_paths() -> Callable[[str], str]:
    """Follows links, looking at each folder once: for many files, at one moment."""
    folders = cache(os.path.realpath)

    def real(path: str) -> str:
        folder, name = os.path.split(path)
        if name in ("", ".", "..") or os.path.islink(path):
            return os.path.realpath(path)
        return os.path.join(folders(folder), name)

    return real


def file_at(path: str, real_path: Callable[[str], str] = os.path.realpath) -> File | None:
    """The regular file that a path leads to, or None."""
    try:
        real = real_path(path)
        facts = os.stat(real)
        if not stat.S_ISREG(facts.st_mode):
            return None
        identity = identity_of(real, facts)
    except (OSError, ValueError):
        return None
    state = f"{facts.st_size}:{facts.st_mtime_ns}"
    return File(real, identity, state, facts.st_mtime_ns // 10**9)


def skipped(pattern: str) -> list[tuple[str, str]]:
    """Paths that a pattern finds and that are not read, each once, with the reason.

    They are what is neither a file nor a folder, links that lead nowhere, and what this user may
    not read. Links out of the folder are none of these: they are followed.
    """
    there = ((path, _why_skipped(path)) for path in glob.iglob(pattern, recursive=True))
    found = [*_closed_folders(pattern), *(each for each in there if each[1])]
    told: dict[str, tuple[str, str]] = {}
    for path, why in sorted(found, key=lambda each: (os.path.realpath(each[0]) != each[0], each)):
        told.setdefault(os.path.realpath(path), (path, why))
    return sorted(told.values())


def identity_of(path: str, facts: os.stat_result) -> str:
    """Text that no other file has: inode and time of birth, or device and inode."""
    born = _birth(path, facts)
    place = f"{facts.st_ino}@{born}" if born is not None else f"{facts.st_dev}/{facts.st_ino}"
    return f"file:{place}"


def nearest(pattern: str) -> str:
    """Hint where a pattern finds nothing: a name like it in the last of its folders that exists."""
    folder = os.path.dirname(pattern)
    missing = ""
    while glob.has_magic(folder) or not os.path.isdir(folder):
        folder, missing = os.path.split(folder)
        if not missing:
            break
    if os.path.isdir(pattern):
        return f"{pattern} is a folder: name the files in it, {os.path.join(pattern, '*')}"
    wanted = missing or os.path.basename(pattern)
    there = [] if glob.has_magic(wanted) else _names(folder, folders=bool(missing))
    near = difflib.get_close_matches(wanted, there, n=1)
    if near:
        return f"did you mean {os.path.join(folder, near[0])}?"
    return f"the folder {folder} is there, and holds nothing of this name"


_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _why_skipped(path: str) -> str:
    """Why what has this name is not read; empty for files that can be, for folders, and if gone."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        if not os.path.islink(path):  # gone meanwhile, or in a folder that is told of itself
            return ""
        if error.errno == errno.ENOENT:
            return "a link to nothing"
        return "a link in a circle" if error.errno == errno.ELOOP else "a link to a closed folder"
    if stat.S_ISREG(mode):
        return "" if _may(path, os.R_OK) else UNREADABLE
    return next((kind for is_kind, kind in _KINDS if is_kind(mode)), "")


def _closed_folders(pattern: str) -> Iterator[tuple[str, str]]:
    """Folders that a pattern goes through and this user may not: expansion passes over them."""
    parts = Path(pattern).parts
    for at in range(1, len(parts)):
        below = parts[at - 1] == "**" or glob.has_magic(parts[at])
        needed = os.R_OK | os.X_OK if below else os.X_OK
        for folder in glob.glob(os.path.join(*parts[:at], ""), recursive=True):
            if not _may(folder, needed):
                yield folder, "a folder that this user may not read"


def _may(path: str, needed: int) -> bool:
    """Whether this process has such rights to a path."""
    return os.access(path, needed, effective_ids=os.access in os.supports_effective_ids)


def _names(folder: str, *, folders: bool) -> list[str]:
    """Names of the files or of the folders in a folder; none where it may not be read."""
    try:
        return [each.name for each in os.scandir(folder) if each.is_dir() == folders]
    except OSError:
        return []


def _named(pattern: str) -> Iterator[File]:
    real = real_paths()
    for path in glob.glob(pattern, recursive=True):
        file = file_at(path, real)
        if file is not None:
            yield file


def _birth(path: str, facts: os.stat_result) -> int | None:
    """Nanoseconds at which a file was made; None where the file system does not say."""
    known: float | None = getattr(facts, "st_birthtime", None)
    if known is not None:
        return int(known * 10**9)
    statx = _statx()
    if statx is None:
        return None
    buffer = ctypes.create_string_buffer(256)
    if statx(_AT_FDCWD, os.fsencode(path), 0, _BASIC_AND_BIRTH, buffer) != 0:
        return None
    (mask,) = struct.unpack_from("=I", buffer, _MASK_AT)
    seconds, nanoseconds = struct.unpack_from("=qI", buffer, _BIRTH_AT)
    return seconds * 10**9 + nanoseconds if mask & _BIRTH else None


@cache
def _statx() -> ctypes._NamedFuncPointer | None:
    """Linux's own call, which Python does not have."""
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), "statx", None)


_ENDINGS: dict[str, Format] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


def file_format(path: str) -> Format | None:
    """Format by the ending of a name, compressed or not.

    >>> file_format("data/*.csv.gz"), file_format("data/flights")
    ('csv', None)
    """
    stem, ending = os.path.splitext(path)
    if ending in (".gz", ".zst"):
        ending = os.path.splitext(stem)[1]
    return _ENDINGS.get(ending)


def format_of(path: str, said: Format | None = None) -> Format:
    """Format of files: what was said, else what their name says, else Parquet."""
    return said or file_format(path) or "parquet"


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
