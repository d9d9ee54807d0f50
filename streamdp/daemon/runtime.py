"""The runtime: the store locked and opened, jobs and sinks wired, all closed whatever happens."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from streamdp.daemon.copies import Copying
from streamdp.daemon.lock import store_lock
from streamdp.disk import shared_by_hosts
from streamdp.engine.attempts import Task
from streamdp.engine.runner import Progress, Runner
from streamdp.store.clock_guard import TOLERANCE
from streamdp.store.sqlite import SqliteStore
from streamdp.types import Clock, Entropy, Log

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.daemon.reports import Failures
    from streamdp.store.pulse import Pulse
    from streamdp.wiring import Wired


class SystemClock:
    """POSIX time in whole seconds."""

    def now(self) -> int:
        """POSIX time in whole seconds."""
        return int(time.time())

    def timer(self) -> float:
        """Seconds of a monotonic clock."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Sleep for so many seconds."""
        time.sleep(max(seconds, 0.0))


HEARTBEAT = 15
"""Seconds between signs of life."""


@dataclass(slots=True)
class Runtime:
    """A store, a runner, and the tasks under each name.

    Args:
        store: Opened for work.
        runner: Does the work.
        jobs: What it does, by name.
        pid: Of a daemon; None for work that ends by itself.
        behind: Whether the clock was behind at the last sign of life.
        reports: Why reports failed, so that each reason is told once.
        copying: Makes the copies of the store that are due.
    """

    store: SqliteStore
    runner: Runner
    jobs: dict[str, Task]
    pid: int | None = None
    behind: bool = False
    reports: Failures = field(default_factory=dict)
    copying: Copying | None = None

    def beat(self, clock: Clock, log: Log) -> None:
        """Write a heartbeat; log once when the clock has gone back.

        Raises:
            ClockError: The clock has jumped ahead.
            StoreError: The store cannot be used.
        """
        behind = self.store.beat(self.pid, clock.now()) > TOLERANCE
        if behind and not self.behind:
            log("clock.behind")
        self.behind = behind

    def watch(self, configuration: Configuration, entropy: Entropy, clock: Clock, log: Log) -> None:
        """Send alerts, and write copies and reports that are due.

        Raises:
            StoreError: It could not be written down.
        """
        self.copy(clock)
        if configuration.alerts is not None:
            self.alert(configuration, entropy, clock, log)
            self.runner.round([])
        self.report(configuration, clock, log)

    def alert(
        self,
        configuration: Configuration,
        entropy: Entropy,
        clock: Clock,
        log: Log,
        pulse: Pulse | None = None,
    ) -> None:
        """Write down which conditions began and which ended.

        Raises:
            StoreError: It could not be written down.
        """
        from streamdp.daemon.alerts import watch_over

        watch_over(configuration, self.store, entropy, clock.now(), log, pulse)

    def report(self, configuration: Configuration, clock: Clock, log: Log) -> None:
        """Write the reports that are due."""
        if configuration.reports:
            from streamdp.daemon.reports import write_due

            write_due(configuration, self.store.database, clock.now(), log, self.reports)

    def copy(self, clock: Clock) -> None:
        """Copy the store if a copy is due."""
        if self.copying is not None:
            self.copying.copy_if_due(clock.now())

    def adopt(
        self, wired: Wired, clock: Clock, log: Log, busy: Collection[str] = frozenset()
    ) -> None:
        """Work by another configuration from now on; the store stays open meanwhile.

        Args:
            wired: It, with all that it names.
            clock: Source of time.
            log: Of the new configuration.
            busy: Sources that are being asked; who asks hangs up.

        Raises:
            ConfigurationError: The ledger allows less, or was opened in other terms; what ran
                before goes on.
        """
        from streamdp import wiring

        wiring.declare(wired.configuration, self.store, clock.now(), log)
        before, self.jobs = self.jobs, wired.tasks
        wiring.hang_up(each for each in before.values() if each.source.name not in busy)
        self.runner.sinks = wired.sinks_with(self.store.database)
        self.runner.around = replace(self.runner.around, log=log)
        self.copying = Copying(wired.configuration, self.store.database, log)


@contextmanager
def runtime(
    configuration: Configuration,
    entropy: Entropy,
    clock: Clock,
    log: Log,
    stop: Callable[[], bool] = lambda: False,
    progress: Progress = lambda task, done, total: None,
    pid: int | None = None,
) -> Iterator[Runtime]:
    """Lock and open the store while the block lasts, with heartbeats while it works.

    All that the configuration names is wired before the store is opened, and an older store is
    changed only if its ledger admits the configuration. Files made from here on are this user's
    alone, and a crash leaves no core: the memory of this process holds private counts.

    Raises:
        LockedError: Another process works on the store.
        ConfigurationError: The ledger was opened in other terms, or allows less.
        IntegrityError: The store is damaged, altered or newer.
        ClockError: The clock is far ahead of the last time the store knew.
    """
    from streamdp import wiring
    from streamdp.store.anchor import on_one_volume

    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    section = configuration.store
    with store_lock(section.path):
        running: Runtime | None = None
        wired = wiring.wire(configuration, clock, apart=pid is not None)
        try:
            wiring.require_admitted(configuration, clock.now())
            step = section.max_clock_step
            store = SqliteStore.open(section.path, clock.now(), section.anchor, step)
            try:
                runner = wired.runner(store, entropy, clock, log)
                copying = Copying(configuration, store.database, log)
                running = Runtime(store, runner, wired.tasks, pid, copying=copying)
                running.beat(clock, log)
                if pid is not None and on_one_volume(*configuration.store.paths()):
                    log("anchor.on-one-volume")
                if pid is not None and (kind := shared_by_hosts(section.path.parent)):
                    log("store.on-network", kind=kind)
                wiring.declare(configuration, store, clock.now(), log)
                runner.stop, runner.progress = stop, _living(running, clock, log, progress)
                yield running
                store.stopped(clock.now())
            finally:
                store.close()
        finally:
            wiring.hang_up((running.jobs if running else wired.tasks).values())


def _living(running: Runtime, clock: Clock, log: Log, progress: Progress) -> Progress:
    """Progress that also writes heartbeats: a catch-up may last for hours."""
    last = clock.now()

    def tell(task: Task, done: int, total: int) -> None:
        nonlocal last
        if abs(clock.now() - last) >= HEARTBEAT:
            last = clock.now()
            running.beat(clock, log)
            running.copy(clock)
        progress(task, done, total)

    return tell
