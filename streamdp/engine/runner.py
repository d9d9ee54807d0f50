"""The runner: does everything that is due now, in order, one release at a time.

Tasks take turns of a few batches, so that one which has much to catch up with keeps no other from
what is due today. A source is looked at once for all tasks that read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard, assert_never

from streamdp.engine.attempts import Attempts, Outcomes, Task
from streamdp.engine.deliver import deliver
from streamdp.engine.gate import GateRunner, due_of_gate
from streamdp.engine.ingest import Arrived, due, ingest
from streamdp.engine.job import EngineContext, HoldsRecords, Job, Skips
from streamdp.engine.rollups import roll
from streamdp.errors import SourceError, StreamdpError, told_of_memory
from streamdp.text import iso
from streamdp.types import UNREADABLE, Batch, Sink, Source, jobs_read
from streamdp.types.releases import rest_after, rest_after_deaths

TURN = 10
"""Batches of one task before the others have theirs; a number, as durations follow from records."""

TURN_OF_A_GATE = 100
"""Batches of a gate before the other tasks have theirs: a no of a series is soon had."""

Progress = Callable[[Task, int, int], None]
"""Told of a task, how many of its due batches are done, and how many there are."""


@dataclass(slots=True)
class _Work:
    """Rest of one task in a round.

    Args:
        task: What is done.
        batches: What was due when its first turn began; None before.
        done: How many of them had their turn.
        again: Whether a schedule woke it meanwhile, so that it is looked at anew at its end.
        unseen: Whether more batches have come that were not looked at yet.
        seen: The batches that were looked at.
    """

    task: Task
    batches: Sequence[Batch] | None = None
    done: int = 0
    again: bool = False
    unseen: bool = False
    seen: Arrived | None = None

    def goes_on(self) -> bool:
        """Whether it is looked at anew, though all that was known to be due is done."""
        return self.again or (self.unseen and self.done == len(self.batches or ()))


@dataclass(slots=True)
class Runner:
    """Does rounds of work; belongs to one thread.

    Args:
        around: Store, entropy, clock and log.
        sinks: By name.
        stop: Asked between releases: should this be the end of the round?
        woken: Asked between turns: which tasks have come due since?
        progress: Told after each batch.
        patient: Whether jobs rest whose charges were burnt, and pass over what a cap refused.
        posted: Called when something is owed, in place of a delivery by this thread.
    """

    around: EngineContext
    sinks: Mapping[str, Sink]
    stop: Callable[[], bool] = lambda: False
    woken: Callable[[], Iterable[Task]] = tuple
    progress: Progress = lambda job, done, total: None
    patient: bool = True
    posted: Callable[[], None] | None = None
    _attempts: Attempts = field(init=False)
    _arrived: dict[str, Arrived] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._attempts = Attempts(self.around, self._deliver)

    def round(self, tasks: Iterable[Task], only: Callable[[Batch], bool] | None = None) -> Outcomes:
        """Burn what was left open, release what is due of each job, deliver what is owed.

        Args:
            tasks: Their turns go in this order, those of jobs that read releases of others behind
                the others'; a gate that stands for several of its jobs is asked once.
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
        self._attempts.insists = only is not None or not self.patient
        self._arrived.clear()
        self._deliver(outcomes)
        waiting = {task.name: _Work(task) for task in sorted(tasks, key=_reads)}
        held: list[HoldsRecords] = []
        try:
            while waiting and not self.stop():
                work = waiting.pop(next(iter(waiting)))
                held = _handed_on(held, work.task)
                more = self._turn(work, only, outcomes)
                self._admit(work, waiting)
                if (
                    not more
                    and work.unseen
                    and self._arrived.get(work.task.source.name) is work.seen
                ):
                    self._arrived.pop(work.task.source.name, None)
                if more or work.goes_on():
                    waiting[work.task.name] = work if more else _Work(work.task)
        finally:
            _handed_on(held, None)
        outcomes.stopped = self.stop()
        self._arrived.clear()
        return outcomes

    def _admit(self, work: _Work, waiting: dict[str, _Work]) -> None:
        """Add tasks that schedules woke during a turn, and look for their new batches."""
        for task in self.woken():
            self._arrived.pop(task.source.name, None)
            known = work if task.name == work.task.name else waiting.get(task.name)
            if known is None:
                waiting[task.name] = _Work(task)
            elif known.batches is not None:
                known.again = True

    def _turn(self, work: _Work, only: Callable[[Batch], bool] | None, outcomes: Outcomes) -> bool:
        """Do a few batches of one task; whether more are left.

        An error ends what it does in this round, the next one tries again.
        """
        task = work.task
        try:
            with told_of_memory():
                if self._is_paused(task, outcomes):
                    return False
                self._attempts.passed = self._passed(task)
                if work.batches is None:
                    if self._rests(task, outcomes):
                        return False
                    due, more = self._due(task, outcomes)
                    work.unseen, work.seen = more, self._arrived[task.source.name]
                    self._forget(task, due)
                    work.batches = [batch for batch in due if only is None or only(batch)]
                return self._do(work, work.batches, outcomes) or self._roll(task, outcomes)
        except StreamdpError as error:
            if error.code in ("locked", "store", "integrity"):
                raise
            outcomes.errors.append(error)
            self._tell(task, error)
            work.unseen = False
            return False

    def _roll(self, task: Task, outcomes: Outcomes) -> bool:
        """Make some rollups that are due; whether more are left, for another turn."""
        more = False
        for job in task.jobs:
            more = more or (not self.stop() and roll(job, self.around))
        if any(job.rollups for job in task.jobs):
            self._deliver(outcomes)
        return more

    def _due(self, task: Task, outcomes: Outcomes) -> tuple[list[Batch], bool]:
        """Due batches of a task, and whether more have arrived that were not looked at yet.

        Arrivals are taken in once for all tasks of a source.
        """
        store, source = self.around.store, task.source.name
        if source not in self._arrived:
            self._tell_skipped(task.source)
            found = ingest(task, store, self.around.clock.now(), self.around.log)
            outcomes.errors += found.errors
            self._arrived[source] = found
        found = self._arrived[source]
        match task:
            case Job():
                return due(task, store, found.batches), found.more
            case GateRunner():
                return due_of_gate(task, store, found.batches), found.more
            case _:
                assert_never(task)

    def _tell_skipped(self, source: Source) -> None:
        """Log inputs that a source does not read, each once in this process."""
        for each in source.skipped() if isinstance(source, Skips) else ():
            if each.why != UNREADABLE and (source.name, each) not in self.around.told:
                self.around.told.add((source.name, each))
                batch = {"batch": each.batch} if each.batch else {}
                self.around.log("input.skipped", source=source.name, reason=each.why, **batch)

    def _forget(self, task: Task, due: Sequence[Batch]) -> None:
        """Forget problems of batches that are gone, and of a source that could be looked at again.

        What is wrong with windows is no batch's own: it lasts until one of them can be read.
        """
        still = {"" if batch.path is None else batch.key for batch in due}
        for each in {task.name, *(job.name for job in task.jobs)}:
            self.around.store.keep_problems(each, still)

    def _do(self, work: _Work, batches: Sequence[Batch], outcomes: Outcomes) -> bool:
        """The next batches of a task; False at a stop, the budget's end or its own.

        A turn of a gate ends early when it has let through as many as a job's turn has. Its tests
        are settled before anything of another task is done or told.
        """
        total = len(batches)
        try:
            more = self._go_on(work, batches, outcomes)
        except StreamdpError:
            self._attempts.settle(outcomes)
            raise
        self._attempts.settle(outcomes)
        if work.done == total > 0:
            self.progress(work.task, total, total)
        return more

    def _go_on(self, work: _Work, batches: Sequence[Batch], outcomes: Outcomes) -> bool:
        """Put one batch after the other to the task; whether its work goes on in another turn."""
        task, total, before = work.task, len(batches), outcomes.released
        turn = turn_of(task)
        for batch in batches[work.done : work.done // turn * turn + turn]:
            if self.stop() or (work.done % turn and self._is_paused(task, outcomes)):
                return False
            if outcomes.released - before >= TURN:
                break
            self.progress(task, work.done, total)
            if not (
                self._attempts.release(task, batch, outcomes)
                if isinstance(task, Job)
                else self._attempts.put_to_gate(task, batch, outcomes)
            ):
                return False
            work.done += 1
        return work.done < total

    def _tell(self, task: Task, error: StreamdpError) -> None:
        """Log why a task ended its turn; of a source that cannot be read, once a change."""
        number = {"id": error.fields["id"]} if "id" in error.fields else {}
        if not isinstance(error, SourceError):
            self.around.log("release.failed", job=task.name, code=error.code, **number)
            return
        if self.stop():  # the question was ended by who stops: no problem of its source
            self.around.log("release.failed", job=task.name, code="stopped", **number)
            return
        now = self.around.clock.now()
        if self.around.store.report_problem(task.name, "", error, now):
            said = {"code": error.code, "reason": error.line}
            self.around.log("release.failed", job=task.name, **said, **number)

    def _deliver(self, outcomes: Outcomes) -> None:
        if self.posted is not None:
            self.posted()
            return
        store, now = self.around.store, self.around.clock.now()
        outcomes.errors += deliver(store, self.sinks, now, self.around.log)[1]

    def _is_paused(self, task: Task, outcomes: Outcomes) -> bool:
        """Whether a task is paused; asked before every release, as this may change meanwhile."""
        paused = self.around.store.paused() & {task.name, *(job.name for job in task.jobs)}
        outcomes.paused += sorted(paused)
        return bool(paused)

    def _passed(self, task: Task) -> frozenset[tuple[str, str]]:
        """Batches that a cap has refused to a task and to the jobs it lets release."""
        names = {task.name, *(job.name for job in task.jobs)}
        refused = self.around.store.passed_over
        return frozenset(pair for name in names for pair in refused(task.scope, name))

    def _rests(self, task: Task, outcomes: Outcomes) -> bool:
        """Whether a task rests after burnt charges, so that failures burn no lifetime in an hour.

        It follows from the store: a supervisor that starts the process anew changes nothing.
        """
        store, now = self.around.store, self.around.clock.now()
        found = [store.burns_in_a_row(job.scope, job.name) for job in task.jobs]
        found.append(store.gates.losses_in_a_row(task.name))
        died = [store.deaths_in_a_row(job.scope, job.name) for job in task.jobs]
        rests = [(since, rest_after(burns)) for burns, since in found]
        rests += [(since, rest_after_deaths(deaths, same)) for deaths, same, since in died]
        until = max((at + rest for at, rest in rests if abs(now - at) < rest), default=None)
        if not self.patient or until is None:
            return False
        outcomes.resting.append(task.name)
        if self.around.rested.get(task.name) != until:
            self.around.rested[task.name] = until
            self.around.log("job.rests", job=task.name, until=iso(until))
        return True


def turn_of(task: Task) -> int:
    """Return how many batches of a task are done before the others have theirs."""
    return TURN if isinstance(task, Job) else TURN_OF_A_GATE


def _reads(task: Task) -> bool:
    """Whether a task follows releases of other jobs, which had better be there."""
    return any(jobs_read(job.kind) for job in task.jobs)


def _holds(backend: object) -> TypeGuard[HoldsRecords]:
    """Whether a backend holds records, by its class: asked of every task in every round."""
    return issubclass(type(backend), HoldsRecords)


def _handed_on(held: list[HoldsRecords], task: Task | None) -> list[HoldsRecords]:
    """Backends of the next task that may hold copies of batches; others drop theirs.

    No record stays longer than tasks that stand together ask about it.
    """
    asked = () if task is None else (task, *task.jobs)
    backends: dict[int, object] = {id(each.backend): each.backend for each in asked}
    wanted = [each for each in backends.values() if _holds(each)]
    for backend in held:
        if not any(backend is other for other in wanted):
            backend.let_go()
    return wanted
