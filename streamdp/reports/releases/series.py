"""Releases of a job as series over time: one for each row, by the roles of its columns."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from streamdp.store.reading.places import Axis, places_of
from streamdp.types import Column, Json, Release, Row
from streamdp.types.releases import HARDLY_ANY

MANY = 24
"""Series that are still looked at together."""

MEASURED = ("measure", "statistic")
"""Labels that say what a row measures: rows that differ in them share no axis."""

NESTED = "quantile"
"""Label of rows that lie within each other: the share of the records below each."""

MOST_PANELS = 12
"""Panels of one picture; more measures than that are drawn together."""

WIDE = 3
"""Median widths of an interval that a chart reaches beyond all values, where values lie close."""

Numbers = tuple[float | None, ...]

Labels = tuple[str | None, ...]
"""What names a row, without the columns."""


@dataclass(frozen=True, slots=True)
class SeriesLine:
    """Numbers of one column over time, with the interval around them if there is one."""

    column: str
    values: Numbers
    lower: Numbers | None
    upper: Numbers | None

    def interval(self, at: int) -> tuple[float, float] | None:
        """Both ends of the interval at one place; None where there is none."""
        lower = self.lower[at] if self.lower else None
        upper = self.upper[at] if self.upper else None
        return None if lower is None or upper is None else (lower, upper)

    def intervals(self) -> Iterator[tuple[float, float]]:
        """Both ends of each interval there is."""
        for at in range(len(self.values)):
            found = self.interval(at)
            if found is not None:
                yield found


@dataclass(frozen=True, slots=True)
class Series:
    """One row of a job's releases over time.

    Args:
        labels: What each label column says; None where it does not name this row.
        raw: What was drawn.
        estimate: What follows from this and earlier releases: a column that has values in this row,
            one with an interval if there is one, else one in the unit of what was drawn.
        flags: What is odd or new about the row in each release; None where nothing is.
        cells: What was drawn as a table shows it: a number, or the name of a candidate.
        key: Its name in the whole picture, which it keeps where a panel leaves labels out.
    """

    labels: tuple[str | None, ...]
    raw: SeriesLine
    estimate: SeriesLine | None
    cells: tuple[Json, ...]
    flags: tuple[str | None, ...] = ()
    key: str = ""

    @property
    def name(self) -> str:
        """The labels in one text."""
        return " · ".join(filter(None, self.labels)) or "value"

    @property
    def best(self) -> SeriesLine:
        """The series that is shown where there is room for one."""
        return self.estimate or self.raw

    def flag(self, at: int) -> str | None:
        """What is odd about the row at one place; None where nothing is."""
        return self.flags[at] if self.flags else None

    def told(self, line: SeriesLine) -> SeriesLine:
        """A line of the series without the places where values say nothing of the records."""
        if HARDLY_ANY not in self.flags:
            return line

        def kept(numbers: Numbers) -> Numbers:
            return tuple(
                None if self.flag(at) == HARDLY_ANY else each for at, each in enumerate(numbers)
            )

        ends = (None if each is None else kept(each) for each in (line.lower, line.upper))
        return SeriesLine(line.column, kept(line.values), *ends)


@dataclass(frozen=True, slots=True)
class Ahead:
    """Where a row of the next batch is expected.

    Args:
        key: Name of its series in the whole picture.
        at: Where the batch lies.
        value: What is expected.
        lower: From where.
        upper: To where, 95 times in 100.
    """

    key: str
    at: int
    value: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Picture:
    """All series of a job over a stretch of time, oldest first.

    Args:
        times: Where each batch lies, by `axis`: POSIX seconds, the number in its key, or its rank.
        batches: Their keys.
        ids: Of the releases.
        series: One for each row, in the order of the rows.
        columns: Of the rows.
        axis: What `times` are.
        said: What places go by, in words, where that is not the windows of batches.
        ahead: What is expected of the next batch.
        together: Names of the series that are of all groups of a job together.
    """

    times: tuple[int, ...]
    batches: tuple[str, ...]
    ids: tuple[str, ...]
    series: tuple[Series, ...]
    columns: tuple[Column, ...]
    axis: Axis = "time"
    said: str = ""
    ahead: tuple[Ahead, ...] = ()
    together: frozenset[str] = frozenset()

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns that name a row."""
        return tuple(each.name for each in self.columns if each.role == "label")

    @property
    def unit(self) -> str:
        """Unit of the values; empty where there is none, or series differ in it."""
        found = {self.unit_of(each) for each in self.series}
        return found.pop() if len(found) == 1 else ""

    def unit_of(self, series: Series) -> str:
        """Unit of the values of one series; empty where there is none."""
        drawn = next((each for each in self.columns if each.role == "value"), None)
        if drawn is None:
            return ""
        return drawn.unit_of(self.labels_of(series).get(MEASURED[0]))

    def labels_of(self, series: Series) -> dict[str, str | None]:
        """The labels of a series by their columns."""
        return dict(zip(self.labels, series.labels, strict=False))

    def expected(self) -> dict[str, Ahead]:
        """What is expected of its series in the next batch, by their keys."""
        keys = {each.key or each.name for each in self.series}
        return {each.key: each for each in self.ahead if each.key in keys}

    def is_flagged(self) -> bool:
        """Whether anything of it is flagged."""
        return any(flag for each in self.series for flag in each.flags)

    def flags_at(self, at: int) -> tuple[str, ...]:
        """What is odd about one release, each reason once."""
        return tuple(dict.fromkeys(flag for s in self.series if (flag := s.flag(at))))

    def reach(self) -> tuple[float, float]:
        """Return the ends of a readable scale: all lines, most intervals and drawn values.

        Of the values that were drawn the outermost hundredths are left out, and intervals are cut
        where they go on far beyond all values: a single outlier would press all else flat.
        """
        best = [each.told(each.best) for each in self.series]
        numbers = [value for each in best for value in _known(each.values)]
        drawn = sorted(
            value for each in self.series for value in _known(each.told(each.raw).values)
        )
        if any(each.estimate is not None for each in self.series):
            drawn = drawn[len(drawn) // 100 : len(drawn) - len(drawn) // 100]
        found = [*numbers, *drawn] or [0.0, 1.0]
        low, high = min(found), max(found)
        ends = [pair for each in best for pair in each.intervals()]
        if not ends:
            return low, high
        room = max(
            (high - low) / 4.0, WIDE * statistics.median(upper - lower for lower, upper in ends)
        )
        below, above = min(lower for lower, _ in ends), max(upper for _, upper in ends)
        return min(low, max(below, low - room)), max(high, min(above, high + room))

    def beyond(self) -> int:
        """How many values that were drawn lie out of that reach."""
        low, high = self.reach()
        drawn = (number for each in self.series for number in each.raw.values)
        return sum(number is not None and not low <= number <= high for number in drawn)

    def parts(self) -> tuple[str, ...]:
        """Values of the first label, where it divides many series into parts."""
        if len(self.labels) < 2 or len(self.series) <= MANY:
            return ()
        return tuple(dict.fromkeys(each.labels[0] or "" for each in self.series))

    def part(self, name: str) -> Picture:
        """The series of one part."""
        kept = tuple(each for each in self.series if (each.labels[0] or "") == name)
        return replace(self, series=kept)

    def panels(self) -> dict[str, Picture]:
        """The series by what they measure, with no label that all of a panel share; all, if alike.

        Kinds that measure several things in one release name them in the columns `MEASURED`.
        """
        named = [at for at, name in enumerate(self.labels) if name in MEASURED]
        found: dict[str, list[Series]] = {}
        for each in self.series:
            name = " · ".join(filter(None, (each.labels[at] for at in named)))
            found.setdefault(name, []).append(each)
        if len(found) > MOST_PANELS:
            return {"": self}
        return {
            name: replace(
                self,
                series=_without(own, {*named, *_shared(own)}),
                columns=tuple(_in(each, self.labels_of(own[0])) for each in self.columns),
            )
            for name, own in found.items()
        }

    def differing(self) -> tuple[str, ...]:
        """Names of the label columns in which the series differ."""
        return tuple(
            name
            for at, name in enumerate(self.labels)
            if len({each.labels[at] for each in self.series}) > 1
        )

    def groups(self) -> dict[str, Picture]:
        """The series by all labels but the quantile, each group with the quantile alone."""
        at = self.labels.index(NESTED) if NESTED in self.labels else None
        found: dict[str, list[Series]] = {}
        for each in self.series:
            rest = tuple(None if place == at else one for place, one in enumerate(each.labels))
            found.setdefault(" · ".join(filter(None, rest)), []).append(each)
        kept = {place for place in range(len(self.labels)) if place != at}
        return {name: replace(self, series=_without(own, kept)) for name, own in found.items()}

    def label(self, series: Series, at: int) -> str:
        """One label of a series as people say it, with its unit; empty where it has none."""
        column = [each for each in self.columns if each.role == "label"][at]
        unit = column.unit_of(self.labels_of(series).get(MEASURED[0]))
        return shown(column.name, series.labels[at] or "", unit)

    def called(self, series: Series) -> str:
        """Name of a series as people say it: `median` for the quantile 0.5, `10 %` for 0.1."""
        if any(each.chart == "choices" for each in self.columns) and len(self.series) == 1:
            return "chosen"
        return row_name(self.labels_of(series), self.columns)

    def only(self, names: Sequence[str]) -> Picture:
        """A chart with some of its series."""
        kept = tuple(each for each in self.series if each.name in names)
        return replace(self, series=kept)


def _in(column: Column, labels: Mapping[str, str | None]) -> Column:
    """A column as it is where all rows measure one thing: with one unit."""
    if column.role not in ("value", "label"):
        return column
    return replace(column, unit=column.unit_of(labels.get(MEASURED[0])), units=())


def _shared(series: Sequence[Series]) -> set[int]:
    """Places of labels that say the same in all of several series."""
    said = zip(*(each.labels for each in series), strict=True) if len(series) > 1 else ()
    return {place for place, texts in enumerate(said) if len(set(texts)) == 1}


def _without(series: Iterable[Series], places: Collection[int]) -> tuple[Series, ...]:
    """Some series without the labels at some places."""
    return tuple(
        replace(
            each,
            labels=tuple(None if p in places else t for p, t in enumerate(each.labels)),
            key=each.key or each.name,
        )
        for each in series
    )


def shown(label: str, text: str, unit: str = "") -> str:
    """What a label says, as people say it: a quantile as a share of the records, cuts in a unit.

    >>> shown("quantile", "0.9"), shown("cell", "< 60", "minutes"), shown("cell", "(null)", "hours")
    ('90 %', '< 60 minutes', '(null)')
    """
    if unit and text and not text.startswith("("):
        return f"{text} {unit}"
    try:
        share = float(text) if label == NESTED else None
    except ValueError:
        return text
    return text if share is None else "median" if share == 0.5 else f"{100 * share:.3g} %"


def row_name(labels: Mapping[str, str | None], columns: Iterable[Column] = ()) -> str:
    """Name of a row as people say it; columns say in which units labels are.

    >>> row_name({"measure": "flights", "statistic": "count", "airport": "JFK", "cell": None})
    'flights · JFK'
    """
    units = {each.name: each.unit_of(labels.get(MEASURED[0])) for each in columns}
    named = [(name, text) for name, text in labels.items() if text]
    if ("statistic", "count") in named and len(named) > 1:
        named.remove(("statistic", "count"))
    return " · ".join(shown(name, text, units.get(name, "")) for name, text in named) or "value"


def _known(values: Numbers) -> Iterator[float]:
    return (value for value in values if value is not None)


def picture(
    releases: Iterable[Release], declared: Sequence[Column] = (), value: str | None = None
) -> Picture:
    """Series of releases; a row that a release does not have is a gap.

    Args:
        releases: Of one job.
        declared: Columns that its kind declares.
        value: The column to show alone, in place of what was drawn and its estimate.
    """
    places = places_of(tuple(releases))
    ordered = places.releases
    columns = columns_of(ordered, declared)
    if value is not None:
        columns = tuple(_shown_alone(each, value) for each in columns)
    labels = [each.name for each in columns if each.role == "label"]
    rows = [{labels_of(row, labels): row for row in release.rows} for release in ordered]
    found = dict.fromkeys(each for row in rows for each in row)
    return Picture(
        times=places.at,
        batches=tuple(release.batch for release in ordered),
        ids=tuple(release.id for release in ordered),
        series=tuple(_series(one, [each.get(one, {}) for each in rows], columns) for one in found),
        columns=columns,
        axis=places.axis,
        said=places.said,
    )


def _shown_alone(column: Column, value: str) -> Column:
    """A column as it is when one column takes the place of what was drawn."""
    if column.name == value:
        return replace(column, role="value")
    return replace(column, role="error") if column.role in ("value", "estimate") else column


def labels_of(row: Row, labels: Iterable[str]) -> Labels:
    """What some label columns say of a row; None where one says nothing."""
    return tuple(None if row.get(name) is None else text_of(row[name]) for name in labels)


def _series(
    labels: tuple[str | None, ...], rows: Sequence[Row], columns: Sequence[Column]
) -> Series:
    drawn = next((each for each in columns if each.role == "value"), None)
    raw, unit = ("value", "") if drawn is None else (drawn.name, drawn.unit)
    follow = [each for each in columns if each.role == "estimate"]
    follow.sort(key=lambda each: each.unit != unit)
    estimates = [_line(each.name, rows, columns) for each in follow]
    estimate = next(iter(sorted(filter(_has_values, estimates), key=_has_no_interval)), None)
    names = [each.name for each in columns if each.chart == "choices"]
    cells = [candidate(row, names) if names else row.get(raw) for row in rows]
    flags = [each.name for each in columns if each.role in ("flag", "state")]
    odd = tuple(next((str(row[f]) for f in flags if row.get(f)), None) for row in rows)
    return Series(labels, _line(raw, rows, columns), estimate, tuple(cells), odd)


def _has_values(line: SeriesLine) -> bool:
    return any(value is not None for value in line.values)


def _has_no_interval(line: SeriesLine) -> bool:
    return line.lower is None


def candidate(row: Row, names: Sequence[str]) -> str:
    """The candidate that some columns of a row name together."""
    said = {name: text_of(row[name]) for name in names if row.get(name) is not None}
    if len(names) == 1:
        return "".join(said.values())
    return " · ".join(f"{name} {text}" for name, text in said.items())


def _line(column: str, rows: Sequence[Row], columns: Sequence[Column]) -> SeriesLine:
    ends = {each.role: each.name for each in columns if each.about == column}
    lower, upper = ends.get("lower"), ends.get("upper")
    return SeriesLine(
        column,
        _numbers(rows, column),
        None if lower is None else _numbers(rows, lower),
        None if upper is None else _numbers(rows, upper),
    )


def _numbers(rows: Sequence[Row], column: str) -> Numbers:
    return tuple(_number(row.get(column)) for row in rows)


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def text_of(value: Json) -> str:
    """A label as a series has it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def columns_of(releases: Iterable[Release], also: Sequence[Column] = ()) -> tuple[Column, ...]:
    """Columns that some releases have, those first that they were written down with.

    Of releases from before columns were written down `also` says what it knows. What neither says
    is told from the rows: what stands before the value names a row.
    """
    releases = tuple(releases)
    written = {each.name: each for release in releases for each in release.columns}
    declared = tuple(({each.name: each for each in also} | written).values())
    names = dict.fromkeys(name for release in releases for row in release.rows for name in row)
    found = [each for each in declared if each.name in names]
    known, labels = {each.name for each in declared}, True
    for name in names:
        labels = labels and name != "value" and not (name in known and _is_number(name, declared))
        if name not in known:
            found.append(Column(name, "text", "label") if labels else _undeclared(name))
    return tuple(found)


def _is_number(name: str, declared: Sequence[Column]) -> bool:
    return any(each.name == name and each.role != "label" for each in declared)


def _undeclared(name: str) -> Column:
    return Column(name, "number", "value" if name == "value" else "estimate")
