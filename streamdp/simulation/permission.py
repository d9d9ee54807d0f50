"""Guard of simulations: a table that production releases from is refused.

Files are told by what they are, device and inode, so that links and other spellings of a path hide
nothing. A copy of a file is another file, and is not found out.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from typing import NoReturn

from streamdp.errors import ConfigurationError


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
