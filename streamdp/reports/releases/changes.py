"""A period of a job beside those before it: its rows as a whole, and how each changed.

Changes of quantiles are those of `streamdp ask --compare`. A change of a count, sum or mean has the
interval of what is released: how likely it is beyond that is not measured, and so not said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from streamdp.answers.periods import AROUND, Period, Step, holding
from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.errors import ConfigurationError
from streamdp.reports.releases.headline import headline_series
from streamdp.reports.releases.sentences import (
    CLEAR,
    change_said,
    dates_in_words,
    from_0_on,
    period_in_words,
)
from streamdp.reports.releases.series import (
    MEASURED,
    NESTED,
    Labels,
    Picture,
    labels_of,
    picture,
    row_name,
    text_of,
)
from streamdp.store.measurements import batches_span, select_measurements
from streamdp.store.reading.browse import WindowRange, count_releases, newest_releases
from streamdp.store.reading.places import moment_of, moment_of_key
from streamdp.types import Column, Json, MeasuredRelease, Release

if TYPE_CHECKING:
    from streamdp.answers.changes import Change
    from streamdp.answers.job import Answer, Group, Measured


DAY, HOUR = 86_400, 3600

EARLIER, FEWEST = 8, 3
"""Periods before this one that tell what is usual, and how few will do."""

MOST_ROWS, MOST_GROUPS = 400, 24
"""Rows of one comparison, and groups whose quantiles are compared: the first."""

MOST_AVERAGED = 400
"""Releases of a period of which values are averaged."""

MOST_FILES = 1000
"""Releases of files up to which a page compares: none is found by its date without reading all."""

Interval = tuple[float, float, float]
"""A value and the ends of its interval."""

Pooled = Literal["sum", "mean", "mean of batches", "quantile"]
"""How a value of a period follows: from all batches, or as the mean of what each says of itself."""

_NONE: Interval = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Moved:
    """How a row changed since the period before.

    Args:
        by: The change, and the ends of its interval.
        differ: Probability that the records changed; None where that is not measured.
        rose: Probability that what makes the records rose; None where that is not measured.
    """

    by: Interval
    differ: float | None = None
    rose: float | None = None

    @property
    def direction(self) -> int:
        """1 where it clearly rose, -1 where it clearly fell, 0 where neither is clear."""
        if self.differ is not None and self.differ < CLEAR:
            return 0
        return int(self.by[1] > 0) - int(self.by[2] < 0)

    def said(self, name: str, unit: str) -> str:
        """The change in words, and how likely it is where that is measured."""
        return change_said(name, *self.by, unit, self.differ, self.rose)


@dataclass(frozen=True, slots=True)
class PeriodRow:
    """A row of a job's releases, of all batches of a period together.

    Args:
        labels: Of the row, by column; None for all groups together.
        name: The same as people say it.
        value: Of the period.
        unit: Of the value; empty without one.
        pooled: How it follows from the batches.
        moved: Since the period before; None where that is not known.
        never_negative: Whether it is a count, or a sum of values from 0 on.
    """

    labels: Mapping[str, str | None]
    name: str
    value: Interval
    unit: str
    pooled: Pooled
    moved: Moved | None
    never_negative: bool = False

    @property
    def shown(self) -> Interval:
        """The value as people are told it: below 0 lies noise alone, if nothing is negative."""
        return (from_0_on(*self.value) or _NONE) if self.never_negative else self.value

    @property
    def is_impossible(self) -> bool:
        """Whether it is never negative, and all of its interval lies below 0."""
        return self.never_negative and from_0_on(*self.value) is None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A period, and the one before it.

    Args:
        step: How long periods are.
        period: This one.
        before: The one before; None where nothing was released in it.
        batches: How many this one has.
        batches_before: How many that one has.
        rows: As far as they follow from measurements.
        all_deciles: How all deciles of a group moved together, by its name.
        headline: The row that says most; None if it is none of the rows.
        earlier: Values of that row in periods before, the last first.
        zone: Time zone of its batches.
        each: What one batch is, in a word.
        whole: How many batches fill the period; 0 where that is not known.
        left_out: Groups that were not compared, because there are too many.
        rows_left: Rows of a release that were not compared, because there are too many.
        groups: How many groups the job lists or has found; 0 where it has none.
        found: How many keys were found in this period; 0 of a job that finds none.
        chosen: Each candidate, and how often it was chosen in this period and in the one before.
        came: Keys that were found in this period, and not in the one before.
        went: Keys that were found in the one before, and not in this one.
        why: The reason why there are no rows.
    """

    step: Step
    period: Period
    before: Period | None = None
    batches: int = 0
    batches_before: int = 0
    rows: tuple[PeriodRow, ...] = ()
    all_deciles: Mapping[str, Moved] = field(default_factory=dict)
    headline: PeriodRow | None = None
    earlier: tuple[float, ...] = ()
    zone: str = "UTC"
    each: str = "batch"
    whole: int = 0
    left_out: int = 0
    rows_left: int = 0
    groups: int = 0
    found: int = 0
    chosen: tuple[tuple[str, int, int], ...] = ()
    came: tuple[str, ...] = ()
    went: tuple[str, ...] = ()
    why: str = ""

    @property
    def per_batch(self) -> bool:
        """Whether sums are shown as means of batches: periods have not as many of them."""
        return self.before is not None and self.batches != self.batches_before

    @property
    def title(self) -> str:
        """The period as people say it."""
        return period_in_words(self.period.since, self.step, self.zone)

    @property
    def dates(self) -> str:
        """The dates of the period, as the head of a column."""
        return dates_in_words(self.period.since, self.step, self.zone)

    @property
    def part(self) -> str:
        """How much of the period there is, in words; empty where it is all, or not known."""
        if self.batches >= self.whole:
            return ""
        return f"{self.batches} of {self.whole} {several(self.each)}"

    def called(self, row: PeriodRow) -> str:
        """The name of a row, and of what its value is the mean."""
        if row.pooled == "mean of batches":
            return f"{row.name}, mean of {self.batches} {several(self.each)}"
        return f"{row.name} a {self.each}" if row.pooled == "sum" and self.per_batch else row.name


def comparison(
    configuration: Configuration,
    database: Database,
    job: str,
    step: Step,
    moment: int,
    newest: Release,
    whole: Picture,
) -> Comparison:
    """Compare the period that a moment lies in with the one before.

    Args:
        configuration: Of the job.
        database: The store.
        job: Which.
        step: How long periods are.
        moment: POSIX time.
        newest: Release of the period, whose rows are asked about.
        whole: The series of its releases.

    Privacy: post-processing of releases; reads no data, charges nothing, writes nothing.
    """
    # Answers need SciPy, 30 MB that a daemon without reports does not load.
    from streamdp.answers.job import Measured

    zone = configuration.source_section(job).zone
    period = holding(step, moment, zone)
    before = holding(step, period.since - 1, zone)
    measured = Measured(job, _read(database, job, before.since, period.until))
    try:
        places = measured.within(period, partial=True)
        periods = places, _within(measured, before)
        both = _released(database, job, period, before)
        compared = _Compared(measured, newest, whole.columns, period, before, *periods, both)
        rows = _together_first(islice(compared.rows(), MOST_ROWS))
    except ConfigurationError as error:
        return Comparison(step, period, zone=zone, why=error.what)
    found = Comparison(
        step,
        period,
        before if compared.places_before else None,
        len(places),
        len(compared.places_before),
        rows,
        dict(compared.all_deciles()),
        zone=zone,
        each=_each(newest),
        whole=_filling(period, newest),
        left_out=max(len(measured.groups) - MOST_GROUPS, 0),
        rows_left=_rows_left(newest, rows),
        groups=len(measured.groups) if measured.by else 0,
        **_unlike(both, whole.columns),
    )
    asked = configuration.releases[job].headline
    series = headline_series(whole, asked)
    labels = {} if series is None else whole.labels_of(series)
    chosen = _chosen(found, labels, () if asked.keys() & set(measured.by) else measured.by)
    if chosen is None:
        return found
    past = [before]
    while len(past) < EARLIER:
        past.append(holding(step, past[-1].since - 1, zone))
    if measured.releases and (measured.releases[0].batch.start or 0) > past[-1].since:
        measured = Measured(job, _read(database, job, past[-1].since, period.until))
    values = tuple(_earlier(measured, newest, past, chosen, found))
    return replace(found, headline=chosen, earlier=values)


Kept = Callable[[], "Measured"]
"""Gives what was measured of the last releases of a job; whoever keeps it reads it once."""


def around_last(
    configuration: Configuration, database: Database, job: str, newest: Release
) -> Measured:
    """Releases of the last whole period, of the one before, and of the batches around both."""
    from streamdp.answers.job import Measured

    _, period, before = _last_whole(configuration, job, newest)
    return Measured(job, _read(database, job, before.since, period.until))


def _last_whole(
    configuration: Configuration, job: str, newest: Release
) -> tuple[Step, Period, Period]:
    """How long periods are, the last whole one, and the one before.

    They are weeks of days, days of shorter batches, and months of longer ones.
    """
    end = newest.window_end or moment_of(newest) + DAY
    long = DAY if newest.window_start is None else end - newest.window_start
    is_day = abs(long - DAY) <= HOUR
    step: Step = "week" if is_day else "day" if long < DAY else "month"
    zone = configuration.source_section(job).zone
    period = last_whole(newest, step, zone)
    return step, period, holding(step, period.since - 1, zone)


def last_whole(newest: Release, step: Step, zone: str) -> Period:
    """The last period that ends no later than the newest batch of a job."""
    end = newest.window_end or moment_of(newest) + DAY
    period = holding(step, end - 1, zone)
    return period if end >= period.until else holding(step, period.since - 1, zone)


def since_before(
    configuration: Configuration,
    database: Database,
    job: str,
    newest: Release,
    whole: Picture,
    measured: Kept | None = None,
) -> Comparison | None:
    """How the headline changed in the last whole period since the one before; None if unknown.

    Of a job with groups, of every group; each measure that says as much as the headline, too.

    Args:
        configuration: Of the job.
        database: The store.
        job: Which.
        newest: Its newest release.
        whole: The series of its last releases.
        measured: What `around_last` reads, where somebody keeps it.

    Privacy: post-processing of releases; reads no data, charges nothing, writes nothing.
    """
    series = headline_series(whole, configuration.releases[job].headline)
    step, period, before = _last_whole(configuration, job, newest)
    last = newest_releases(database, job, 1, WindowRange(period.since, period.until))
    if series is None or whole.axis != "time" or not last:
        return None
    if newest.window_start is None and count_releases(database, job) > MOST_FILES:
        return None
    found = measured() if measured else around_last(configuration, database, job, newest)
    periods = (_within(found, period), _within(found, before))
    if not all(periods):
        return None
    labels = whole.labels_of(series)
    both = _released(database, job, period, before)
    compared = _Compared(found, last[0], whole.columns, period, before, *periods, both)
    try:
        free = {*found.by, *MEASURED}
        kept = {name: text for name, text in labels.items() if name not in free}
        moved = islice((e for e in compared.rows(kept) if e.moved), MOST_ROWS)
        rows = _together_first(moved)
    except ConfigurationError:  # as of releases from before measurements were kept
        return None
    main = next((row for row in rows if row.labels == labels), None)
    if main is None:
        return None
    return Comparison(
        step,
        period,
        before,
        len(periods[0]),
        len(periods[1]),
        rows,
        headline=main,
        zone=configuration.source_section(job).zone,
        each=_each(newest),
        left_out=max(len(found.groups) - MOST_GROUPS, 0),
        groups=len(found.groups) if found.by else 0,
    )


Both = Callable[[], tuple[tuple[Release, ...], ...]]
"""Reads the releases of two periods when they are asked for: most jobs need none."""


def _released(database: Database, job: str, *periods: Period) -> Both:
    """The releases of each period; none of one that has too many to be averaged."""

    def read(period: Period) -> tuple[Release, ...]:
        stretch = WindowRange(period.since, period.until)
        found = newest_releases(database, job, MOST_AVERAGED + 1, stretch)
        return found if len(found) <= MOST_AVERAGED else ()

    return cache(lambda: tuple(map(read, periods)))


def _unlike(both: Both, columns: tuple[Column, ...]) -> dict[str, Any]:
    """What was chosen in two periods, and which keys were found in one of them alone."""
    if not any(each.chart == "choices" or each.role == "state" for each in columns):
        return {}
    now, before = both()
    one, other = chosen_in(now, columns), chosen_in(before, columns)
    chosen = tuple((each, one[each], other[each]) for each, _ in (one + other).most_common())
    keys, others = found_keys(now, columns), found_keys(before, columns)
    came = tuple(each for each in keys if each not in set(others))
    went = tuple(each for each in others if each not in set(keys))
    found = {"found": len(keys), "chosen": chosen, "came": came, "went": went}
    return found if now and before else {}


def _together_first(rows: Iterable[PeriodRow]) -> tuple[PeriodRow, ...]:
    """Rows of all groups together before those of each."""
    return tuple(sorted(rows, key=lambda row: None not in row.labels.values()))


def _rows_left(newest: Release, rows: Sequence[PeriodRow]) -> int:
    """How many rows of a release are beyond the most that are compared."""
    return max(len(newest.rows) - MOST_ROWS, 0) if len(rows) == MOST_ROWS else 0


def several(each: str) -> str:
    """The word for several batches."""
    return "batches" if each == "batch" else f"{each}s"


def _each(release: Release) -> str:
    """What the batch of a release is, in a word: where clocks change, a day has 23 or 25 hours."""
    long = (release.window_end or 0) - (release.window_start or 0)
    if abs(long - DAY) <= HOUR:
        return "day"
    return "hour" if long == HOUR else "batch"


def _filling(period: Period, release: Release) -> int:
    """How many batches as long as one fill a period; 0 of batches that have no length."""
    long = (release.window_end or 0) - (release.window_start or 0)
    return round((period.until - period.since) / long) if long else 0


def _read(database: Database, job: str, since: int, until: int) -> tuple[MeasuredRelease, ...]:
    """Releases of a stretch and of batches around it; files lie at the dates in their names."""
    span = batches_span(database, job)
    if span is None:
        return _dated(select_measurements(database, job))
    apart = AROUND * span[2]
    return select_measurements(database, job, since - apart, until + apart)


def _dated(releases: tuple[MeasuredRelease, ...]) -> tuple[MeasuredRelease, ...]:
    """Releases of files as if they were windows from the date in the name of each on."""
    moments = [moment_of_key(each.batch.key) for each in releases]
    known = [each for each in moments if each is not None]
    if len(known) < len(releases) or len(set(known)) < len(known):
        return releases
    wide = DAY if all(each % DAY == 0 for each in known) else HOUR
    found = [
        replace(each, batch=replace(each.batch, start=at, end=at + wide))
        for each, at in zip(releases, known, strict=True)
    ]
    return tuple(sorted(found, key=lambda each: each.batch.start or 0))


def _within(measured: Measured, period: Period) -> tuple[int, ...]:
    try:
        return measured.within(period, partial=True)
    except ConfigurationError:
        return ()


@dataclass(frozen=True, slots=True)
class _Compared:
    """Two periods of a job, and which of its releases lie in them."""

    measured: Measured
    newest: Release
    columns: tuple[Column, ...]
    period: Period
    before: Period
    places: tuple[int, ...]
    places_before: tuple[int, ...]
    both: Both

    def rows(self, only: Mapping[str, str | None] | None = None) -> Iterator[PeriodRow]:
        """Each row of the newest release that follows of both, or of this one alone.

        Args:
            only: Labels of the rows that are wanted; all, if None.
        """
        from streamdp.answers.rollups import answerable

        earlier = {
            tuple(named.items()): (group, ask)
            for named, group, ask in answerable(
                self.measured, self.newest, self.places_before, partial=True
            )
        } if self.places_before else {}  # fmt: skip
        known, answered = set(self.measured.groups[:MOST_GROUPS]), set[Labels]()
        unlike = bool(self.places_before) and len(self.places_before) != len(self.places)
        for named, group, ask in answerable(self.measured, self.newest, self.places, partial=True):
            labels = _labels(named)
            answered.add(tuple(labels.values()))
            if (group and group not in known) or (only and only.items() - labels.items()):
                continue
            is_mean = self.measured.is_mean(labels.get(MEASURED[0]) or "")
            pooled: Pooled = "quantile" if NESTED in named else "mean" if is_mean else "sum"
            uneven = unlike and pooled == "sum"
            try:
                value = ask(group)
            except ConfigurationError:
                if is_mean:
                    answered.discard(tuple(labels.values()))
                continue
            shared = len(self.places) if uneven else 1
            moved = None
            if self.places_before:
                moved = (
                    self._counted(value, *earlier[tuple(named.items())], unlike=uneven)
                    if NESTED not in named
                    else self._quantile(float(named[NESTED]), group)
                )
            ends = value.value / shared, value.lower / shared, value.upper / shared
            name = self._called(labels)
            never_negative = is_never_negative(self.measured, labels)
            unit = self._unit(labels)
            yield PeriodRow(labels, name, ends, unit, pooled, moved, never_negative)
        yield from self._averaged(only, answered)

    def _averaged(
        self, only: Mapping[str, str | None] | None, answered: set[Labels]
    ) -> Iterator[PeriodRow]:
        """Rows of measures that do not add up, as means of what batches say of them."""
        names = [each.name for each in self.columns if each.role == "label"]
        drawn = (
            tuple(_labels({n: row.get(n) for n in names}).values()) for row in self.newest.rows
        )
        if MEASURED[0] not in names or answered.issuperset(drawn):
            return
        now, before = (averages(each, self.columns) for each in self.both())
        known = set(self.measured.groups[:MOST_GROUPS])
        for key, value in now.items():
            labels = dict(zip(names, key, strict=True))
            if key in answered or (only and only.items() - labels.items()):
                continue
            if tuple(labels.get(name) for name in self.measured.by) not in known:
                continue
            if self.measured.questions(labels[MEASURED[0]] or "", self.places) > 1:
                continue
            was, moved = before.get(key), None
            both = (*self.places_before, *self.places)
            if was and self.measured.questions(labels[MEASURED[0]] or "", both) == 1:
                moved = Moved((value[0] - was[0], value[1] - was[2], value[2] - was[1]))
            name = self._called(labels)
            yield PeriodRow(labels, name, value, self._unit(labels), "mean of batches", moved)

    def _called(self, labels: Mapping[str, str | None]) -> str:
        """The name of a row as people say it."""
        name, by, groups = row_name(labels, self.columns), self.measured.by, self.measured.groups
        is_whole = bool(by) and labels.get(by[0]) is None
        return f"{name} of the {len(groups)} groups" if is_whole else name

    def _unit(self, labels: Mapping[str, str | None]) -> str:
        """What the values of a row are measured in."""
        drawn = next((each for each in self.columns if each.role == "value"), None)
        return "" if drawn is None else drawn.unit_of(labels.get(MEASURED[0]))

    def _quantile(self, quantile: float, group: Group) -> Moved | None:
        """The change that `streamdp ask --compare` says; of all groups together none is known."""
        if group not in self.measured.groups:
            return None
        try:
            found, _ = self.measured.change(self.before, self.period, quantile, group, True)
        except ConfigurationError:
            return None
        return _moved(found)

    def _counted(
        self, value: Answer, group: Group, ask: Callable[[Group], Answer], *, unlike: bool
    ) -> Moved | None:
        """The difference of two answers, of sums a batch: noises are independent, clips add up."""
        from streamdp.answers.job import summed

        try:
            was = ask(group)
        except ConfigurationError:
            return None
        now, then = (len(self.places), len(self.places_before)) if unlike else (1, 1)
        found = summed([value.scaled(1 / now), was.scaled(-1 / then)])
        return Moved((found.value, found.lower, found.upper))

    def all_deciles(self) -> Iterator[tuple[str, Moved]]:
        """How all deciles of each group moved together; nothing of jobs that count none."""
        if not self.places_before or not any(NESTED in row for row in self.newest.rows):
            return
        for group in self.measured.groups[:MOST_GROUPS]:
            try:
                _, found = self.measured.change(self.before, self.period, 0.5, group, True)
            except ConfigurationError:
                continue
            yield " · ".join(group), _moved(found)


def _moved(change: Change) -> Moved:
    return Moved((change.change, change.lower, change.upper), change.differ, change.rose)


def is_never_negative(measured: Measured, labels: Mapping[str, str | None]) -> bool:
    """Whether a row adds up, and counts records or sums values from 0 on."""
    part = labels.get(MEASURED[0])
    return NESTED not in labels and (part is None or measured.is_never_negative(part))


def _chosen(
    found: Comparison, headline: Mapping[str, str | None], by: tuple[str, ...]
) -> PeriodRow | None:
    """The row that says most: of all groups together, unless the configuration names one.

    Where groups of the batches differ there may be neither: then the largest count.
    """

    def alike(row: PeriodRow, group: bool) -> bool:
        return all(
            (None if group and name in by else headline.get(name)) == text
            for name, text in row.labels.items()
        )

    of_all = next((row for row in found.rows if by and alike(row, True)), None)
    named = of_all or next((row for row in found.rows if alike(row, False)), None)
    counts = (row for row in found.rows if row.pooled == "sum")
    return named or max(counts, key=lambda row: row.value[0], default=None)


def _earlier(
    measured: Measured,
    newest: Release,
    past: list[Period],
    chosen: PeriodRow,
    found: Comparison,
) -> Iterator[float]:
    """The value of a row in earlier periods, of those that have half as many batches or more."""
    from streamdp.answers.rollups import answerable

    for each in past:
        places = _within(measured, each)
        if 2 * len(places) < found.batches:
            continue
        for named, group, ask in answerable(measured, newest, places, partial=True):
            if _labels(named) == chosen.labels:
                try:
                    value = ask(group).value
                except ConfigurationError:
                    break
                if chosen.pooled == "sum":
                    value *= (1 if found.per_batch else found.batches) / len(places)
                yield value
                break


def _labels(named: Mapping[str, Json]) -> dict[str, str | None]:
    return {name: None if each is None else text_of(each) for name, each in named.items()}


def averages(releases: Sequence[Release], columns: Sequence[Column]) -> dict[Labels, Interval]:
    """Mean of the values of each row that has an interval in all releases, by the row's labels.

    Its ends are the means of the ends, as if all values were off the same way: what clips hide is
    the same in all of them, and noise is less than that.
    """
    value = next((each.name for each in columns if each.role == "value"), "")
    ends = {each.role: each.name for each in columns if value and each.about == value}
    if not {"lower", "upper"} <= ends.keys():
        return {}
    names = [each.name for each in columns if each.role == "label"]
    found: dict[Labels, list[Interval]] = {}
    for release in releases:
        for row in release.rows:
            three = [row.get(name) for name in (value, ends["lower"], ends["upper"])]
            if all(isinstance(each, int | float) for each in three):
                at, low, high = (float(each or 0) for each in three)
                found.setdefault(labels_of(row, names), []).append((at, low, high))
    return {
        labels: (fmean(e[0] for e in own), fmean(e[1] for e in own), fmean(e[2] for e in own))
        for labels, own in found.items()
        if len(own) == len(releases)
    }


def chosen_in(releases: Sequence[Release], columns: Sequence[Column]) -> Counter[str]:
    """How often each candidate was chosen; nothing of a job that chooses none."""
    if not releases or not any(each.chart == "choices" for each in columns):
        return Counter()
    return chosen(picture(releases, columns))


def chosen(whole: Picture) -> Counter[str]:
    """How often each candidate was chosen, of a job that chooses."""
    cells = whole.series[0].cells if whole.series else ()
    return Counter(str(each) for each in cells if each is not None)


def found_keys(releases: Sequence[Release], columns: Sequence[Column]) -> tuple[str, ...]:
    """Keys that any release found, in their order; nothing of a job whose rows are not found."""
    if not any(each.role == "state" for each in columns):
        return ()
    names = [each.name for each in columns if each.role == "label"]
    said = (labels_of(row, names) for release in releases for row in release.rows)
    return tuple(dict.fromkeys(" · ".join(filter(None, labels)) for labels in said))
