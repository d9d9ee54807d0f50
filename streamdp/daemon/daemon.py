"""The daemon: sleeps until a schedule wakes it, does what is due, and stops when it is told.

A schedule only wakes. What is due follows from the store, so a wake that was missed, doubled or
came late changes nothing but the hour. The thread of the daemon gives the signs of life and tells
alerts; sources are asked, sinks served, and copies and reports written by others, for none of
which it waits.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from streamdp.daemon.rounds import MINUTE, Rounds, asking_of, kind_of
from streamdp.daemon.runtime import HEARTBEAT, Runtime, runtime
from streamdp.engine.deliver import deliver
from streamdp.errors import (
    ClockError,
    ConfigurationError,
    OutOfMemoryError,
    StoreError,
    StreamdpError,
    told_of_memory,
)
from streamdp.log import counts
from streamdp.sections.schedules import Schedule, next_times
from streamdp.store.problems import BatchProblem, problems
from streamdp.store.pulse import LATE_AFTER, MOST, Asking, Pulse, PulseFile
from streamdp.types import Clock, Entropy, Log, Sink

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.engine.attempts import Task
    from streamdp.store.sqlite import SqliteStore

STEP = 60
"""Seconds by which a clock must go otherwise than an even one to have been stepped."""


class Wakes:
    """Which tasks a schedule wakes, found anew at every look at the clock.

    No timer is set for a time of day: it would fire late after the clock was set back. Each look
    asks which schedules have come due since the last look. A clock that was stepped, in either
    direction, wakes all tasks: what is due follows from the store.

    Args:
        schedules: Of each task.
        clock: Of the schedules, with a timer that nobody sets.
    """

    def __init__(self, schedules: Mapping[str, Schedule], clock: Clock) -> None:
        self._schedules, self._clock = schedules, clock
        self._set(clock.now(), clock.timer())

    def _set(self, now: int, timer: float) -> None:
        self._now, self._timer = now, timer
        self._next = {name: _next(each, now) for name, each in self._schedules.items()}

    def due(self) -> set[str]:
        """Tasks whose time came since the last look; all of them after a step of the clock."""
        now, timer = self._clock.now(), self._clock.timer()
        stepped = abs((now - self._now) - (timer - self._timer)) > STEP
        self._now, self._timer = now, timer
        if stepped:
            self._set(now, timer)
            return set(self._schedules)
        names = {name for name, at in self._next.items() if at is not None and at <= now}
        self._next |= {name: _next(self._schedules[name], now) for name in names}
        return names

    def wait(self, longest: float) -> float:
        """Seconds to the next wake, at most the longest."""
        times = [at for at in self._next.values() if at is not None]
        return max(0.0, min([longest, *(at - self._clock.now() for at in times)]))


def _next(schedule: Schedule, after: int) -> int | None:
    return next(iter(next_times(schedule, after, 1)), None)


AT_ONCE = 10
"""Deliveries between two notes of what was taken: a crash repeats no more of them."""

LOOK_AGAIN = 2.0
"""Seconds after which a sink that failed is looked at again."""

IDLE = 15.0
"""Seconds after which one that is owed nothing is looked at again."""


class Deliveries:
    """A thread a sink, so that one that does not answer delays nothing but itself.

    What is owed stands in the outbox. Each thread hands over what its sink is owed, in order; the
    time between attempts is that of the outbox.

    Args:
        store: With the outbox.
        clock: Source of time.
        log: What was done.
    """

    def __init__(self, store: SqliteStore, clock: Clock, log: Log) -> None:
        self._store, self._clock, self._log = store, clock, log
        self._sinks: Callable[[], Mapping[str, Sink]] = dict
        self._bells: dict[str, Event] = {}
        self._resting: set[str] = set()
        self._guard, self._over = Lock(), False

    def adopt(self, names: set[str], sinks: Callable[[], Mapping[str, Sink]], log: Log) -> None:
        """Deliver to these sinks from now on.

        Args:
            names: Of all sinks.
            sinks: Makes them, in the thread that uses one.
            log: What is done.
        """
        with self._guard:
            self._sinks, self._log = sinks, log
            for name in names - self._bells.keys():
                self._bells[name] = Event()
                Thread(target=self._work, args=[name], name=f"sink {name}", daemon=True).start()
            for name in self._bells.keys() - names:
                self._bells.pop(name).set()
        self.ring()

    def ring(self) -> None:
        """Something may be owed."""
        with self._guard:
            self._resting.clear()
            for bell in self._bells.values():
                bell.set()

    def is_idle(self) -> bool:
        """Whether no sink has anything left that it takes now."""
        with self._guard:
            return self._resting >= self._bells.keys()

    def end(self) -> None:
        """Begin no more deliveries."""
        self._over = True
        self.ring()

    def _work(self, name: str) -> None:
        """The body of a sink's thread."""
        made: tuple[object, Sink] | None = None
        bell = self._bells.get(name)
        while bell is not None and not self._over and self._bells.get(name) is bell:
            bell.clear()
            factory = self._sinks
            if made is None or made[0] is not factory:
                found = factory().get(name)
                made = None if found is None else (factory, found)
            pause = IDLE if made is None else self._deliver(made[1])
            if pause:
                with self._guard:
                    if not bell.is_set():
                        self._resting.add(name)
                bell.wait(pause)
        self._store.leave()

    def _deliver(self, sink: Sink) -> float:
        """Deliver some; return the seconds after which to look again."""
        sinks, now = {sink.name: sink}, self._clock.now()
        try:
            taken, errors = deliver(self._store, sinks, now, self._log, AT_ONCE)
        except StreamdpError:  # the store's: the daemon's own thread tells it
            return LOOK_AGAIN
        if errors:
            return LOOK_AGAIN
        return 0.0 if taken == AT_ONCE else IDLE


FINISH = 4.0
"""Seconds after a stop in which running releases may end; then their questions are cancelled."""

CANCEL = 7.0
"""Seconds after a stop after which questions that cannot be cancelled are left, and burnt."""

DELIVER = 8.5
"""Seconds after a stop until which sinks are served; what they are owed stays owed."""

CRY_AGAIN = 15.0
"""Seconds between attempts to send an alert past the outbox."""

MOMENT = 1.0
"""Seconds between two looks at conditions, at least."""


class Daemon:
    """Runs one configuration until SIGTERM or SIGINT; SIGHUP loads it anew.

    A first SIGTERM lets running releases end for a few seconds, and then cancels their questions;
    a second one kills. The charge of what was cancelled or killed is burnt.

    Args:
        path: The configuration file.
        configuration: What was loaded from it.
        entropy: Source of chance.
        clock: Source of time.
        start_log: Opens the log of a configuration.
        leave: Ends the process at once, beside threads that cannot be ended.
    """

    def __init__(
        self,
        path: Path,
        configuration: Configuration,
        entropy: Entropy,
        clock: Clock,
        start_log: Callable[[Configuration], Log],
        leave: Callable[[int], object] = os._exit,
    ) -> None:
        self._path = path
        self._configuration = configuration
        self._entropy, self._clock = entropy, clock
        self._start_log, self._log = start_log, start_log(configuration)
        self._leave = leave
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._stopping = False
        self._reload_asked = False
        self._chores: Thread | None = None
        self._failure = self._refused = ""
        self._cried: dict[str, object] = {}

    def run(self) -> None:
        """Work until told to stop.

        Raises:
            StreamdpError: The store cannot be opened, is damaged, or is another's.
        """
        self._listen()
        pid = os.getpid()
        with runtime(
            self._configuration,
            self._entropy,
            self._clock,
            self._log,
            self._interrupted,
            pid=pid,
        ) as running:
            self._log("daemon.started", pid=pid)
            self._pulse = PulseFile(self._configuration.store.path)
            self._serve(running)
        self._log("daemon.stopped")

    def _serve(self, running: Runtime) -> None:
        """Wake the jobs that are due, give signs of life, and tell alerts, until a stop."""
        notify("READY=1")
        deliveries = Deliveries(running.store, self._clock, self._log)
        rounds = Rounds(
            running.store,
            self._entropy,
            self._clock,
            self._interrupted,
            deliveries.ring,
            self._ring,
        )
        try:
            self._watch(running, rounds, deliveries)
        finally:
            self._end(running, rounds, deliveries)

    def _watch(self, running: Runtime, rounds: Rounds, deliveries: Deliveries) -> None:
        wakes, names = self._adopt(running, rounds, deliveries)
        beat_at = looked_at = float("-inf")
        while not self._stopping:
            if self._reload_asked:
                self._reload_asked = False
                if self._reload(running, rounds):
                    wakes, names = self._adopt(running, rounds, deliveries)
            rounds.wake(self._tasks(running, names), names, self._log)
            if self._clock.timer() - looked_at >= MOMENT:
                looked_at = self._clock.timer()
                beats = looked_at - beat_at >= HEARTBEAT - MOMENT
                beat_at = looked_at if beats else beat_at
                self._look(running, rounds, deliveries, beats=beats)
            self._do_chores(running)
            failed = rounds.left()
            self._sleep(wakes.wait(HEARTBEAT))
            names = wakes.due() | failed

    def _adopt(
        self, running: Runtime, rounds: Rounds, deliveries: Deliveries
    ) -> tuple[Wakes, set[str]]:
        """Work by the configuration in force: its schedules, and all of its jobs to begin with."""
        from streamdp.wiring import store_sinks

        configuration, clock = self._configuration, self._clock
        sinks = running.runner.sinks
        rounds.adopt(running.jobs)
        deliveries.adopt(
            set(sinks),
            lambda: {**sinks, **store_sinks(configuration, running.store.database, clock)},
            self._log,
        )
        return self._wakes(), set(configuration.tasks())

    def _look(
        self, running: Runtime, rounds: Rounds, deliveries: Deliveries, *, beats: bool
    ) -> None:
        """Give a sign of life, and tell alerts; each reason of a failing store is told once."""
        notify("WATCHDOG=1")
        pulse = self._pulse_of(running, rounds)
        self._pulse.write(pulse)
        if not pulse.store:
            self._cried = {}
        elif (kind := kind_of(pulse.store)) not in self._cried:
            self._cried = {**self._cried, kind: object()}
            self._cry(running, pulse.store)
        try:
            with told_of_memory():
                if beats:
                    running.beat(self._clock, self._log)
                configuration, clock = self._configuration, self._clock
                running.alert(configuration, self._entropy, clock, self._log, pulse)
        except (ClockError, OutOfMemoryError, StoreError) as error:
            if kind_of(self._failure) != kind_of(error.line):
                self._log("store.failed", code=error.code, reason=error.line)
            self._failure = error.line
            return
        except MemoryError:  # not enough to say so
            return
        if beats:
            self._failure = ""
        deliveries.ring()

    def _pulse_of(self, running: Runtime, rounds: Rounds) -> Pulse:
        """The pulse: what the daemon works on now, and what it waits for."""
        now, copying = self._clock.now(), running.copying
        asking = asking_of(rounds, self._clock)
        store = self._failure or rounds.failure
        late = {} if store else late_jobs(self._configuration, rounds.unserved(), now)
        if late:
            with suppress(StoreError):  # one that cannot be read is told by others
                found = problems(running.store.database)
                for name in told_as_failing(self._configuration, late, asking, found):
                    del late[name]
        return Pulse(
            now,
            os.getpid(),
            store,
            rounds.finished_at,
            asking,
            dict(islice(late.items(), MOST)),  # the others are told once these are over
            None if copying is None else copying.newest,
            "" if copying is None else copying.failed,
            self._refused,
            counts(),
        )

    def _cry(self, running: Runtime, reason: str) -> None:
        """Send the alert of a store that cannot be written past the outbox, which it holds.

        It is tried until it is taken, or no longer true.
        """
        from streamdp.daemon.alerts import as_release, store_alert

        section = self._configuration.alerts
        sink = None if section is None else running.runner.sinks.get(section.sink)
        if section is None or sink is None or "store" not in section.on:
            return
        alert = as_release(store_alert(reason), self._entropy, self._clock.now())
        kind = kind_of(reason)
        own = self._cried[kind]

        def send() -> None:
            while self._cried.get(kind) is own:  # the store may recover and fail for it again
                with suppress(Exception):  # whatever it is, the log and the pulse tell the rest
                    sink.deliver(alert)
                    return
                self._clock.wait(CRY_AGAIN)

        Thread(target=send, name="alert", daemon=True).start()
        self._log("alert", alert="store", job="store", batch="", reason=reason)

    def _do_chores(self, running: Runtime) -> None:
        """Write copies and reports that are due, in a thread: their places may not answer."""
        if self._chores is not None and self._chores.is_alive():
            return

        def work() -> None:
            with suppress(StreamdpError, MemoryError):
                running.copy(self._clock)
                running.report(self._configuration, self._clock, self._log)
            running.store.leave()

        self._chores = Thread(target=work, name="chores", daemon=True)
        self._chores.start()

    def _end(self, running: Runtime, rounds: Rounds, deliveries: Deliveries) -> None:
        """End what runs: wait for it, cancel it, or leave it behind and burn its charge."""
        began = self._clock.timer()

        def until(seconds: float, holds: Callable[[], bool]) -> bool:
            while not holds() and (left := began + seconds - self._clock.timer()) > 0:
                self._sleep(min(left, 0.05))
            return holds()

        self._stopping = True
        notify("STOPPING=1")
        ended = until(FINISH, lambda: not rounds.busy())
        if not ended:
            rounds.interrupt()
            ended = until(CANCEL, lambda: not rounds.busy())
        failed = sys.exc_info()[1] is not None
        if not ended:
            with suppress(StreamdpError):  # a store that was taken over is another's to recover
                for left in running.store.abandon(self._clock.now()):
                    self._log("recovery.burnt", job=left.job, batch=left.batch)
        deliveries.ring()
        until(DELIVER, deliveries.is_idle)
        deliveries.end()
        self._pulse.write(Pulse(self._clock.now(), None, events=counts()))
        self._pulse.close()
        if not ended and not failed:
            with suppress(StreamdpError):
                running.store.note_stop(self._clock.now())
            self._log("daemon.stopped")
            sys.stderr.flush()
            self._leave(0)

    def _ring(self) -> None:
        self._bell.put(None)

    def _tasks(self, running: Runtime, names: set[str]) -> list[Task]:
        """Tasks that were woken, in the order of the configuration."""
        for name in sorted(names):
            self._log("wake", job=name)
        return [running.jobs[name] for name in self._configuration.tasks() if name in names]

    def _sleep(self, seconds: float) -> None:
        """Wait for a signal, but no longer than so many seconds."""
        with suppress(queue.Empty):
            self._bell.get(timeout=seconds)

    def _wakes(self) -> Wakes:
        """The schedules of all tasks."""
        of = self._configuration
        return Wakes({name: of.schedule_of(name) for name in of.tasks()}, self._clock)

    def _reload(self, running: Runtime, rounds: Rounds) -> bool:
        """Load the file anew; keep what runs if it cannot be used, or asks for more budget.

        All that it names is wired before anything that runs is let go of.

        Returns:
            Whether another configuration is in force.
        """
        from streamdp import wiring
        from streamdp.config import load

        try:
            fresh = load(self._path)
            if fresh.store != self._configuration.store:
                raise ConfigurationError("another store needs a restart", where="store")
            wired = wiring.wire(fresh, self._clock, apart=True)
            log = self._start_log(fresh)
            try:
                busy = {each.source for each in rounds.busy()}
                running.adopt(wired, self._clock, log, busy)
            except BaseException:
                wiring.hang_up(wired.tasks.values())
                self._log = self._start_log(self._configuration)
                raise
        except StreamdpError as error:
            self._log("daemon.reload-refused", code=error.code, reason=error.line)
            self._refused = error.line
            return False
        self._refused = ""
        self._configuration, self._log = fresh, log
        self._log("daemon.reloaded")
        return True

    def _interrupted(self) -> bool:
        return self._stopping or self._reload_asked

    def _listen(self) -> None:
        signal.signal(signal.SIGTERM, self._on_stop)
        signal.signal(signal.SIGINT, self._on_stop)
        signal.signal(signal.SIGHUP, self._on_reload)

    def _on_stop(self, number: int, frame: object) -> None:
        """Begin to stop; the next such signal acts at once."""
        self._stopping = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        self._bell.put(None)

    def _on_reload(self, number: int, frame: object) -> None:
        self._reload_asked = True
        self._bell.put(None)


WAITED_FOR = frozenset({"timeout", "source-locked", "unreachable"})
"""Codes of failures that take their time: the other jobs of the source wait for each."""


def late_jobs(
    configuration: Configuration, unserved: Mapping[str, int], now: int
) -> dict[str, int]:
    """Jobs that woke and have not had their turn by their next time, and since when they wait.

    Those that wait longest come first.
    """
    found: dict[str, int] = {}
    for name, woke in unserved.items():
        if name not in configuration.tasks() or now - woke < LATE_AFTER:
            continue
        again = next(iter(next_times(configuration.schedule_of(name), woke, 1)), None)
        if again is not None and again <= now:
            found[name] = woke - woke % MINUTE
    return dict(sorted(found.items(), key=lambda each: each[1]))


def told_as_failing(
    configuration: Configuration,
    late: Iterable[str],
    asking: Iterable[Asking],
    problems: Iterable[BatchProblem],
) -> set[str]:
    """Late jobs that wait behind failures of their source, which are told anyway.

    Each job of a locked or absent server waits for its time, so its next turn is late, in turns
    with the others'. A question that is slow or hangs is another reason.
    """
    sources, tasks = {each.source for each in asking}, configuration.tasks()
    failing = {
        configuration.source_of_task(each.about)
        for each in problems
        if each.about in tasks and not each.batch and each.code in WAITED_FOR
    }
    return {name for name in late if configuration.source_of_task(name) in failing - sources}


def notify(word: str) -> None:
    """Tell systemd, where it started this process: `READY=1`, `WATCHDOG=1`, `STOPPING=1`.

    References:
        https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
    """
    import socket

    place = os.environ.get("NOTIFY_SOCKET", "")
    if not place.startswith(("/", "@")):
        return
    address = "\0" + place[1:] if place[0] == "@" else place
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as other:
            other.setblocking(False)
            other.sendto(word.encode(), address)
    except OSError:
        return
