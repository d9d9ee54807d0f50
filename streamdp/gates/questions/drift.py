"""Has a quantile left a tolerance around the last release?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from streamdp.errors import ConfigurationError
from streamdp.gates.questions.section import (
    Around,
    Found,
    Question,
    Tables,
    Test,
    Tested,
    TestedRelease,
    TestSection,
    quantiles_of,
)
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.mechanisms.sparse_vector.drift import (
    DriftChance,
    Tolerance,
    excess,
    least_epsilon,
    rows,
)
from streamdp.sections.values import PositiveRational, Rational
from streamdp.types import CellCounts, Grid, Json, Past, Row


class DriftTest(TestSection):
    """Some quantile has left a tolerance around the last release."""

    reads: ClassVar[frozenset[str] | None] = frozenset({"quantiles"})

    kind: Literal["drift"] = Field(
        description="`drift`: a quantile has left the tolerance around the last release."
    )
    absolute: PositiveRational | None = Field(
        default=None, description="Tolerance in the column's unit.", examples=[20]
    )
    relative: PositiveRational | None = Field(
        default=None,
        description="Tolerance as a share of the last released value.",
        examples=["1/10"],
    )
    ranks: PositiveRational | None = Field(
        default=None,
        description="Tolerance in rank, as a share of the records, below 1.",
        examples=[0.15],
    )
    quantiles: tuple[Rational, ...] = Field(
        default=(),
        description="Quantiles that are tested. Default: all of the release.",
        examples=[[0.5, 0.9]],
    )

    @model_validator(mode="after")
    def _one_tolerance(self) -> DriftTest:
        if sum(each is not None for each in (self.absolute, self.relative, self.ranks)) != 1:
            raise ValueError("give one tolerance: absolute, relative or ranks")
        if self.ranks is not None and self.ranks >= 1:
            raise ValueError("a tolerance in ranks is a share below 1")
        return self

    def problems(self, release: TestedRelease, tables: Tables) -> Iterator[Found]:
        """Problems: quantiles that the release does not publish."""
        for index, quantile in enumerate(self.quantiles):
            if quantile not in quantiles_of(release):
                where = ("test", "quantiles", index)
                yield where, "its release does not release this quantile", "name one that it has"

    def why_not_alone(self) -> str | None:
        """A reason, always: drift is measured from a release."""
        return "drift is from a release: name a job in release"

    def draws(self, *, priced: bool) -> bool:
        """Whether it has a `test_epsilon`; a drift in ranks is always counted."""
        return priced and self.ranks is None

    def most(self, quantiles: tuple[Fraction, ...], rows: int | None) -> int | None:
        """The score of a batch whose records all lie beyond."""
        ranks = self.ranks or Fraction(0)
        larger = (max(quantile, 1 - quantile) for quantile in self.quantiles or quantiles)
        share = max((share - ranks) / (share + ranks) for share in larger)
        return None if rows is None else int(share * rows)

    def question(self, name: str, tested: Tested) -> Question:
        """The drift of its quantiles, or of all that are released.

        Raises:
            ConfigurationError: The chance of a draw at `test_epsilon` would be too inexact.
        """
        none = Fraction(0)
        around = Around(self.absolute or none, self.relative or none, self.ranks or none)
        quantiles = self.quantiles or tested.released
        least = least_epsilon(len(quantiles))
        if tested.test_epsilon is not None and tested.test_epsilon < least:
            raise ConfigurationError(
                f"the chance that a draw of {len(quantiles)} quantiles is outside cannot be"
                f" computed well enough at an epsilon of {float(tested.test_epsilon):g}",
                where=f"gates.{name}.test_epsilon",
                hint=f"give {float(least):.1g} or more, or test fewer quantiles",
            )
        return Drift(tested.asked.grid, around, quantiles, tested.units, tested.test_epsilon)


@dataclass(frozen=True, slots=True)
class Drift:
    """Has some quantile left the tolerance around the last release?

    Args:
        grid: Of the release.
        around: The tolerance.
        quantiles: Those that are looked at; the release has them.
        rows_per_unit: Most records in which neighbours differ.
        epsilon: If given, the test is not the count of records outside but a draw of all these
            quantiles at so much, which says yes if one is outside; its chance is computed.
    """

    grid: Grid
    around: Around
    quantiles: tuple[Fraction, ...]
    rows_per_unit: int = 1
    epsilon: Fraction | None = None

    def describe(self) -> Json:
        """Quantiles and tolerance, for the ledger."""
        about = {name: str(value) for name, value in asdict(self.around).items()}
        drawn = None if self.epsilon is None else str(self.epsilon)
        quantiles = [str(quantile) for quantile in self.quantiles]
        return {"kind": "drift", "quantiles": quantiles, "test_epsilon": drawn, **about}

    def test(self, past: Past, statistic: CellCounts) -> Test:
        """The largest excess of records, or the chance that a draw is outside.

        A quantile that the last release does not have has left every tolerance.
        """
        released = _values(past.rows)
        if any(float(quantile) not in released for quantile in self.quantiles):
            return rows(statistic, Fraction(0), self.rows_per_unit)
        values = [released[float(quantile)] for quantile in self.quantiles]
        cells = [self.around.cells(value, self.grid) for value in values]
        if self.epsilon is not None:
            tree = QuantileTree(self.quantiles, self.epsilon, self.grid)
            return DriftChance(tree, tuple(cells)).chance(statistic)
        tolerances = tuple(
            Tolerance(quantile, low, high, self.around.ranks)
            for quantile, (low, high) in zip(self.quantiles, cells, strict=True)
        )
        return excess(statistic, tolerances, self.rows_per_unit)


def _values(rows: Sequence[Row]) -> dict[float, float]:
    """Released values by their quantile as it is published: a number of its own for each."""
    return {
        float(row["quantile"] or 0): float(row.get("value") or 0)
        for row in rows
        if "quantile" in row
    }
