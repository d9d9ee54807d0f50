"""One batch of a task: prepared, paid for, released; or passed over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from streamdp.engine.draw import Ready
from streamdp.engine.gate import Gatekeeper, GateRunner, must_ask, unasked
from streamdp.engine.job import EngineContext, Job
from streamdp.engine.release import prepare, release_batch
from streamdp.errors import (
    AlteredBatchError,
    BudgetExhaustedError,
    SourceError,
    StreamdpError,
    WaitingError,
)
from streamdp.types import Batch

Task = Job | GateRunner
"""A job without a gate, or a gate with the jobs that it lets release."""


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
class Attempts:
    """Attempts at one batch after the other, each with its outcome.

    Args:
        around: Store, entropy, clock and log.
        deliver: Hands to sinks what they are owed.
        insists: Whether batches are tried that a cap refused before.
        passed: Names and batches that a cap has refused, of the task at hand.
    """

    around: EngineContext
    deliver: Callable[[Outcomes], None]
    insists: bool = False
    passed: frozenset[tuple[str, str]] = frozenset()
    _refused: set[tuple[str, str]] = field(default_factory=set, init=False)
    _keeper: Gatekeeper = field(init=False)

    def __post_init__(self) -> None:
        self._keeper = Gatekeeper(self.around)

    def release(self, job: Job, batch: Batch, outcomes: Outcomes) -> bool:
        """Release and deliver one batch, or pass it over; False at the end of the budget."""
        if self._is_passed(job, batch):
            return True
        ready: list[Ready] = []
        self.settle(outcomes)

        def release() -> None:
            release_batch(job, batch, ready[0], self.around)
            outcomes.released += 1

        if not self._readable(
            job, batch, outcomes, lambda: ready.append(prepare(job, batch, self.around))
        ):
            return True
        return self._spend(job, batch, outcomes, release)

    def put_to_gate(self, gate: GateRunner, batch: Batch, outcomes: Outcomes) -> bool:
        """Ask a gate and release what it lets through; False at the end of the budget."""
        store = self.around.store
        jobs = unasked(gate, store)
        if must_ask(gate, store):
            answer = store.gates.answers(gate.name, batch.source).get(batch.key)
            if answer is None:
                answers: list[bool | None] = []
                if not self._ask(gate, batch, outcomes, answers.append):
                    return False
                if answers and answers[-1]:
                    self.deliver(outcomes)
                answer = answers[-1] if answers else None
            jobs = gate.jobs if answer else jobs
        return all(
            self.release(job, batch, outcomes)
            for job in jobs
            if batch.key not in store.released_batches(job.name, batch.source)
        )

    def _ask(
        self, gate: GateRunner, batch: Batch, outcomes: Outcomes, say: Callable[[bool | None], None]
    ) -> bool:
        """Ask a gate about one batch, or pass it over; False at the end of the budget."""
        keeper, store = self._keeper, self.around.store
        if self._is_passed(gate, batch):
            return True
        if not keeper.waits(gate) and self._readable(
            gate, batch, outcomes, lambda: keeper.prepare(gate, batch)
        ):
            last = (store.last_release(job.name) for job in gate.jobs)
            standing = tuple(release for release in last if release is not None)
            try:
                say(keeper.ask(gate, batch, standing))
            except BudgetExhaustedError as error:
                self.settle(outcomes)
                return self._refuse(gate, batch, error, outcomes)
        return True

    def settle(self, outcomes: Outcomes) -> None:
        """Wait for the end of the tests that are under way, tell their answers and deliver."""
        if self._keeper.settle():
            self.deliver(outcomes)

    def _readable(
        self, task: Task, batch: Batch, outcomes: Outcomes, look: Callable[[], None]
    ) -> bool:
        """Prepare a batch; one that is altered or unreadable does not hold up others."""
        store, key = self.around.store, "" if batch.path is None else batch.key
        try:
            look()
        except WaitingError as error:
            self._wait(task, key, error)
            return False
        except (AlteredBatchError, SourceError) as error:
            self.settle(outcomes)
            if batch.path is None:
                raise
            outcomes.errors.append(error)
            if store.report_problem(task.name, key, error, self.around.clock.now()):
                altered = isinstance(error, AlteredBatchError)
                event = "batch.altered" if altered else "batch.unreadable"
                about = {"source": batch.source, "batch": batch.key, "reason": error.line}
                self.around.log(event, **about)
            return False
        store.settle_problem(task.name, key)
        return True

    def _wait(self, task: Task, key: str, error: WaitingError) -> None:
        """Say once that a job waits; batches before its first release are none of its own."""
        store = self.around.store
        if store.last_release(task.name) is not None:
            store.settle_problem(task.name, key)
        elif store.report_problem(task.name, key, error, self.around.clock.now()):
            self.around.log("job.waits", job=task.name, reason=error.line)

    def _spend(
        self, task: Task, batch: Batch, outcomes: Outcomes, spend: Callable[[], None]
    ) -> bool:
        """Run a paid step, then deliver; False at the end of the budget."""
        try:
            spend()
        except BudgetExhaustedError as error:
            return self._refuse(task, batch, error, outcomes)
        self.deliver(outcomes)
        return True

    def _refuse(
        self, task: Task, batch: Batch, error: BudgetExhaustedError, outcomes: Outcomes
    ) -> bool:
        """Record a cap refusal; return False if the lifetime cap is exhausted."""
        outcomes.refused += 1
        store, now, which = self.around.store, self.around.clock.now(), (task.name, batch.key)
        if which not in self._refused | self.passed:
            self._refused.add(which)
            self.around.log("budget.exhausted", job=task.name, batch=batch.key, **error.fields)
        if error.fields.get("cap") == "lifetime":
            outcomes.errors.append(error)
            return False
        if which not in self.passed:
            store.pass_over(task.scope, *which, str(error.fields["cap"]), now)
        return True

    def _is_passed(self, task: Task, batch: Batch) -> bool:
        """Whether a cap in force refused a batch before."""
        return not self.insists and (task.name, batch.key) in self.passed
