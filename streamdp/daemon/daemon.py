"""The daemon: sleeps until a schedule wakes it, does what is due, and stops when it is told.

A schedule only wakes. What is due follows from the store, so a wake that was missed, doubled or
came late changes nothing but the hour. All work is done by the main thread; the scheduler's
thread puts names of jobs into a queue.
"""

from __future__ import annotations

import os
import queue
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from streamdp.daemon.shift import HEARTBEAT, Shift, shift
from streamdp.errors import ClockError, ConfigurationError, StoreError, StreamdpError
from streamdp.types import Clock, Entropy, Log

if TYPE_CHECKING:
    from apscheduler.schedulers.background import BackgroundScheduler

    from streamdp.config import Configuration


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
        self._wakes: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._stopping = False
        self._reload_asked = False

    def run(self) -> None:
        """Work until told to stop.

        Raises:
            StreamdpError: The store cannot be opened, is damaged, or is another's.
        """
        self._listen()
        while not self._stopping:
            with shift(
                self._configuration, self._entropy, self._clock, self._log, self._interrupted
            ) as running:
                self._log("daemon.started", pid=os.getpid())
                scheduler = self._schedule(running)
                try:
                    self._serve(running)
                finally:
                    scheduler.shutdown(wait=False)
        self._log("daemon.stopped")

    def _serve(self, running: Shift) -> None:
        """Do a full round, then rounds of the jobs that wake, until a stop or a good reload."""
        names = set(running.jobs)
        while not self._stopping:
            if self._reload_asked:
                self._reload_asked = False
                if self._reload(running):
                    return
                names = set(running.jobs)
            for name in sorted(names):
                self._log("wake", job=name)
            left = self._work(running, names)
            if not self._interrupted():
                names = (left | self._next_wakes()) & set(running.jobs)

    def _work(self, running: Shift, names: set[str]) -> set[str]:
        """One round; returns the jobs to try again soon: store full or busy, or a clock jumped."""
        try:
            running.beat(self._clock, self._log)
            running.worker.round([job for name, job in running.jobs.items() if name in names])
        except (ClockError, StoreError) as error:
            self._log("store.failed", code=error.code, reason=str(error))
            return names
        return set()

    def _next_wakes(self) -> set[str]:
        """Wait for a wake, a signal or the next heartbeat; several wakes of a job are one."""
        names = set()
        try:
            names.add(self._wakes.get(timeout=HEARTBEAT))
            while True:
                names.add(self._wakes.get_nowait())
        except queue.Empty:
            return names

    def _schedule(self, running: Shift) -> BackgroundScheduler:
        """One trigger a job, in memory, in UTC, never too late to fire."""
        from apscheduler.schedulers.background import BackgroundScheduler

        from streamdp.config import trigger

        scheduler = BackgroundScheduler(
            timezone="UTC",
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )
        for name in running.jobs:
            schedule = self._configuration.releases[name].schedule
            scheduler.add_job(self._wakes.put, trigger(schedule), args=[name], id=name)
        scheduler.start()
        return scheduler

    def _reload(self, running: Shift) -> bool:
        """Load the file anew; keep what runs if it cannot be used, or asks for more budget."""
        from streamdp import wiring
        from streamdp.config import load

        try:
            fresh = load(self._path)
            if fresh.store != self._configuration.store:
                raise ConfigurationError("another store needs a restart", where="store")
            wiring.declare(fresh, running.store, self._clock.now(), self._log)
            self._log = self._start_log(fresh)
        except StreamdpError as error:
            self._log("daemon.reload-refused", code=error.code, reason=str(error))
            return False
        self._configuration = fresh
        self._log("daemon.reloaded")
        return True

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
        self._wakes.put("")

    def _on_reload(self, number: int, frame: object) -> None:
        self._reload_asked = True
        self._wakes.put("")
