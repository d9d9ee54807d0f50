"""Gates, by what the configuration names; an impractical one is refused before it is charged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, assert_never

from streamdp.config.base.dialects import Dialect
from streamdp.config.base.expressions import expression
from streamdp.config.model import Configuration
from streamdp.engine.gate import Gate as EngineGate
from streamdp.engine.job import Job
from streamdp.errors import ConfigurationError
from streamdp.gates.questions.section import Asked, Tested, quantiles_of
from streamdp.gates.section import Gate
from streamdp.kinds.spec import CountTable
from streamdp.types import Backend, CellQuery, Grid, TableQuery, UnitBound, with_bound
from streamdp.wiring.kinds import spec_of

if TYPE_CHECKING:
    from streamdp.gates.run import ThresholdingGate
    from streamdp.mechanisms.sparse_vector.thresholding import Terms, Thresholding


def gates(
    configuration: Configuration, jobs: Mapping[str, Job], engines: Callable[[str], Backend]
) -> dict[str, EngineGate]:
    """All gates by their names, with the jobs that they let release and what reads the sources.

    Raises:
        ConfigurationError: A gate is impractical, or its custom test cannot be had.
    """
    return {
        name: _gate(name, section, configuration, jobs, engines)
        for name, section in configuration.all_gates().items()
    }


def gate_kind(name: str, configuration: Configuration) -> ThresholdingGate:
    """Question of a gate, and the mechanism of its runs.

    Raises:
        ConfigurationError: It is impractical, or its custom test cannot be had.
    """
    from streamdp.gates.run import ThresholdingGate
    from streamdp.mechanisms.sparse_vector.thresholding import Terms, Thresholding

    section = configuration.all_gates()[name]
    asked, bound = _asked(section, configuration), _bound(configuration)
    rows = _units(configuration)
    released = quantiles_of(configuration.first_release(section))
    prices = section.test_epsilon, section.epsilon_of_test()
    question = section.test.question(name, Tested(asked, rows, released, *prices))
    of_batch = len(getattr(question, "configurations", ())) or 1
    horizon = section.horizon * of_batch
    thresholding = Thresholding(section.epsilon, section.beta, gamma=section.gamma, horizon=horizon)
    terms: tuple[Terms, ...] = ()
    if section.is_drawn():
        delta, sampled = section.test.slack()
        epsilon = section.epsilon_of_test() * rows
        terms = tuple(Terms(epsilon, delta, level) for level in section.levels())
        for each in terms:
            _require_practical(name, horizon, thresholding, each, sampled=sampled)
    query = with_bound(asked.query, bound)
    each_test = section.success_by == "test"
    made = ThresholdingGate(query, question, thresholding, terms, rows, each_test, of_batch)
    if not terms:
        sure = made.records_to_be_sure(horizon)
        _require_reach(name, section, configuration, sure)
    return made


def _gate(
    name: str,
    section: Gate,
    configuration: Configuration,
    jobs: Mapping[str, Job],
    engines: Callable[[str], Backend],
) -> EngineGate:
    scope = section.source or configuration.releases[section.release[0]].source
    kind = gate_kind(name, configuration)
    return EngineGate(
        name=name,
        scope=scope,
        source=configuration.sources[scope].source(scope),
        backend=engines(scope),
        kind=kind,
        jobs=tuple(jobs[job] for job in section.release),
        sinks=section.sinks,
        holds=section.hold,
        manual=section.rearm == "manual",
        slot=section.slot,
        horizon=section.horizon,
        configurations=getattr(kind.question, "configurations", ()),
    )


def _asked(section: Gate, configuration: Configuration) -> Asked:
    """Query of a gate: as the first job asks, or as the gate says itself."""
    match section.test.asks:
        case "cells":
            query = _cells(section, configuration)
            return Asked(query, query.grid)
        case "counts":
            table = _table(section, configuration)
            return Asked(table.query, cells=table.cells)
        case "rules":
            job = configuration.releases[section.release[0]]
            named = spec_of(job).rules
            rules = None if named is None else named(job, _dialect(section, configuration))
            assert rules is not None, "checked when the configuration was loaded"  # noqa: S101
            return Asked(rules.query(), rules=rules)
        case "scores":
            job = configuration.releases[section.release[0]]
            made = spec_of(job).scored
            assert made is not None, "checked when the configuration was loaded"  # noqa: S101
            scored = made(job, _dialect(section, configuration))
            return Asked(scored.query(), scored=scored)
        case _:
            assert_never(section.test.asks)


def _cells(section: Gate, configuration: Configuration) -> CellQuery:
    """The cells of the column."""
    import math

    if section.release:
        job = configuration.releases[section.release[0]]
        cells = spec_of(job).cells
        assert cells is not None, "checked when the configuration was loaded"  # noqa: S101
        return cells(job, _dialect(section, configuration))
    column, resolution, bounds = section.column, section.resolution, section.bounds
    assert column and resolution and bounds, "checked when the configuration was loaded"  # noqa: S101, PT018
    low, high = (math.floor(bound / resolution + Fraction(1, 2)) for bound in bounds)
    return CellQuery(column, Grid(resolution, low, high))


def _table(section: Gate, configuration: Configuration) -> CountTable:
    """A table of the first job, or the records of a condition."""
    dialect = _dialect(section, configuration)
    if section.release:
        job = configuration.releases[section.release[0]]
        counts = spec_of(job).counts
        assert counts is not None, "checked when the configuration was loaded"  # noqa: S101
        return counts(job, dialect)[section.test.table()]
    condition = section.test.condition()
    where = None if condition is None else expression(condition, dialect)
    return CountTable(TableQuery((), where=where), ("",))


def _dialect(section: Gate, configuration: Configuration) -> Dialect:
    return configuration.sources[configuration.source_of(section)].engine.dialect


def _bound(configuration: Configuration) -> UnitBound | None:
    unit = configuration.privacy.unit
    return None if unit.column is None else UnitBound(unit.column, unit.rows)


def _units(configuration: Configuration) -> int:
    """Most records in which neighbours differ."""
    bound = _bound(configuration)
    rows = 1 if bound is None else bound.rows
    return 2 * rows if configuration.privacy.neighbours == "substitute" else rows


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


def _require_reach(name: str, section: Gate, configuration: Configuration, margin: int) -> None:
    """Refuse a gate whose noise hides even a batch that is wholly beyond.

    Raises:
        ConfigurationError: With the numbers and what to change.
    """
    rows = configuration.releases[section.release[0]].expected_rows if section.release else None
    most = section.test.most(quantiles_of(configuration.first_release(section)), rows)
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
