"""Batches: what the records of a source are cut into, each on a grid of public cells."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Grid:
    """The public grid of cells a column is rounded to.

    A value x falls in cell floor(x/resolution + 1/2), clamped to [lower, upper]; `sql.cells`
    says in which steps, so that every engine agrees to the last bit.

    Args:
        resolution: Width of a cell, in the unit of the column.
        lower: First cell.
        upper: Last cell.
    """

    resolution: Fraction
    lower: int
    upper: int

    def value(self, cell: int) -> float:
        """The number that is published for a cell: cell times resolution."""
        return float(cell * self.resolution)


@dataclass(frozen=True, slots=True)
class File:
    """A real file, identified by its inode and not its name.

    Args:
        path: Absolute, without links.
        id: Inode and time of birth, which a rename or a link leaves as they are.
        state: Size and time of the last change. Private like the records: the size tells of them.
        changed: Time of the last change (POSIX seconds).
    """

    path: str
    id: str
    state: str = ""
    changed: int = 0


UNREADABLE = "a file that this user may not read"
"""The one reason of a skipped input whose batch or source fails for it, and is told by that."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A name that a source finds and does not read.

    Args:
        batch: Key of the batch that it would be, or be part of; empty where its name is not public.
        why: What it is.
    """

    batch: str
    why: str


@dataclass(frozen=True, slots=True)
class Belongs:
    """The source, and batch, whose budget pays for the records of a file or table.

    Args:
        scope: Name of the source.
        batch: Key of the one batch that may read it; empty if all batches of the source may.
    """

    scope: str
    batch: str


@dataclass(frozen=True, slots=True)
class Batch:
    """One public time window or file of a source; a record belongs to exactly one.

    Args:
        source: Name of the source in the configuration.
        key: Public key, unique within the source; batches are released in key order.
        start: First second of the window (POSIX time), or None for a file.
        end: Second after its last.
        path: The file that holds it, or the folder of its files; None when cut by time.
        files: All files that it is read from, each once; none where a database is read.
        wall: What clocks of the source's time zone show at `start` and `end`, as seconds of a clock
            that is never changed; None where that is UTC.
    """

    source: str
    key: str
    start: int | None = None
    end: int | None = None
    path: str | None = None
    files: tuple[File, ...] = ()
    wall: tuple[int, int] | None = None
