"""Store, sources, backends, sinks and log, by what the configuration names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamdp.config.formats import file_format
from streamdp.config.model import (
    Configuration,
    JsonLinesSinkSection,
    TableSinkSection,
    Windows,
)
from streamdp.config.model import Source as SourceSection
from streamdp.engine.job import Job
from streamdp.engine.release import Surroundings
from streamdp.engine.work import Worker
from streamdp.types import Backend, Clock, Entropy, Log, Sink, Source
from streamdp.wiring.quantiles import kind

if TYPE_CHECKING:
    from streamdp.store.sqlite import SqliteStore


def declare(configuration: Configuration, store: SqliteStore, now: int, log: Log) -> None:
    """Bind every source's budget in the ledger to unit, neighbours and caps.

    Raises:
        ConfigurationError: The ledger was opened in other terms, or allows less.
    """
    privacy = configuration.privacy
    caps = privacy.caps.caps()
    for scope in store.declare(configuration.sources, privacy.unit, privacy.neighbours, caps, now):
        log("cap.lowered", scope=scope)


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
    sinks = {name: _sink(name, configuration, store) for name in configuration.sinks}
    return Worker(Surroundings(store, entropy, clock, log), sinks)


def source(name: str, section: SourceSection) -> Source:
    """Windows of time, or files."""
    from streamdp.sources.files import FileSource
    from streamdp.sources.windows import WindowSource

    cut = section.batches
    if isinstance(cut, Windows):
        return WindowSource(name, cut.start, cut.every, cut.end, cut.lateness)
    return FileSource(name, section.path)


def backend(section: SourceSection) -> Backend:
    """DuckDB, which reads files of every format."""
    from streamdp.backends.duckdb import DuckDBBackend

    time_column = section.batches.column if isinstance(section.batches, Windows) else None
    kind = section.format or file_format(section.path) or "parquet"
    return DuckDBBackend(section.path, kind, time_column)


def _sink(name: str, configuration: Configuration, store: SqliteStore) -> Sink:
    from streamdp.sinks.jsonl import JsonLinesSink
    from streamdp.sinks.stdout import StandardOutputSink
    from streamdp.sinks.table import TableSink

    section = configuration.sinks[name]
    if isinstance(section, TableSinkSection):
        return TableSink(name, store.database, section.table)
    if isinstance(section, JsonLinesSinkSection):
        return JsonLinesSink(name, section.path)
    return StandardOutputSink(name)
