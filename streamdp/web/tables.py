"""Tables of the page: which rows, in which order, and how numbers stand in their columns.

Order and choice are in the address: `sort` names a column, with `-` before it the other way round,
and `find` is a text that rows hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from streamdp.reports.releases.headline import digits_of, rounded, usual_of
from streamdp.reports.releases.sentences import from_0_on, written
from streamdp.reports.releases.series import MEASURED, Picture, Series, SeriesLine
from streamdp.types import Json
from streamdp.web.requests import Parameters

Row = TypeVar("Row")

PARAMETERS = ("sort", "find")

MOST_NAMED = 6
"""Rows that a sentence names."""

BELOW = "noise took it below 0"
"""What stands in place of the interval of a count of which nothing is left."""

WIDEST, LONGEST = 24, 400
"""Series that have a column of their own, and rows of one table that was sorted or searched."""


@dataclass(frozen=True, slots=True)
class Order:
    """How the rows of a table are chosen and ordered."""

    sort: str = ""
    find: str = ""

    @property
    def column(self) -> str:
        """The column that rows are sorted by; empty for their own order."""
        return self.sort.removeprefix("-")

    @property
    def falling(self) -> bool:
        """Whether the largest comes first."""
        return self.sort.startswith("-")

    def arranged(
        self,
        rows: Iterable[Row],
        value: Callable[[Row, str], Json],
        text: Callable[[Row], Iterable[Json]],
    ) -> list[Row]:
        """Rows that hold the text, in order; those without a value last, whichever way."""
        sought = self.find.casefold()
        found = [
            row for row in rows if not sought or any(sought in str(t).casefold() for t in text(row))
        ]
        if not self.column:
            return found
        known = [row for row in found if value(row, self.column) is not None]
        known.sort(key=lambda row: _comparable(value(row, self.column)), reverse=self.falling)
        return known + [row for row in found if value(row, self.column) is None]


def order_of(parameters: Parameters) -> Order:
    """The order that a request asks for."""
    return Order(parameters.text("sort") or "", parameters.text("find") or "")


def of_mappings(rows: Iterable[Mapping[str, Json]], order: Order) -> list[Mapping[str, Json]]:
    """Rows that are mappings of columns to values."""
    return order.arranged(rows, lambda row, column: row.get(column), lambda row: row.values())


def _comparable(value: Json) -> tuple[int, float, str]:
    """Numbers by their size, before texts by their letters."""
    if isinstance(value, int | float):
        return (0, float(value), "")
    return (1, 0.0, str(value))


@dataclass(frozen=True, slots=True)
class Cell:
    """A value in words, its interval, and what is odd about it."""

    value: str
    interval: str = ""
    flag: str = ""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One series as a column: as the chart draws it, with as many digits in all rows.

    Args:
        picture: Of the series.
        series: Which.
        digits: After the point; None without intervals.
        never_negative: Whether below 0 lies noise alone, so that it is shown as 0.
    """

    picture: Picture
    series: Series
    digits: int | None
    never_negative: bool = False

    @property
    def name(self) -> str:
        """Name of the series."""
        return self.series.name

    @property
    def line(self) -> SeriesLine:
        """What the chart draws."""
        return self.series.best

    def value(self, at: int) -> Json:
        """What is drawn of one release: a number, or the name of a choice."""
        number = self.line.values[at]
        return self.series.cells[at] if number is None else number

    def cells(self) -> list[Cell]:
        """The value of each release in words."""
        return [self._cell(at) for at in range(len(self.line.values))]

    def _cell(self, at: int) -> Cell:
        ends, value = self.line.interval(at), self.value(at)
        flag = self.series.flag(at) or ""
        if self.never_negative and ends is not None:
            shown = from_0_on(value, *ends)
            if shown is None:
                return Cell("0", BELOW, flag)
            value, *_ = shown
            ends = shown[1], shown[2]
        return Cell(_said(value, self.digits), _reach(ends, self.digits), flag)


def _reach(ends: tuple[float, float] | None, digits: int | None) -> str:
    """Both ends of an interval in words; nothing without one."""
    if ends is None or ends[0] == ends[1]:
        return ""
    return f"{_said(ends[0], digits)} to {_said(ends[1], digits)}"


def _said(value: Json, digits: int | None) -> str:
    if value is None:
        return "–"
    if not isinstance(value, int | float):
        return str(value)
    return f"{value:,.6g}" if digits is None else written(value, digits)


def columns(picture: Picture) -> list[TableColumn]:
    """Columns of a table of releases: the first series, those of one measure with like digits."""
    first = picture.series[:WIDEST]
    at = [place for place, name in enumerate(picture.labels) if name in MEASURED]
    measures = [tuple(each.labels[place] for place in at) for each in first]
    digits: dict[tuple[str | None, ...], list[int]] = {}
    for each, measure in zip(first, measures, strict=True):
        known = digits_of(each.best)
        digits.setdefault(measure, []).extend([] if known is None else [known])
    return [
        TableColumn(picture, each, min(digits[measure], default=None))
        for each, measure in zip(first, measures, strict=True)
    ]


def places(picture: Picture, order: Order) -> list[int]:
    """Places of the releases that a table shows: the last first, unless it is sorted."""
    by_name = {each.name: each for each in columns(picture)}

    def value(at: int, column: str) -> Json:
        if column == "batch":
            return at
        return by_name[column].value(at) if column in by_name else None

    def text(at: int) -> list[Json]:
        return [picture.batches[at], *(each.flag(at) for each in picture.series if each.flag(at))]

    rows = range(len(picture.times) - 1, -1, -1)
    return order.arranged(rows, value, text)[:LONGEST]


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of the newest release, and its bar from 0 to 100.

    Args:
        labels: What names the row.
        shown: The same as people say it.
        cell: Its value.
        low: Where the interval begins.
        high: Where it ends.
        at: Where the value lies.
        usual: How it lies among earlier ones.
        number: The value.
    """

    labels: tuple[str, ...]
    shown: tuple[str, ...]
    cell: Cell
    low: float
    high: float
    at: float
    usual: str
    number: float


@dataclass(frozen=True, slots=True)
class Newest:
    """The rows of the newest release that measure one thing."""

    title: str
    labels: tuple[str, ...]
    zero: float
    bars: tuple[Bar, ...]


def newest(picture: Picture, order: Order, past: Picture | None = None) -> list[Newest]:
    """Rows of the newest release, with bars on one scale for each measure.

    Args:
        picture: The releases that are shown.
        order: Of the rows.
        past: The newest release and those before it that it is compared with, whether they are
            shown or not; by default the releases that are shown.
    """
    found, usual = [], usual_of(past or picture)
    for title, part in picture.panels().items():
        bars, zero = _bars(part, usual)
        if bars:
            names = tuple(name for name in part.labels if name in part.differing())
            ordered = order.arranged(bars, partial(_of_bar, names), lambda bar: bar.labels)
            unit = part.unit if title and part.unit != picture.unit else ""
            said = f"{title}, in {unit}" if unit else title
            found.append(Newest(said, names, zero, tuple(ordered)))
    return found


def standing_out(found: Sequence[Newest]) -> list[str]:
    """Which rows of the newest release lie below, and which above, all of the same before."""
    said = []
    for each in found:
        title = f"{each.title}: " if each.title else ""
        for where in ("below", "above"):
            names = [bar for bar in each.bars if bar.usual.startswith(f"{where} all of ")]
            if names:
                shown = [" · ".join(filter(None, bar.shown)) for bar in names[:MOST_NAMED]]
                more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
                of = names[0].usual.removeprefix(f"{where} all of ").partition(" (")[0]
                said.append(f"{title}{', '.join(shown)}{more} {where} all of {of}")
    return said


def expected_next(picture: Picture) -> str:
    """Where the medians of the next batch are expected, in words."""
    said = []
    for each in picture.series:
        found = picture.expected().get(each.name)
        if found is not None:
            ends = (found.lower, found.upper)
            reach = f"{rounded(found.lower, ends)} to {rounded(found.upper, ends)}"
            said.append(f"{picture.called(each)} {reach}")
    return ", ".join(said)


def _of_bar(names: Sequence[str], bar: Bar, column: str) -> Json:
    """What one column of a bar holds."""
    if column == "value":
        return bar.number
    return dict(zip(names, bar.labels, strict=False)).get(column)


def _bars(picture: Picture, usual: Mapping[str, str]) -> tuple[list[Bar], float]:
    """Bars of the newest values, and where zero lies on their scale."""
    last = len(picture.times) - 1
    known = [
        (each, number, each.best.interval(last) or (number, number))
        for each in picture.series
        for number in [each.best.values[last]]
        if number is not None
    ]
    if len(known) < 2:
        return [], 0.0
    low = min(0.0, *(ends[0] for _, _, ends in known))
    high = max(0.0, *(ends[1] for _, _, ends in known))
    span, digits = (high - low) or 1.0, digits_of_newest(known)
    differ = [at for at, name in enumerate(picture.labels) if name in picture.differing()]

    def place(number: float) -> float:
        return 100 * (number - low) / span

    return [
        Bar(
            tuple(each.labels[at] or "" for at in differ),
            tuple(picture.label(each, at) for at in differ),
            Cell(_said(number, digits), _reach(ends, digits), each.flag(last) or ""),
            place(ends[0]),
            place(ends[1]),
            place(number),
            usual.get(each.key or each.name, ""),
            number,
        )
        for each, number, ends in known
    ], place(0.0)


def digits_of_newest(known: Sequence[tuple[Series, float, tuple[float, float]]]) -> int | None:
    """Digits after the point for the rows of one release."""
    lower, upper = (tuple(ends[at] for _, _, ends in known) for at in (0, 1))
    return digits_of(SeriesLine("", tuple(number for _, number, _ in known), lower, upper))


@dataclass(frozen=True, slots=True)
class Crossed:
    """Rows of two labels as a table of both: a column of each value of the second.

    Args:
        down: Name of the first label.
        across: Values of the second.
        rows: Value of the first, and of each column the cell and its depth of shade from 0 to 9.
    """

    down: str
    across: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[Cell, int], ...]], ...]


def crossed(picture: Picture, order: Order) -> Crossed | None:
    """The newest release by its two labels; None where rows have not two."""
    parts = newest(picture, Order("", order.find))
    if len(parts) != 1 or len(parts[0].labels) != 2:
        return None
    bars = parts[0].bars
    cells = {each.shown: each for each in bars}
    across = tuple(dict.fromkeys(each.shown[1] for each in bars))
    low = min(each.number for each in bars)
    span = (max(each.number for each in bars) - low) or 1.0

    def cell(first: str, second: str) -> tuple[Cell, int]:
        bar = cells.get((first, second))
        return (Cell("–"), 0) if bar is None else (bar.cell, round(9 * (bar.number - low) / span))

    downs = dict.fromkeys(each.shown[0] for each in bars)
    rows = tuple((first, tuple(cell(first, each) for each in across)) for first in downs)
    return Crossed(parts[0].labels[0], across, rows)
