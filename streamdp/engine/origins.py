"""Bind each file and table to one budget, whatever it is called."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from streamdp.engine.protocols import HasSource, Store
from streamdp.errors import SourceError
from streamdp.types import Batch, Belongs


@runtime_checkable
class KnowsOrigins(Protocol):
    """A backend that asks its server or database what it reads."""

    def origins(self, batch: Batch) -> tuple[str, ...]:
        """Names that a table keeps whatever it is called, and whoever asks."""
        ...


@runtime_checkable
class KnowsNeighbours(Protocol):
    """A backend whose tables keep nothing but a name, in a file that tells all of them."""

    def beside(self, batch: Batch) -> tuple[str, ...]:
        """The file, if there is one, and the origins of all tables in it now."""
        ...


class SameFileError(SourceError):
    """A batch is a file that arrived under another key; it is released under that one."""

    code = "same-file"


def bind_files(task: HasSource, batch: Batch, store: Store, now: int) -> None:
    """Bind the files of a batch to the budget of its source, and to the batch if it is a file.

    Raises:
        SameFileError: They belong to another batch of the source.
        SourceError: They belong to another source.
    """
    _bind(task, batch, tuple(file.id for file in batch.files), store, now)


def bind_tables(task: HasSource, backend: object, batch: Batch, store: Store, now: int) -> None:
    """Bind what a backend reads besides files, before anything is spent.

    Raises:
        SourceError: It belongs to another source, or its server cannot be asked.
    """
    if isinstance(backend, KnowsOrigins):
        origins = backend.origins(batch)
        if isinstance(backend, KnowsNeighbours):
            _require_seen(task, batch, origins, backend.beside(batch), store, now)
        _bind(task, batch, origins, store, now)


def _require_seen(
    task: HasSource,
    batch: Batch,
    origins: tuple[str, ...],
    beside: tuple[str, ...],
    store: Store,
    now: int,
) -> None:
    """Refuse a table that came into its file after the budget of another began: a rename does that.

    The first source that reads a file remembers which tables are in it.

    Raises:
        SourceError: It did.
    """
    if not beside:
        return
    seen = {origin: f"seen:{origin}" for origin in (*beside, *origins)}
    file, *_ = beside
    known = store.belongings([*origins, *seen.values()])
    first = known.get(seen[file])
    if first is None:
        store.bind_origins(task.scope, "", tuple(seen[each] for each in beside), now)
        return
    new = [each for each in origins if each not in known and seen[each] not in known]
    if new and first.scope != task.scope:
        name = new[0].rpartition("#")[2]
        raise SourceError(
            f"table {name} came into its file after the budget of source {first.scope} had begun",
            where=getattr(task.source, "path", ""),
            hint=f"it may be a table that was paid for, under a new name: give both releases the"
            f" source {first.scope}, or keep new records in a file of their own",
            source=task.scope,
        )


def _bind(task: HasSource, batch: Batch, origins: tuple[str, ...], store: Store, now: int) -> None:
    key = "" if batch.path is None else batch.key
    foreign = store.bind_origins(task.scope, key, origins, now)
    for origin, owner in foreign.items():
        names = [file.path for file in batch.files if file.id == origin]
        raise _refusal(task.scope, batch, names[0] if names else "", owner)


def _refusal(scope: str, batch: Batch, path: str, owner: Belongs) -> SourceError:
    if owner.scope != scope:
        return SourceError(
            f"source {scope} reads records whose budget is that of {owner.scope}",
            where=path,
            hint=f"a budget belongs to the data, whatever it is called: leave it to {owner.scope},"
            " or give both releases that source",
            source=scope,
        )
    return SameFileError(
        f"batch {batch.key} of {scope} is the file that arrived as {owner.batch}",
        where=path,
        hint="a link or another name makes no new records: they are released once, as"
        f" {owner.batch}",
        source=scope,
    )
