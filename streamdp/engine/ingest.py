"""Register new batches once, bind their files and tables to one budget, require them unaltered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from streamdp.engine.job import HasContent, HasSource, Job
from streamdp.errors import AlteredBatchError, ConfigurationError, SourceError, StreamdpError
from streamdp.types import Batch, Belongs, Log, Source, due_together

if TYPE_CHECKING:
    from streamdp.store.sqlite import SqliteStore

Window = tuple[int | None, int | None]
"""First second of a batch and the second after its last; None and None for a file."""

AS_SEALED, ALTERED = b"=", b"!"
"""First byte of what is kept of a batch's files: whether they are as they were when they came."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """The batches of a source that are there and were written down.

    Args:
        batches: In order.
        errors: Why files could not be written down; they hold up no others, and are tried again. A
            second name of a file that is there is none of these.
        more: Whether there are new ones that were not looked at yet.
    """

    batches: tuple[Batch, ...]
    errors: tuple[SourceError, ...]
    more: bool = False


AT_FIRST = 100
"""New files that are written down before the first of them are released."""


def ingest(job: HasSource, store: SqliteStore, now: int, log: Log) -> Arrived:
    """Write down the batches of a job's source that are new; a known key is left alone.

    Of many new files the first are written down, and at each later look as many as are known: a
    first start over years of them releases within seconds, and looks at each a few times.

    Raises:
        ConfigurationError: The source was cut into other batches before.
        SourceError: It reads records of another's budget.
        ClockError: The clock has jumped ahead.
    """
    store.require_time(now)
    known = store.known_batches(job.source.name)
    batches = list(job.source.batches(now))
    _require_one_cut(job.source, known, batches)
    if batches and batches[0].path is None:
        bind_files(job, batches[0], store, now)
    arrived, wrong, more = _examined(job, batches, known.keys(), store, now)
    if arrived:
        store.add_batches(arrived, now)
    for batch, _ in arrived:
        log("batch.sealed", source=batch.source, batch=batch.key)
        if batch.path is not None:
            store.keep_arrival(batch, AS_SEALED + _state(batch, store))
    for key in store.report_problems(f"source {job.source.name}", wrong, now):
        log(_event(wrong[key]), source=job.source.name, batch=key, reason=wrong[key].line)
    there = known.keys() | {batch.key for batch, _ in arrived}
    return Arrived(
        tuple(batch for batch in batches if batch.key in there),
        tuple(
            error
            for error in wrong.values()
            if isinstance(error, SourceError) and not isinstance(error, SameFileError)
        ),
        more,
    )


def _examined(
    job: HasSource, batches: Sequence[Batch], known: Set[str], store: SqliteStore, now: int
) -> tuple[list[tuple[Batch, bytes | None]], dict[str, StreamdpError], bool]:
    """New batches with their digests, errors of those that are refused by key, whether more are."""
    most = max(AT_FIRST, len(known))
    arrived: list[tuple[Batch, bytes | None]] = []
    wrong: dict[str, StreamdpError] = {}
    arrivals = store.arrivals(job.source.name)
    present = {batch.key for batch in batches}
    bound = store.belongings(file.id for each in batches if each.path for file in each.files)
    for batch in sorted(batches, key=lambda batch: batch.key not in known):
        if batch.path is not None and len(arrived) == most:
            return arrived, wrong, True
        try:
            if batch.path is not None and not _is_bound(job, batch, bound):
                _bind_file(job, batch, store, now, present)
            if batch.key not in known:
                arrived.append((batch, _digest(job, batch, store)))
            elif batch.files and batch.path is not None:
                _require_as_sealed(job, batch, store, arrivals.get(batch.key))
        except (SourceError, AlteredBatchError) as error:
            wrong[batch.key] = error
    return arrived, wrong, False


def _is_bound(job: HasSource, batch: Batch, bound: Mapping[str, Belongs]) -> bool:
    """Whether all files of a batch belong to it already."""
    own = Belongs(job.scope, batch.key)
    return all(bound.get(file.id) == own for file in batch.files)


def _bind_file(
    job: HasSource, batch: Batch, store: SqliteStore, now: int, present: set[str]
) -> None:
    """Bind a file to its batch; one that was renamed before anything was charged goes along."""
    try:
        bind_files(job, batch, store, now)
    except SameFileError:
        owners = set(store.belongings(file.id for file in batch.files).values())
        if any(owner.batch in present for owner in owners) or not all(
            store.let_go(owner) for owner in owners
        ):
            raise
        bind_files(job, batch, store, now)


def _require_as_sealed(
    job: HasSource, batch: Batch, store: SqliteStore, kept: bytes | None
) -> None:
    """Look whether files of a known batch have changed; they are read again only if it seems so.

    Raises:
        AlteredBatchError: They are not what arrived: what was added is in no release.
    """
    state = _state(batch, store)
    if kept is None or kept[1:] != state:
        same = _digest(job, batch, store) == store.digest_of(batch)
        kept = (AS_SEALED if same else ALTERED) + state
        store.keep_arrival(batch, kept)
    if kept[:1] == ALTERED:
        raise _altered(batch)


def _state(batch: Batch, store: SqliteStore) -> bytes:
    """Sizes and times of change, under the store's key: a size tells how many records there are."""
    return store.keyed_digest("\n".join(file.state for file in batch.files).encode())


def _event(error: StreamdpError) -> str:
    if isinstance(error, SameFileError):
        return "batch.refused"
    return "batch.altered" if isinstance(error, AlteredBatchError) else "batch.unreadable"


def due(job: Job, store: SqliteStore, batches: Iterable[Batch]) -> list[Batch]:
    """Batches that the job has not released, of those that have arrived, in order; or windows."""
    released = store.released_batches(job.name, job.source.name)
    return due_together(tuple(batches), released, job.window)


def require_unaltered(job: HasSource, batch: Batch, store: SqliteStore) -> None:
    """Refuse a batch that is not what was written down under its key.

    Raises:
        AlteredBatchError: The file was replaced or changed after it arrived.
    """
    if _digest(job, batch, store) != store.digest_of(batch):
        raise _altered(batch)


def _altered(batch: Batch) -> AlteredBatchError:
    return AlteredBatchError(
        f"batch {batch.key} of {batch.source} is not the one that arrived under this key",
        where=batch.path or "",
        hint="a batch is sealed when it arrives, and what came later is in no release: give new"
        " records a key of their own",
        source=batch.source,
        batch=batch.key,
    )


def _require_one_cut(source: Source, known: Mapping[str, Window], batches: Iterable[Batch]) -> None:
    """Refuse batches that overlap with earlier ones: their records would pay from two caps.

    Growing batches, which all begin where the first does, pay from one cap (see `caps_of`). That
    they grow is the word of the source: two cuts of one day begin together too.
    """
    cut = {**known, **{batch.key: (batch.start, batch.end) for batch in batches}}
    windows = sorted((start, end) for start, end in cut.values() if start is not None)
    growing = source.growing and len({start for start, _ in windows}) == 1
    if (
        any(cut[key] != window for key, window in known.items())
        or 0 < len(windows) < len(cut)
        or any(later[0] < (earlier[1] or 0) and not growing for earlier, later in pairwise(windows))
    ):
        raise ConfigurationError(
            f"source {source.name} was cut into other batches before",
            where=f"sources.{source.name}.batches",
            hint="a record belongs to one batch for ever, or it would pay from the caps of two:"
            " set start, every and the kind of batches as they were, or start behind the last of"
            " them",
        )


def _digest(job: HasSource, batch: Batch, store: SqliteStore) -> bytes | None:
    if isinstance(job.source, HasContent):
        return store.keyed_digest(job.source.content_digest(batch))
    return None


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


def bind_files(task: HasSource, batch: Batch, store: SqliteStore, now: int) -> None:
    """Bind the files of a batch to the budget of its source, and to the batch if it is a file.

    Raises:
        SameFileError: They belong to another batch of the source.
        SourceError: They belong to another source.
    """
    _bind(task, batch, tuple(file.id for file in batch.files), store, now)


def bind_tables(
    task: HasSource, backend: object, batch: Batch, store: SqliteStore, now: int
) -> None:
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
    store: SqliteStore,
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


def _bind(
    task: HasSource, batch: Batch, origins: tuple[str, ...], store: SqliteStore, now: int
) -> None:
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
