"""Objects of a storage, read by DuckDB from copies that were taken before the charge.

All that a network can do wrong it does before the charge; after it a copy is read as a file is. A
copy has no name: it is gone when it is let go, or when the process ends, however it ends. Engines
find it under a link to the open file.
"""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.errors import SourceError
from streamdp.objects import copy, listed, parsed
from streamdp.types import Batch, File

AT_ONCE = 8
"""Copies that are made at the same time."""

SPARE = 256
"""Open files besides the copies."""

PACKED = (".gz", ".zst")
"""Endings by which a reader knows that a file is compressed."""


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies of objects on this machine, kept until they are let go.

    Args:
        of: The objects.
        files: Their copies, in the same order.
        held: Lets go of them.
    """

    of: tuple[File, ...]
    files: tuple[File, ...]
    held: ExitStack

    def names(self) -> Mapping[str, str]:
        """Addresses of the objects by the paths of their copies."""
        return {file.path: each.path for file, each in zip(self.files, self.of, strict=True)}

    def let_go(self) -> None:
        """Delete the copies."""
        self.held.close()


def taken(objects: Sequence[File]) -> Copies:
    """Copy objects whole to this machine.

    Raises:
        SourceError: One cannot be read or has changed, there are too many, or there is no room.
    """
    _allow(len(objects) + SPARE, objects[0].path)
    with ExitStack() as stack:
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="streamdp-")))
            opened: list[BinaryIO] = [
                stack.enter_context(tempfile.TemporaryFile()) for _ in objects
            ]
            with ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(copy, objects, opened))
            files = tuple(
                _linked(folder / f"{number}{_packed(each.path)}", file, each)
                for number, (each, file) in enumerate(zip(objects, opened, strict=True))
            )
        except OSError:
            raise SourceError(
                "there is no room for a copy of the batch",
                where=tempfile.gettempdir(),
                hint="objects are copied there while they are read; TMPDIR names another folder",
            ) from None
        return Copies(tuple(objects), files, stack.pop_all())


def _linked(link: Path, copy: BinaryIO, of: File) -> File:
    link.symlink_to(f"/dev/fd/{copy.fileno()}")
    return File(str(link), of.id, of.state, of.changed)


def _packed(address: str) -> str:
    ending = os.path.splitext(address)[1]
    return ending if ending in PACKED else ""


def _allow(count: int, where: str) -> None:
    """Raise the soft limit of open files as far as it takes.

    Raises:
        SourceError: The hard limit is lower.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY not in (soft, hard) and count > hard:
        raise SourceError(
            "a batch has more objects than this process may open files",
            where=where,
            hint="raise the limit (LimitNOFILE of the unit, ulimit -n), or write larger objects",
        )
    if soft != resource.RLIM_INFINITY and count > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


@dataclass(slots=True)
class ObjectsBackend(DuckDBBackend):
    """Reads a batch of objects as files are read; `check` copies them, `let_go` drops the copies.

    Privacy: the copies are the records. They lie in files without a name, in the folder for
    temporary files, until the tasks of the source that stand together have had their turns; the
    engine that read them is closed with them.
    """

    _copies: Copies | None = field(default=None, init=False, repr=False)

    reading_hint = "look at the engine's memory"

    @contextmanager
    def session(self) -> Iterator[None]:
        """A session whose errors name the object and not its copy."""
        try:
            yield
        except SourceError as error:
            names = {} if self._copies is None else self._copies.names()
            error.where = names.get(error.where, error.where)
            raise

    def let_go(self) -> None:
        """Drop the copies, and what the engine may remember of them."""
        if self._copies is not None:
            self._copies.let_go()
            self._copies = None
        DuckDBBackend.close(self)

    close = let_go

    def _files_of(self, batch: Batch) -> tuple[File, ...]:
        """Copies of the objects that the source found; made where there are none yet.

        Raises:
            SourceError: There are no objects, or they cannot be copied.
        """
        objects = batch.files or listed(parsed(self.path))
        if not objects:
            raise SourceError(
                "there is no object", where=self.place(batch), hint="is the address right?"
            )
        if self._copies is None or self._copies.of != objects:
            self.let_go()
            self._copies = taken(objects)
        return self._copies.files
