"""Store, jobs, runner and log, by what the configuration names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from streamdp.answers.closed import RollupTerms
from streamdp.config.base.paths import file_ids
from streamdp.config.base.releases import ReleaseSection
from streamdp.config.model import Configuration
from streamdp.engine.attempts import Task
from streamdp.engine.job import Job
from streamdp.engine.protocols import Connected
from streamdp.engine.release import EngineContext
from streamdp.engine.runner import Runner
from streamdp.errors import StoreError
from streamdp.privacy.filters import Caps
from streamdp.sinks.section import SinkContext, StoreAccess
from streamdp.sources.section import SourceSection, same_data
from streamdp.sources.windows import Windows
from streamdp.types import Backend, Clock, Entropy, Json, Log, Sink
from streamdp.wiring.gates import gates
from streamdp.wiring.kinds import charging, release_kind

if TYPE_CHECKING:
    from streamdp.database import Database
    from streamdp.store.ledger.budgets import Terms
    from streamdp.store.sqlite import SqliteStore


def declare(configuration: Configuration, store: SqliteStore, now: int, log: Log) -> None:
    """Bind every source's budget in the ledger to its data, unit, neighbours and caps.

    Raises:
        ConfigurationError: The ledger was opened in other terms, allows less, or knows the data
            under another name.
    """
    overlap = partial(same_data, ids=cache(file_ids))
    for lowered in store.declare(terms(configuration), now, data(configuration), overlap):
        log("cap.lowered", scope=lowered)


def require_same_data(configuration: Configuration, database: Database) -> None:
    """Refuse sources that read other data than the store knows, as `declare` would.

    Raises:
        ConfigurationError: So it is.
    """
    from streamdp.store.ledger.source_binding import require_same

    require_same(database, data(configuration), partial(same_data, ids=cache(file_ids)))


def terms(configuration: Configuration) -> dict[str, Terms]:
    """Terms that every source's budget is bound to at its first use."""
    privacy = configuration.privacy
    said: dict[str, str] = {"unit": str(privacy.unit), "neighbours": privacy.neighbours}
    return {
        name: (caps_of(configuration, name), said | _growth(section))
        for name, section in configuration.sources.items()
    }


def _growth(section: SourceSection) -> dict[str, str]:
    """How the batches of a growing source are cut; overlap does not tell two cuts apart."""
    if not isinstance(section.batches, Windows) or not section.batches.growing:
        return {}
    cut = section.batches
    zone = "" if cut.timezone == "UTC" else f" in {cut.timezone}"
    return {"growth": f"by {cut.every} s from {cut.start}{zone}"}


def data(configuration: Configuration) -> dict[str, Json]:
    """Identity of every source's data, with its time and unit columns."""
    who = configuration.privacy.unit.column
    return {name: section.identity(who) for name, section in configuration.sources.items()}


def store_paths(configuration: Configuration) -> tuple[Path, Path]:
    """The store's file and its anchor's."""
    from streamdp.store.anchor.anchor import default_anchor

    section = configuration.store
    return section.path, section.anchor or default_anchor(section.path)


def caps_of(configuration: Configuration, source: str) -> Caps:
    """Caps of a source; of a growing one each counts for life, as records recur in all batches."""
    caps = configuration.privacy.caps.caps()
    if not configuration.sources[source].is_growing():
        return caps
    windows = tuple(replace(limit, batches=None, seconds=None) for limit in caps.windows)
    lifetime = min(caps.batch_nano, caps.lifetime_nano)
    return replace(caps, lifetime_nano=lifetime, windows=windows)


def start_log(configuration: Configuration, *, console: bool) -> Log:
    """Send events where the configuration says, and to the terminal if wanted."""
    from streamdp.log import configure

    section = configuration.log
    rotate = section.rotate
    shown = section.stderr if console else "off"
    return configure(section.path, section.level, rotate.size, rotate.keep, shown)


def tasks(configuration: Configuration, *, apart: bool = False) -> dict[str, Task]:
    """Task under each name of a release or of a gate; a gated release is its gate's.

    Raises:
        ConfigurationError: A gate is impractical.
    """
    engines = backends(configuration, apart=apart)
    plain = jobs(configuration, engines)
    asked = gates(configuration, plain, engines)
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
            charging=charging(configuration.privacy.unit),
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
    """All that a configuration names, made and not used yet.

    Args:
        configuration: It.
        tasks: What is done under each name.
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
    from streamdp.store.schema.migrations import is_current, require_known
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
                overlap = partial(same_data, ids=cache(file_ids))
                bind_all(copy, terms(configuration), now, data(configuration), overlap)
