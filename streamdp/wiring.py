"""The only place that names concrete adapters: from a configuration to things that work."""

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
from streamdp.config.releases import Family, MixtureOf
from streamdp.config.releases import Release as ReleaseSection
from streamdp.engine.job import Job
from streamdp.engine.release import Surroundings
from streamdp.engine.work import Worker
from streamdp.privacy.amounts import nano_up
from streamdp.privacy.filters import Caps
from streamdp.types import Backend, Clock, Entropy, Grid, Log, Prior, Sink, Source

if TYPE_CHECKING:
    from streamdp.mechanisms.choice import Choice
    from streamdp.mechanisms.sharpness import Relation
    from streamdp.priors.joint import Shapes
    from streamdp.releases.quantiles import Quantiles
    from streamdp.store.sqlite import SqliteStore


def declare(configuration: Configuration, store: SqliteStore, now: int, log: Log) -> None:
    """Bind every source's budget in the ledger to unit, neighbours and caps.

    Raises:
        ConfigurationError: The ledger was opened in other terms, or allows less.
    """
    privacy = configuration.privacy
    caps = Caps(nano_up(privacy.caps.batch), nano_up(privacy.caps.lifetime))
    for scope in configuration.sources:
        if store.declare(scope, privacy.unit, privacy.neighbours, caps, now) == "lowered":
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


def kind(section: ReleaseSection, neighbours: Relation) -> Quantiles:
    """The release kind `quantiles` with its mechanism and its learner."""
    from streamdp.learning.last_release import LastRelease
    from streamdp.releases.quantiles import Quantiles

    robust = robust_prior(section)
    learns = section.prior.learner != "none"
    learner = LastRelease(
        robust=robust,
        robust_weight=section.prior.robust_weight if learns else 1.0,
        scale=_scale(section),
        resolution=float(section.resolution),
    )
    form = _form(section)
    chosen = section.mechanism
    return Quantiles(
        column=section.column,
        quantiles=section.quantiles,
        epsilon=section.epsilon,
        grid=Grid(section.resolution, *section.cells()),
        learner=learner,
        form=form,
        relation=neighbours,
        restriction="conditional" if chosen == "auto" else chosen.restriction,
        shapes=shapes(section) if form.shapes else (),
        expected_rows=section.expected_rows,
    )


def _form(section: ReleaseSection) -> Choice:
    """The form of the tree: the configured one, or that of the public table.

    The table was made for priors that do not learn. With a learned prior the binary tree is best
    wherever days resemble each other, and it is the fastest (`tests.benchmarks.forms`).
    """
    from streamdp.mechanisms.choice import CANDIDATES, Choice, choose_tree

    chosen = section.mechanism
    if chosen == "auto" and section.prior.learner != "none":
        return CANDIDATES["binary"]
    if chosen == "auto":
        return choose_tree(len(section.quantiles), section.epsilon, section.expected_rows)
    return Choice(chosen.branching, chosen.node, chosen.level_power, chosen.shapes)


def shapes(section: ReleaseSection) -> tuple[Shapes, ...]:
    """What is believed of the quantiles together, from the guess, or from the bounds."""
    from streamdp.priors.shapes import shapes_from_bounds, shapes_from_guess

    if section.guess is not None:
        return shapes_from_guess(section.quantiles, section.guess.location, section.guess.scale)
    first, last = (float(cell * section.resolution) for cell in section.cells())
    return shapes_from_bounds(section.quantiles, first, last, float(section.resolution))


def robust_prior(section: ReleaseSection) -> Prior:
    """The prior that holds when the past misleads."""
    robust = section.prior.robust
    if isinstance(robust, MixtureOf):
        from streamdp.priors.mixture import Mixture

        weights = tuple(member.weight for member in robust.mixture)
        return Mixture(weights, tuple(_family(member) for member in robust.mixture))
    if isinstance(robust, Family):
        return _family(robust)
    name = robust or ("cauchy" if section.guess else "uniform")
    if name == "uniform":
        first, last = section.cells()
        half = section.resolution / 2
        lower, upper = (float(cell * section.resolution) for cell in (first, last))
        return _family(Family(family=name, lower=lower - float(half), upper=upper + float(half)))
    assert section.guess is not None, "checked when the configuration was loaded"  # noqa: S101
    return _family(Family(family=name, location=section.guess.location, scale=section.guess.scale))


def _family(section: Family) -> Prior:
    from streamdp.priors import families

    if section.family == "uniform":
        return families.Uniform(float(section.lower or 0), float(section.upper or 0))
    location, scale = float(section.location or 0), float(section.scale or 1)
    if section.family == "cauchy":
        return families.Cauchy(location, scale)
    if section.family == "half-cauchy":
        return families.HalfCauchy(location, scale)
    return families.Laplace(location, scale)


def _scale(section: ReleaseSection) -> float:
    """How far a quantile may move between releases, before any is known."""
    if section.guess is not None:
        return section.guess.scale
    first, last = section.cells()
    return float((last - first + 1) * section.resolution) / 4


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
