"""Check the sections of a configuration against each other, by the checks of their own packages."""

from __future__ import annotations

from functools import partial

from streamdp.config.model import Configuration
from streamdp.config.outputs import check_outputs
from streamdp.gates.check import check_gate
from streamdp.gates.section import Gate
from streamdp.kinds.check import problems
from streamdp.kinds.section import CheckContext, ReleaseSection
from streamdp.sections.document import Document, Path, refuse, require_known
from streamdp.sources.section import check_sources


def check(configuration: Configuration, document: Document) -> None:
    """Check names, sources, outputs, releases, gates and caps.

    Raises:
        ConfigurationError: The first thing that does not hang together.
    """
    privacy = configuration.privacy
    check_sources(configuration.sources, privacy.unit.column, document)
    check_outputs(configuration, document)
    paths = {name: each.path for name, each in configuration.sources.items() if each.path}
    columns = {
        name: each.published | frozenset(each.by) for name, each in configuration.releases.items()
    }
    for name, release in configuration.releases.items():
        path: Path = ("releases", name)
        require_known(release.source, configuration.sources, document, (*path, "source"))
        others = dict(columns)
        del others[name]
        context = CheckContext(
            dialect=configuration.source_section(name).engine.dialect,
            neighbours=privacy.neighbours,
            rows=privacy.unit.rows,
            paths=paths,
            columns=others,
        )
        _check_release(configuration, release, context, document, path)
    gated: dict[str, str] = {}
    for name, gate in configuration.all_gates().items():
        _check_gate(configuration, name, gate, gated, document)
    if configuration.alerts is not None:
        at: Path = ("alerts", "sink")
        require_known(configuration.alerts.sink, configuration.sinks, document, at)
    for name, report in configuration.reports.items():
        at = ("reports", name, "job")
        require_known(report.job, configuration.releases, document, at)
        growing = configuration.source_section(report.job).is_growing()
        report.check(document, at, growing=growing)
    costs = {name: partial(configuration.cost_of_batch, name) for name in configuration.sources}
    privacy.check_caps(costs, document)


def _check_release(
    configuration: Configuration,
    release: ReleaseSection,
    context: CheckContext,
    document: Document,
    path: Path,
) -> None:
    source = configuration.sources[release.source]
    growing = source.is_growing()
    _check_sinks(configuration, release.sinks, document, path)
    if release.rollups is not None:
        at: Path = (*path, "rollups")
        _check_sinks(configuration, release.rollups.sinks or (), document, at)
        release.rollups.check(source.every(), document, at, growing=growing)
    configuration.privacy.check(release, document, path)
    for problem in problems(release, configuration.releases, context, growing=growing):
        refuse(problem.what, document, (*path, *problem.path), problem.hint)


def _check_sinks(
    configuration: Configuration, names: tuple[str, ...], document: Document, path: Path
) -> None:
    for index, sink in enumerate(names):
        require_known(sink, configuration.sinks, document, (*path, "sinks", index))


def _check_gate(
    configuration: Configuration, name: str, gate: Gate, gated: dict[str, str], document: Document
) -> None:
    """Check the names that a gate refers to, that each job has one gate at most, and the gate."""
    own = name in configuration.gates
    path: Path = ("gates", name) if own else ("releases", name.removesuffix(".gate"), "gate")
    if name in configuration.releases:
        refuse("a release has this name", document, path, "give the gate another one")
    for key, table in (("hold", configuration.releases), ("sinks", configuration.sinks)):
        for index, each in enumerate(getattr(gate, key)):
            require_known(each, table, document, (*path, key, index))
    if gate.source is not None:
        require_known(gate.source, configuration.sources, document, (*path, "source"))
    for index, job in enumerate(gate.release):
        require_known(job, configuration.releases, document, (*path, "release", index))
        if job in gated:
            refuse(
                f"{job} has the gate {gated[job]} already",
                document,
                (*path, "release", index),
                "a batch is released by one word: take it out of one of them",
            )
        gated[job] = name
    dialect = configuration.sources[configuration.source_of(gate)].engine.dialect
    jobs = [configuration.releases[job] for job in gate.release]
    check_gate(gate, jobs, dialect, document, path)
