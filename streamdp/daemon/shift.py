"""A shift: the store locked and opened, jobs and sinks wired, and closed again whatever happens."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamdp.daemon.lock import store_lock
from streamdp.engine.job import Job
from streamdp.engine.work import Progress, Worker
from streamdp.store.sqlite import SqliteStore
from streamdp.types import Clock, Entropy, Log

if TYPE_CHECKING:
    from streamdp.config import Configuration

HEARTBEAT = 15
"""Seconds between signs of life."""

TOLERANCE = 60
"""Seconds that a clock may go back unremarked."""


@dataclass(slots=True)
class Shift:
    """What works: a store, a worker and the jobs it does."""

    store: SqliteStore
    worker: Worker
    jobs: dict[str, Job]
    behind: bool = False

    def beat(self, clock: Clock, log: Log) -> None:
        """Give a sign of life; say it once when the clock has gone back.

        Raises:
            ClockError: The clock has jumped ahead.
            StoreError: The store cannot be used.
        """
        behind = self.store.beat(os.getpid(), clock.now()) > TOLERANCE
        if behind and not self.behind:
            log("clock.behind")
        self.behind = behind


@contextmanager
def shift(
    configuration: Configuration,
    entropy: Entropy,
    clock: Clock,
    log: Log,
    stop: Callable[[], bool] = lambda: False,
    progress: Progress = lambda job, done, total: None,
) -> Iterator[Shift]:
    """Take the store over, for as long as the block lasts, with signs of life while it works.

    Files made from here on are this user's alone, and a crash leaves no core: the memory of this
    process holds private counts.

    Raises:
        LockedError: Another process works on the store.
        ConfigurationError: The ledger was opened in other terms, or allows less.
        IntegrityError: The store is damaged, altered or newer.
        ClockError: The clock is far ahead of the last time the store knew.
    """
    from streamdp import wiring

    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    section = configuration.store
    with store_lock(section.path):
        step = section.max_clock_step
        store = SqliteStore.open(section.path, clock.now(), section.anchor, step)
        try:
            worker = wiring.worker(configuration, store, entropy, clock, log)
            running = Shift(store, worker, wiring.jobs(configuration))
            running.beat(clock, log)
            wiring.declare(configuration, store, clock.now(), log)
            worker.stop, worker.progress = stop, _living(running, clock, log, progress)
            yield running
            store.stopped(clock.now())
        finally:
            store.close()


def _living(running: Shift, clock: Clock, log: Log, progress: Progress) -> Progress:
    """Progress that gives signs of life too: a catch-up may last for hours."""
    last = clock.now()

    def tell(job: Job, done: int, total: int) -> None:
        nonlocal last
        if abs(clock.now() - last) >= HEARTBEAT:
            last = clock.now()
            running.beat(clock, log)
        progress(job, done, total)

    return tell
