"""A table whose truth may be seen, as a stream: cut and counted as production cuts and counts.

A table that production releases from is refused. Files are told by what they are, device and inode,
so that links and other spellings of a path hide nothing. A copy of a file is another file, and is
not found out.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Mapping
from typing import NoReturn

from streamdp.errors import ConfigurationError, SourceError
from streamdp.kinds.study import Stream
from streamdp.types import Backend, Batch, Query


def table_stream(
    name: str,
    batches: Iterable[Batch],
    backend: Backend,
    query: Callable[[Batch], Query],
    group: int = 0,
) -> Stream:
    """All batches of a table, each with its exact answer.

    Args:
        name: Of its source.
        batches: In order.
        backend: Reads them.
        query: The question of each.
        group: Which of the question's groups is meant.

    Privacy: none. Every record is counted without noise; it may be where
    `require_no_production_table` lets it.

    Raises:
        SourceError: There are no batches, or the table cannot be read.
    """
    taken = tuple(batches)
    if not taken:
        raise SourceError(
            f"the table has no batches that source {name} would see",
            hint="look at the source's start, end and lateness, or at the path",
        )
    backend.check(query(taken[0]), taken[0])
    asked = [query(each) for each in taken]
    answers = [backend.answer(*each) for each in zip(asked, taken, strict=True)]
    counts = tuple(each[group] for each in answers) if asked[0].by else tuple(answers)
    return Stream(name, taken, counts)


def require_no_production_table(table: str, sources: Mapping[str, str]) -> None:
    """Refuse a table any of whose files belongs to a configured source.

    Args:
        table: File or glob that is to be simulated on.
        sources: File or glob of each source, by its name.

    Raises:
        ConfigurationError: Names the source.
    """
    wanted = _files(table)
    for name, pattern in sources.items():
        if _place(pattern) == _place(table) or wanted & _files(pattern):
            refuse_production(name)


def refuse_production(name: str) -> NoReturn:
    """Refuse the records of a source.

    Raises:
        ConfigurationError: Always.
    """
    raise ConfigurationError(
        f"this table is source {name}: a simulation would show what is true of it",
        where=f"sources.{name}",
        hint="give a table without secrets with --table, or a synthetic one with --stream;"
        " add --truth-may-be-seen if these records are public",
    )


def _place(path: str) -> str:
    """A path without links; a wildcard in it stays."""
    return os.path.realpath(path)


def _files(pattern: str) -> set[tuple[int, int]]:
    """Device and inode of each file of a glob, or below a folder, hidden ones too."""
    named = glob.glob(pattern, recursive=True, include_hidden=True)
    if os.path.lexists(pattern):
        named.append(pattern)
    found: set[tuple[int, int]] = set()
    for path in named:
        below = glob.glob(
            os.path.join(glob.escape(path), "**"), recursive=True, include_hidden=True
        )
        found |= {key for each in (path, *below) if (key := _identity(each)) is not None}
    return found


def _identity(path: str) -> tuple[int, int] | None:
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return None if os.path.isdir(path) else (facts.st_dev, facts.st_ino)
