"""The runner: does everything that is due now, in order, one release at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import assert_never

from streamdp.engine.deliver import deliver
from streamdp.engine.gate import Gate, Gatekeeper
from streamdp.engine.gated import due_of_gate, must_ask, unasked
from streamdp.engine.ingest import due, ingest
from streamdp.engine.job import Job
from streamdp.engine.protocols import HoldsRecords
from streamdp.engine.release import EngineContext, Ready, prepare, release_batch
from streamdp.errors import (
    AlteredBatchError,
    BudgetExhaustedError,
    SourceError,
    StreamdpError,
    told_of_memory,
)
from streamdp.types import Batch, Sink
from streamdp.types.rests import rest_after

Task = Job | Gate
"""A job without a gate, or a gate with the jobs that it lets release."""

Progress = Callable[[Task, int, int], None]
"""Told of a task, how many of its due batches are done, and how many there are."""


@dataclass(slots=True)
class Outcomes:
    """Results of a round, all public; `refused` counts the refusals of this round alone."""

    released: int = 0
    refused: int = 0
    paused: list[str] = field(default_factory=list)
    resting: list[str] = field(default_factory=list)
    stopped: bool = False
    errors: list[StreamdpError] = field(default_factory=list)


@dataclass(slots=True)
class Runner:
    """Does rounds of work; belongs to one thread.

    Args:
        around: Store, entropy, clock and log.
        sinks: By name.
        stop: Asked between releases: should this be the end of the round?
        progress: Told after each batch.
        patient: Whether jobs rest whose charges were burnt, and pass over what a cap refused.
    """

    around: EngineContext
    sinks: Mapping[str, Sink]
    stop: Callable[[], bool] = lambda: False
    progress: Progress = lambda job, done, total: None
    patient: bool = True
    _refused: set[tuple[str, str]] = field(default_factory=set, init=False)
    _passed: frozenset[tuple[str, str]] = field(default=frozenset(), init=False)
    _insists: bool = field(default=False, init=False)

    def round(self, tasks: Iterable[Task], only: Callable[[Batch], bool] | None = None) -> Outcomes:
        """Burn what was left open, release what is due of each job, deliver what is owed.

        Args:
            tasks: In this order; a gate that stands for several of its jobs is asked once.
            only: Which of the due batches to release, those too that a cap refused before; by
                default all others.

        Raises:
            StoreError: The store cannot be used.
            LockedError: Another process has taken the store over.
        """
        store, log = self.around.store, self.around.log
        for left in store.recover(self.around.clock.now()):
            log("recovery.burnt", job=left.job, batch=left.batch)
        outcomes = Outcomes()
        self._insists = only is not None or not self.patient
        self._deliver(outcomes)
        for task in {task.name: task for task in tasks}.values():
            if not (self.stop() or self._is_paused(task, outcomes) or self._rests(task, outcomes)):
                self._catch_up(task, only, outcomes)
        outcomes.stopped = self.stop()
        return outcomes

    def _catch_up(
        self, task: Task, only: Callable[[Batch], bool] | None, outcomes: Outcomes
    ) -> None:
        """Do what is due of one task; an error ends its turn, the next round tries again."""
        try:
            with told_of_memory():
                self._passed = self.around.store.passed_over(task.scope)
                self._do_all(task, only, outcomes)
        except StreamdpError as error:
            if error.code in ("locked", "store", "integrity"):
                raise
            outcomes.errors.append(error)
            self._tell(task, error)
        finally:
            _let_go(task)

    def _do_all(self, task: Task, only: Callable[[Batch], bool] | None, outcomes: Outcomes) -> None:
        """Take in what has arrived, and release what is due, until a stop or the budget's end."""
        store, now = self.around.store, self.around.clock.now()
        outcomes.errors += ingest(task, store, now, self.around.log)
        match task:
            case Job():
                waiting, do = due(task, store, now), partial(self._release, task)
            case Gate():
                waiting, do = due_of_gate(task, store, now), partial(self._pass, task)
            case _:
                assert_never(task)
        batches = [batch for batch in waiting if only is None or only(batch)]
        for done, batch in enumerate(batches):
            if self.stop() or self._is_paused(task, outcomes):
                return
            self.progress(task, done, len(batches))
            if not do(batch, outcomes):
                return
        self.progress(task, len(batches), len(batches))

    def _tell(self, task: Task, error: StreamdpError) -> None:
        """Log why a task ended its turn; of a source that cannot be read, once a change."""
        number = {"id": error.fields["id"]} if "id" in error.fields else {}
        if not isinstance(error, SourceError):
            self.around.log("release.failed", job=task.name, code=error.code, **number)
            return
        now = self.around.clock.now()
        if self.around.store.report_problem(task.name, "", error, now):
            said = {"code": error.code, "reason": str(error)}
            self.around.log("release.failed", job=task.name, **said, **number)

    def _pass(self, gate: Gate, batch: Batch, outcomes: Outcomes) -> bool:
        """Ask a gate and release what it lets through; False at the end of the budget."""
        store = self.around.store
        jobs = unasked(gate, store)
        if must_ask(gate, store):
            answer = store.gates.answers(gate.name, batch.source).get(batch.key)
            if answer is None:
                answers: list[bool | None] = []
                if not self._ask(gate, batch, outcomes, answers.append):
                    return False
                answer = answers[-1] if answers else None
            jobs = gate.jobs if answer else jobs
        return all(
            self._release(job, batch, outcomes)
            for job in jobs
            if batch.key not in store.released_batches(job.name, batch.source)
        )

    def _ask(
        self, gate: Gate, batch: Batch, outcomes: Outcomes, say: Callable[[bool | None], None]
    ) -> bool:
        """Ask a gate about one batch, or pass it over; False at the end of the budget."""
        keeper, store = Gatekeeper(self.around), self.around.store
        if self._is_passed(gate, batch):
            return True
        if not keeper.waits(gate) and self._readable(
            gate, batch, outcomes, lambda: keeper.prepare(gate, batch)
        ):
            last = (store.last_release(job.name) for job in gate.jobs)
            standing = tuple(release for release in last if release is not None)
            return self._spend(
                gate, batch, outcomes, lambda: say(keeper.ask(gate, batch, standing))
            )
        return True

    def _release(self, job: Job, batch: Batch, outcomes: Outcomes) -> bool:
        """Release and deliver one batch, or pass it over; False at the end of the budget."""
        if self._is_passed(job, batch):
            return True
        ready: list[Ready] = []

        def release() -> None:
            release_batch(job, batch, ready[0], self.around)
            outcomes.released += 1

        if not self._readable(
            job, batch, outcomes, lambda: ready.append(prepare(job, batch, self.around))
        ):
            return True
        return self._spend(job, batch, outcomes, release)

    def _readable(
        self, task: Task, batch: Batch, outcomes: Outcomes, look: Callable[[], None]
    ) -> bool:
        """Prepare a batch; a file that is altered or cannot be read holds up no others."""
        store, key = self.around.store, "" if batch.path is None else batch.key
        try:
            look()
        except (AlteredBatchError, SourceError) as error:
            if batch.path is None:
                raise
            outcomes.errors.append(error)
            if store.report_problem(task.name, key, error, self.around.clock.now()):
                altered = isinstance(error, AlteredBatchError)
                event = "batch.altered" if altered else "batch.unreadable"
                about = {"source": batch.source, "batch": batch.key, "reason": str(error)}
                self.around.log(event, **about)
            return False
        store.settle_problem(task.name, key)
        return True

    def _spend(
        self, task: Task, batch: Batch, outcomes: Outcomes, spend: Callable[[], None]
    ) -> bool:
        """Do what costs something, then deliver; False at the end of the budget."""
        try:
            spend()
        except BudgetExhaustedError as error:
            return self._refuse(task, batch, error, outcomes)
        self._deliver(outcomes)
        return True

    def _refuse(
        self, task: Task, batch: Batch, error: BudgetExhaustedError, outcomes: Outcomes
    ) -> bool:
        """Pass a batch over whose cap is reached; at the lifetime cap the task is at its end."""
        outcomes.refused += 1
        store, now, which = self.around.store, self.around.clock.now(), (task.name, batch.key)
        if which not in self._refused | self._passed:
            self._refused.add(which)
            self.around.log("budget.exhausted", job=task.name, batch=batch.key, **error.fields)
        if error.fields.get("cap") == "lifetime":
            outcomes.errors.append(error)
            return False
        if which not in self._passed:
            store.pass_over(task.scope, *which, str(error.fields["cap"]), now)
        return True

    def _is_passed(self, task: Task, batch: Batch) -> bool:
        """Whether a cap refused a batch before: it has room no sooner than the caps change."""
        return not self._insists and (task.name, batch.key) in self._passed

    def _deliver(self, outcomes: Outcomes) -> None:
        store, now = self.around.store, self.around.clock.now()
        outcomes.errors += deliver(store, self.sinks, now, self.around.log)

    def _is_paused(self, task: Task, outcomes: Outcomes) -> bool:
        """Asked before every release, since a person or a gate may pause a job in its catch-up."""
        paused = self.around.store.paused() & {task.name, *(job.name for job in task.jobs)}
        outcomes.paused += sorted(paused)
        return bool(paused)

    def _rests(self, task: Task, outcomes: Outcomes) -> bool:
        """An engine that fails, or a process that dies, must not burn a lifetime in an hour.

        It follows from the store: a supervisor that starts the process anew changes nothing.
        """
        store, now = self.around.store, self.around.clock.now()
        found = [store.burns_in_a_row(job.scope, job.name) for job in task.jobs]
        found.append(store.gates.losses_in_a_row(task.name))
        rests = any(abs(now - since) < rest_after(burns) for burns, since in found)
        if not self.patient or not rests:
            return False
        outcomes.resting.append(task.name)
        self.around.log("job.rests", job=task.name)
        return True


def _let_go(task: Task) -> None:
    """Drop the copies of batches: no record stays longer than it is asked about."""
    for each in (task, *task.jobs):
        if isinstance(each.backend, HoldsRecords):
            each.backend.let_go()
