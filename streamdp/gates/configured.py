"""Check a configured gate and make its question; refuse an impractical one before its charge."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, assert_never

from streamdp.errors import ConfigurationError
from streamdp.gates.questions.section import (
    Asked,
    CountTable,
    Testable,
    Tested,
    TestedRelease,
    quantiles_of,
)
from streamdp.gates.section import Gate
from streamdp.sections.dialects import Dialect
from streamdp.sections.document import Document, Path, refuse
from streamdp.sections.expressions import expression
from streamdp.types import CellQuery, Grid, Neighbours, TableQuery, UnitBound, with_bound

if TYPE_CHECKING:
    from streamdp.gates.run import ThresholdingGate
    from streamdp.mechanisms.sparse_vector.thresholding import Terms, Thresholding

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


def thresholding_gate(
    name: str,
    section: Gate,
    first: TestedRelease | None,
    spec: Testable | None,
    dialect: Dialect,
    bound: UnitBound | None,
    neighbours: Neighbours,
) -> ThresholdingGate:
    """Question of a gate, and the mechanism of its runs.

    Args:
        name: Of the gate.
        section: It.
        first: The release that it tests; None where it says itself what it asks.
        spec: What its kind offers to gates.
        dialect: Of the engine that reads expressions.
        bound: How many records of a unit count; None where each record is a unit.
        neighbours: Relation of one record.

    Raises:
        ConfigurationError: It is impractical, or its custom test cannot be had.
    """
    from streamdp.gates.run import ThresholdingGate
    from streamdp.mechanisms.sparse_vector.thresholding import Terms, Thresholding

    asked, rows = _asked(section, first, spec, dialect), _units(bound, neighbours)
    released = quantiles_of(first)
    prices = section.test_epsilon, section.epsilon_of_test()
    question = section.test.question(name, Tested(asked, rows, released, *prices))
    of_batch = len(getattr(question, "configurations", ())) or 1
    horizon = section.horizon * of_batch
    thresholding = Thresholding(section.epsilon, section.beta, gamma=section.gamma, horizon=horizon)
    terms: tuple[Terms, ...] = ()
    if section.is_drawn():
        delta, sampled = section.test.slack()
        # k steps of p + kappa <= e^epsilon·(p' + kappa): kappa stays that of one record.
        epsilon, delta = section.epsilon_of_test() * rows, delta * rows
        if delta >= 1:
            raise ConfigurationError(
                f"delta of a test, times the {rows} records in which neighbours differ, is"
                f" {float(delta):g}",
                where=f"gates.{name}.test.delta",
                hint="make it smaller, or privacy.unit.rows",
            )
        terms = tuple(Terms(epsilon, delta, level) for level in section.levels())
        for each in terms:
            _require_practical(name, horizon, thresholding, each, sampled=sampled)
    query = with_bound(asked.query, bound)
    each_test = section.success_by == "test"
    made = ThresholdingGate(query, question, thresholding, terms, rows, each_test, of_batch)
    if not terms:
        sure = made.records_to_be_sure(horizon)
        _require_reach(name, section, first, sure)
    return made


def _asked(
    section: Gate, first: TestedRelease | None, spec: Testable | None, dialect: Dialect
) -> Asked:
    """Query of a gate: as the first job asks, or as the gate says itself."""
    match section.test.asks:
        case "cells":
            query = _cells(section, first, spec, dialect)
            return Asked(query, query.grid)
        case "counts":
            table = _table(section, first, spec, dialect)
            return Asked(table.query, cells=table.cells)
        case "rules":
            named = None if spec is None else spec.rules
            rules = None if named is None else named(first, dialect)
            assert rules is not None, "checked when the configuration was loaded"  # noqa: S101
            return Asked(rules.query(), rules=rules)
        case "scores":
            made = None if spec is None else spec.scored
            assert made is not None, "checked when the configuration was loaded"  # noqa: S101
            scored = made(first, dialect)
            return Asked(scored.query(), scored=scored)
        case _:
            assert_never(section.test.asks)


def _cells(
    section: Gate, first: TestedRelease | None, spec: Testable | None, dialect: Dialect
) -> CellQuery:
    """The cells of the column."""
    import math

    if spec is not None:
        cells = spec.cells
        assert cells is not None, "checked when the configuration was loaded"  # noqa: S101
        return cells(first, dialect)
    column, resolution, bounds = section.column, section.resolution, section.bounds
    assert column and resolution and bounds, "checked when the configuration was loaded"  # noqa: S101, PT018
    low, high = (math.floor(bound / resolution + Fraction(1, 2)) for bound in bounds)
    return CellQuery(column, Grid(resolution, low, high))


def _table(
    section: Gate, first: TestedRelease | None, spec: Testable | None, dialect: Dialect
) -> CountTable:
    """A table of the first job, or the records of a condition."""
    if spec is not None:
        counts = spec.counts
        assert counts is not None, "checked when the configuration was loaded"  # noqa: S101
        return counts(first, dialect)[section.test.table()]
    condition = section.test.condition()
    where = None if condition is None else expression(condition, dialect)
    return CountTable(TableQuery((), where=where), ("",))


def _units(bound: UnitBound | None, neighbours: Neighbours) -> int:
    """Most records in which neighbours differ."""
    rows = 1 if bound is None else bound.rows
    return 2 * rows if neighbours == "substitute" else rows


def _require_practical(
    name: str, horizon: int, thresholding: Thresholding, terms: Terms, *, sampled: bool
) -> None:
    """Refuse a gate whose noise asks for too many draws, or hides every no.

    Raises:
        ConfigurationError: With the numbers and what to change.
    """
    try:
        thresholding.require_practical(terms, horizon, sampled=sampled)
    except ConfigurationError as error:
        place = f"gates.{name}.test_epsilon"
        raise ConfigurationError(error.what, where=place, hint=error.hint) from None


def _require_reach(name: str, section: Gate, first: TestedRelease | None, margin: int) -> None:
    """Refuse a gate whose noise hides even a batch that is wholly beyond.

    Raises:
        ConfigurationError: With the numbers and what to change.
    """
    rows = None if first is None else first.expected_rows
    most = section.test.most(quantiles_of(first), rows)
    if most is None or margin <= most:
        return
    raise ConfigurationError(
        f"a yes is sure only {margin} records beyond the tolerance, and at most {most} can be"
        " there",
        where=f"gates.{name}",
        hint=f"make epsilon ({float(section.epsilon):g}) larger, horizon ({section.horizon})"
        f" smaller, beta ({float(section.beta):g}) larger, the tolerance tighter, or the batches"
        " longer",
    )
