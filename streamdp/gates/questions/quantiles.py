"""Tests of quantiles: has one drifted, or is one beyond a level?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction

from streamdp.gates.questions.question import Around, Test
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.mechanisms.sparse_vector.drift import Tolerance, excess, rows
from streamdp.mechanisms.sparse_vector.drift_chance import DriftChance
from streamdp.types import CellCounts, Grid, Json, Past, Row


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


@dataclass(frozen=True, slots=True)
class Threshold:
    """Is a quantile above a level, or below it?

    Args:
        tolerance: What is not beyond.
        rows_per_unit: Most records in which neighbours differ.
    """

    tolerance: Tolerance
    rows_per_unit: int = 1

    def describe(self) -> Json:
        """Quantile and level, for the ledger."""
        about = asdict(self.tolerance) | {"quantile": str(self.tolerance.quantile)}
        return {"kind": "threshold", **about, "ranks": str(self.tolerance.ranks)}

    def test(self, past: Past, statistic: CellCounts) -> Fraction:
        """The number of records beyond the level, above the number that may be there. Private."""
        return excess(statistic, (self.tolerance,), self.rows_per_unit)


def _values(rows: Sequence[Row]) -> dict[float, float]:
    """Released values by their quantile as it is published: a number of its own for each."""
    return {
        float(row["quantile"] or 0): float(row.get("value") or 0)
        for row in rows
        if "quantile" in row
    }
