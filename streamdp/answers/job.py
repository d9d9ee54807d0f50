"""Answers about a job from the measurements of its releases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import NoReturn, Self

import numpy as np

from streamdp.answers import LEVEL
from streamdp.answers.changes import Change, quantile_change, shift
from streamdp.answers.clipped import NOTHING, Distances, Hidden, Numbers
from streamdp.answers.counted import Counted, NoisyNumber, Stage, by_precision
from streamdp.answers.periods import Period, gaps
from streamdp.answers.regression import BatchHistory, Estimate, Scales, ahead, outermost, share
from streamdp.answers.tables import CountedTable, Part, PeriodTables, Raw, UnmeasuredError
from streamdp.errors import QuestionError
from streamdp.mechanisms.noise import noise_of
from streamdp.types import FloatArray, IntArray, Json, MeasuredRelease, Measurement

DAY = 86_400
_MANY_CELLS = 400
_TAIL = 0.0005
_NEAR = 28
"""Batches before and behind a period whose tables tell of those that it did not measure."""

SURELY = 3.0
"""Deviations by which a number of records must lie above none for something to be said of them."""

Group = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """A number of a period, with its 95 % interval.

    Args:
        value: In the unit of the column, or records, or a share.
        lower: End of the interval.
        upper: The other end.
        batches: How many batches it is made of.
        noise: Half of the part of the interval that is independent between answers.
        hidden: What clips may hide: alike in all batches and groups, so it adds up.
    """

    value: float
    lower: float
    upper: float
    batches: int
    noise: float
    hidden: Hidden = field(default=NOTHING, compare=False, repr=False)

    @classmethod
    def between(cls, value: float, lower: float, upper: float, batches: int) -> Self:
        """An answer whose whole interval is noise; its wider side is what others add to."""
        return cls(value, lower, upper, batches, max(value - lower, upper - value))

    @classmethod
    def widened(cls, value: float, half: float, hidden: Hidden, batches: int) -> Self:
        """An answer with half of the interval of its noise, and what clips may hide."""
        below, above = hidden.widened(half)
        return cls(value, value - below, value + above, batches, half, hidden)

    def scaled(self, by: float) -> Answer:
        """The answer times a number; of a negative one the sides change places."""
        lower, upper = sorted((self.lower * by, self.upper * by))
        noise, hidden = abs(by) * self.noise, self.hidden.scaled(by)
        return Answer(self.value * by, lower, upper, self.batches, noise, hidden)

    def within(self, least: float, most: float) -> Answer:
        """The answer, where nothing lies below the least or above the most."""
        value, lower, upper = (
            min(max(each, least), most) for each in (self.value, self.lower, self.upper)
        )
        return replace(self, value=value, lower=lower, upper=upper)


@dataclass(frozen=True, eq=False)
class Measured:
    """Releases of a job with what was measured of them; answers are functions of it alone.

    Args:
        job: Its name.
        releases: In the order of their batches.

    Privacy: reads measurements, which are outputs of private draws that were paid for and are
        published, and public facts of batches. All answers are post-processing: they cost nothing
        and charge nothing.
    """

    job: str
    releases: tuple[MeasuredRelease, ...]

    @cached_property
    def _newest(self) -> MeasuredRelease:
        for release in reversed(self.releases):
            if release.measurements:
                return release
        raise QuestionError(
            f"no release of {self.job} has measurements",
            hint="they are kept of releases from this version on",
        )

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Groups of the newest release; one without a name where there are none."""
        return tuple(dict.fromkeys(each.terms.group for each in self._newest.measurements))

    @cached_property
    def by(self) -> tuple[str, ...]:
        """Columns of groups."""
        return tuple(self._newest.measurements[0].terms.question.get("by", ()))

    @cached_property
    def axes(self) -> tuple[Json, ...]:
        """Axes of all tables, as the newest question about each describes it.

        Which tables a release measures changes from batch to batch, so no release has to name all.
        """
        found: dict[str, Json] = {}
        for release in reversed(self.releases):
            for each in release.measurements:
                for axis in each.terms.question.get("axes", ()):
                    found.setdefault(axis[0], axis)
        return tuple(found.values())

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """Measures of the newest release."""
        return tuple(dict.fromkeys(each.terms.part for each in self._newest.measurements))

    def column_of_records(self) -> str:
        """The column whose values `records` counts; empty where all records are counted."""
        found = {
            str(each.terms.question.get("column", ""))
            for release in self.releases
            for each in release.measurements
            if _counts_all(each)
        }
        return found.pop() if len(found) == 1 else ""

    @cached_property
    def _distributions(self) -> dict[Group, ColumnDistribution]:
        return {}

    def distribution(self, group: Group = ()) -> ColumnDistribution:
        """The distributions of a group's batches.

        Raises:
            QuestionError: The job counts no distribution, or has no such group.
        """
        if group not in self._distributions:
            self._distributions[group] = _distribution(self, group)
        return self._distributions[group]

    def within(self, period: Period, partial: bool = False) -> tuple[int, ...]:
        """Places of the releases whose batches lie in a period.

        Args:
            period: All of which was released, unless parts will do.
            partial: Whether they will.

        Raises:
            QuestionError: It is not, or batches overlap.
        """
        found, before = [], None
        for place, each in enumerate(self.releases):
            start, end = each.batch.start, each.batch.end
            if start is None or end is None:
                continue
            if start >= period.since and end <= period.until:
                if before is not None and start < before:
                    raise QuestionError(
                        f"batches of {self.job} overlap: each holds all records up to its end",
                        hint="ask about the last batch of the period alone",
                    )
                found.append(place)
                before = end
        missing = gaps([self.releases[place].batch for place in found], period)
        if not found:
            raise QuestionError(f"{self.job} has no release of {period.name}")
        if missing and not partial:
            named = ", ".join(_window(*each) for each in missing[:3])
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            raise QuestionError(
                f"{period.name} is not released as a whole: {named}{more} is missing",
                hint="answer for the batches that there are with --partial",
            )
        return tuple(found)

    def records(self, places: Sequence[int], group: Group = ()) -> Answer:
        """The number of records of some releases: the sum of all that was counted of them."""
        totals = [_counted_total(self, self.releases[place], group) for place in places]
        return _summed(totals)

    def united(self, groups: Sequence[Group] = ()) -> United:
        """The distributions of some groups together; of all without any."""
        return United(tuple(map(self.distribution, groups or self.groups)))

    def change(
        self,
        before: Period,
        after: Period,
        quantile: float,
        group: Group = (),
        partial: bool = False,
    ) -> tuple[Change, Change]:
        """How a quantile, and all deciles together, differ between two periods.

        Raises:
            QuestionError: A batch is in both, or they were not counted as a whole.
        """
        of = self.distribution(group)
        one, other = (of.of(self.within(each, partial), partial) for each in (before, after))
        if set(one.tolist()) & set(other.tolist()):
            raise QuestionError(f"{before.name} and {after.name} have batches in common")
        return of.change(one, other, quantile), of.shift(one, other)

    def adds_up(self, part: str) -> bool:
        """Whether a measure of the newest release is a count or a sum, so that days add up."""
        return self.is_count(part) or any("sum" in each for each in self._measures(part))

    def is_mean(self, part: str) -> bool:
        """Whether a measure of the newest release is a mean, which a period has too."""
        return any("mean" in each for each in self._measures(part))

    def is_count(self, part: str) -> bool:
        """Whether a measure of the newest release counts records."""
        return any("count" in each for each in self._measures(part))

    def is_never_negative(self, part: str) -> bool:
        """Whether a measure of the newest release counts records, or sums values from 0 on."""
        sums = (each for each in self._measures(part) if "sum" in each)
        return self.is_count(part) or any(each["grid"][1] >= 0 for each in sums)

    def questions(self, part: str, places: Sequence[int]) -> int:
        """How many different questions a measure was in some releases."""
        return len(
            {
                each.terms.digest
                for place in places
                for each in self.releases[place].measurements
                if each.terms.part == part
            }
        )

    def _measures(self, part: str) -> Iterator[Json]:
        return (
            each.terms.question.get("measure") or {}
            for each in self._newest.measurements
            if each.terms.part == part and each.terms.form in ("table", "sums")
        )

    def total(self, part: str, places: Sequence[int], group: Group = (), cell: str = "") -> Answer:
        """The total of a measure over some releases: a count, or a sum of clipped values.

        The interval of a sum reaches as far as what was clipped may lie.

        Args:
            part: Name of the measure.
            places: Of the releases.
            group: Of the job's groups.
            cell: Of a count by cells, which one.
        """
        own = [_of_part(self, self.releases[place], part, group) for place in places]
        self._require_one_question(part, own)
        found = [_part_total(self, each, part, cell) for each in own]
        whole = _summed(found)
        if "sum" not in own[0][0].terms.question["measure"]:
            return whole
        distances = self._distances_of(part)
        numbers = self._numbers(part, places, group)
        hidden, chance = distances.hidden(places, [(group, numbers)])
        half = math.hypot(whole.noise, chance)
        return Answer.widened(whole.value, half, hidden, whole.batches)

    def mean(self, part: str, places: Sequence[int], groups: Sequence[Group] = ()) -> Answer:
        """The mean of a measure `mean` over some releases: of all records that have a value.

        Each batch released the sum of its clipped distances from a centre, and how many records
        there are: sums add up, with the centres weighed by these numbers.

        Args:
            part: Name of the measure.
            places: Of the releases.
            groups: Of the job's groups, together; all by default.
        """
        named = groups or self.groups
        own = [
            [_of_part(self, self.releases[place], part, group) for place in places]
            for group in named
        ]
        for each in own:
            self._require_one_question(part, each)
        measure: Json = own[0][0][0].terms.question.get("measure") or {}
        if "mean" not in measure:
            raise QuestionError(
                f"{part} of {self.job} is no mean",
                hint="of measures `sum` and `count` a mean is --mean SUM --per COUNT",
            )
        distances = self._distances_of(part)
        numbers = [self._numbers(part, places, group) for group in named]
        found = _clipped_mean(own, numbers)
        if found is None:
            raise QuestionError(
                "there may be hardly any records in this period, so nothing is known of their mean",
                hint="ask about a longer period, or about all groups together",
            )
        unit, (value, half, records) = float(Fraction(measure["grid"][0])), found
        hidden, chance = distances.hidden(places, list(zip(named, numbers, strict=True)))
        half = math.hypot(half * unit, chance / records)
        answer = Answer.widened(value * unit, half, hidden.scaled(1.0 / records), len(places))
        return answer.within(*(unit * each for each in measure["grid"][1:3]))

    def _require_one_question(self, part: str, found: Iterable[Sequence[Measurement]]) -> None:
        asked = {each[0].terms.digest for each in found}
        if len(asked) > 1:
            raise QuestionError(
                f"{part} was {len(asked)} different questions in this period: its column,"
                " condition, bounds or guess changed",
                where=self.job,
                hint="ask about the days before the change, and about those since",
            )

    def _numbers(self, part: str, places: Sequence[int], group: Group) -> Numbers:
        """How many records with a value of a measure a group has in some releases."""
        return self._distances_of(part).numbers(places, group)

    def _distances_of(self, part: str) -> Distances:
        if part not in self._distances:
            self._distances[part] = Distances.of(self.releases, part, records_by_group)
        return self._distances[part]

    @cached_property
    def _distances(self) -> dict[str, Distances]:
        return {}

    @cached_property
    def _tables(self) -> dict[tuple[tuple[int, ...], Group], CrossedTables]:
        return {}

    def crossed(self, places: tuple[int, ...], group: Group = ()) -> CrossedTables:
        """The tables of a workload over some releases.

        Raises:
            QuestionError: It measures none.
        """
        key = places, group
        if key not in self._tables:
            self._tables[key] = _crossed(self, places, group)
        return self._tables[key]


@dataclass(frozen=True, eq=False)
class ColumnDistribution:
    """The distributions of one group's batches.

    Args:
        job: Name, for errors.
        history: Of the batches that were counted.
        places: Place in the history of a release.
        resolution: Width of a cell.
        bounds: First and last cell.
    """

    job: str
    history: BatchHistory
    places: Mapping[int, int]
    resolution: Fraction
    bounds: tuple[int, int]
    _known: dict[bytes, Estimate] = field(default_factory=dict)

    @cached_property
    def scales(self) -> Scales:
        """Fitted to the history."""
        return self.history.fitted()

    def of(self, releases: Sequence[int], partial: bool = False) -> IntArray:
        """Return indices of releases in the history; with `partial` without those of no counts.

        Raises:
            QuestionError: Some have no counts.
        """
        found = [self.places[each] for each in releases if each in self.places]
        without = len(releases) - len(found)
        if not found or (without and not partial):
            raise QuestionError(
                f"of {len(releases)} releases of {self.job}, {without}"
                f" {'has' if without == 1 else 'have'} no counts of the question that is asked now",
                hint="--partial leaves them out, and so does --over all; values that were drawn, as"
                " on the first day, other columns or conditions, and releases of older versions"
                " tell no distribution",
            )
        return np.array(found, dtype=np.int64)

    def quantile(self, quantile: float, places: IntArray) -> Answer:
        """A quantile of the records of some batches together.

        Raises:
            QuestionError: It lies beyond what was counted.
        """
        _require_records([(self, places)])
        self.require_inside(quantile, *self.outermost(places))
        key = places.tobytes()
        if key not in self._known:
            self._known[key] = self.shares(places, self.cells(places))
        return self.placed(self._known[key], quantile, len(places))

    def shares(self, places: IntArray, cells: FloatArray) -> Estimate:
        """The shares of the records of some batches up to cells."""
        return share(self.history, self.scales, self._weights(places), cells)

    def next(self, quantile: float, at: float) -> Answer:
        """A quantile of a batch to come, and where it lies with 95 %.

        Args:
            quantile: Which.
            at: Days since 1970 at which the batch begins.
        """
        recent = np.arange(len(self.history.at))[-7:]
        _require_records([(self, recent)])
        self.require_inside(quantile, *self.outermost(recent))
        found = ahead(self.history, self.scales, at, self.cells(recent))
        return self.placed(found, quantile, 0)

    def share(self, above: float | None, up_to: float | None, places: IntArray) -> Answer:
        """The share of records above one value and up to another.

        Args:
            above: None: from the lowest on.
            up_to: None: up to the highest.
            places: Of the batches.

        Raises:
            QuestionError: An end lies beyond what was counted, or there may be hardly any records.
        """
        _require_records([(self, places)])
        return self.part(above, up_to, places)

    def part(self, above: float | None, up_to: float | None, places: IntArray) -> Answer:
        """Return the share of records; unlike `share`, of groups with hardly any records too."""
        ends = [self._counted_cell(each, places) for each in (above, up_to) if each is not None]
        found = share(self.history, self.scales, self._weights(places), np.array(ends, dtype=float))
        sign = np.array(
            ([-1.0] if above is not None else []) + ([1.0] if up_to is not None else [])
        )
        value = float(sign @ found.mean) + (1.0 if up_to is None else 0.0)
        spread = float(found.variance.sum() - 2.0 * found.beside.sum())
        half = LEVEL * math.sqrt(max(spread, 0.0))
        value, low, high = (min(max(x, 0.0), 1.0) for x in (value, value - half, value + half))
        return Answer.between(value, low, high, len(places))

    def ranges(self, many: int, places: IntArray) -> tuple[float, ...]:
        """Cuts of a histogram with so many bins between the outermost cuts that were counted."""
        _require_records([(self, places)])
        base = self.history.base(places)
        low, high = np.quantile(base.cut_shares, [0.02, 0.98])
        ends = base.places(np.array([low, high])) * float(self.resolution)
        return tuple(_round_numbers(float(ends[0]), float(ends[1]), many))

    def change(self, one: IntArray, other: IntArray, quantile: float) -> Change:
        """How a quantile differs between two periods, in the unit of the column."""
        for each in (one, other):
            _require_records([(self, each)])
        self.require_inside(quantile, *self.outermost(np.concatenate((one, other))))
        found = quantile_change(self.history, self.scales, one, other, quantile)
        return self._in_unit(found)

    def shift(self, one: IntArray, other: IntArray) -> Change:
        """Change of all deciles together, in the unit of the column."""
        return self._in_unit(shift(self.history, self.scales, one, other))

    def _in_unit(self, found: Change) -> Change:
        unit = float(self.resolution)
        names = ("before", "after", "change", "lower", "upper")
        return replace(found, **{name: getattr(found, name) * unit for name in names})

    def _weights(self, places: IntArray) -> dict[int, float]:
        size = self.history.sizes[places]
        return dict(zip(places.tolist(), (size / size.sum()).tolist(), strict=True))

    def cells(self, places: IntArray) -> FloatArray:
        """Cells between which the distribution of some batches is told."""
        base = self.history.base(places)
        low, high = base.places(np.array([_TAIL, 1.0 - _TAIL]))
        if high - low < _MANY_CELLS:
            found = np.arange(np.floor(low), np.ceil(high) + 1)
        else:
            found = np.floor(base.places(np.linspace(_TAIL, 1.0 - _TAIL, _MANY_CELLS)))
        return np.unique(np.clip(found, *self.bounds))

    def placed(self, found: Estimate, quantile: float, batches: int) -> Answer:
        """The place of a quantile, and where it lies with 95 %."""
        half = LEVEL * np.sqrt(np.maximum(found.variance, 1e-12))
        rising, falling = np.maximum.accumulate, np.minimum.accumulate
        mean = (rising(found.mean) + falling(found.mean[::-1])[::-1]) / 2

        def place(shares: FloatArray) -> float:
            steps = 1e-12 * np.arange(len(shares))
            return float(np.interp(quantile, rising(shares) + steps, found.cells))

        upper = falling((found.mean - half)[::-1])[::-1]
        value = math.ceil(place(mean) - 1e-6)
        low, high = math.ceil(place(found.mean + half) - 1e-6), math.ceil(place(upper) - 1e-6)
        unit = float(self.resolution)
        ends = min(low, value) * unit, max(high, value) * unit
        return Answer.between(value * unit, *ends, batches)

    def require_inside(self, quantile: float, low: float, high: float) -> None:
        """Require a quantile to lie between the shares at the outermost cuts, or hardly outside."""
        if not 0.7 * low - 0.005 <= quantile <= 1.0 - 0.7 * (1.0 - high) + 0.005:
            raise QuestionError(
                f"the quantile {quantile:g} lies beyond what was counted: cuts lie between"
                f" {low:.3f} and {high:.3f}",
                where=self.job,
                hint="list it in `quantiles` of the job, and later batches are cut there too",
            )

    def outermost(self, places: IntArray) -> tuple[float, float]:
        """Shares at the usual lowest and highest cut of some batches."""
        return outermost(self.history, places)

    def _counted_cell(self, value: float, places: IntArray) -> float:
        """The last cell at or below a value; it lies between the outermost cuts."""
        cell = math.floor(Fraction(str(value)) / self.resolution)
        cells = [self.history.shares[place].cells for place in places]
        low, high = min(each.min() for each in cells), max(each.max() for each in cells)
        if not low <= cell <= high:
            unit = float(self.resolution)
            raise QuestionError(
                f"{value:g} lies beyond what was counted: cuts lie between {low * unit:g}"
                f" and {high * unit:g}",
                where=self.job,
                hint="a quantile further out in `quantiles` of the job puts cuts there in future",
            )
        return float(cell)


@dataclass(frozen=True, slots=True, eq=False)
class United:
    """The distributions of disjoint groups together, weighed by their numbers of records.

    Args:
        parts: At least one, of the same column.
    """

    parts: tuple[ColumnDistribution, ...]

    def quantile(self, quantile: float, releases: Sequence[int], partial: bool = False) -> Answer:
        """A quantile of the records of all groups.

        Raises:
            QuestionError: It lies beyond what was counted, or some have no counts.
        """
        own = [each.of(releases, partial) for each in self.parts]
        first = self.parts[0]
        if len(own) == 1:
            return first.quantile(quantile, own[0])
        pairs = list(zip(self.parts, own, strict=True))
        _require_records(pairs)
        weights, noise = self._weights(pairs)
        ends = np.array([each.outermost(places) for each, places in pairs])
        first.require_inside(quantile, *(weights @ ends).tolist())
        cells = np.unique(np.concatenate([each.cells(places) for each, places in pairs]))
        if len(cells) > _MANY_CELLS:
            cells = np.unique(np.quantile(cells, np.linspace(0, 1, _MANY_CELLS), method="lower"))
        found = [each.shares(places, cells) for each, places in pairs]
        mean = np.asarray(sum(w * each.mean for w, each in zip(weights, found, strict=True)))
        variance, beside = np.zeros(len(cells)), np.zeros(len(cells) - 1)
        for weight, each, spread in zip(weights, found, noise, strict=True):
            off = each.mean - mean
            variance += weight**2 * each.variance + spread * off**2
            beside += weight**2 * each.beside + spread * off[1:] * off[:-1]
        whole = Estimate(cells, mean, variance, beside)
        return first.placed(whole, quantile, max(map(len, own)))

    def share(
        self,
        above: float | None,
        up_to: float | None,
        releases: Sequence[int],
        partial: bool = False,
    ) -> Answer:
        """The share of the records of all groups above one value and up to another.

        Raises:
            QuestionError: An end lies beyond what was counted, or some have no counts.
        """
        pairs = [(each, each.of(releases, partial)) for each in self.parts]
        _require_records(pairs)
        found = [each.part(above, up_to, places) for each, places in pairs]
        if len(found) == 1:
            return found[0]
        weights, noise = self._weights(pairs)
        value = float(weights @ [each.value for each in found])
        spread = np.array([(each.upper - each.lower) / (2 * LEVEL) for each in found])
        moved = np.array([each.value for each in found]) - value
        half = LEVEL * math.sqrt(float(weights**2 @ spread**2 + moved**2 @ noise))
        low, high = max(value - half, 0.0), min(value + half, 1.0)
        return Answer.between(value, low, high, found[0].batches)

    def _weights(
        self, pairs: Sequence[tuple[ColumnDistribution, IntArray]]
    ) -> tuple[FloatArray, FloatArray]:
        """Shares of the groups among all records, and the variance of each."""
        sizes = np.array([float(each.history.sizes[places].sum()) for each, places in pairs])
        noise = [
            sum(each.history.batches[place].total()[1] for place in places.tolist())
            for each, places in pairs
        ]
        return sizes / sizes.sum(), np.array(noise) / sizes.sum() ** 2


def _require_records(pairs: Sequence[tuple[ColumnDistribution, IntArray]]) -> None:
    """Refuse batches of disjoint groups that may have hardly any records together."""
    found = [each.history.records(places) for each, places in pairs]
    records, variance = (sum(each) for each in zip(*found, strict=True))
    if records < SURELY * math.sqrt(variance):
        raise QuestionError(
            "there may be hardly any records in this period, so nothing is known of their values",
            where=pairs[0][0].job,
            hint="ask about a longer period, or about all groups together",
        )


@dataclass(frozen=True, slots=True, eq=False)
class CrossedTables:
    """Tables over the axes of a workload, of a period.

    Args:
        tables: Consistent with each other.
        labels: Cells of each axis, by its name.
        masks: Axes of each measured condition, and the cells in which it holds.
        batches: How many batches they are of.
    """

    tables: PeriodTables
    labels: Mapping[str, tuple[str, ...]]
    masks: Mapping[str, Part]
    batches: int

    def cell(self, answer: str, axes: Mapping[str, Json]) -> Answer:
        """A cell of an answer of the workload; of a condition the number that meets it.

        Raises:
            QuestionError: Too few batches measured its table.
        """
        if answer in self.masks:
            return self.part(self.masks[answer])
        at = tuple(self.labels[name].index(str(cell)) for name, cell in axes.items())
        return self._answer(answer, lambda: self.tables.table(tuple(axes)), at)

    def part(self, part: Part) -> Answer:
        """The number of records that meet a condition.

        Raises:
            QuestionError: Too few batches measured a table of its axes.
        """
        return self._answer(part.name, lambda: self.tables.part(part), ())

    def _answer(self, named: str, ask: Callable[[], CountedTable], at: tuple[int, ...]) -> Answer:
        try:
            table = ask()
        except UnmeasuredError as error:
            raise QuestionError(
                f"only {error} measured {named!r}, and the others do not follow from them",
                hint="ask about a longer period, or for fewer axes",
            ) from None
        value, half = round(float(table.counts[at]), 3), round(float(table.halves[at]), 3)
        return Answer.between(value, value - half, value + half, self.batches)


def _crossed(measured: Measured, places: tuple[int, ...], group: Group) -> CrossedTables:
    labels: dict[str, tuple[str, ...]] = {}
    masks: dict[str, Part] = {}
    near = range(max(places[0] - _NEAR, 0), min(places[-1] + 1 + _NEAR, len(measured.releases)))
    found: dict[int, list[Raw]] = {place: [] for place in (*near, *places)}
    for place, raws in found.items():
        for each in measured.releases[place].measurements:
            question = each.terms.question
            if "axes" not in question or each.terms.group != group:
                continue
            own = {name: tuple(cells) for name, _, cells, *_ in question["axes"]}
            if any(labels.setdefault(name, cells) != cells for name, cells in own.items()):
                raise QuestionError(f"axes of {measured.job} had other cells in this period")
            shape = tuple(map(len, own.values()))
            if "cells" in question:
                mask = np.array(question["cells"], dtype=np.float64).reshape(shape)
                name = f"condition {each.terms.part}"  # the name of no axis
                masks[each.terms.part] = Part(name, tuple(own), mask)
                raws.append(Raw((name,), np.array(each.numbers, dtype=float), _variance(each)))
                continue
            counts = np.array(each.numbers, dtype=np.float64).reshape(shape)
            raws.append(Raw(tuple(own), counts, _variance(each)))
    batches = [found[place] for place in places]
    if not all(batches):
        if not any(batches):
            _refuse(measured, group)
        raise QuestionError(
            f"{sum(not each for each in batches)} releases of {measured.job} measured no table",
            hint="releases of older versions have none",
        )
    beside = {place: raws for place, raws in found.items() if place not in places and raws}
    sizes = {name: len(cells) for name, cells in labels.items()}
    tables = PeriodTables(
        batches, sizes, list(beside.values()), [*map(float, places)], [*map(float, beside)]
    )
    return CrossedTables(tables, labels, masks, len(places))


def summed(parts: Iterable[Answer]) -> Answer:
    """The sum of answers whose noise is independent; what clips may hide of each adds up."""
    found = list(parts)
    half = math.sqrt(sum(each.noise**2 for each in found))
    hidden = sum((each.hidden for each in found), NOTHING)
    value, batches = sum(each.value for each in found), max(each.batches for each in found)
    return Answer.widened(value, half, hidden, batches)


def _distribution(measured: Measured, group: Group) -> ColumnDistribution:
    newest = [
        each
        for each in measured._newest.measurements
        if each.terms.form == "counts" and each.terms.group == group
    ]
    if not newest:
        _refuse(measured, group)
    digest = newest[0].terms.digest
    batches, places = list[Counted](), dict[int, int]()
    for place, release in enumerate(measured.releases):
        stages = tuple(_stages(release, digest))
        if stages:
            places[place] = len(batches)
            start = release.batch.start
            batches.append(Counted(float(place) if start is None else start / DAY, stages))
    grid = newest[0].terms.question["grid"]
    return ColumnDistribution(
        measured.job, BatchHistory(tuple(batches)), places, Fraction(grid[0]), (grid[1], grid[2])
    )


def _refuse(measured: Measured, group: Group) -> NoReturn:
    counts = any(each.terms.form == "counts" for each in measured._newest.measurements)
    if not counts:
        raise QuestionError(
            f"the newest release of {measured.job} has no counts between cuts",
            hint="jobs of two quantiles or more count from their second release on; a single one is"
            f" drawn each time, and `streamdp learned {measured.job}` says why others are. Of other"
            " kinds --records, --total and --mean tell; `streamdp report` and the page show how"
            " values changed",
        )
    _refuse_group(measured, group)


def _refuse_group(measured: Measured, group: Group) -> NoReturn:
    known = ", ".join(" ".join(each) for each in measured.groups if each)
    if not known:
        raise QuestionError(f"{measured.job} has no groups")
    named = f"no group {' '.join(group)!r}" if group else "groups, and none is named"
    raise QuestionError(f"{measured.job} has {named}", hint=f"--group takes one of: {known}")


def _stages(release: MeasuredRelease, digest: str) -> Iterator[Stage]:
    for each in release.measurements:
        if each.terms.form == "counts" and each.cells and each.terms.digest == digest:
            yield Stage(
                np.array(each.cells, dtype=np.float64),
                np.array(each.numbers, dtype=np.float64),
                _variance(each),
            )


def _variance(measurement: Measurement) -> float:
    law = measurement.terms.noise
    assert law is not None, "numbers have noise"  # noqa: S101
    return float(noise_of(law).variance)


def _counted_total(measured: Measured, release: MeasuredRelease, group: Group) -> NoisyNumber:
    """Noisy number of records of a release and its variance, from all histograms of it."""
    found = [
        each for each in release.measurements if each.terms.group == group and _counts_all(each)
    ]
    if not found:
        if group not in measured.groups:
            _refuse_group(measured, group)
        raise QuestionError(
            f"the release of {release.batch.key!r} by {measured.job} counted no records",
            hint="values that were drawn, as on the first day, tell none; --partial leaves them"
            " out, and so does --over all",
        )
    return _pooled(found)


def records_by_group(release: MeasuredRelease) -> dict[Group, NoisyNumber]:
    """Noisy number of records of each group of a release that counts them, and its variance."""
    found: dict[Group, list[Measurement]] = {}
    for each in release.measurements:
        if _counts_all(each):
            found.setdefault(each.terms.group, []).append(each)
    return {group: _pooled(each) for group, each in found.items()}


def _pooled(counts: Iterable[Measurement]) -> NoisyNumber:
    """Noisy number of records that were counted several times."""
    return by_precision(
        (float(sum(each.numbers)), len(each.numbers) * _variance(each)) for each in counts
    )


def counts_records(release: MeasuredRelease, group: Group) -> bool:
    """Whether a release tells how many records a group has."""
    return any(each.terms.group == group and _counts_all(each) for each in release.measurements)


def _counts_all(measurement: Measurement) -> bool:
    """Whether the numbers of a measurement add up to the number of records."""
    terms = measurement.terms
    if terms.form == "counts":
        return True
    measure = terms.question.get("measure")
    return terms.form == "table" and measure == {"count": "records"}


def _of_part(
    measured: Measured, release: MeasuredRelease, part: str, group: Group
) -> list[Measurement]:
    """The measurements of a measure of a group in a release: at least one."""
    own = [
        each
        for each in release.measurements
        if each.terms.part == part and each.terms.group == group
    ]
    if not any(measured.parts):
        raise QuestionError(
            f"{measured.job} counts records and has no measures, so no {part!r}",
            hint="ask for the number of records with --records",
        )
    if not own:
        if group not in measured.groups:
            _refuse_group(measured, group)
        if part in measured.parts:
            lacked = f"group {' '.join(group)!r}" if group else f"measure {part!r}"
            raise QuestionError(
                f"the release of {release.batch.key!r} by {measured.job} has no {lacked}",
                hint="ask about the batches that have it",
            )
        raise QuestionError(
            f"the release of {release.batch.key!r} by {measured.job} has no measure {part!r}",
            hint=f"its measures are: {', '.join(measured.parts)}",
        )
    return own


def _part_total(
    measured: Measured, own: Sequence[Measurement], part: str, cell: str
) -> tuple[float, float]:
    """Noisy total of a measure in a release, with its variance."""
    measure: Json = own[0].terms.question.get("measure") or {}
    if "count" in measure:
        return _count_of(own[0], part, cell)
    if "sum" in measure:
        one, unit = _sum_of(own), float(Fraction(measure["grid"][0]))
        return one.numbers[0] * unit, _variance(one) * unit**2
    if own[0].terms.form == "units":
        raise QuestionError(
            f"{part} counts distinct units: one who comes on two days is counted twice",
            where=measured.job,
            hint="a job whose batches are as long as the period counts each once",
        )
    hint = "measures `count` and `sum` add up"
    if "mean" in measure:
        hint += f"; the mean of all records of the period is --mean {part}"
    raise QuestionError(
        f"{part} of {measured.job} is no count and no sum, so days of it do not add up", hint=hint
    )


def _sum_of(own: Sequence[Measurement]) -> Measurement:
    (one,) = [each for each in own if each.terms.form == "sums"]
    return one


def _clipped_mean(
    own: Sequence[Sequence[Sequence[Measurement]]], numbers: Sequence[Numbers]
) -> tuple[float, float, float] | None:
    """The mean of clipped values, half the interval of its noise, and the number of records.

    With centres c, sums S of distances from them, and numbers n, in all batches and groups,

        mean = m + Σ(S + (c - m)·n)/Σn

    for any m. Its error is first that of the sums over Σn, and (c - mean)/Σn for each record by
    which an n is off: centres follow the mean, so that is little.

    Args:
        own: Measurements of each group and release.
        numbers: Of records of each group.

    Returns:
        In cells; None if there may be hardly any records.
    """
    sums = [[_sum_of(each) for each in of] for of in own]
    total = np.array([[each.numbers[0] for each in of] for of in sums], dtype=float)
    noise = sum(_variance(each) for of in sums for each in of)
    centre = np.array([[each.given["centre"] for each in of] for of in sums], dtype=float)
    n = np.array([each.each for each in numbers])
    records, doubt = float(n.sum()), sum(each.of_all for each in numbers)
    unsure = math.sqrt(doubt) / max(records, 1.0)
    if unsure * SURELY >= 1.0:
        return None
    middle = float(centre.mean())
    value = middle + float((total + (centre - middle) * n).sum()) / records
    off = (centre - value) / records
    each = off.mean(axis=1)
    of_numbers = sum(
        float(mean**2 * known.of_all + (row - mean) ** 2 @ known.variance)
        for mean, row, known in zip(each, off, numbers, strict=True)
    )
    wide = noise / records**2 * (1.0 + 3.0 * unsure**2)
    return value, LEVEL * math.sqrt(wide + of_numbers), records


def _count_of(counted: Measurement, part: str, cell: str) -> tuple[float, float]:
    """A count, or that of one cell, and its variance."""
    cells = counted.terms.question["measure"].get("cells", [])
    if len(counted.numbers) == 1:
        return float(counted.numbers[0]), _variance(counted)
    if not cell:
        return float(sum(counted.numbers)), len(counted.numbers) * _variance(counted)
    if cell not in cells:
        raise QuestionError(
            f"{part} has no cell {cell!r}", hint=f"its cells are: {', '.join(cells)}"
        )
    return float(counted.numbers[cells.index(cell)]), _variance(counted)


def _summed(totals: Sequence[tuple[float, float]]) -> Answer:
    value = sum(each for each, _ in totals)
    half = LEVEL * math.sqrt(sum(variance for _, variance in totals))
    return Answer.between(value, value - half, value + half, len(totals))


def mean(total: Answer, count: Answer) -> Answer:
    """The mean of a total over a count, with the first order of both noises (delta method).

    What clips may hide of the total is divided by the count.
    """
    if count.lower <= 0:
        raise QuestionError("there may be no records in this period, so it has no mean")
    value = total.value / count.value
    half = math.hypot(total.noise, value * count.noise) / count.value
    return Answer.widened(value, half, total.hidden.scaled(1.0 / count.value), total.batches)


def _window(since: int, until: int) -> str:
    from datetime import UTC, datetime

    one, other = (datetime.fromtimestamp(each, UTC).isoformat()[:16] for each in (since, until))
    return f"{one} to {other} UTC"


def _round_numbers(low: float, high: float, many: int) -> Iterator[float]:
    """Multiples of a round step within a range."""
    rough = max(high - low, 1e-12) / many
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in (1, 2, 5, 10) if power * each >= rough * 0.999)
    number = math.ceil(low / step)
    while number * step <= high:
        yield number * step
        number += 1
