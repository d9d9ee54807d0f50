"""Batches: what the records of a source are cut into, each on a grid of public cells."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
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
        parts: Batches whose records are read in one question, this being the last of them, with
            the window and the files of all; none where it is read by itself.
    """

    source: str
    key: str
    start: int | None = None
    end: int | None = None
    path: str | None = None
    files: tuple[File, ...] = ()
    wall: tuple[int, int] | None = None
    parts: tuple[Batch, ...] = ()


def due_together(batches: Sequence[Batch], released: Collection[str], size: int) -> list[Batch]:
    """The batches that a job has not released, or, if it asks several at once, their windows.

    A window is so many batches that follow each other, behind the last one that was released; it
    has the key of its last batch. Fewer are left until there are enough. Windows follow from which
    batches have arrived and were released, so they are public.

    Args:
        batches: That have arrived, in order.
        released: Keys that the job has released.
        size: Batches of a window.

    >>> days = [Batch("s", str(day), day, day + 1) for day in range(5)]
    >>> [(window.key, window.start) for window in due_together(days, {"0"}, 2)]
    [('2', 1), ('4', 3)]
    """
    if size == 1:
        return [batch for batch in batches if batch.key not in released]
    last = max((i for i, batch in enumerate(batches) if batch.key in released), default=-1)
    windows: list[Batch] = []
    parts: list[Batch] = []
    for batch in batches[last + 1 :]:
        if parts and batch.path is None and batch.start != parts[-1].end:
            parts = []  # records between the two would be read, and are of neither
        parts.append(batch)
        if len(parts) == size:
            windows.append(_joined(tuple(parts)))
            parts = []
    return windows


def _joined(parts: tuple[Batch, ...]) -> Batch:
    """Batches as one; those cut by time are all in what was found for the last."""
    first, last = parts[0], parts[-1]
    files = last.files
    if last.path is not None:
        files = tuple(dict.fromkeys(file for part in parts for file in part.files))
    wall = None if first.wall is None or last.wall is None else (first.wall[0], last.wall[1])
    return replace(last, start=first.start, files=files, wall=wall, parts=parts)
