"""Check the sections of a configuration against each other, by the checks of their own packages."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Mapping
from functools import partial

from pydantic import SecretStr

from streamdp.config.model import Configuration
from streamdp.gates.configured import check_gate
from streamdp.gates.section import Gate
from streamdp.kinds.configured import problems
from streamdp.kinds.section import CheckContext, ReleaseSection
from streamdp.kinds.spec import KINDS
from streamdp.sections.document import Document, Path, refuse, require_known
from streamdp.sections.secrets import refuse_password
from streamdp.sinks.section import Written
from streamdp.sources.section import SourceSection, check_sources


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
    spec = KINDS.find(jobs[0].kind) if jobs else None
    check_gate(gate, jobs, spec, dialect, document, path)


COMPANIONS = ("", "-wal", "-shm", "-journal", ".lock", ".turn", ".pulse")
"""Endings of the names of the store's files."""

COPIES = ("schema", "restored", "replaced")
"""Kinds of copies of the store that are put beside it, each with its time."""

SHARED = "another sink's database"
"""A database may hold the tables of several sinks."""


def check_outputs(configuration: Configuration, document: Document) -> None:
    """Refuse sinks that write to the store, the log, another sink's file or a source.

    Raises:
        ConfigurationError: One does, or a secret stands in the file.
    """
    store = os.path.realpath(configuration.store.path)
    anchor = os.path.realpath(configuration.store.anchor or f"{store}.anchor")
    if anchor == store:
        refuse("this file is the store", document, ("store", "anchor"), "take another path")
    taken = {
        **{f"{store}{suffix}": "the store" for suffix in COMPANIONS},
        anchor: "its anchor",
        os.path.realpath(document.path or document.name): "the configuration",
    }
    for at, written in _written(configuration):
        key = (*at, written.key)
        for name, source in configuration.sources.items():
            if _is_read(source, written.example) and not _is_other_table(source, written.table):
                refuse(f"source {name!r} reads this file", document, key, "take another path")
        holder = ".".join(map(str, at)) if written.table is None else SHARED
        if _is_put_aside(written.place, taken):
            refuse("a file that is put aside gets this name", document, key, "take another path")
        held = taken.get(written.place)
        if held is not None and not holder == held == SHARED:
            refuse(f"this file is that of {held}", document, key, "take another path")
        taken[written.place] = holder
    for name, sink in configuration.sinks.items():
        for secret in sink.secrets:
            at = ("sinks", name, secret)
            _require_kept_apart(getattr(sink, secret), document, at)
        for connection in sink.connections:
            at = ("sinks", name, connection)
            refuse_password(getattr(sink, connection), document, at)
    if configuration.web is not None:
        _require_kept_apart(configuration.web.token, document, ("web", "token"))


def _is_put_aside(file: str, taken: Mapping[str, str]) -> bool:
    """Whether a path is that of a rotated log, or of a copy of the store."""
    logs = (f"{name}." for name, holder in taken.items() if holder == "log")
    stores = (name for name, holder in taken.items() if holder == "the store")
    rotated = any(file.startswith(log) and file.removeprefix(log).isdigit() for log in logs)
    return rotated or any(file.startswith(f"{name}.{kind}-") for name in stores for kind in COPIES)


def _is_read(source: SourceSection, written: str) -> bool:
    return bool(source.path) and fnmatch.fnmatch(written, source.place())


def _is_other_table(source: SourceSection, written: str | None) -> bool:
    """Whether a sink writes another table of the database that a source reads."""
    read = source.table_name()
    if written is None or read is None:
        return False
    return read.lower().split(".")[-1] != written.lower()


def _written(configuration: Configuration) -> Iterator[tuple[Path, Written]]:
    """The places that are written to, and where in the file they are named."""
    if configuration.log.path is not None:
        path = os.path.realpath(configuration.log.path)
        yield ("log",), Written("path", path, path)
    for name, sink in configuration.sinks.items():
        written = sink.written()
        if written is not None:
            yield ("sinks", name), written
    for name, report in configuration.reports.items():
        path = os.path.realpath(report.path)
        for form in report.form:
            example = f"{path}/{report.job}-1970-01-01.{form}"
            yield ("reports", name), Written("path", example, example)


def _require_kept_apart(secret: object, document: Document, path: Path) -> None:
    if isinstance(secret, SecretStr) and path not in document.interpolated:
        refuse(
            "a secret must not be written in the configuration",
            document,
            path,
            "take it from the environment, ${NAME}, or from a file, {file: PATH}",
        )
