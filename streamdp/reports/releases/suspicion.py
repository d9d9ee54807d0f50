"""What is odd about the newest release of a job, from releases alone: a free warning.

A release is suspect if its rows are flagged, as those of hardly any records are; if a value lies
at a bound and beyond all values before; if its interval lies far beyond all intervals before; or
if its interval is wider than all of them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.reports.releases.series import Series, columns_of, labels_of, picture
from streamdp.store.reading.browse import newest_releases
from streamdp.types import Release, Row

PAST, LEAST_PAST = 30, 14
"""Releases that the newest is compared with, and how many there must be."""

WIDER = 6.0
"""Times the widest before that an interval must be; and wider than all of them together."""

BEYOND = 0.5
"""How far beyond all intervals before one must lie, in lengths of what they span together."""

NAMED = 3
"""Rows that a reason names."""

Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest release of a job; what is odd about it never changes while it is the newest."""

    id: str
    reasons: Callable[[], tuple[str, ...]] = field(compare=False)


def suspicions(configuration: Configuration, database: Database, job: str) -> tuple[str, ...]:
    """What is odd about the newest release of a job, in words; nothing, if nothing is."""
    last = newest_releases(database, job, 1)
    if not last:
        return ()
    section = configuration.releases[job]

    def reasons() -> tuple[str, ...]:
        return odd(newest_releases(database, job, PAST + 1), section.bounds_of)

    return _kept(_Newest(last[0].id, reasons))


@lru_cache(maxsize=4096)
def _kept(newest: _Newest) -> tuple[str, ...]:
    return newest.reasons()


def odd(releases: Sequence[Release], bounds_of: Callable[[Row], Bounds | None]) -> tuple[str, ...]:
    """What is odd about the first of some releases of a job.

    Args:
        releases: Newest first.
        bounds_of: Lowest and highest value of a row; None where it has no bounds.
    """
    found: dict[str, list[str]] = {}
    shown = picture(releases)
    flags = [each.name for each in columns_of(releases[:1]) if each.role == "flag"]
    bounds, name_of = {}, {each.labels: each.name for each in shown.series}
    for row in releases[0].rows:
        labels = labels_of(row, shown.labels)
        bounds[labels] = bounds_of(row)
        for flag in flags:
            if row.get(flag):
                found.setdefault(str(row[flag]), []).append(name_of.get(labels, "value"))
    for series in shown.series:
        for reason in _of_series(series, bounds.get(series.labels)):
            found.setdefault(reason, []).append(series.name)
    return tuple(f"{reason}: {_listed(names)}" for reason, names in found.items())


def _of_series(series: Series, bounds: Bounds | None) -> Iterator[str]:
    """What is odd about the newest value of one row of all releases, oldest first."""
    values, raw = series.raw.values, series.raw
    past = [each for each in values[:-1] if each is not None]
    if not values or values[-1] is None or len(past) < LEAST_PAST:
        return
    *ends, (lower, upper) = (
        raw.interval(at) or (each, each) for at, each in enumerate(values) if each is not None
    )
    lowest, highest = min(low for low, _ in ends), max(high for _, high in ends)
    span = highest - lowest
    if bounds is not None and values[-1] in bounds and (lower > max(past) or upper < min(past)):
        yield "at a bound, where no value was before"
    elif lower > highest + BEYOND * span or upper < lowest - BEYOND * span:
        yield f"far from all of the last {PAST}"
    if raw.interval(len(values) - 1) is not None:
        widest = max(high - low for low, high in ends)
        if upper - lower > max(WIDER * widest, span):
            yield f"an interval wider than all of the last {PAST} together"


def _listed(names: Sequence[str]) -> str:
    few = ", ".join(names[:NAMED])
    return few if len(names) <= NAMED else f"{few} and {len(names) - NAMED} more"
