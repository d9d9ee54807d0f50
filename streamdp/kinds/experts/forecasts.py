"""Experts that are forecasts: numbers that other jobs released before a batch, put into a loss.

A forecast for a batch is the number in a row of the newest release of a job whose window ended by
the time the batch begins; of a release by groups, in a row of the group that is judged, where rows
say of which group they are. It is public, so a loss that holds it is asked for at the price of any
other. Before there is one, its loss is null for every record, which stands for a half.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamdp.kinds.experts.losses import Actions
from streamdp.types import Row

UNKNOWN = "NULLIF(1e0, 1e0)"
"""A null that is a number in every engine."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """A number of a job's releases.

    Args:
        job: Whose releases.
        row: Which row of them: what its columns hold.
        column: The number's.
    """

    job: str
    row: tuple[tuple[str, str | float], ...]
    column: str

    def of(self, rows: Sequence[Row]) -> float | None:
        """The number in a release; None if no row has it."""
        for each in rows:
            if all(each.get(name) == wanted for name, wanted in self.row):
                found = each.get(self.column)
                if isinstance(found, int | float) and math.isfinite(found):
                    return float(found)
        return None


@dataclass(frozen=True, slots=True)
class Forecasts:
    """Named forecasts, and the loss of a record under one.

    Args:
        named: Each by its name.
        loss: SQL of one record in the engine's dialect.
        place: What stands in it for the forecast.
        denominator: D: losses are rounded to multiples of 1/D.
    """

    named: tuple[tuple[str, Forecast], ...]
    loss: str
    place: str
    denominator: int

    @property
    def jobs(self) -> tuple[str, ...]:
        """Names of the jobs whose releases are read, once each."""
        return tuple(dict.fromkeys(forecast.job for _, forecast in self.named))

    def numbers(self, past: Mapping[str, Sequence[Row]]) -> tuple[float | None, ...]:
        """Each forecast, from the rows of each job's release."""
        return tuple(forecast.of(past.get(forecast.job, ())) for _, forecast in self.named)

    def actions(self, numbers: Sequence[float | None]) -> Actions:
        """Experts that lose by these forecasts."""
        made = ((name, self._loss(n)) for (name, _), n in zip(self.named, numbers, strict=True))
        return Actions(tuple(made), self.denominator)

    def _loss(self, number: float | None) -> str:
        """A literal with all digits, a double in every engine."""
        literal = UNKNOWN if number is None else f"({number:.16e})"
        return self.loss.replace(self.place, literal)
