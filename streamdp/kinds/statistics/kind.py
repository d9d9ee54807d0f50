"""Release kind `statistics`: several measures of a batch, or of each public group of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from streamdp.kinds.statistics.measures.counts import Count
from streamdp.kinds.statistics.measures.moments import MomentOf
from streamdp.kinds.statistics.measures.protocol import (
    LEVEL,
    Allowance,
    AskedPart,
    Measure,
    Rows,
    integers,
)
from streamdp.mechanisms.noise import law_of, noise_of
from streamdp.privacy.events import sequence
from streamdp.privacy.price import Price
from streamdp.types import (
    HARDLY_ANY,
    Batch,
    Column,
    CompoundAnswer,
    CompoundQuery,
    Entropy,
    FloatArray,
    History,
    Json,
    Lesson,
    Measurement,
    MeasurementTerms,
    Neighbours,
    Outcome,
    Plan,
    Row,
    SumQuery,
    UnitQuery,
)
from streamdp.types.measurements import Form

LEAST = 1e-100
"""Least variance that is divided by: that of noise which is never drawn is 0."""


@dataclass(frozen=True, slots=True)
class Tie:
    """A count that the cells of a histogram add up to, in each group.

    Args:
        total: Number of the count among the measures.
        parts: Number of the histogram, whose cells hold every record.
    """

    total: int
    parts: int


def _agreed(ties: Sequence[Tie], rows: Sequence[Rows], groups: int) -> list[FloatArray]:
    """Values of all measures, of which totals agree with their parts; the others as they are.

    With a total t of noise variance R and k parts p_i of variance Q each, several histograms of one
    total being ties of their own, the least squares solution is the mean of t and of the sums of
    parts, weighted by 1/R and 1/(k·Q), and each part moves by the same.

    Args:
        ties: Which; a histogram is in one tie.
        rows: Of each measure, group after group.
        groups: How many there are.
    """
    values = [each.value.copy() for each in rows]
    for total in {tie.total for tie in ties}:
        parts = [tie.parts for tie in ties if tie.total == total]
        tables = [values[part].reshape(groups, -1) for part in parts]
        weights = [1.0 / max(rows[total].variance[0], LEAST)]
        weights += [
            1.0 / (table.shape[1] * max(rows[part].variance[0], LEAST))
            for part, table in zip(parts, tables, strict=True)
        ]
        sums = [values[total], *(table.sum(axis=1) for table in tables)]
        best = sum(w * each for w, each in zip(weights, sums, strict=True)) / sum(weights)
        for part, table in zip(parts, tables, strict=True):
            moved = (best - table.sum(axis=1)) / table.shape[1]
            values[part] = (table + moved[:, None]).reshape(-1)
        values[total] = best
    return values


Noisy = tuple[tuple[int, ...], ...]
"""Integers of each part of a measure; noisy, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class StatisticsPlan:
    """Input of `draw`, fixed before data is touched.

    Args:
        state: What was learned before.
        asked: Parts of each measure.
        weekday: Of the batch, 0 to 6; None where it is no window of time.
    """

    state: Json
    asked: tuple[tuple[AskedPart, ...], ...]
    weekday: int | None


@dataclass(frozen=True, slots=True)
class DrawnStatistics:
    """Drawn integers, and the values that follow from them."""

    state: Json
    rows: tuple[Rows, ...]
    noisy: tuple[Noisy, ...]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Measures of one batch from one scan, at one price together.

    Args:
        measures: At least one, of different names.
        shares: Of the price, one a measure; together 1.
        price: Of all measures for one record; in rho the noise is Gaussian.
        neighbours: Relation of one record.
        where: SQL condition; records of which it is not true do not count.
        by: Columns whose texts say which group a record is in; needs add-remove neighbours.
        groups: The public groups, distinct.
        ties: Counts that a histogram's cells are to add up to.
        smooth: Whether to publish what all releases together say, beside the release.
        counted: What a number of records is a number of.
        expected_rows: Records of a batch or group, for expected errors alone.
        units: Unit of each measure that has one, in words.
        cell_units: Unit of the cuts of each histogram that has one, in words.
    """

    measures: tuple[Measure, ...]
    shares: tuple[Fraction, ...]
    price: Price
    neighbours: Neighbours = "add-remove"
    where: str | None = None
    by: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ((),)
    ties: tuple[Tie, ...] = ()
    smooth: bool = True
    counted: str = "records"
    expected_rows: int | None = None
    units: tuple[tuple[str, str], ...] = ()
    cell_units: tuple[tuple[str, str], ...] = ()

    name: ClassVar[str] = "statistics"

    def __post_init__(self) -> None:
        if self.by and self.neighbours != "add-remove":
            raise ValueError("groups need add-remove neighbours")

    @property
    def columns(self) -> tuple[Column, ...]:
        """Group, measure and cell; the value as drawn, and what follows from it."""
        labels = (*self.by, "measure", "statistic")
        columns = [Column(name, "text", "label") for name in labels]
        columns.append(Column("cell", "text", "label", units=self.cell_units))
        columns.append(Column("value", "number", "value", units=self.units))
        columns.append(Column("lower", "number", "lower", about="value", level=LEVEL))
        columns.append(Column("upper", "number", "upper", about="value", level=LEVEL))
        columns.append(Column("nonnegative", "number", "estimate", about="value"))
        if self.ties:
            columns.append(Column("consistent", "number", "estimate", about="value"))
        if self.smooth:
            of, level = "smoothed", LEVEL
            columns.append(Column("smoothed", "number", "estimate", about="value"))
            columns.append(Column("smoothed_lower", "number", "lower", about=of, level=level))
            columns.append(Column("smoothed_upper", "number", "upper", about=of, level=level))
        columns.append(Column("flag", "text", "flag"))
        return tuple(columns)

    def signature(self) -> Json:
        """Each measure, the condition and the columns of groups; groups may come and go."""
        about = {measure.name: measure.signature() for measure in self.measures}
        return {"measures": about, "where": self.where, "by": list(self.by)}

    def init(self) -> Json:
        """No state of any measure."""
        return {}

    def prices(self) -> Iterator[tuple[Measure, Allowance]]:
        """Measures, with the allowance of each."""
        for measure, share in zip(self.measures, self.shares, strict=True):
            yield measure, Allowance(self.price.share(share), self.neighbours)

    def plan(self, state: Json, batch: Batch) -> Plan:
        """One question with the parts of all measures, and the price of each part.

        Privacy: a part is a vector of integers over all groups. Its sensitivity to one record (L1,
        or Euclidean for a price in rho) is that within one group, since a record is in one group at
        most (groups need add-remove), and its noise is scaled to it. The parts are drawn of the
        same records, so their prices add up to that of the release. Numbers of units are priced for
        a whole unit, in all groups together (`Units.asked`), and stand in `unit_event`. Centres and
        reaches follow from earlier releases alone.
        """
        asked = tuple(
            measure.asked(state.get(measure.name), price) for measure, price in self.prices()
        )
        parts = tuple(
            replace(each.part, where=self.where, by=self.by, groups=self.groups)
            for parts in asked
            for each in parts
        )
        mechanism = StatisticsPlan(state, asked, _weekday(batch))
        of_units = self._event(asked, of_unit=True) if self._counts_units() else None
        return Plan(CompoundQuery(parts), self._event(asked, of_unit=False), mechanism, of_units)

    def _counts_units(self) -> bool:
        return any(measure.of_unit for measure in self.measures)

    def _event(self, asked: Sequence[Sequence[AskedPart]], *, of_unit: bool) -> Json:
        """The event of the parts that are priced for a unit, or of those for a record."""
        events = [
            each.noise.event() | {"measure": measure.name, "sensitivity": each.noise.sensitivity}
            for measure, parts in zip(self.measures, asked, strict=True)
            for each in parts
            if measure.of_unit == of_unit
        ]
        about = {"by": list(self.by), "groups": len(self.groups)} if self.by else {}
        noise = "gaussian" if self.price.measure == "rho" else "laplace"
        return sequence(events, mechanism=f"discrete-{noise}", relation=self.neighbours, **about)

    def draw(
        self, plan: Plan, statistic: CompoundAnswer | Sequence[CompoundAnswer], entropy: Entropy
    ) -> Outcome:
        """A row for each group, measure and cell.

        Privacy: `neighbours` of one record, the price of `Plan.event`: every integer of the
        statistic gets the noise of its part (`AdditiveNoise.draw`, `GaussianNoise.draw`) and is not
        looked at otherwise; all that follows is
        computed from the noisy integers, the plan and earlier releases.
        """
        mechanism: StatisticsPlan = plan.mechanism
        hidden = self.hidden(mechanism, statistic)
        noisy = [
            tuple(
                each.noise.draw(vector, entropy)
                for each, vector in zip(parts, vectors, strict=True)
            )
            for parts, vectors in zip(mechanism.asked, hidden, strict=True)
        ]
        following = self.following(mechanism, noisy)
        return Outcome(self._raw(following.rows), following)

    def hidden(
        self, plan: StatisticsPlan, statistic: CompoundAnswer | Sequence[CompoundAnswer]
    ) -> list[Noisy]:
        """The integers of each part of each measure, group after group. Private."""
        answers = (statistic,) if isinstance(statistic, CompoundAnswer) else tuple(statistic)
        found, place = [], 0
        for parts in plan.asked:
            vectors = []
            for each in parts:
                of_groups = [integers(each, answer.parts[place]) for answer in answers]
                vectors.append(tuple(number for group in of_groups for number in group))
                place += 1
            found.append(tuple(vectors))
        return found

    def following(self, plan: StatisticsPlan, noisy: Sequence[Noisy]) -> DrawnStatistics:
        """States and rows, from what was released: post-processing."""
        state, rows = dict(plan.state), []
        for measure, asked, numbers in zip(self.measures, plan.asked, noisy, strict=True):
            before = plan.state.get(measure.name)
            with np.errstate(all="ignore"):
                after, found = measure.follow(before, asked, numbers, self.groups, plan.weekday)
            state[measure.name] = after
            rows.append(found)
        return DrawnStatistics(state, self._with_counts(rows), tuple(noisy))

    def _with_counts(self, rows: Sequence[Rows]) -> tuple[Rows, ...]:
        """The rows, where moments of a group know of hardly any records by a count beside them.

        What a moment itself counts has a tenth or a fifth of its price, and tells less of small
        groups.
        """
        found = list(zip(self.measures, rows, strict=True))
        empty = [each.empty for one, each in found if isinstance(one, Count) and one.axis is None]
        if not empty:
            return tuple(rows)
        none = np.logical_or.reduce(empty)
        return tuple(
            one.of_hardly_any(each, none) if isinstance(one, MomentOf) else each
            for one, each in found
        )

    def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
        """Values that followed from the noisy integers."""
        return outcome.auxiliary.state

    def measured(self, plan: Plan, outcome: Outcome) -> tuple[Measurement, ...]:
        """Return the noisy integers of each part of each measure, by group.

        Privacy: outputs of the noise of `draw`, unrounded, negative ones too.
        """
        return tuple(_measured(self, plan.mechanism, outcome.auxiliary.noisy))

    def replayed(self, state: Json, batch: Batch, measurements: tuple[Measurement, ...]) -> Json:
        """Return the state after a release that was measured so; None if it teaches nothing."""
        return _replayed(self, state, measurements, _weekday(batch))

    def lessons(self, history: History) -> Sequence[Lesson]:
        """Return what past releases taught, from releases and learned states alone."""
        from streamdp.kinds.statistics.lessons import lessons

        return tuple(lessons(self, history, _weekday(history.batch)))

    def publish(self, state: Json, outcome: Outcome) -> Outcome:
        """The rows with what all releases together say, and counts that are never negative."""
        drawn: DrawnStatistics = outcome.auxiliary
        together = _agreed(self.ties, drawn.rows, len(self.groups)) if self.ties else ()
        rows: list[Row] = []
        places = self._places()
        for row, (number, place) in zip(outcome.rows, places, strict=True):
            found = drawn.rows[number]
            about: dict[str, Any] = dict(row)
            if self.measures[number].counts:
                about["nonnegative"] = max(about["value"], 0.0)
            if together:
                about["consistent"] = float(together[number][place])
            if self.smooth:
                about["smoothed"] = float(found.smoothed[place])
                about["smoothed_lower"] = float(found.smoothed_lower[place])
                about["smoothed_upper"] = float(found.smoothed_upper[place])
            about["flag"] = HARDLY_ANY if found.empty[place] else None
            rows.append(about)
        return Outcome(tuple(rows))

    def _statistic(self, measure: Measure, cell: int) -> str:
        """Name the row's statistic, with what was counted where records of a unit are left out."""
        alike = measure.of_unit or self.counted == "records"
        return measure.statistic(cell) + ("" if alike else f" of {self.counted}")

    def _places(self) -> Iterator[tuple[int, int]]:
        """Number of the measure and place among its rows, of each row of a release."""
        for group in range(len(self.groups)):
            for number, measure in enumerate(self.measures):
                for cell in range(len(measure.cells)):
                    yield number, group * len(measure.cells) + cell

    def _raw(self, found: Sequence[Rows]) -> tuple[Row, ...]:
        rows: list[Row] = []
        for number, place in self._places():
            measure, cells = self.measures[number], self.measures[number].cells
            group = self.groups[place // len(cells)]
            about: Mapping[str, Any] = dict(zip(self.by, group, strict=True))
            value = float(found[number].value[place])
            cell = place % len(cells)
            labels = {"measure": measure.name, "statistic": self._statistic(measure, cell)}
            labels["cell"] = cells[cell]
            ends = {"lower": float(found[number].lower[place])}
            ends |= {"upper": float(found[number].upper[place])}
            rows.append({**about, **labels, "value": value, **ends})
        return tuple(rows)


def _weekday(batch: Batch) -> int | None:
    """Weekday of a batch, 0 to 6; None where it is no window of time."""
    if batch.start is None:
        return None
    return datetime.fromtimestamp(batch.start, UTC).weekday()


def _measured(
    kind: Statistics, plan: StatisticsPlan, noisy: Sequence[Noisy]
) -> Iterator[Measurement]:
    """The noisy integers of each group, by measure and by part.

    A table of distances and the sums beside it are about one clip, which earlier releases have
    chosen: each says its centre, its reach and its unit.
    """
    drawn = zip(kind.measures, kind.shares, plan.asked, noisy, strict=True)
    for measure, share, asked, vectors in drawn:
        given = _clip(measure, plan.state.get(measure.name))
        for stage, (part, vector) in enumerate(zip(asked, vectors, strict=True)):
            size = len(vector) // len(kind.groups)
            for place, group in enumerate(kind.groups):
                terms = MeasurementTerms(
                    _form(part),
                    _question(kind, measure),
                    part=measure.name,
                    stage=stage,
                    group=group,
                    noise=law_of(part.noise),
                    share=share,
                    relation=kind.neighbours,
                )
                numbers = tuple(vector[place * size : (place + 1) * size])
                yield Measurement(terms, numbers=numbers, given=given)


def _replayed(
    kind: Statistics, state: Json, measurements: Sequence[Measurement], weekday: int | None
) -> Json:
    """The state after a release; measures that it lacked keep theirs. None if it lacked all."""
    taught: dict[str, Json] = {}
    for measure, price in kind.prices():
        asked = _question(kind, measure)
        found = [
            each
            for each in measurements
            if each.terms.part == measure.name and each.terms.question == asked
        ]
        if not found:
            continue
        before = _meeting(measure, state.get(measure.name), found[0].given)
        parts = measure.asked(before, price)
        stages = [list(each) for _, each in groupby(found, key=lambda each: each.terms.stage)]
        if len(stages) != len(parts):
            continue
        with np.errstate(all="ignore"):
            taught[measure.name], _ = measure.follow(
                before,
                tuple(map(_as_drawn, parts, stages)),
                [tuple(number for each in stage for number in each.numbers) for stage in stages],
                tuple(each.terms.group for each in stages[0]),
                weekday,
            )
    return {**state, **taught} if taught else None


def _question(kind: Statistics, measure: Measure) -> Json:
    """What is measured, and which records count."""
    about: Json = {"measure": measure.signature()}
    about |= {} if kind.where is None else {"where": kind.where}
    return about | ({"by": list(kind.by)} if kind.by else {})


def _form(part: AskedPart) -> Form:
    match part.part:
        case SumQuery():
            return "sums"
        case UnitQuery():
            return "units"
        case _:
            return "table"


def _clip(measure: Measure, state: Json) -> Json:
    """Centre, reach and unit that a batch is clipped to; None where nothing is."""
    if not isinstance(measure, MomentOf):
        return None
    clip = measure.clip(state)
    return {"centre": clip.centre, "reach": clip.reach, "unit": clip.unit}


def _meeting(measure: Measure, state: Json, given: Json) -> Json:
    """The state, with the clip that a batch was clipped to.

    It has another where releases from before there were measurements chose it.
    """
    if not isinstance(measure, MomentOf) or _clip(measure, state) == given:
        return state
    clip = measure.clip(state)
    same = clip.centre == given["centre"] and clip.unit == given["unit"]
    bare = type(clip)(given["centre"], given["reach"], given["unit"], clip.scale)
    met = replace(clip, reach=given["reach"]) if same else bare
    return {**(state or {}), "clip": met.stored()}


def _as_drawn(part: AskedPart, stage: Sequence[Measurement]) -> AskedPart:
    """A part, with the noise that it was drawn with."""
    law = stage[0].terms.noise
    assert law is not None, "integers of statistics have noise"  # noqa: S101
    return replace(part, noise=noise_of(law))
