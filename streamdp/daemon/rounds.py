"""Rounds of work: one a source at a time, sources beside each other, each in a thread of its own.

A question that hangs keeps the jobs of its source waiting and no others. The threads share the
store, which one of them writes at a time; the daemon's own thread asks no source anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import TYPE_CHECKING

from streamdp.engine.attempts import Task
from streamdp.engine.job import Connected, EngineContext, Rolled
from streamdp.engine.runner import Runner
from streamdp.errors import ClockError, OutOfMemoryError, StoreError, told_of_memory
from streamdp.store.pulse import MOST as MOST_ASKING
from streamdp.store.pulse import SLOW_AFTER, Asking

if TYPE_CHECKING:
    from streamdp.store.sqlite import SqliteStore
    from streamdp.types import Clock, Entropy, Log, Skipped

MOST = 16
"""Rounds at a time; one that hangs gives its place to another."""

MOST_OPEN = 8
"""Sources whose engines stay open between their rounds, with threads and memory of their own."""

PATIENCE = 60
"""Seconds beyond the time of a question after which it counts as hung."""


AGAIN = 5
"""Seconds from a failure of the store to the next try: a full volume is no reason to be busy."""


@dataclass(eq=False, slots=True)
class Round:
    """One source at work.

    Args:
        source: Its name.
        tasks: What woke, by name.
        since: When its running batch began, by a timer.
        at: The same, by the clock.
        job: Whose batch that is.
        limit: Seconds that one batch may take before it counts as hung.
        woken: What woke meanwhile.
    """

    source: str
    tasks: dict[str, Task]
    since: float
    at: int
    job: str
    limit: float
    woken: dict[str, Task] = field(default_factory=dict)

    def is_hung(self, timer: float) -> bool:
        """Whether its question has not ended though its time is over."""
        return timer - self.since > self.limit


class Rounds:
    """Starts rounds of the sources whose jobs have woken.

    Args:
        store: Shared by all.
        entropy: Source of chance.
        clock: Source of time.
        stop: Whether rounds are to end after their running batch.
        posted: Called when a sink may be owed something.
        ended: Called at the end of each round.
    """

    def __init__(
        self,
        store: SqliteStore,
        entropy: Entropy,
        clock: Clock,
        stop: Callable[[], bool],
        posted: Callable[[], None],
        ended: Callable[[], None],
    ) -> None:
        self._store, self._entropy, self._clock = store, entropy, clock
        self._stop, self._posted, self._ended = stop, posted, ended
        self._guard = Lock()
        self._waiting: dict[str, dict[str, Task]] = {}
        self._active: dict[str, Round] = {}
        self._unserved: dict[str, int] = {}
        self._again: set[str] = set()
        self._again_at = 0.0
        self._error: BaseException | None = None
        self._told: set[tuple[str, Skipped]] = set()
        self._rolled = Rolled()
        self._rested: dict[str, int] = {}
        self._current: Mapping[str, Task] = {}
        self.finished_at: int | None = None
        self.failure = ""

    def adopt(self, tasks: Mapping[str, Task]) -> None:
        """Forget what waits, and know the tasks of a new configuration."""
        with self._guard:
            self._current, self._waiting, self._unserved = tasks, {}, {}
            self._rolled = Rolled()

    def wake(self, tasks: Iterable[Task], names: Iterable[str], log: Log) -> None:
        """Let tasks have their turn: in the round of their source, or in its next."""
        now = self._clock.now()
        with self._guard:
            for name in names:
                self._unserved.setdefault(name, now)
            for task in tasks:
                active = self._active.get(task.source.name)
                if active is not None and self._is_current(active):
                    active.woken[task.name] = task
                else:
                    self._waiting.setdefault(task.source.name, {})[task.name] = task
        self.start(log)

    def start(self, log: Log) -> None:
        """Begin rounds of sources that wait, as many as may be at once."""
        with self._guard:
            timer = self._clock.timer()
            hung = sum(each.is_hung(timer) for each in self._active.values())
            room = MOST - len(self._active) + hung
            free = [name for name in self._waiting if name not in self._active][:room]
            for name in [] if self._stop() else free:
                tasks = self._waiting.pop(name)
                first = next(iter(tasks.values()))
                round_ = Round(name, tasks, timer, self._clock.now(), first.name, _limit(first))
                self._active[name] = round_
                Thread(target=self._work, args=[round_, log], name=name, daemon=True).start()

    def left(self) -> set[str]:
        """Jobs whose round failed at the store or the clock, once they are to be woken again.

        Raises:
            StreamdpError: Another process has taken the store over, or it is damaged.
        """
        with self._guard:
            if self._error is not None:
                raise self._error
            if self._clock.timer() < self._again_at:
                return set()
            found, self._again = self._again, set()
        return found

    def busy(self) -> list[Round]:
        """Rounds at work, the oldest first."""
        with self._guard:
            return sorted(self._active.values(), key=lambda each: each.since)

    def unserved(self) -> dict[str, int]:
        """Jobs that woke and have not had their turn since, and when they woke."""
        with self._guard:
            return dict(self._unserved)

    def interrupt(self) -> None:
        """End all running questions, at their engines too; each in a thread, as that may hang."""
        for each in self.busy():
            for task in list(each.tasks.values()):
                interrupt = getattr(task.backend, "interrupt", None)
                if interrupt is not None:
                    Thread(target=_quietly, args=[interrupt], daemon=True).start()

    def _work(self, round_: Round, log: Log) -> None:
        """The body of a round's thread."""
        try:
            self._run(round_, log)
        except (ClockError, OutOfMemoryError, StoreError) as error:
            if kind_of(self.failure) != kind_of(error.line):
                log("store.failed", code=error.code, reason=error.line)
            self._try_again(round_, error.line)
        except MemoryError:  # not enough to say so
            self._try_again(round_, "")
        except BaseException as error:  # noqa: BLE001
            self._error = error
        finally:
            self._store.leave()
            with self._guard:
                open_ = len({task.source.name for task in self._current.values()})
                kept = self._is_current(round_) and open_ <= MOST_OPEN
                if not kept:
                    _hang_up(round_.tasks.values())
                del self._active[round_.source]
                if round_.woken and self._is_current(round_):
                    self._waiting.setdefault(round_.source, {}).update(round_.woken)
            self.start(log)
            self._ended()

    def _run(self, round_: Round, log: Log) -> None:
        def woken() -> list[Task]:
            with self._guard:
                found, round_.woken = round_.woken, {}
                round_.tasks.update(found)
            return list(found.values())

        def stop() -> bool:
            return self._stop() or not self._is_current(round_)

        def progress(task: Task, done: int, total: int) -> None:
            round_.job, round_.limit = task.name, _limit(task)
            round_.since, round_.at = self._clock.timer(), self._clock.now()
            with self._guard:  # a catch-up of hours is no delay of the job that it is about
                for name, each in self._current.items():
                    if each is task and name in self._unserved:
                        self._unserved[name] = round_.at

        around = EngineContext(
            self._store,
            self._entropy,
            self._clock,
            log,
            self._told,
            rolled=self._rolled,
            rested=self._rested,
        )
        runner = Runner(around, {}, stop, woken, progress, posted=self._posted)
        with told_of_memory():
            runner.round(list(round_.tasks.values()))
        self.finished_at, self.failure = self._clock.now(), ""
        with self._guard:
            names = {name for name, task in self._current.items() if task.name in round_.tasks}
            for name in names - set(round_.woken):
                self._unserved.pop(name, None)

    def _try_again(self, round_: Round, why: str) -> None:
        with self._guard:
            if not self._again:
                self._again_at = self._clock.timer() + AGAIN
            self._again.update(round_.tasks, round_.woken)
            round_.woken = {}
            self.failure = why

    def _is_current(self, round_: Round) -> bool:
        """Whether its tasks are those of the configuration in force."""
        return all(self._current.get(name) is task for name, task in round_.tasks.items())


def _limit(task: Task) -> float:
    """Seconds for one batch of a task: a look and a question, with the slot of a gate."""
    limits = getattr(task.backend, "limits", None)
    seconds = 3600 if limits is None or limits.seconds is None else limits.seconds
    slack = getattr(task.backend, "slack", 0.0)
    return float(2 * (seconds + slack) + getattr(task, "slot", 0) + PATIENCE)


def _hang_up(tasks: Iterable[Task]) -> None:
    for backend in {id(task.backend): task.backend for task in tasks}.values():
        if isinstance(backend, Connected):
            _quietly(backend.close)


def _quietly(act: Callable[[], object]) -> None:
    """Do what ends a connection; whatever it meets, the connection is of no use any more."""
    try:
        act()
    except Exception:  # noqa: BLE001
        return


def kind_of(failure: str) -> str:
    """A failure without its numbers: a wrong clock shows another time at each look.

    >>> kind_of("the clock shows 2038-11-24") == kind_of("the clock shows 2038-11-25")
    True
    """
    return re.sub(r"\d+", "", failure)


MINUTE = 60


def asking_of(rounds: Rounds, clock: Clock) -> tuple[Asking, ...]:
    """Questions that are slow or hang, the oldest first."""
    timer = clock.timer()
    return tuple(
        Asking(
            each.source,
            each.job,
            each.at - each.at % MINUTE,
            "hung" if each.is_hung(timer) else "slow",
        )
        for each in rounds.busy()
        if timer - each.since > SLOW_AFTER
    )[:MOST_ASKING]
