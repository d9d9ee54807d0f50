"""From the configuration of a gate to what it asks."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, assert_never

from streamdp.errors import ConfigurationError
from streamdp.gates.questions.counts import Counts, Growth, Scored
from streamdp.gates.questions.quantiles import Drift, Threshold
from streamdp.gates.questions.question import Around, Question
from streamdp.gates.questions.rules import FirstRule, RuleError, Rules
from streamdp.gates.section import Gate
from streamdp.gates.sections.count_tests import CountTest, GrowthTest
from streamdp.gates.sections.custom_tests import CustomTest
from streamdp.gates.sections.quantile_tests import DriftTest, ThresholdTest
from streamdp.gates.sections.rule_tests import ErrorTest, FirstTest
from streamdp.mechanisms.sparse_vector.drift import Tolerance
from streamdp.types import CellQuery, Grid, SumQuery, TableQuery

ENTRY_POINTS = "streamdp.tests"
"""Group of entry points of custom tests: `factory(grid, epsilon, **options)` makes a `Question`."""


ONE_CELL = Grid(Fraction(1), 0, 0)
"""Grid of a test that reads no column."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The question to a batch for a test, and its public cells.

    Args:
        query: The cells of a column, a table with one marginal, or sums.
        grid: Of the column.
        cells: Names of the table's cells.
        rules: Among which the release names one.
        scored: Candidates of the release.
    """

    query: CellQuery | TableQuery | SumQuery
    grid: Grid = ONE_CELL
    cells: tuple[str, ...] = ("",)
    rules: Rules | None = None
    scored: Scored | None = None


def question_of(
    name: str,
    section: Gate,
    asked: Asked,
    units: int,
    released: tuple[Fraction, ...] = (),
) -> Question:
    """The question that a gate's test asks.

    Args:
        name: Of the gate.
        section: Its configuration.
        asked: What is counted of each batch.
        units: Most records in which neighbours differ.
        released: Quantiles that its first release has, if it has any.

    Raises:
        ConfigurationError: A custom test cannot be had.
    """
    grid = asked.grid
    match section.test:
        case CountTest() as test:
            near = None
            if test.absolute is not None or test.relative is not None:
                near = Around(test.absolute or Fraction(0), test.relative or Fraction(0))
            looked, levels = test.cells or asked.cells, (test.above, test.below)
            return Counts(test.measure, asked.cells, looked, *levels, near, units)
        case ErrorTest() as test:
            assert asked.rules is not None, "checked when the configuration was loaded"  # noqa: S101
            return RuleError(asked.rules, test.above, test.more, units)
        case FirstTest() as test:
            assert asked.rules is not None, "checked when the configuration was loaded"  # noqa: S101
            return FirstRule(asked.rules, test.correct, units)
        case DriftTest() as test:
            none = Fraction(0)
            around = Around(test.absolute or none, test.relative or none, test.ranks or none)
            quantiles = test.quantiles or released
            return Drift(grid, around, quantiles, units, section.test_epsilon)
        case ThresholdTest() as test:
            low, high = (
                None if level is None else round(level / grid.resolution)
                for level in (test.below, test.above)
            )
            return Threshold(Tolerance(test.quantile, low, high), units)
        case GrowthTest() as test:
            levels_of = (test.score, test.start, test.factor)
            return Growth(*levels_of, units, asked.grid, test.quantile, asked.scored)
        case CustomTest() as test:
            return _custom(name, test, section.epsilon_of_test(), grid)
        case _:
            assert_never(section.test)


def _custom(name: str, test: CustomTest, epsilon: Fraction, grid: Grid) -> Question:
    """A test of another package.

    Raises:
        ConfigurationError: There is none of that name, or it refuses its options.
    """
    place = f"gates.{name}.test"
    found = {point.name: point for point in importlib.metadata.entry_points(group=ENTRY_POINTS)}
    if test.name not in found:
        there = ", ".join(sorted(found)) or "none"
        raise ConfigurationError(
            f"no installed package offers a test {test.name!r}",
            where=f"{place}.name",
            hint=f"entry points of {ENTRY_POINTS}: {there}",
        )
    options: dict[str, Any] = test.options
    try:
        question: Question = found[test.name].load()(grid, epsilon, **options)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigurationError(f"the test cannot be made: {error}", where=place) from None
    return question
