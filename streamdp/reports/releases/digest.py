"""Report of one job and period: its words, series, changes and other events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.errors import StreamdpError
from streamdp.reports.charts.own import OwnChart, own_charts
from streamdp.reports.releases.changes import Comparison, comparison, last_whole
from streamdp.reports.releases.happenings import Happenings, happenings
from streamdp.reports.releases.sentences import Period, period_of
from streamdp.reports.releases.series import Picture, picture
from streamdp.reports.releases.sheet import data_sheet
from streamdp.reports.releases.summary import Summary, summary
from streamdp.store.reading.browse import WindowRange, newest_releases, sampled_releases
from streamdp.store.reading.places import moment_of
from streamdp.types import Column, Json, Release

MOST = 2000
"""Releases in one picture."""


@dataclass(frozen=True, slots=True)
class Digest:
    """One job over a period.

    Args:
        job: Which.
        stretch: Of windows.
        picture: Its series.
        every: Of how many releases each point is one.
        releases: Those in the picture, oldest first.
        events: Other events of the period.
        compared: The period beside the one before; None where it is no period of the calendar.
        words: What it says before pictures and tables.
        sheet: What, how often, how accurate, how private.
        own: Charts that the kind brings.
    """

    job: str
    stretch: WindowRange
    picture: Picture
    every: int
    releases: tuple[Release, ...]
    events: Happenings
    compared: Comparison | None
    words: Summary
    sheet: dict[str, Json]
    own: tuple[OwnChart, ...]


def digest(
    configuration: Configuration,
    database: Database,
    job: str,
    period: Period,
    until: int | None,
    now: int,
    declared: Sequence[Column],
) -> Digest:
    """The last whole period of a job, or the one that a moment lies in.

    Of a job that has released nothing in a whole one, the one that its last batch lies in.

    Raises:
        StreamdpError: The job has released nothing then.
    """
    last = next(iter(newest_releases(database, job, 1)), None)
    if last is None:
        raise StreamdpError(f"{job} has released nothing yet", hint="`streamdp status` says why")
    moment = moment_of(last) if until is None else until
    zone = configuration.source_section(job).zone
    if until is None and period != "all":
        whole_one = last_whole(last, period, zone)
        if newest_releases(database, job, 1, WindowRange(whole_one.since, whole_one.until)):
            moment = whole_one.since
    stretch = period_of(moment, period, zone)
    found, every = sampled_releases(database, job, MOST, stretch)
    if not found:
        hint = f"its last batch is {last.batch}; `streamdp releases {job}` lists all"
        raise StreamdpError(f"{job} has released nothing in that {period}", hint=hint)
    whole = picture(found, declared)
    compared = None
    if period != "all" and whole.axis == "time":
        compared = comparison(configuration, database, job, period, moment, found[-1], whole)
    left_out = f", one in {every} of the period" if every > 1 else ""
    return Digest(
        job=job,
        stretch=stretch,
        picture=whole,
        every=every,
        releases=found,
        events=_within(happenings(configuration, database, job, now), stretch),
        compared=compared,
        words=summary(configuration, database, job, found, whole, compared, left_out),
        sheet=data_sheet(configuration, database, job, declared),
        own=tuple(own_charts(job, found, declared)),
    )


def _within(all_: Happenings, stretch: WindowRange) -> Happenings:
    low = float("-inf") if stretch.since is None else stretch.since
    high = float("inf") if stretch.until is None else stretch.until
    return Happenings(
        tuple(each for each in all_.events if low <= each.moment < high),
        tuple(each for each in all_.carried if each[1] > low and each[0] < high),
    )
