"""Store, jobs, worker and log, by what the configuration names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from streamdp.config.model import Configuration
from streamdp.engine.job import Job
from streamdp.engine.release import Surroundings
from streamdp.engine.work import Worker
from streamdp.types import Clock, Entropy, Log
from streamdp.wiring.quantiles import release_kind
from streamdp.wiring.sinks import sink
from streamdp.wiring.sources import backend, data_of, same_data, source

if TYPE_CHECKING:
    from streamdp.store.reconcile import Terms
    from streamdp.store.sqlite import SqliteStore


def declare(configuration: Configuration, store: SqliteStore, now: int, log: Log) -> None:
    """Bind every source's budget in the ledger to its data, unit, neighbours and caps.

    Raises:
        ConfigurationError: The ledger was opened in other terms, allows less, or knows the data
            under another name.
    """
    privacy, caps = configuration.privacy, configuration.privacy.caps.caps()
    unit, neighbours = str(privacy.unit), privacy.neighbours
    data = {name: data_of(section) for name, section in configuration.sources.items()}
    store.claim(data, same_data, now)
    for scope in store.declare(configuration.sources, unit, neighbours, caps, now):
        log("cap.lowered", scope=scope)


def terms(configuration: Configuration) -> dict[str, Terms]:
    """What every source's budget would be bound to if the ledger did not know it."""
    privacy, caps = configuration.privacy, configuration.privacy.caps.caps()
    said: dict[str, str] = {"unit": str(privacy.unit), "neighbours": privacy.neighbours}
    return dict.fromkeys(configuration.sources, (caps, said))


def store_paths(configuration: Configuration) -> tuple[Path, Path]:
    """The store's file and its anchor's."""
    from streamdp.store.anchor import default_anchor

    section = configuration.store
    return section.path, section.anchor or default_anchor(section.path)


def start_log(configuration: Configuration, *, console: bool) -> Log:
    """Send events where the configuration says, and to the terminal if wanted."""
    from streamdp.log import configure

    section = configuration.log
    rotate = section.rotate
    return configure(section.path, section.level, rotate.size, rotate.keep, console=console)


def jobs(configuration: Configuration) -> dict[str, Job]:
    """One job for each configured release."""
    sources = {name: source(name, section) for name, section in configuration.sources.items()}
    return {
        name: Job(
            name=name,
            scope=section.source,
            source=sources[section.source],
            backend=backend(configuration.sources[section.source]),
            kind=release_kind(configuration, name),
            sinks=section.sinks,
        )
        for name, section in configuration.releases.items()
    }


def worker(
    configuration: Configuration,
    store: SqliteStore,
    entropy: Entropy,
    clock: Clock,
    log: Log,
) -> Worker:
    """What does the jobs; the table sink writes through the store's own connection."""
    sinks = {
        name: sink(name, section, store.database, clock)
        for name, section in configuration.sinks.items()
    }
    return Worker(Surroundings(store, entropy, clock, log), sinks)
