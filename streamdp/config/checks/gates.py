"""Check gates against the rest of a configuration."""

from __future__ import annotations

from streamdp.config.base.dialects import Dialect
from streamdp.config.base.expressions import expression
from streamdp.config.base.refusal import refuse, require_known
from streamdp.config.base.releases import ReleaseSection
from streamdp.config.base.yaml import Document, Path
from streamdp.config.model import Configuration
from streamdp.gates.section import Gate
from streamdp.kinds.registry import find
from streamdp.privacy.amounts import nano_up

HINTS = {
    "scores": "it takes releases of kind selection",
    "rules": "it takes thresholds joined by AND that are judged by errors about a label",
}


def check_gates(configuration: Configuration, document: Document) -> None:
    """Check the names that gates refer to, and that each job has one gate at most.

    Raises:
        ConfigurationError: The first thing that does not hang together.
    """
    gated: dict[str, str] = {}
    for name, gate in configuration.all_gates().items():
        path = place_of(name, configuration)
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
        _check_jobs(gate, configuration, document, path)
        _check_condition(gate, configuration, document, path)


def place_of(name: str, configuration: Configuration) -> Path:
    """Where a gate stands in the file: in its own section, or at its release."""
    if name in configuration.gates:
        return ("gates", name)
    return ("releases", name.removesuffix(".gate"), "gate")


def gates_of(configuration: Configuration, source: str) -> list[str]:
    """Names of the gates of a source."""
    gates = configuration.all_gates().items()
    return [name for name, gate in gates if configuration.source_of(gate) == source]


def price_of_gates(configuration: Configuration, source: str) -> int:
    """Price of a source's gates for a batch, in nano units: it may be in one run of each."""
    gates = configuration.all_gates()
    return sum(nano_up(gates[name].epsilon) for name in gates_of(configuration, source))


def _check_jobs(gate: Gate, configuration: Configuration, document: Document, path: Path) -> None:
    jobs = [configuration.releases[job] for job in gate.release]
    if len({job.source for job in jobs}) > 1:
        refuse(
            "these jobs release batches of different sources",
            document,
            (*path, "release"),
            "write a gate for each source",
        )
    for index, job in enumerate(jobs):
        if job.by:
            refuse(
                "this job releases groups, and a gate asks about a whole batch",
                document,
                (*path, "release", index),
                "write a release and a gate for each group, with where",
            )
    if jobs:
        dialect = configuration.sources[jobs[0].source].engine.dialect
        _check_first(gate, jobs[0], dialect, document, path)


def _check_condition(
    gate: Gate, configuration: Configuration, document: Document, path: Path
) -> None:
    """Require that the engine of the source understands the condition of a count."""
    condition = gate.test.condition()
    if condition is None:
        return
    try:
        expression(condition, configuration.sources[configuration.source_of(gate)].engine.dialect)
    except ValueError as error:
        refuse(str(error), document, (*path, "test", "where"), "or leave it out")


def _check_first(
    gate: Gate, job: ReleaseSection, dialect: Dialect, document: Document, path: Path
) -> None:
    """Require that the tested release is of a kind that the test reads."""
    spec, reads = find(job.kind), gate.test.reads
    rules = spec.rules(job, dialect) if spec is not None and spec.rules is not None else None
    asked = {
        "cells": spec and spec.cells,
        "counts": spec and spec.counts,
        "rules": rules,
        "scores": spec and spec.scored,
    }[gate.test.asks]
    if (reads is not None and job.kind not in reads) or asked is None:
        refuse(
            f"a test of kind {gate.test.kind} cannot read releases of kind {job.kind}",
            document,
            (*path, "release", 0),
            HINTS.get(gate.test.asks, "put a release first that it can test"),
        )
    tables = spec.counts(job, dialect) if spec is not None and spec.counts is not None else {}
    named = {name: table.cells for name, table in tables.items()}
    for keys, what, hint in gate.test.problems(job, named):
        refuse(what, document, (*path, *keys), hint)
