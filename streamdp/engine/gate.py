"""The walk of one test of a gate: arm, use a test up, read, draw, answer, wait for the slot.

Privacy: all answers of a run cost its epsilon (`sparse_vector.thresholding`), charged before its
threshold is drawn; a batch joins the run, and the test is used up, before the batch is read. The
log, the store's readers and the sinks get the answer and the time of its slot. What is left to
show is a test that ends without an answer:

* *Left out*: the batch could not be read. Nothing of this test was drawn, so the run goes on as
  one in which it never was: its answers are those of the other tests, which are ε-DP whatever
  their number. The number of the test is not used again.
* *Lost*: the process died, or the answer could not be written, once the draw may have begun. That
  may depend on the answer: a yes writes more than a no, and a full disk could fail it alone. Let
  c(bit) be the probability of the loss given the bit. Then Pr[no, ..., no, lost] is
  c(yes)·Pr[no, ..., no, yes] + c(no)·Pr[no, ..., no, no], and both outcomes of the run are within
  e^ε of the neighbour's; so is their sum, if nothing follows. So a lost test ends its run. Going
  on would be right for a loss that cannot depend on the bit (it is then left out), but that is not
  to be known after a kill, and a yes that did not end its run would be followed by a second one,
  which nobody paid for. The next run is charged in full and draws another threshold.

A gate that is up to date has one test at a time, which takes a slot. A backlog is put to it in a
series: test i begins `PACE` of a slot after test i - 1, and all that follows from the series (log,
sinks, a release after a yes, work of others) waits until a whole slot after the begin that the last
test was due at. The store has the same times. So who looks on sees times that are a function of the
number of tests, which the answers show anyway. A test that takes longer than its pace begins the
next one late, which the slot at the end takes up; if that is not long enough, further whole slots
are waited for, as after a single test that takes longer than its slot.

A series ends with the first yes, with the turn of its gate, and with an error. The release that
follows a yes waits for that end; a death in between leaves an answer that is known and a release
that is due, as after a single test. What is written within a series has the times at which its
tests were due to begin, not those at which they did. A process that is killed within a series
shows how many of its tests were over by then, as one that is killed within a slot shows whether its
test was.

A loss that depends on the batch in other ways than through the bit, as when the engine runs out of
memory, is as visible here as in a release: the host and the engine are trusted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from streamdp.engine.ingest import bind_files, bind_tables, require_unaltered
from streamdp.engine.job import EngineContext, Job
from streamdp.engine.release import new_release_id, redact_errors
from streamdp.text import iso
from streamdp.types import (
    Backend,
    Batch,
    Clock,
    Entropy,
    GateKind,
    GateRun,
    GateVerdict,
    Past,
    Release,
    Row,
    Run,
    Source,
    Statistic,
)

if TYPE_CHECKING:
    from streamdp.store.sqlite import SqliteStore

PACE = Fraction(1, 20)
"""Share of a slot between the beginnings of two tests of a series."""


def seconds_of_series(slot: int, tests: int) -> int:
    """Return how long so many tests take in one series, in whole seconds."""
    return slot + math.ceil(slot * PACE * max(tests - 1, 0))


@dataclass(slots=True)
class SlotSeries:
    """Tests of one gate that follow each other without a slot between.

    Args:
        clock: Of the process.
        slot: Seconds that a single test takes to who looks on.
    """

    clock: Clock
    slot: int
    tests: int = field(default=0, init=False)
    _began: float = field(default=0.0, init=False)
    _at: int = field(default=0, init=False)

    def begin(self) -> int:
        """Wait for the begin of the next test and return it, in POSIX seconds."""
        self.tests += 1
        if self.tests == 1:
            self._began, self._at = self.clock.timer(), self.clock.now()
            return self._at
        due = float((self.tests - 1) * self.slot * PACE)
        early = self._began + due - self.clock.timer()
        if early > 0:
            self.clock.wait(early)
        return min(self._at + math.floor(due), self.clock.now())  # not ahead of a clock set back

    def seen_from(self) -> int:
        """Return when the answer of the test that began last may be seen, in POSIX seconds."""
        whole, _ = self._slots()
        return self._at + math.ceil(float(whole)) + 1

    def end(self) -> int:
        """Wait until all answers may be seen; return when the series began, in POSIX seconds."""
        whole, taken = self._slots()
        self.clock.wait(float(whole) - taken)
        return self._at

    def _slots(self) -> tuple[Fraction, float]:
        """Seconds from the first begin to the end, and those that are over."""
        paced, taken = (self.tests - 1) * self.slot * PACE, self.clock.timer() - self._began
        more = math.floor(max(taken - float(paced), 0.0) / self.slot) + 1
        return paced + more * self.slot, taken


Notices = tuple[tuple[Release, tuple[str, ...]], ...]
"""Notices, each with the sinks that it is owed to."""


def of_acceptance(
    gate: str,
    sinks: tuple[str, ...],
    standing: tuple[Release, ...],
    batch: Batch,
    slot: int,
    entropy: Entropy,
    chosen: Row,
) -> Notices:
    """The gate's notice of a yes: the batch it accepted, and the release that stood before.

    Of a gate over several configurations it has the one that was accepted.
    """
    row: Row = {"accepted": True, **chosen, **(_standing(standing[0]) if standing else {})}
    told = _notice(gate, "gate", batch, slot, row, entropy)
    return ((told, sinks),) if sinks else ()


def of_standing(
    jobs: tuple[Job, ...], standing: tuple[Release, ...], batch: Batch, slot: int, entropy: Entropy
) -> Notices:
    """A notice of a no for each job that has a release: that release still stands."""
    last = {release.job: release for release in standing}
    found = ((job, last[job.name]) for job in jobs if job.name in last)
    return tuple(
        (_notice(job.name, "standing", batch, slot, _left(release), entropy), job.sinks)
        for job, release in found
    )


def _left(release: Release) -> Row:
    return {"accepted": False, **_standing(release)}


def _standing(release: Release) -> Row:
    return {
        "standing_release": release.id,
        "standing_batch": release.batch,
        "standing_window_start": iso(release.window_start),
        "standing_window_end": iso(release.window_end),
    }


def _notice(job: str, kind: str, batch: Batch, slot: int, row: Row, entropy: Entropy) -> Release:
    return Release(
        id=new_release_id(entropy),
        job=job,
        source=batch.source,
        batch=batch.key,
        window_start=batch.start,
        window_end=batch.end,
        kind=kind,
        epsilon_nano=0,
        released_at=slot,
        rows=(row,),
    )


@dataclass(frozen=True, slots=True)
class GateRunner:
    """A configured gate, as the engine runs it.

    Args:
        name: Key of the gate in the configuration; its runs are charged under it.
        scope: Whose budget it spends: the source.
        source: Which batches there are.
        backend: Where their records are.
        kind: What is asked of each, and how it is answered.
        jobs: Release their first batch unasked, and then those the gate accepts.
        sinks: Are told of an acceptance.
        holds: Jobs that an acceptance pauses.
        manual: Whether a person must re-arm it.
        slot: Seconds that a test takes to who looks on, if no other follows at once.
        horizon: Batches in a run, at most.
        configurations: Of a gate that takes the first of several; named to the sinks.
    """

    name: str
    scope: str
    source: Source
    backend: Backend
    kind: GateKind
    jobs: tuple[Job, ...]
    sinks: tuple[str, ...]
    holds: tuple[str, ...]
    manual: bool
    slot: int
    horizon: int
    configurations: tuple[Row, ...] = ()


@dataclass(slots=True)
class Gatekeeper:
    """Puts batches to gates and stores the answers.

    Tests of a gate that are asked without `settle` between them are one series.
    """

    around: EngineContext
    _series: SlotSeries | None = field(default=None, init=False)
    _untold: list[tuple[GateRunner, Batch, bool]] = field(default_factory=list, init=False)
    _notices: list[str] = field(default_factory=list, init=False)

    def waits(self, gate: GateRunner) -> bool:
        """Whether a person must re-arm a gate before it is asked again."""
        return self.around.store.gates.waits(gate.name)

    def prepare(self, gate: GateRunner, batch: Batch) -> None:
        """Look whether a batch can be read; spends nothing, reads no records.

        Raises:
            SourceError: The batch cannot be read.
            AlteredBatchError: It is not the one that arrived.
        """
        with redact_errors(self.around.entropy):
            store, now = self.around.store, self.around.clock.now()
            require_unaltered(gate, batch, store)
            bind_files(gate, batch, store, now)
            gate.backend.check(gate.kind.query(batch), batch)
            bind_tables(gate, gate.backend, batch, store, now)

    def ask(self, gate: GateRunner, batch: Batch, standing: tuple[Release, ...]) -> bool | None:
        """Ask a gate about one prepared batch, once; a no may be told by `settle` alone.

        Args:
            gate: Asked.
            batch: About it.
            standing: The last release of each of its jobs that has one, the first's in front.

        Returns:
            The answer, or None if the gate waits to be re-armed.

        Raises:
            BudgetExhaustedError: A cap refuses; nothing was read.
            SourceError: The batch could not be read after all; the test is left out.
            InternalError: Anything else in reading or drawing.
            StoreError: The answer could not be written; the run is closed.
        """
        run = self._armed(gate)
        if run is None:
            return None
        if self._series is None:
            self._series = SlotSeries(self.around.clock, gate.slot)
        now = self._series.begin()
        number = self.around.store.gates.use_test(run.run, batch, now)
        statistic = self._read(gate, batch, run.run)
        past = Past(
            self.around.store.gates.accepted(gate.name), standing[0].rows if standing else ()
        )
        told = partial(self._word, gate, batch, standing, self._series)
        accepted = self._answer(gate, run, number, statistic, told, past, now)
        self._untold.append((gate, batch, accepted))
        if accepted:
            self.settle()
        return accepted

    def settle(self) -> bool:
        """Wait for the end of the series, if there is one, and tell its answers; whether it was."""
        series, self._series = self._series, None
        if series is None:
            return False
        began = series.end()
        told, self._untold = self._untold, []
        notices, self._notices = self._notices, []
        self.around.store.gates.tell(notices, began)
        for gate, batch, accepted in told:
            self._tell(gate, batch, accepted)
        return True

    def _armed(self, gate: GateRunner) -> GateRun | None:
        """The open run, or a new one that is charged now; None if a person must want it."""
        around = self.around
        run = around.store.gates.open_run(gate.name)
        ended = _why_over(gate, run) if run is not None else None
        if run is not None and ended is None:
            return run
        self.settle()
        if run is not None and ended is not None:
            around.store.gates.end(run.run, ended, gate.manual, around.clock.now())
            around.log(f"gate.{ended}", gate=gate.name)
        if self.waits(gate):
            return None
        charge, hidden = gate.kind.charge(), gate.kind.start(around.entropy)
        armed = around.store.gates.arm(
            gate.scope, gate.name, charge, gate.kind.terms(), hidden, around.clock.now()
        )
        around.log("gate.armed", gate=gate.name, epsilon_nano=charge.epsilon_nano)
        return armed

    def _read(self, gate: GateRunner, batch: Batch, run: Run) -> Statistic:
        """The counts of a batch; an error that is known to come before the draw leaves it out."""
        try:
            with redact_errors(self.around.entropy):
                found: Statistic = gate.backend.answer(gate.kind.query(batch), batch)
                return found
        except BaseException:
            self.around.store.gates.leave_out(run)
            raise

    def _answer(
        self,
        gate: GateRunner,
        run: GateRun,
        number: int,
        statistic: Statistic,
        told: Callable[[int], GateVerdict],
        past: Past,
        now: int,
    ) -> bool:
        """Draw the answer and write it, as of the test's begin; if either fails the run is over."""
        store, clock = self.around.store, self.around.clock
        try:
            with redact_errors(self.around.entropy):
                accepted = gate.kind.accepts(
                    run.hidden, number, past, statistic, self.around.entropy
                )
                store.gates.answer(run.run, told(accepted), now)
        except BaseException:
            store.gates.end(run.run, "lost", gate.manual, clock.now())
            self.around.log("gate.lost", gate=gate.name)
            raise
        return bool(accepted)

    def _word(
        self,
        gate: GateRunner,
        batch: Batch,
        standing: tuple[Release, ...],
        series: SlotSeries,
        accepted: int,
    ) -> GateVerdict:
        """The answer with its notices and holds; its slot follows from the series of the test."""
        entropy, slot = self.around.entropy, series.seen_from()
        if accepted:
            chosen = gate.configurations[accepted - 1] if gate.configurations else {}
            notices = of_acceptance(gate.name, gate.sinks, standing, batch, slot, entropy, chosen)
        else:
            notices = of_standing(gate.jobs, standing, batch, slot, entropy)
        self._notices += (notice.id for notice, _ in notices)
        return GateVerdict(
            batch=batch,
            accepted=bool(accepted),
            slot=slot,
            notices=notices,
            holds=gate.holds if accepted else (),
            waits=gate.manual and bool(accepted),
        )

    def _tell(self, gate: GateRunner, batch: Batch, accepted: bool) -> None:
        about = {"gate": gate.name, "batch": batch.key}
        self.around.log("gate.asked", **about, answer="yes" if accepted else "no")
        if accepted:
            self.around.log("gate.accepted", **about)


def _why_over(gate: GateRunner, run: GateRun) -> str | None:
    """Why an open run cannot go on, if it cannot."""
    if run.asked is not None:
        return "lost"
    if run.terms != gate.kind.terms() or run.run.scope != gate.scope:
        return "changed"
    return "exhausted" if run.answered >= gate.horizon else None


def due_of_gate(gate: GateRunner, store: SqliteStore, batches: Iterable[Batch]) -> list[Batch]:
    """Batches that have arrived without an answer, and accepted ones that a job has to release.

    The first batch that the first job releases, it releases unasked.
    """
    source = gate.source.name
    answers = store.gates.answers(gate.name, source)
    released = [store.released_batches(job.name, source) for job in gate.jobs]

    def waits(key: str) -> bool:
        if key in answers:
            return answers[key] and not all(key in done for done in released)
        return not (released and key in released[0])

    return [batch for batch in batches if waits(batch.key)]


def unasked(gate: GateRunner, store: SqliteStore) -> tuple[Job, ...]:
    """Jobs without any release; their first one needs no answer of the gate."""
    return tuple(job for job in gate.jobs if store.last_release(job.name) is None)


def must_ask(gate: GateRunner, store: SqliteStore) -> bool:
    """Whether the gate must be asked: its first job has a release, or it has no jobs."""
    return not gate.jobs or store.last_release(gate.jobs[0].name) is not None
