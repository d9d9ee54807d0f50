"""Batches in: each is written down once, and must still be the same when it is released."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from streamdp.engine.job import Job
from streamdp.engine.protocols import HasContent, HasSource, Store, Window
from streamdp.errors import AlteredBatchError, ConfigurationError, SourceError
from streamdp.types import Batch, Log


def ingest(job: HasSource, store: Store, now: int, log: Log) -> list[SourceError]:
    """Write down the batches of a job's source that are new; a known key is left alone.

    Returns:
        Why files could not be written down; they hold up no others, and are tried again.

    Raises:
        ConfigurationError: The source was cut into other batches before.
    """
    known = store.known_batches(job.source.name)
    batches = list(job.source.batches(now))
    _require_one_cut(job.source.name, known, batches)
    arrived: list[tuple[Batch, bytes | None]] = []
    unreadable: list[SourceError] = []
    for batch in batches:
        if batch.key not in known:
            try:
                arrived.append((batch, _digest(job, batch, store)))
            except SourceError as error:
                unreadable.append(error)
                log("batch.unreadable", source=batch.source, batch=batch.key)
    if arrived:
        store.add_batches(arrived, now)
    for batch, _ in arrived:
        log("batch.sealed", source=batch.source, batch=batch.key)
    return unreadable


def due(job: Job, store: Store, now: int) -> list[Batch]:
    """Ingested batches that the job has not released, in order; follows from the store alone."""
    known = store.known_batches(job.source.name).keys()
    waiting = known - store.released_batches(job.name, job.source.name)
    return [batch for batch in job.source.batches(now) if batch.key in waiting]


def require_unaltered(job: HasSource, batch: Batch, store: Store) -> None:
    """Refuse a batch that is not what was written down under its key.

    Raises:
        AlteredBatchError: The file was replaced or changed after it arrived.
    """
    if _digest(job, batch, store) != store.digest_of(batch):
        raise AlteredBatchError(
            f"batch {batch.key} of {batch.source} is not the one that arrived under this key",
            where=batch.path or "",
            hint="a batch is sealed when it arrives: give the new records a key of their own",
            source=batch.source,
            batch=batch.key,
        )


def _require_one_cut(source: str, known: Mapping[str, Window], batches: Iterable[Batch]) -> None:
    """Refuse batches that overlap with earlier ones: their records would pay from two caps.

    Growing batches, which all begin where the first does, pay from one cap (`wiring.declare`).
    """
    cut = {**known, **{batch.key: (batch.start, batch.end) for batch in batches}}
    windows = sorted((start, end) for start, end in cut.values() if start is not None)
    growing = len({start for start, _ in windows}) == 1
    if (
        any(cut[key] != window for key, window in known.items())
        or 0 < len(windows) < len(cut)
        or any(later[0] < (earlier[1] or 0) and not growing for earlier, later in pairwise(windows))
    ):
        raise ConfigurationError(
            f"source {source} was cut into other batches before",
            where=f"sources.{source}.batches",
            hint="a record belongs to one batch for ever, or it would pay from the caps of two:"
            " set start, every and the kind of batches as they were, or begin a new store",
        )


def _digest(job: HasSource, batch: Batch, store: Store) -> bytes | None:
    if isinstance(job.source, HasContent):
        return store.keyed_digest(job.source.content_digest(batch))
    return None
