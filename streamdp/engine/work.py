"""One round of work: everything that is due now, in order, one release at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from streamdp.engine.deliver import deliver
from streamdp.engine.ingest import due, ingest
from streamdp.engine.job import Job
from streamdp.engine.release import Ready, Surroundings, prepare, release_batch
from streamdp.errors import AlteredBatchError, BudgetExhaustedError, SourceError, StreamdpError
from streamdp.types import Batch, Sink

Progress = Callable[[Job, int, int], None]
"""Told of a job, how many of its due batches are done, and how many there are."""

FIRST_REST, LONGEST_REST = 120, 6 * 3600
"""Seconds a job rests after its second burnt charge in a row; they double."""


@dataclass(slots=True)
class Outcomes:
    """What a round did; public facts."""

    released: int = 0
    refused: int = 0
    paused: list[str] = field(default_factory=list)
    resting: list[str] = field(default_factory=list)
    stopped: bool = False
    errors: list[StreamdpError] = field(default_factory=list)


@dataclass(slots=True)
class Worker:
    """Does rounds of work; belongs to one thread.

    Args:
        around: Store, entropy, clock and log.
        sinks: By name.
        stop: Asked between releases: should this be the end of the round?
        progress: Told after each batch.
        patient: Whether jobs rest whose charges were burnt.
    """

    around: Surroundings
    sinks: Mapping[str, Sink]
    stop: Callable[[], bool] = lambda: False
    progress: Progress = lambda job, done, total: None
    patient: bool = True
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
        self._deliver(outcomes)
        for job in jobs:
            if not (self.stop() or self._is_paused(job, outcomes) or self._rests(job, outcomes)):
                self._catch_up(job, only, outcomes)
        outcomes.stopped = self.stop()
        return outcomes

    def _catch_up(self, job: Job, only: Callable[[Batch], bool] | None, outcomes: Outcomes) -> None:
        """Release what is due of one job; an error ends its turn, the next round tries again."""
        now = self.around.clock.now()
        try:
            outcomes.errors += ingest(job, self.around.store, now, self.around.log)
            batches = [b for b in due(job, self.around.store, now) if only is None or only(b)]
            for done, batch in enumerate(batches):
                if self.stop() or self._is_paused(job, outcomes):
                    return
                self.progress(job, done, len(batches))
                ready = self._prepare(job, batch, outcomes)
                if ready is not None and not self._release(job, batch, ready, outcomes):
                    return
            self.progress(job, len(batches), len(batches))
        except StreamdpError as error:
            if error.code in ("locked", "store", "integrity"):
                raise
            outcomes.errors.append(error)
            number = {"id": error.fields["id"]} if "id" in error.fields else {}
            self.around.log("release.failed", job=job.name, code=error.code, **number)

    def _prepare(self, job: Job, batch: Batch, outcomes: Outcomes) -> Ready | None:
        """Prepare a batch; a file that is altered or cannot be read holds up no others."""
        try:
            return prepare(job, batch, self.around)
        except (AlteredBatchError, SourceError) as error:
            if batch.path is None:
                raise
            outcomes.errors.append(error)
            altered = isinstance(error, AlteredBatchError)
            event = "batch.altered" if altered else "batch.unreadable"
            self.around.log(event, source=batch.source, batch=batch.key)
            return None

    def _release(self, job: Job, batch: Batch, ready: Ready, outcomes: Outcomes) -> bool:
        """Release and deliver one batch, or pass it over; False at the end of the budget."""
        try:
            release_batch(job, batch, ready, self.around)
        except BudgetExhaustedError as error:
            return self._refuse(job, batch, error, outcomes)
        outcomes.released += 1
        self._deliver(outcomes)
        return True

    def _refuse(
        self, job: Job, batch: Batch, error: BudgetExhaustedError, outcomes: Outcomes
    ) -> bool:
        """Pass a batch over whose cap is reached; at the lifetime cap the job is at its end."""
        outcomes.refused += 1
        if (job.name, batch.key) not in self._refused:
            self._refused.add((job.name, batch.key))
            self.around.log("budget.exhausted", job=job.name, batch=batch.key, **error.fields)
        if error.fields.get("cap") != "lifetime":
            return True
        outcomes.errors.append(error)
        return False

    def _deliver(self, outcomes: Outcomes) -> None:
        store, now = self.around.store, self.around.clock.now()
        outcomes.errors += deliver(store, self.sinks, now, self.around.log)

    def _is_paused(self, job: Job, outcomes: Outcomes) -> bool:
        """Asked before every release, since a person may pause a job in its catch-up."""
        paused = job.name in self.around.store.paused()
        if paused:
            outcomes.paused.append(job.name)
        return paused

    def _rests(self, job: Job, outcomes: Outcomes) -> bool:
        """An engine that fails, or a process that dies, must not burn a lifetime in an hour.

        It follows from the ledger: a supervisor that starts the process anew changes nothing.
        """
        burns, since = self.around.store.burns_in_a_row(job.scope, job.name)
        away = abs(self.around.clock.now() - since)
        if not self.patient or burns < 2 or away >= _rest_of(burns):
            return False
        outcomes.resting.append(job.name)
        self.around.log("job.rests", job=job.name)
        return True


def _rest_of(burns: int) -> int:
    return int(min(FIRST_REST * 2 ** min(burns - 2, 20), LONGEST_REST))
