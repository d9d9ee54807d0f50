"""The daemon: sleeps until a schedule wakes it, does what is due, and stops when it is told.

A schedule only wakes. What is due follows from the store, so a wake that was missed, doubled or
came late changes nothing but the hour. All work is done by one thread.
"""

from __future__ import annotations

import os
import queue
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from streamdp.daemon.runtime import HEARTBEAT, Runtime, runtime
from streamdp.daemon.wakes import Wakes
from streamdp.errors import (
    ClockError,
    ConfigurationError,
    OutOfMemoryError,
    StoreError,
    StreamdpError,
    told_of_memory,
)
from streamdp.types import Clock, Entropy, Log

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.engine.attempts import Task


class Daemon:
    """Runs one configuration until SIGTERM or SIGINT; SIGHUP loads it anew.

    A first SIGTERM lets the running release end; a second one kills, and the charge is burnt.

    Args:
        path: The configuration file.
        configuration: What was loaded from it.
        entropy: Source of chance.
        clock: Source of time.
        start_log: Opens the log of a configuration.
    """

    def __init__(
        self,
        path: Path,
        configuration: Configuration,
        entropy: Entropy,
        clock: Clock,
        start_log: Callable[[Configuration], Log],
    ) -> None:
        self._path = path
        self._configuration = configuration
        self._entropy, self._clock = entropy, clock
        self._start_log, self._log = start_log, start_log(configuration)
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._stopping = False
        self._reload_asked = False

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
            self._serve(running)
        self._log("daemon.stopped")

    def _serve(self, running: Runtime) -> None:
        """Do a full round, then rounds of the jobs that wake, until a stop."""
        wakes, names = self._wakes(), set(self._configuration.tasks())
        while not self._stopping:
            if self._reload_asked:
                self._reload_asked = False
                self._reload(running)
                wakes, names = self._wakes(), set(self._configuration.tasks())
            left = self._work(running, names, wakes)
            if not self._interrupted():
                self._sleep(wakes.wait(HEARTBEAT))
                names = left | wakes.due()

    def _work(self, running: Runtime, names: set[str], wakes: Wakes) -> set[str]:
        """One round, with what wakes meanwhile; returns the jobs to try again soon.

        These are its own after a full or busy store, a clock that jumped, or no memory.
        """
        worked = set(names)

        def woken() -> list[Task]:
            fresh = wakes.due()
            worked.update(fresh)
            return self._tasks(running, fresh)

        running.runner.woken = woken
        try:
            with told_of_memory():
                running.beat(self._clock, self._log)
                running.runner.round(self._tasks(running, names))
                running.watch(self._configuration, self._entropy, self._clock, self._log)
        except (ClockError, OutOfMemoryError, StoreError) as error:
            self._log("store.failed", code=error.code, reason=error.line)
            with suppress(ClockError, MemoryError, StoreError):
                running.watch(self._configuration, self._entropy, self._clock, self._log)
        except MemoryError:  # not enough to say so
            pass
        else:
            return set()
        return worked

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

    def _reload(self, running: Runtime) -> None:
        """Load the file anew; keep what runs if it cannot be used, or asks for more budget.

        All that it names is wired before anything that runs is let go of.
        """
        from streamdp import wiring
        from streamdp.config import load

        try:
            fresh = load(self._path)
            if fresh.store != self._configuration.store:
                raise ConfigurationError("another store needs a restart", where="store")
            wired = wiring.wire(fresh, self._clock)
            log = self._start_log(fresh)
            try:
                running.adopt(wired, self._clock, log)
            except BaseException:
                wiring.hang_up(wired.tasks.values())
                self._log = self._start_log(self._configuration)
                raise
        except StreamdpError as error:
            self._log("daemon.reload-refused", code=error.code, reason=error.line)
            return
        self._configuration, self._log = fresh, log
        self._log("daemon.reloaded")

    def _interrupted(self) -> bool:
        return self._stopping or self._reload_asked

    def _listen(self) -> None:
        signal.signal(signal.SIGTERM, self._on_stop)
        signal.signal(signal.SIGINT, self._on_stop)
        signal.signal(signal.SIGHUP, self._on_reload)

    def _on_stop(self, number: int, frame: object) -> None:
        """Stop after the running release; the next such signal acts at once."""
        self._stopping = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        self._bell.put(None)

    def _on_reload(self, number: int, frame: object) -> None:
        self._reload_asked = True
        self._bell.put(None)
