"""Store, jobs, worker and log, by what the configuration names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from streamdp.config.model import Configuration
from streamdp.engine.job import Job
from streamdp.engine.release import Surroundings
from streamdp.engine.work import Task, Worker
from streamdp.privacy.amounts import nano_up
from streamdp.privacy.filters import Caps
from streamdp.types import Clock, Entropy, Log
from streamdp.wiring.gates import gates
from streamdp.wiring.quantiles import kind
from streamdp.wiring.sinks import sink
from streamdp.wiring.sources import backend, source

if TYPE_CHECKING:
    from streamdp.store.sqlite import SqliteStore


def declare(configuration: Configuration, store: SqliteStore, now: int, log: Log) -> None:
    """Bind every source's budget in the ledger to unit, neighbours and caps.

    A record of a growing source is in all batches from its own on: what it may lose in one batch
    is then the cap of all.

    Raises:
        ConfigurationError: The ledger was opened in other terms, or allows less.
    """
    privacy = configuration.privacy
    caps = Caps(nano_up(privacy.caps.batch), nano_up(privacy.caps.lifetime))
    growing = [name for name, source in configuration.sources.items() if source.is_growing()]
    of_one = replace(caps, lifetime_nano=min(caps.batch_nano, caps.lifetime_nano))
    for scopes, allowed in ((configuration.sources.keys() - growing, caps), (growing, of_one)):
        for scope in store.declare(sorted(scopes), privacy.unit, privacy.neighbours, allowed, now):
            log("cap.lowered", scope=scope)


def start_log(configuration: Configuration, *, console: bool) -> Log:
    """Send events where the configuration says, and to the terminal if wanted."""
    from streamdp.log import configure

    section = configuration.log
    rotate = section.rotate
    return configure(section.path, section.level, rotate.size, rotate.keep, console=console)


def tasks(configuration: Configuration) -> dict[str, Task]:
    """What is done under each name of a release or of a gate; a gated release is its gate's.

    Raises:
        ConfigurationError: A gate is impractical.
    """
    plain = jobs(configuration)
    asked = gates(configuration, plain)
    gated = {job: asked[gate] for job, gate in configuration.gated().items()}
    return {**plain, **asked, **gated}


def jobs(configuration: Configuration) -> dict[str, Job]:
    """One job for each configured release."""
    sources = {name: source(name, section) for name, section in configuration.sources.items()}
    return {
        name: Job(
            name=name,
            scope=section.source,
            source=sources[section.source],
            backend=backend(configuration.sources[section.source]),
            kind=kind(section, configuration.privacy.neighbours),
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
