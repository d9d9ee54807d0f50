"""The protocol of measures: what each asks, with which noise, and what follows from that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from streamdp.mechanisms.clip import folded
from streamdp.mechanisms.noise import Noise, noise_at
from streamdp.privacy.price import Price
from streamdp.types import (
    BoolArray,
    FloatArray,
    Json,
    Neighbours,
    SumQuery,
    Sums,
    TableCounts,
    TableQuery,
    UnitQuery,
)

LEVEL = 0.95
"""How often an interval is to hold the truth."""

Key = tuple[tuple[str, ...], str]
"""Group and cell of a row."""


@dataclass(frozen=True, slots=True)
class AskedPart:
    """A part of the question, and the noise that its answer gets.

    Args:
        part: Of the compound question.
        noise: Of the vector of all its integers, in all groups.
        folded: Whether the table is one of `clip.Clip.dimension`, whose sides are added up.
    """

    part: TableQuery | SumQuery | UnitQuery
    noise: Noise
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """Values and intervals of a measure's rows, shapes (n,); rows are groups times cells.

    Args:
        value: Released, or computed from what was released of this batch.
        lower: End of the interval around it.
        upper: The other end.
        smoothed: What all releases together say.
        smoothed_lower: End of the interval around it.
        smoothed_upper: The other end.
        variance: Of the noise of the value.
        empty: Whether there are hardly any records, though there were before.
    """

    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    smoothed: FloatArray
    smoothed_lower: FloatArray
    smoothed_upper: FloatArray
    variance: FloatArray
    empty: BoolArray


@dataclass(frozen=True, slots=True)
class Allowance:
    """The part of the price that a measure may spend.

    Args:
        price: For one record.
        neighbours: Relation of one record.
    """

    price: Price
    neighbours: Neighbours

    def noise(
        self, added: int, exchanged: int, share: Fraction = Fraction(1), entries: int = 1
    ) -> Noise:
        """Noise for a vector of integers.

        Args:
            added: The most that one record more changes it: one entry.
            exchanged: The most that one record in the place of another changes it, over all
                entries.
            share: Of the price.
            entries: Between how many entries an exchange is divided evenly.
        """
        one_more = self.neighbours == "add-remove"
        sensitivity, spread = (added, 1) if one_more else (exchanged, entries)
        return noise_at(self.price.share(share), sensitivity, spread)


class Measure(Protocol):
    """Pure functions, as those of a kind."""

    @property
    def name(self) -> str:
        """Name of the measure in the configuration."""
        ...

    @property
    def of_unit(self) -> bool:
        """Whether it costs what it costs for a whole unit, and not for each of its records."""
        ...

    def statistic(self, cell: int) -> str:
        """The statistic of a cell: count, sum, mean or variance."""
        ...

    @property
    def counts(self) -> bool:
        """Whether truths are never negative whole numbers."""
        ...

    @property
    def cells(self) -> tuple[str, ...]:
        """Labels of its rows in each group."""
        ...

    def signature(self) -> Json:
        """The public parameters that its learned state depends on."""
        ...

    def asked(self, state: Json, price: Allowance) -> tuple[AskedPart, ...]:
        """Return the measure's parts of the question, each with its noise."""
        ...

    def follow(
        self,
        state: Json,
        asked: Sequence[AskedPart],
        noisy: Sequence[Sequence[int]],
        groups: Sequence[tuple[str, ...]],
        weekday: int | None,
    ) -> tuple[Json, Rows]:
        """The next state and the rows, from what was released.

        Args:
            state: Before the batch.
            asked: Its parts, as they were planned.
            noisy: Noisy integers of each part, group after group.
            groups: The public groups.
            weekday: Of the batch, if it has one.
        """
        ...


def integers(asked: AskedPart, answer: TableCounts | Sums) -> list[int]:
    """The integers of an answer. Private: they get the noise of `asked`."""
    if isinstance(answer, Sums):
        return list(answer.values)
    (table,) = answer.marginals
    counts: list[Any] = (folded(table) if asked.folded else table).reshape(-1).tolist()
    return counts
