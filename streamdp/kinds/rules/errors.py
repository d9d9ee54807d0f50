"""How often the rule that a release names errs about a label, on a batch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamdp.kinds.rules.grid import RuleGrid
from streamdp.kinds.rules.halfspaces import Halfspaces
from streamdp.types import Dimension, Row, TableCounts, TableQuery


def label_dimension(label: str) -> Dimension:
    """The axis that says whether a condition holds; records where it is null have no cell."""
    return Dimension(
        "label", f"CASE WHEN {label} THEN 1 WHEN NOT ({label}) THEN 0 END", cuts=(1.0,)
    )


@dataclass(frozen=True, slots=True)
class RuleErrors:
    """Errors of a grid of rules about a label.

    Args:
        grid: The rules.
        label: SQL condition in the engine's dialect; records where it is null do not count.
        where: SQL condition on one record; where it is not true the record does not count.
    """

    grid: RuleGrid | Halfspaces
    label: str
    where: str | None = None

    def query(self) -> TableQuery:
        """Records by label and cell of the thresholds."""
        return replace(self.grid.query(label_dimension(self.label)), where=self.where)

    def named(self, rows: Sequence[Row]) -> Row | None:
        """The row of a release that names its rule: the first place, or the chosen expert."""
        return next((row for row in rows if row.get("place") == 1 or row.get("chosen") == 1), None)

    def number(self, row: Row) -> int | None:
        """Place of a rule among all of the grid; None if it is none of them."""
        places = []
        for name, possible in self.grid.parameters:
            values = [float(value) for value in possible]
            if row.get(name) not in values:
                return None
            places.append(values.index(float(row[name] or 0)))
        return int(np.ravel_multi_index(places, self.grid.shape))

    def errors(self, statistic: TableCounts, number: int) -> tuple[int, int]:
        """How many records a rule is wrong about, and how many there are. Private.

        It is wrong about each record with the label that it does not match, and about each without
        the label that it matches.
        """
        errors, records = self.all_errors(statistic)
        return errors[number], records

    def all_errors(self, statistic: TableCounts) -> tuple[list[int], int]:
        """How many records each rule is wrong about, and how many there are. Private."""
        without, labelled = statistic.marginals[0]
        more = self.grid.over_matching(without - labelled) + labelled.sum()
        return [int(each) for each in more], int(without.sum() + labelled.sum())

    def rows(self) -> tuple[Row, ...]:
        """Parameters of each rule, in their order."""
        names = [name for name, _ in self.grid.parameters]
        possible = ([float(value) for value in values] for _, values in self.grid.parameters)
        return tuple(
            dict(zip(names, chosen, strict=True)) for chosen in itertools.product(*possible)
        )
