"""Batches in: each is written down once, and must still be the same when it is released."""

from __future__ import annotations

from streamdp.engine.job import Job
from streamdp.engine.protocols import HasContent, Store
from streamdp.errors import AlteredBatchError
from streamdp.types import Batch, Log


def ingest(job: Job, store: Store, now: int, log: Log) -> None:
    """Write down the batches of a job's source that are new; a known key is left alone."""
    known = store.known_batches(job.source.name)
    new = [batch for batch in job.source.batches(now) if batch.key not in known]
    if not new:
        return
    store.add_batches([(batch, _digest(job, batch, store)) for batch in new], now)
    for batch in new:
        log("batch.sealed", source=batch.source, batch=batch.key)


def due(job: Job, store: Store, now: int) -> list[Batch]:
    """Sealed batches that the job has not released, in order; follows from the store alone."""
    released = store.released_batches(job.name, job.source.name)
    return [batch for batch in job.source.batches(now) if batch.key not in released]


def require_unaltered(job: Job, batch: Batch, store: Store) -> None:
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


def _digest(job: Job, batch: Batch, store: Store) -> bytes | None:
    if isinstance(job.source, HasContent):
        return store.keyed_digest(job.source.content_digest(batch))
    return None
