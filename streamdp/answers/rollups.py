"""Rollups: the rows of a release, of a week, a month or a rolling range, once that is closed.

Their rows follow from measurements that were paid for. So a rollup costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from streamdp.answers.closed import Closed
from streamdp.answers.job import Answer, Group, Measured, summed
from streamdp.answers.periods import Period
from streamdp.errors import ConfigurationError
from streamdp.types import Column, Json, Release, Row

KIND = "rollup"
"""Kind of a rollup in the form of a release."""

_OWN = (
    Column("step", "text", "label"),
    Column("revision", "integer", "label"),
    Column("value", "number", "value"),
    Column("lower", "number", "lower", about="value", level=0.95),
    Column("upper", "number", "upper", about="value", level=0.95),
    Column("batches", "integer", "batch"),
    Column("missing", "integer", "batch"),
    Column("flag", "text", "flag"),
)
"""Columns of all rollups, behind the labels of the release's rows."""


def in_form_of_release(
    newest: Release, found: Closed, identity_: str, rows: tuple[Row, ...], revision: int, now: int
) -> Release:
    """A rollup as sinks take releases: it cost nothing.

    Args:
        newest: Release of the job.
        found: The period.
        identity_: Its id.
        rows: Of `rolled`.
        revision: From 1.
        now: POSIX time.
    """
    about: Row = {"step": found.step, "revision": revision}
    labels = [each for each in newest.columns if each.role == "label"]
    value = next(
        (each for each in newest.columns if each.role == "value"), Column("", "number", "value")
    )
    own = tuple(
        replace(each, unit=value.unit, units=value.units) if each.role == "value" else each
        for each in _OWN
    )
    return Release(
        id=identity_,
        job=newest.job,
        source=newest.source,
        batch=found.period.name,
        window_start=found.period.since,
        window_end=found.period.until,
        kind=KIND,
        epsilon_nano=0,
        released_at=now,
        rows=tuple({**about, **row, "missing": found.missing} for row in rows),
        columns=(*own[:2], *labels, *own[2:]),
    )


def rolled(
    measured: Measured, newest: Release, period: Period, partial: bool = False
) -> tuple[Row, ...]:
    """The rows of a release, of a period: what the newest release says, as far as it adds up.

    Where there are groups, rows whose group is null are of all groups together. A row that cannot
    be answered has no value, and the reason in `flag`.

    Args:
        measured: Releases of the period, and of batches around it.
        newest: Release of the job, whose rows say what is published.
        period: When.
        partial: Whether batches of it may be missing.

    Returns:
        None if no row has a value.
    """
    rows = [
        named | _said(ask, group)
        for named, group, ask in answerable(
            measured, newest, measured.within(period, partial), partial
        )
    ]
    by = measured.by
    rows.sort(key=lambda row: bool(by) and row[by[0]] is None)
    return tuple(rows) if any(row["value"] is not None for row in rows) else ()


def answerable(
    measured: Measured, newest: Release, places: tuple[int, ...], partial: bool = False
) -> Iterator[tuple[dict[str, Json], Group, Callable[[Group], Answer]]]:
    """The rows of the newest release that can be asked of several: labels, group, and how to ask.

    Where there are groups, each row also stands once with no group, for all of them together.

    Args:
        measured: The releases.
        newest: Of the job.
        places: Of the releases that are asked about together.
        partial: Whether some may have no measurements.
    """
    labels = tuple(each.name for each in newest.columns if each.role == "label")
    answers = _Answers(measured, places, partial)
    seen, by = set[tuple[Json, ...]](), measured.by
    for row in newest.rows:
        about = {name: row[name] for name in labels if name in row}
        ask = answers.asking(about)
        if ask is None:
            continue
        groups = [tuple(str(about[name]) for name in by)] + ([()] if by else [])
        for group in groups:
            named = about | ({} if group else dict.fromkeys(by))
            if (key := tuple(named.items())) not in seen:
                seen.add(key)
                yield named, group, ask


def _said(ask: Callable[[Group], Answer], group: Group) -> dict[str, Any]:
    """The columns of an answer, or why there is none."""
    try:
        found = ask(group)
    except ConfigurationError as error:
        ends = dict.fromkeys(("value", "lower", "upper"))
        return {**ends, "batches": 0, "flag": error.what}
    ends = {"value": found.value, "lower": found.lower, "upper": found.upper}
    return {**ends, "batches": found.batches, "flag": None}


@dataclass(frozen=True, slots=True)
class _Answers:
    """Answers to what rows of a release are about.

    Args:
        measured: The releases.
        places: Of the period.
        partial: Whether some may have no measurements.
    """

    measured: Measured
    places: tuple[int, ...]
    partial: bool

    def asking(self, about: Mapping[str, Json]) -> Callable[[Group], Answer] | None:
        """How to ask for a row of a group; None if a period has none of it."""
        if "quantile" in about:
            return lambda group: self._quantile(float(about["quantile"]), group)
        if "measure" in about:
            part, cell = about["measure"], about.get("cell") or ""
            if self.measured.is_mean(part):
                return lambda group: self._mean(part, group)
            adds = self.measured.adds_up(part)
            return (lambda group: self._total(part, cell, group)) if adds else None
        if "answer" in about:
            by = self.measured.by
            axes = {name: each for name, each in about.items() if name not in ("answer", *by)}
            return lambda group: self._count(str(about["answer"]), axes, group)
        return None

    def _quantile(self, quantile: float, group: Group) -> Answer:
        of = self.measured.united((group,) if group else ())
        return of.quantile(quantile, self.places, self.partial)

    def _total(self, part: str, cell: str, group: Group) -> Answer:
        groups = (group,) if group else self.measured.groups
        return summed(self.measured.total(part, self.places, each, cell) for each in groups)

    def _mean(self, part: str, group: Group) -> Answer:
        return self.measured.mean(part, self.places, (group,) if group else ())

    def _count(self, answer: str, axes: Mapping[str, Json], group: Group) -> Answer:
        groups = (group,) if group else self.measured.groups
        return summed(
            self.measured.crossed(self.places, each).cell(answer, axes) for each in groups
        )
