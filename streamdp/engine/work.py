"""One round of work: everything that is due now, in order, one release at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from streamdp.engine.deliver import deliver
from streamdp.engine.ingest import due, ingest
from streamdp.engine.job import Job
from streamdp.engine.release import Surroundings, release_batch
from streamdp.errors import AlteredBatchError, BudgetExhaustedError, StreamdpError
from streamdp.types import Batch, Release, Sink

Progress = Callable[[Job, int, int], None]
"""Told of a job, how many of its due batches are done, and how many there are."""


@dataclass(slots=True)
class Outcomes:
    """What a round did; public facts."""

    released: int = 0
    refused: int = 0
    errors: list[StreamdpError] = field(default_factory=list)


@dataclass(slots=True)
class Worker:
    """Does rounds of work; belongs to one thread.

    Args:
        around: Store, entropy, clock and log.
        sinks: By name.
        stop: Asked between releases: should this be the end of the round?
        progress: Told after each batch.
    """

    around: Surroundings
    sinks: Mapping[str, Sink]
    stop: Callable[[], bool] = lambda: False
    progress: Progress = lambda job, done, total: None
    _refused: set[tuple[str, str]] = field(default_factory=set, init=False)

    def round(self, jobs: Iterable[Job], only: Callable[[Batch], bool] | None = None) -> Outcomes:
        """Burn what was left open, release what is due of each job, deliver what is owed.

        Args:
            jobs: In this order.
            only: Which of the due batches to release; by default all.

        Raises:
            StoreError: The store cannot be used.
            LockedError: Another process has taken the store over.
        """
        store, log = self.around.store, self.around.log
        for left in store.recover(self.around.clock.now()):
            log("recovery.burnt", job=left.job, batch=left.batch)
        outcomes = Outcomes()
        paused = store.paused()
        deliver(store, self.sinks, self.around.clock.now(), log)
        for job in jobs:
            if job.name not in paused and not self.stop():
                self._catch_up(job, only, outcomes)
        return outcomes

    def _catch_up(self, job: Job, only: Callable[[Batch], bool] | None, outcomes: Outcomes) -> None:
        """Release what is due of one job; an error ends its turn, the next round tries again."""
        now = self.around.clock.now()
        try:
            ingest(job, self.around.store, now, self.around.log)
            batches = [b for b in due(job, self.around.store, now) if only is None or only(b)]
            for done, batch in enumerate(batches):
                if self.stop():
                    return
                self.progress(job, done, len(batches))
                self._release(job, batch, outcomes)
            self.progress(job, len(batches), len(batches))
        except StreamdpError as error:
            if error.code in ("locked", "store", "integrity"):
                raise
            outcomes.errors.append(error)
            self.around.log("release.failed", job=job.name, code=error.code)

    def _release(self, job: Job, batch: Batch, outcomes: Outcomes) -> Release | None:
        """Release and deliver one batch; a batch that may not be released is passed over."""
        try:
            release = release_batch(job, batch, self.around)
        except AlteredBatchError as error:
            outcomes.errors.append(error)
            self.around.log("batch.altered", source=batch.source, batch=batch.key)
            return None
        except BudgetExhaustedError as error:
            self._refuse(job, batch, error, outcomes)
            return None
        outcomes.released += 1
        now = self.around.clock.now()
        deliver(self.around.store, self.sinks, now, self.around.log)
        return release

    def _refuse(
        self, job: Job, batch: Batch, error: BudgetExhaustedError, outcomes: Outcomes
    ) -> None:
        """Pass a batch over whose cap is reached; at the lifetime cap the job is at its end."""
        outcomes.refused += 1
        if (job.name, batch.key) not in self._refused:
            self._refused.add((job.name, batch.key))
            self.around.log("budget.exhausted", job=job.name, batch=batch.key, **error.fields)
        if error.fields.get("cap") == "lifetime":
            raise error
