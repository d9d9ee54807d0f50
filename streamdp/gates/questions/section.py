"""Questions of gates: what a test asks of each batch, and its section, found by `kind`.

A question turns a batch into a test. Most are a *score*, an excess of records of sensitivity one
(`sparse_vector.drift`): of quantiles outside their tolerance, of a quantile beyond a level, of a
count above a level. A score is compared with its noise directly, lowered by the margin: below zero
the answer is no, from the margin on it is yes, but with probability beta over a whole run. Other
tests are any private procedure that says yes with some chance, computed or drawn
(`mechanisms.sparse_vector.thresholding`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, Protocol

from streamdp.errors import InternalError
from streamdp.mechanisms.sparse_vector.thresholding import Chance, Runs
from streamdp.registry import Registry, subclass_of
from streamdp.sections.dialects import Dialect
from streamdp.sections.section import ByKind, Section
from streamdp.types import CellQuery, Grid, Json, Past, Row, SumQuery, TableCounts, TableQuery

Test = Fraction | Chance | Runs
"""A score of sensitivity one, or a private procedure's chance of yes, or the procedure."""

Tests = Test | tuple[Test, ...]
"""One test, or one for each of several configurations: the first that is accepted ends the run."""


class Question(Protocol):
    """The test of a gate, for any batch; all but the statistic is public."""

    def describe(self) -> Json:
        """Public parameters, for the ledger."""
        ...

    def test(self, past: Past, statistic: Any) -> Tests:
        """The test of one batch, of what its query counts; total: no exception depends on that.

        A question of several configurations names them in an attribute `configurations`, a tuple
        of rows, and returns as many tests, in that order.

        Privacy: as a score it has sensitivity one for neighbours that differ in `Tested.units`
        records; as a procedure it is private for one record, at the price that the gate says.
        """
        ...


@dataclass(frozen=True, slots=True)
class Around:
    """A tolerance around the last released value.

    Args:
        absolute: In the unit of the column, or in records.
        relative: A share of the released value.
        ranks: A share of all records.
    """

    absolute: Fraction = Fraction(0)
    relative: Fraction = Fraction(0)
    ranks: Fraction = Fraction(0)

    def cells(self, value: float, grid: Grid) -> tuple[int, int]:
        """First and last cell within the tolerance in values."""
        exact = Fraction(value)
        reach = self.absolute + self.relative * abs(exact)
        first, last = ((exact + sign * reach) / grid.resolution for sign in (-1, 1))
        low, high = math.ceil(first - Fraction(1, 2)), math.floor(last + Fraction(1, 2))
        return max(low, grid.lower), min(high, grid.upper)


class TestedRelease(Protocol):
    """What gates read of the section of a release, whatever its kind."""

    @property
    def kind(self) -> str:
        """Name of its kind."""
        ...

    @property
    def source(self) -> str:
        """Name of its source."""
        ...

    @property
    def by(self) -> tuple[str, ...]:
        """Columns of its groups."""
        ...

    @property
    def expected_rows(self) -> int | None:
        """Records that a batch is expected to have."""
        ...


def quantiles_of(release: TestedRelease | None) -> tuple[Fraction, ...]:
    """The quantiles that a release publishes; none if it is of another kind."""
    return getattr(release, "quantiles", ())


Asks = Literal["cells", "counts", "rules", "scores"]
"""The cells of a column, a table of counts, rules and a label, or the scores of candidates."""

Found = tuple[tuple[str | int, ...], str, str]
"""A problem: keys, what is wrong, what to do."""

Tables = Mapping[str, tuple[str, ...]]
"""Names of tables of counts, each with its cells."""

ONE_CELL = Grid(Fraction(1), 0, 0)
"""Grid of a test that reads no column."""


class JudgedRules(Protocol):
    """Rules of which a release names one, and a label that they err about."""

    def query(self) -> TableQuery:
        """The question to a batch."""
        ...

    @property
    def label(self) -> str:
        """SQL condition of the label."""
        ...

    def named(self, rows: Sequence[Row]) -> Row | None:
        """The row of a release that names its rule."""
        ...

    def number(self, row: Row) -> int | None:
        """Place of a rule among all; None if it is none of them."""
        ...

    def errors(self, statistic: TableCounts, number: int) -> tuple[int, int]:
        """How many records a rule is wrong about, and how many there are. Private."""
        ...

    def all_errors(self, statistic: TableCounts) -> tuple[Sequence[int], int]:
        """How many records each rule is wrong about, and how many there are. Private."""
        ...

    def rows(self) -> tuple[Row, ...]:
        """Parameters of each rule, in their order."""
        ...


class Scored(Protocol):
    """Candidates whose best score a gate may follow."""

    def query(self) -> TableQuery | SumQuery:
        """The question to a batch."""
        ...

    @property
    def one(self) -> Fraction:
        """The most that one record more or less changes a score."""
        ...

    def best(self, statistic: Any) -> Fraction:
        """The best score of a batch. Private."""
        ...


@dataclass(frozen=True, slots=True)
class CountTable:
    """A table of counts of a release, as a gate may ask for it.

    Args:
        query: With one marginal.
        cells: Their names in the release, in order.
    """

    query: TableQuery
    cells: tuple[str, ...]


class Testable(Protocol):
    """How a kind makes what gates ask of one of its releases; None where they may not ask."""

    @property
    def cells(self) -> Callable[[Any, Dialect], CellQuery] | None:
        """The question of cells."""
        ...

    @property
    def counts(self) -> Callable[[Any, Dialect], Mapping[str, CountTable]] | None:
        """The tables of counts, by name."""
        ...

    @property
    def rules(self) -> Callable[[Any, Dialect], JudgedRules | None] | None:
        """The rules that a release names one of."""
        ...

    @property
    def scored(self) -> Callable[[Any, Dialect], Scored] | None:
        """The candidates whose best score a gate may follow."""
        ...


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
    rules: JudgedRules | None = None
    scored: Scored | None = None

    def of_rules(self) -> JudgedRules:
        """The rules, for a test that asks for them."""
        if self.rules is None:
            raise InternalError("this release has no rules")
        return self.rules


@dataclass(frozen=True, slots=True)
class Tested:
    """What a test is put to.

    Args:
        asked: The question to a batch, and its public cells.
        units: Most records in which neighbours differ.
        released: Quantiles of the gate's first release, if it has any.
        test_epsilon: Of one draw, where the gate names it.
        epsilon_of_test: Of one draw, named or not.
    """

    asked: Asked
    units: int
    released: tuple[Fraction, ...]
    test_epsilon: Fraction | None
    epsilon_of_test: Fraction


class TestSection(Section):
    """A test, as the configuration writes it.

    `reads` names the kinds whose published values the test compares a batch with; it is None where
    it needs none of them, so that any release will do whose column can be counted.
    """

    kind: str
    reads: ClassVar[frozenset[str] | None] = None

    @abstractmethod
    def question(self, name: str, tested: Tested) -> Question:
        """Make the question to each batch.

        Args:
            name: Of the gate.
            tested: What it is put to.

        Raises:
            ConfigurationError: A test of another package cannot be had.
        """

    @property
    def asks(self) -> Asks:
        """What of a batch it is put to."""
        return "cells"

    def problems(self, release: TestedRelease, tables: Tables) -> Iterator[Found]:
        """Problems between the test and the first release of the gate.

        Args:
            release: Its section.
            tables: Names of its tables of counts, and of their cells.
        """
        yield from ()

    def why_not_alone(self) -> str | None:
        """Why a gate without a release cannot put a batch to it; None if it can."""
        return None

    def draws(self, *, priced: bool) -> bool:
        """Whether it is a private draw rather than a count, with or without a `test_epsilon`."""
        return False

    def slack(self) -> tuple[Fraction, bool]:
        """Delta of one draw, and whether its chance of a yes is sampled instead of computed."""
        return Fraction(0), False

    def table(self) -> str:
        """Name of the table of counts of the release that it is put to; "" if it asks for cells."""
        return ""

    def condition(self) -> str | None:
        """SQL condition of the records that a gate without a release counts; None for all."""
        return None

    def most(self, quantiles: tuple[Fraction, ...], rows: int | None) -> int | None:
        """The largest score that a batch can have, in records; None if nobody can say.

        Args:
            quantiles: Of the release, if it has any.
            rows: That a batch is expected to have; None if nothing is expected.
        """
        return None


TESTS: Registry[type[TestSection]] = Registry(
    "streamdp.gate_tests",
    "test",
    {
        "drift": "streamdp.gates.questions.drift:DriftTest",
        "threshold": "streamdp.gates.questions.threshold:ThresholdTest",
        "growth": "streamdp.gates.questions.growth:GrowthTest",
        "count": "streamdp.gates.questions.count:CountTest",
        "error": "streamdp.gates.questions.error:ErrorTest",
        "first": "streamdp.gates.questions.first:FirstTest",
        "custom": "streamdp.gates.questions.custom:CustomTest",
    },
    subclass_of(TestSection),
)
"""Tests by name; other packages offer a `TestSection` in the group `streamdp.gate_tests`."""

AnyTest = Annotated[TestSection, ByKind("test", TESTS.names, TESTS.find)]
"""The section of a test, of whatever kind it says."""
