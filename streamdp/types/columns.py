"""Columns of a release: what tables, sinks, pages and JSON know of what a kind publishes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

ColumnType = Literal["text", "number", "integer"]

Role = Literal[
    "label", "value", "origin", "estimate", "lower", "upper", "error", "batch", "flag", "state"
]
"""The role of a column for its reader.

* label: names the row, as a group or a quantile does; the same in every release of a job.
* value: what was drawn.
* origin: whether the column `about` was itself drawn (`measured`), or computed from other noisy
  measurements of the batch (`inferred`); or the batch in which the row itself was found.
* estimate: follows from this release and earlier ones, such as a smoothed value.
* lower, upper: ends of an interval around the column `about`.
* error: what error to expect, a public number.
* batch: says something of the whole batch, or of the whole group, in each of its rows.
* flag: a warning about the row, that follows from releases alone; null where nothing is off.
* state: what became of the row, such as a key that was found just now: marked, and no warning.
"""

HARDLY_ANY = "hardly any records"
"""The flag of a batch or group with next to no records: values and intervals say nothing of it."""

Chart = Literal["lines", "shares", "choices"]
"""How a chart of its own shows a column over time.

* lines: a line for each row; one, where all rows say the same.
* shares: what each row has of the whole, stacked.
* choices: which candidate was drawn; all columns that ask for it name the candidate together.
"""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the rows of a release.

    Args:
        name: In rows, tables and files.
        type: Of its values; any may be null.
        role: What it is to a reader.
        unit: Of its values, in words; nothing where it has none or nobody said.
        about: Of an interval's end: the column it is around. Of an error: whose it is.
        level: Of an interval: how often it holds what it is around; of an error: how often the
            error is within. A share.
        chart: The chart that the kind brings for this column besides that of its values.
        units: Of its values in rows of some measures, where these differ: pairs of what the label
            `measure` says, and the unit.
    """

    name: str
    type: ColumnType
    role: Role
    unit: str = ""
    about: str = ""
    level: float | None = None
    chart: Chart | None = None
    units: tuple[tuple[str, str], ...] = ()

    def unit_of(self, measure: Any) -> str:
        """Unit of the values in rows of a measure."""
        return dict(self.units).get(str(measure), self.unit)

    def written(self) -> dict[str, Any]:
        """The column as a mapping, without units where it has none by measure."""
        whole: dict[str, Any] = asdict(self)
        if not self.units:
            del whole["units"]
        return whole

    @classmethod
    def read(cls, whole: Mapping[str, Any]) -> Column:
        """A column as it was written."""
        units = tuple((str(measure), str(unit)) for measure, unit in whole.get("units", ()))
        return cls(**{**whole, "units": units})
