"""Objects of a storage, read by DuckDB from copies that were taken before the charge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.errors import SourceError
from streamdp.objects.address import parsed
from streamdp.objects.copies import Copies, taken
from streamdp.objects.storage import listed
from streamdp.types import Batch, File


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
