"""The only place that names concrete adapters: from a configuration to jobs, gates and sinks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from streamdp.answers.closed import RollupTerms
from streamdp.backends.public import PublicFiles
from streamdp.config.model import Configuration
from streamdp.engine.attempts import Task
from streamdp.engine.gate import GateRunner
from streamdp.engine.job import Connected, EngineContext, Job
from streamdp.engine.runner import Runner
from streamdp.errors import StoreError
from streamdp.gates.configured import thresholding_gate
from streamdp.gates.section import Gate as GateSection
from streamdp.kinds import configured
from streamdp.kinds.charging import UnitCharging
from streamdp.kinds.section import ReleaseSection
from streamdp.kinds.spec import BuildContext, spec_of
from streamdp.sections.dialects import Dialect
from streamdp.sinks.section import SinkContext, StoreAccess
from streamdp.sources.section import overlap
from streamdp.types import Backend, Clock, Entropy, Log, Neighbours, ReleaseKind, Sink

if TYPE_CHECKING:
    from streamdp.database import Database
    from streamdp.gates.run import ThresholdingGate
    from streamdp.store.sqlite import SqliteStore


def declare(configuration: Configuration, store: SqliteStore, now: int, log: Log) -> None:
    """Bind every source's budget in the ledger to its data, unit, neighbours and caps.

    Raises:
        ConfigurationError: The ledger was opened in other terms, allows less, or knows the data
            under another name.
    """
    terms, data = configuration.terms(), configuration.data()
    for lowered in store.declare(terms, now, data, overlap()):
        log("cap.lowered", scope=lowered)


def require_same_data(configuration: Configuration, database: Database) -> None:
    """Refuse sources that read other data than the store knows, as `declare` would.

    Raises:
        ConfigurationError: So it is.
    """
    from streamdp.store.ledger.source_binding import require_same

    require_same(database, configuration.data(), overlap())


def tasks(configuration: Configuration, *, apart: bool = False) -> dict[str, Task]:
    """Task under each name of a release or of a gate; a gated release is its gate's.

    Raises:
        ConfigurationError: A gate is impractical.
    """
    engines = backends(configuration, apart=apart)
    plain = jobs(configuration, engines)
    asked = {
        name: _gate(name, section, configuration, plain, engines)
        for name, section in configuration.all_gates().items()
    }
    gated = {job: asked[gate] for job, gate in configuration.gated().items()}
    return {**plain, **asked, **gated}


def backends(configuration: Configuration, *, apart: bool = False) -> Callable[[str], Backend]:
    """The engine that reads each source: one for all that is asked of it.

    Sources that DuckDB reads within the same limits share one of it, unless they are asked at the
    same time: its memory would be that of both questions.
    """
    from streamdp.backends.duckdb.instance import Instance

    start = Instance if apart else cache(Instance)
    return cache(lambda name: configuration.sources[name].backend(start))


def jobs(
    configuration: Configuration,
    engines: Callable[[str], Backend] | None = None,
    names: Iterable[str] | None = None,
) -> dict[str, Job]:
    """One job for each configured release, or for some; `engines` read the sources."""
    engines = engines or backends(configuration)
    looks = cache(lambda name: configuration.sources[name].source(name))
    return {
        name: Job(
            name=name,
            scope=section.source,
            source=looks(section.source),
            backend=engines(section.source),
            kind=release_kind(configuration, name),
            charging=UnitCharging(configuration.privacy.unit.bound()),
            sinks=section.sinks,
            window=section.asked_together,
            rollups=_rollups(configuration, section),
        )
        for name in (configuration.releases if names is None else names)
        for section in [configuration.releases[name]]
    }


def _rollups(configuration: Configuration, section: ReleaseSection) -> RollupTerms | None:
    wanted = section.rollups
    if wanted is None:
        return None
    sinks = section.sinks if wanted.sinks is None else wanted.sinks
    zone = configuration.sources[section.source].zone
    return RollupTerms(wanted.periods, zone, wanted.partial, sinks)


def rollups_without_rows(configuration: Configuration) -> Iterator[str]:
    """Name the jobs whose `rollups:` will never have a row, with the reason."""
    for name, section in configuration.releases.items():
        says = spec_of(section).no_periods
        if section.rollups is None or says is None:
            continue
        source = configuration.sources[section.source]
        neighbours, rows = configuration.privacy.neighbours, configuration.privacy.unit.rows
        why = says(kind(section, neighbours, rows, source.engine.dialect, source.zone))
        if why is not None:
            yield f"releases.{name}.rollups: no period will have a row: {why}"


def release_kind(configuration: Configuration, name: str) -> ReleaseKind:
    """The kind of a configured release: of a batch, or of each public group of it."""
    section, privacy = configuration.releases[name], configuration.privacy
    source, unit = configuration.sources[section.source], privacy.unit
    context = BuildContext(
        neighbours=privacy.neighbours,
        rows=unit.rows,
        groups=1,
        dialect=source.engine.dialect,
        public=PublicFiles(),
        zone=source.zone,
        counted=unit.counted(),
        unit=unit.name,
    )
    return configured.release_kind(section, configuration.releases, context)


def kind(
    section: ReleaseSection,
    neighbours: Neighbours,
    rows: int = 1,
    dialect: Dialect = "duckdb",
    zone: str = "UTC",
) -> ReleaseKind:
    """The kind of one group of records of a release, at the price of one record.

    Args:
        section: The release.
        neighbours: Relation of one record.
        rows: The most records of one unit that count.
        dialect: Of the engine that reads expressions.
        zone: Of the source's batches.
    """
    return configured.kind(section, BuildContext(neighbours, rows, 1, dialect, PublicFiles(), zone))


def gate_kind(name: str, configuration: Configuration) -> ThresholdingGate:
    """Question of a configured gate, and the mechanism of its runs.

    Raises:
        ConfigurationError: It is impractical, or its custom test cannot be had.
    """
    section, privacy = configuration.all_gates()[name], configuration.privacy
    dialect = configuration.sources[configuration.source_of(section)].engine.dialect
    first = configuration.first_release(section)
    spec = None if first is None else spec_of(first)
    return thresholding_gate(
        name, section, first, spec, dialect, privacy.unit.bound(), privacy.neighbours
    )


def _gate(
    name: str,
    section: GateSection,
    configuration: Configuration,
    jobs: Mapping[str, Job],
    engines: Callable[[str], Backend],
) -> GateRunner:
    scope = configuration.source_of(section)
    asked = gate_kind(name, configuration)
    return GateRunner(
        name=name,
        scope=scope,
        source=configuration.sources[scope].source(scope),
        backend=engines(scope),
        kind=asked,
        jobs=tuple(jobs[job] for job in section.release),
        sinks=section.sinks,
        holds=section.hold,
        manual=section.rearm == "manual",
        slot=section.slot,
        horizon=section.horizon,
        configurations=getattr(asked.question, "configurations", ()),
    )


def outside_sinks(configuration: Configuration, clock: Clock) -> dict[str, Sink]:
    """All sinks outside of the store, by name.

    Raises:
        ConfigurationError: A secret cannot be read, or an engine is not installed.
    """
    context = SinkContext(clock)
    sections = configuration.sinks.items()
    return {name: each.sink(name, context) for name, each in sections if not each.in_store}


def store_sinks(configuration: Configuration, database: Database, clock: Clock) -> dict[str, Sink]:
    """The sinks that write into the store, through its own connection, by name."""
    from streamdp.store.database import one_writer

    context = SinkContext(clock, StoreAccess(database, one_writer))
    sections = configuration.sinks.items()
    return {name: each.sink(name, context) for name, each in sections if each.in_store}


def hang_up(tasks: Iterable[Task]) -> None:
    """Close the connections that jobs and gates hold to servers."""
    for backend in {id(task.backend): task.backend for task in tasks}.values():
        if isinstance(backend, Connected):
            backend.close()


@dataclass(frozen=True, slots=True)
class Wired:
    """Jobs, gates and sinks of a configuration, made and not used yet.

    Args:
        configuration: That names them.
        tasks: Job or gate under each name.
        sinks: Those outside of the store.
        clock: Of the timestamps that sinks sign.
    """

    configuration: Configuration
    tasks: dict[str, Task]
    sinks: dict[str, Sink]
    clock: Clock

    def sinks_with(self, database: Database) -> dict[str, Sink]:
        """All sinks: those outside of the store, and its tables."""
        return self.sinks | store_sinks(self.configuration, database, self.clock)

    def runner(self, store: SqliteStore, entropy: Entropy, clock: Clock, log: Log) -> Runner:
        """Runner of the jobs; a table sink writes through the store's own connection."""
        around = EngineContext(store, entropy, clock, log)
        return Runner(around, self.sinks_with(store.database))


def wire(configuration: Configuration, clock: Clock, *, apart: bool = False) -> Wired:
    """Make all that a configuration names; the store is not needed.

    Args:
        configuration: It.
        clock: Of the timestamps that sinks sign.
        apart: Whether sources are asked at the same time, so that none may share an engine.

    Raises:
        ConfigurationError: A secret cannot be read, an engine is not installed, a gate is
            impractical.
    """
    return Wired(
        configuration,
        tasks(configuration, apart=apart),
        outside_sinks(configuration, clock),
        clock,
    )


def require_admitted(configuration: Configuration, now: int) -> None:
    """Refuse a configuration that the ledger of an older store does not admit.

    It is found out on a copy in memory: a store is migrated for what it is then used for. One that
    is not there, or was not made to its end, has nothing to say; opening it tells what is wrong.

    Raises:
        ConfigurationError: As `declare` would.
    """
    from streamdp.store.database import connect_to_read, transaction
    from streamdp.store.ledger.dry_run import copy_of
    from streamdp.store.migrations import is_current, require_known
    from streamdp.store.sqlite import bind_all

    try:
        found = connect_to_read(configuration.store.path)
    except StoreError:
        return
    with closing(found) as database:
        require_known(database)
        if not is_current(database):
            copy = copy_of(database)
            with transaction(copy):
                bind_all(copy, configuration.terms(), now, configuration.data(), overlap())
