"""What does not hang together in a gate, by itself and beside the releases that it lets release."""

from __future__ import annotations

from collections.abc import Sequence

from streamdp.gates.questions.section import Testable, TestedRelease
from streamdp.gates.section import Gate
from streamdp.sections.dialects import Dialect
from streamdp.sections.document import Document, Path, refuse
from streamdp.sections.expressions import expression

HINTS = {
    "scores": "it takes releases of kind selection",
    "rules": "it takes thresholds joined by AND that are judged by errors about a label",
}


def check_gate(
    gate: Gate,
    jobs: Sequence[TestedRelease],
    spec: Testable | None,
    dialect: Dialect,
    document: Document,
    path: Path,
) -> None:
    """Require jobs of one source, the first of a kind that the test reads, and a known condition.

    Args:
        gate: Of names that are known.
        jobs: The releases that it lets release.
        spec: What the kind of the first offers to gates.
        dialect: Of the engine that reads its source.
        document: The file.
        path: Of the gate in it.

    Raises:
        ConfigurationError: The first thing that does not hang together.
    """
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
        _check_first(gate, jobs[0], spec, dialect, document, path)
    _check_condition(gate, dialect, document, path)


def _check_condition(gate: Gate, dialect: Dialect, document: Document, path: Path) -> None:
    """Require that the engine of the source understands the condition of a count."""
    condition = gate.test.condition()
    if condition is None:
        return
    try:
        expression(condition, dialect)
    except ValueError as error:
        refuse(str(error), document, (*path, "test", "where"), "or leave it out")


def _check_first(
    gate: Gate,
    job: TestedRelease,
    spec: Testable | None,
    dialect: Dialect,
    document: Document,
    path: Path,
) -> None:
    """Require that the tested release is of a kind that the test reads."""
    reads = gate.test.reads
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
