"""How statistics are simulated: how far each row is from the records, as drawn and smoothed.

What a release asks depends on what was learned: where values are clipped. So a batch of a
simulation is reduced to counts of fine cells, from which every question is answered.

Chance is seeded, so that a simulation can be repeated: no release comes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace

import numpy as np

from streamdp.kinds.statistics.build import measures
from streamdp.kinds.statistics.kind import Statistics
from streamdp.kinds.statistics.measures.counts import Count
from streamdp.kinds.statistics.measures.moments import MomentOf
from streamdp.kinds.statistics.measures.units import Units, UnitSizes
from streamdp.kinds.statistics.section import StatisticsSection
from streamdp.kinds.study import ReplayedRelease, Stream, Study, Trace
from streamdp.types import (
    Batch,
    CompoundAnswer,
    CompoundQuery,
    Dimension,
    Entropy,
    FloatArray,
    IntArray,
    Outcome,
    Plan,
    Query,
    SumQuery,
    Sums,
    TableCounts,
    TableQuery,
    Term,
    UnitQuery,
)

LENGTH = 200
"""Batches, where nothing else is asked for."""

ROWS = 1_000
"""Expected records of a batch, where the release does not say."""

Path = Callable[[np.random.Generator, int], FloatArray]
"""How far a batch is from the first, in logarithms of numbers and in spreads of values."""


def stable(chance: np.random.Generator, length: int) -> FloatArray:
    """Always the same."""
    return np.zeros(length)


def drift(chance: np.random.Generator, length: int) -> FloatArray:
    """Steps of three per cent."""
    return np.cumsum(chance.normal(0.0, 0.03, length))


def shift(chance: np.random.Generator, length: int) -> FloatArray:
    """Twice as many, and two thirds of a spread higher, from the middle on."""
    return np.where(np.arange(length) < length // 2, 0.0, np.log(2.0))


def weekly(chance: np.random.Generator, length: int) -> FloatArray:
    """A weekend with half as many, half a spread lower."""
    return np.where(np.arange(length) % 7 >= 5, -np.log(2.0), 0.0)


PATHS: dict[str, Path] = {"stable": stable, "drift": drift, "shift": shift, "weekly": weekly}


def cells(chance: np.random.Generator, path: FloatArray, rows: int, count: int) -> IntArray:
    """Numbers of records of each batch and cell, shape (batches, cells).

    Cell k has the share 1/k of the first, and each batch its own Poisson number.
    """
    shares = 1.0 / np.arange(1, count + 1)
    means = np.exp(path)[:, None] * (rows * shares / shares.sum())
    drawn: IntArray = chance.poisson(means).astype(np.int64)
    return drawn


def values(
    chance: np.random.Generator, path: FloatArray, rows: int, centre: float, spread: float
) -> list[FloatArray]:
    """Normal values of each batch, in cells of the column."""
    sizes = chance.poisson(rows * np.exp(path))
    return [
        chance.normal(centre + moved * spread, spread, size)
        for moved, size in zip(path.tolist(), sizes.tolist(), strict=True)
    ]


FIRST = 946_857_600
"""2000-01-03, a Monday: when the first batch begins; each is a day."""

DAY = 86_400
FINEST = 2**13
"""Cells that values are told apart by."""

FAR = 8
"""First reaches to both sides of the centre that they span."""

SHARP = 1_000_000
"""How much more the oracle is told than a release tells."""

SHOWN = 3
"""Rows of a trace."""

_QUARTERS = np.array([-1.645, -0.674, 0.674, 1.645])
"""Where a normal law has 5 %, 25 %, 75 % and 95 % below."""


@dataclass(frozen=True, slots=True)
class Fine:
    """Fine cells of a column.

    Args:
        axis: Their cuts.
        at: The cell of the column that each stands for, shape (cells,).
    """

    axis: Dimension
    at: IntArray

    @classmethod
    def of(cls, moment: MomentOf) -> Fine:
        """Fine counts about the first centre, within the bounds."""
        centre, reach = moment.start
        low = max(moment.grid.lower, centre - FAR * reach)
        high = max(low + 1, min(moment.grid.upper, centre + FAR * reach))
        step = -(-(high - low) // FINEST)
        starts = np.arange(low + step, high + 1, step)
        cuts = tuple(float((int(each) - 0.5) * moment.grid.resolution) for each in starts)
        at = np.concatenate(([low], starts + (step - 1) // 2))
        return cls(Dimension(moment.column, moment.sql, cuts=cuts), at)

    def counted(self, found: FloatArray) -> TableCounts:
        """Values, in cells of the column, by fine cell."""
        edges = self.at[1:] - 0.5
        places = np.searchsorted(edges, found, side="right")
        return TableCounts((np.bincount(places, minlength=len(self.at)).astype(np.int64),))


class StatisticsStudy(Study):
    """The distance of each row from what the records say, in records or the column's unit."""

    measure = "error"
    streams: tuple[str, ...] = tuple(PATHS)
    variants: tuple[str, ...] = ("smoothed", "none")

    def variant(self, section: StatisticsSection, name: str, rows: int) -> StatisticsSection:
        """Return the section of one group, with smoothed columns (the oracle too) or without."""
        ungrouped: dict[str, object] = {
            "by": (),
            "groups": (),
            "groups_from": None,
            "group_rows": {},
        }
        return section.model_copy(update={**ungrouped, "smoothed": name != "none"})

    def synthetic(
        self, section: StatisticsSection, stream: str, seed: int, length: int | None
    ) -> Stream:
        """One of `PATHS`, the same one for all measures."""
        chance, count = np.random.default_rng(seed), length or LENGTH
        path, rows = PATHS[stream](chance, count), section.expected_rows or ROWS
        parts = [_made(chance, path, rows, each) for each in measures(section, "duckdb")]
        batches = tuple(
            Batch(stream, f"{day:05d}", FIRST + day * DAY, FIRST + (day + 1) * DAY)
            for day in range(count)
        )
        answers = tuple(CompoundAnswer(tuple(each)) for each in zip(*parts, strict=True))
        return Stream(stream, batches, answers, synthetic=True)

    def question(self, kind: Statistics, batch: Batch) -> Query:
        """Fine counts of each measure."""
        parts = [replace(_fine(each), where=kind.where) for each in kind.measures]
        return CompoundQuery(tuple(parts))

    def numbers(self, section: StatisticsSection) -> tuple[str, ...]:
        """Columns that are summed or cut."""
        found = []
        for each in measures(section, "duckdb"):
            match each:
                case MomentOf(column=column, sql=None):
                    found.append(column)
                case Count(axis=Dimension(name=name, sql=None, cuts=cuts)) if cuts is not None:
                    found.append(name)
        return tuple(found)

    def simulated(self, kind: Statistics, stream: Stream) -> Statistics:
        """The kind, answered from fine counts."""
        return Simulated(**{each.name: getattr(kind, each.name) for each in fields(kind)})

    def taught(self, kind: Statistics) -> Statistics:
        """The kind with next to no noise: it learns the truth."""
        price = replace(kind.price, amount=kind.price.amount * SHARP)
        return TaughtStatistics(
            **{each.name: getattr(kind, each.name) for each in fields(kind)} | {"price": price}
        )

    def truth(self, kind: Statistics, statistic: CompoundAnswer) -> Outcome:
        """Truth of the records, row by row; None where it has no meaning."""
        found = _truth(kind, statistic).tolist()
        rows = tuple({"value": None if np.isnan(each) else each} for each in found)
        return Outcome(rows, statistic)

    def errors(self, kind: Statistics, statistic: CompoundAnswer, outcome: Outcome) -> FloatArray:
        """Errors of the smoothed values if the kind publishes them, shape (rows,)."""
        drawn = outcome.auxiliary.rows
        released = [each.smoothed if kind.smooth else each.value for each in drawn]
        return np.abs(np.concatenate(released) - _truth(kind, statistic))

    def parts(self, kind: Statistics) -> tuple[str, ...]:
        """The measure of each row: counts and means are of different units."""
        of_group = [(each.name, len(each.cells)) for each in kind.measures]
        return tuple(
            name for name, cells in of_group for _ in range(cells * max(len(kind.groups), 1))
        )

    def trace(self, kind: Statistics, steps: Iterable[ReplayedRelease]) -> Trace:
        """The first rows, and where the interval of the smoothed value lies."""
        names = [f"{each.name} {cell}".strip() for each in kind.measures for cell in each.cells]
        truth, bands = [], []
        for step in steps:
            values = [row["value"] for row in step.truth.rows[:SHOWN]]
            truth.append([np.nan if each is None else each for each in values])
            drawn = step.outcome.auxiliary.rows
            point = np.concatenate([each.smoothed for each in drawn])[:SHOWN]
            ends = np.concatenate([each.smoothed_upper - each.smoothed_lower for each in drawn])
            deviation = ends[:SHOWN] / (2 * _QUARTERS[-1])
            bands.append(point[:, None] + deviation[:, None] * _QUARTERS)
        return Trace(tuple(names[:SHOWN]), np.array(truth, dtype=float), np.array(bands), None)


class Simulated(Statistics):
    """Draws from fine counts what production draws from records."""

    def draw(self, plan: Plan, statistic: CompoundAnswer, entropy: Entropy) -> Outcome:  # type: ignore[override]
        """The draw of production, from an answer computed of fine counts."""
        return Statistics.draw(self, plan, self.answered(plan, statistic), entropy)

    def answered(self, plan: Plan, statistic: CompoundAnswer) -> CompoundAnswer:
        """The answer that a backend would give to the plan's question."""
        parts: list[TableCounts | Sums] = []
        for each, asked, seen in zip(
            self.measures, plan.mechanism.asked, statistic.parts, strict=True
        ):
            match each:
                case MomentOf():
                    at, counts = Fine.of(each).at, _table(seen)
                    width = float(each.grid.resolution)
                    parts += [_answered(part.part, at, counts, width) for part in asked]
                case _:
                    parts.append(TableCounts((_table(seen),)))
        return CompoundAnswer(tuple(parts))


class TaughtStatistics(Simulated):
    """Learns from what the records say: the oracle of a simulation."""

    def learn(self, state: object, plan: Plan, outcome: Outcome) -> object:
        """Learn as if the exact integers had been drawn."""
        answer = self.answered(plan, outcome.auxiliary)
        return self.following(plan.mechanism, self.hidden(plan.mechanism, answer)).state


def _made(
    chance: np.random.Generator, path: FloatArray, rows: int, measure: object
) -> list[TableCounts]:
    """A measure's part of each batch."""
    match measure:
        case MomentOf():
            centre, reach = measure.start
            found = values(chance, path, rows, centre, reach / 4)
            return [Fine.of(measure).counted(np.rint(each)) for each in found]
        case Count():
            return [TableCounts((each,)) for each in cells(chance, path, rows, len(measure.cells))]
        case Units():
            return [TableCounts((each,)) for each in cells(chance, path, rows, 1)]
        case UnitSizes():
            return [TableCounts((each,)) for each in cells(chance, path, rows, len(measure.starts))]
        case _:
            raise TypeError(measure)


def _fine(measure: object) -> TableQuery | UnitQuery:
    match measure:
        case MomentOf():
            return TableQuery((Fine.of(measure).axis,), ((0,),))
        case Count():
            return measure.table()
        case Units():
            return UnitQuery()
        case UnitSizes():
            return UnitQuery(measure.cuts)
        case _:
            raise TypeError(measure)


def _table(part: TableCounts | Sums) -> IntArray:
    match part:
        case TableCounts(marginals=(table,)):
            return table.reshape(-1)
        case _:
            raise TypeError(part)


def _truth(kind: Statistics, statistic: CompoundAnswer) -> FloatArray:
    """The truth of each row; NaN where it has no meaning."""
    found = []
    for each, part in zip(kind.measures, statistic.parts, strict=True):
        counts = _table(part).astype(np.float64)
        match each:
            case MomentOf():
                found.append([_moment(each, counts)])
            case UnitSizes():
                shares = each.left_out(counts, np.zeros(len(counts)), 0.0)
                found.append([*counts.tolist(), *shares[0].tolist()])
            case _:
                found.append(counts.tolist())
    return np.concatenate(found)


def _moment(moment: MomentOf, counts: FloatArray) -> float:
    width, total = float(moment.grid.resolution), counts.sum()
    at = Fine.of(moment).at * width
    if moment.moment == "sum":
        return float(np.dot(counts, at))
    if not total:
        return float("nan")
    mean = float(counts @ at) / float(total)
    if moment.moment == "mean":
        return mean
    squares: float = float(counts @ (at - mean) ** 2) / float(total)
    return squares


def _answered(
    part: TableQuery | SumQuery | UnitQuery, at: IntArray, counts: IntArray, width: float
) -> TableCounts | Sums:
    """A question about the column, of values in fine cells."""
    match part:
        case TableQuery(dimensions=(axis,)):
            places = np.searchsorted(np.array(axis.cuts), at * width, side="right")
            found = np.zeros(axis.size, dtype=np.int64)
            np.add.at(found, places, counts)
            return TableCounts((found,))
        case SumQuery(terms=(Term() as term,)):
            clipped = np.clip(at, term.grid.lower, term.grid.upper) - term.centre
            return Sums((int(counts @ (clipped**2 if term.square else clipped)),))
        case _:
            raise TypeError(part)
