"""Rollups: the rows of a release, of a week, a month or a rolling range, once that is closed.

Which periods are closed follows from the windows of the releases there are; their rows follow from
measurements that were paid for. So a rollup costs nothing and charges nothing.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from streamdp.answers.job import Answer, Group, Measured, summed
from streamdp.answers.periods import Period, Step, every, rolling
from streamdp.errors import ConfigurationError
from streamdp.types import Column, Json, Release, Row

KIND = "rollup"
"""Kind of a rollup in the form of a release."""

ROLLING = "rolling "

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


@dataclass(frozen=True, slots=True)
class RollupTerms:
    """What a job rolls up.

    Args:
        steps: `week`, `month`, ..., or `rolling 28d`.
        zone: Whose weeks and months: that of the batches.
        partial: Whether a period counts as closed though batches of it are missing, once a batch
            behind its end was released.
        sinks: Names of the sinks that get them.
    """

    steps: tuple[str, ...]
    zone: str
    partial: bool
    sinks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Closed:
    """A period that is closed.

    Args:
        step: Of the terms.
        period: When.
        made_of: Digest of the releases of its batches: another one is another revision.
        missing: How many stretches of it were not released.
    """

    step: str
    period: Period
    made_of: str
    missing: int


Released = tuple[int, int, str]
"""First second of a batch, the second after its last, and the id of its release."""


def closed(terms: RollupTerms, released: Sequence[Released]) -> Iterator[Closed]:
    """The closed periods of each step, in order of time.

    Args:
        terms: Of the job.
        released: In order of time; batches do not overlap.
    """
    if not released:
        return
    starts, ends = [each[0] for each in released], [each[1] for each in released]
    if any(end > start for end, start in zip(ends, starts[1:], strict=False)):
        return
    sums = [0, *accumulate(int(each[2][:16], 16) for each in released)]
    breaks = [0, *accumulate(a != b for a, b in zip(ends, starts[1:], strict=False))]
    for step in terms.steps:
        for period in _periods(step, terms.zone, starts, ends):
            first, last = bisect_left(starts, period.since), bisect_left(starts, period.until)
            while last > first and ends[last - 1] > period.until:
                last -= 1
            if first == last:
                continue
            missing = breaks[last - 1] - breaks[first]
            missing += (starts[first] > period.since) + (ends[last - 1] < period.until)
            if missing and not (terms.partial and ends[-1] >= period.until):
                continue
            digest = f"{last - first}:{(sums[last] - sums[first]) % 2**64:016x}"
            yield Closed(step, period, digest, missing)


def _periods(step: str, zone: str, starts: list[int], ends: list[int]) -> Iterator[Period]:
    if step.startswith(ROLLING):
        days = int(step.removeprefix(ROLLING).removesuffix("d"))
        yield from rolling(days, ends, zone)
    else:
        yield from every(_STEPS[step], Period("", starts[0] - _YEAR, ends[-1] + _YEAR), zone)


_STEPS: dict[str, Step] = {step: step for step in ("day", "week", "month", "quarter", "year")}
_YEAR = 2 * 366 * 86_400


def identity(store: str, job: str, found: Closed) -> str:
    """The id of a rollup, in the form of one of a release: the same whenever it is made again."""
    text = json.dumps([store, job, found.step, found.period.name, found.made_of])
    return hashlib.sha256(text.encode()).hexdigest()[:24]


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
        columns=(*_OWN[:2], *labels, *_OWN[2:]),
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
    places = measured.within(period, partial)
    labels = tuple(each.name for each in newest.columns if each.role == "label")
    answers = _Answers(measured, places, partial)
    rows, seen = list[Row](), set[tuple[Json, ...]]()
    by = measured.by
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
                rows.append(named | _said(ask, group))
    rows.sort(key=lambda row: bool(by) and row[by[0]] is None)
    return tuple(rows) if any(row["value"] is not None for row in rows) else ()


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
        """How to ask for a row of a group; None if days of it do not add up."""
        if "quantile" in about:
            return lambda group: self._quantile(float(about["quantile"]), group)
        if "measure" in about:
            part, cell = about["measure"], about.get("cell") or ""
            adds = self.measured.adds_up(part)
            return (lambda group: self._total(part, cell, group)) if adds else None
        if "answer" in about:
            by = self.measured.by
            axes = {name: each for name, each in about.items() if name not in ("answer", *by)}
            return lambda group: self._count(str(about["answer"]), axes, group)
        return None

    def _quantile(self, quantile: float, group: Group) -> Answer:
        of = self.measured.united(group)
        return of.quantile(quantile, self.places, self.partial)

    def _total(self, part: str, cell: str, group: Group) -> Answer:
        groups = (group,) if group else self.measured.groups
        return summed(self.measured.total(part, self.places, each, cell) for each in groups)

    def _count(self, answer: str, axes: Mapping[str, Json], group: Group) -> Answer:
        groups = (group,) if group else self.measured.groups
        return summed(
            self.measured.crossed(self.places, each).cell(answer, axes) for each in groups
        )
