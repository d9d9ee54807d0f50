"""The charts that a kind brings: each column of a release may ask for one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamdp.reports.charts.choices import MOST, Choice, choices
from streamdp.reports.charts.lines import chart
from streamdp.reports.charts.stacked import legend, stacked
from streamdp.reports.releases.columns import columns_of
from streamdp.reports.releases.series import Picture, candidate, picture
from streamdp.store.reading.places import places_of
from streamdp.types import Column, Release


@dataclass(frozen=True, slots=True)
class OwnChart:
    """One chart of a kind.

    Args:
        title: What it shows.
        svg: The chart.
        legend: The class of each colour and what has it.
    """

    title: str
    svg: str
    legend: tuple[tuple[str, str], ...] = ()


def own_charts(
    job: str, releases: Sequence[Release], declared: Sequence[Column], part: str = ""
) -> list[OwnChart]:
    """Charts that columns of releases ask for; none that would be empty.

    Args:
        job: Whose releases they are.
        releases: In any order.
        declared: Columns that the kind declares.
        part: The value of the first label that is looked at; all, if empty.
    """
    columns = columns_of(releases, declared)
    asked = dict.fromkeys((each.chart, each.name) for each in columns if each.chart is not None)
    found, coarse = [], []
    for form, name in asked:
        whole = picture(releases, declared, name)
        whole = whole.part(part) if part else whole
        if form != "choices" or _is_fine(whole):
            found.append(_over_time(job, name, form, whole))
        else:
            coarse.append(name)
    if coarse:
        found.append(_choices(job, releases, columns, part, coarse))
    return [each for each in found if each.svg]


def _is_fine(whole: Picture) -> bool:
    """Whether a parameter of candidates is a number with more values than a row each can show."""
    return len({each for series in whole.series for each in series.raw.values}) > MOST


def _over_time(job: str, name: str, form: str, whole: Picture) -> OwnChart:
    said = name.replace("_", " ")
    if form == "shares":
        title = f"{said}: shares of the whole"
        return OwnChart(title, stacked(whole, title=f"{job}: {title}"), tuple(legend(whole)))
    if len({each.raw.values for each in whole.series}) == 1:
        whole = whole.only([whole.series[0].name])
    return OwnChart(said, chart(whole, title=f"{job}: {said} over time"))


def _choices(
    job: str, releases: Sequence[Release], columns: Sequence[Column], part: str, names: list[str]
) -> OwnChart:
    labels = [each.name for each in columns if each.role == "label"]
    made = []
    places = places_of(releases)
    for release, at in zip(places.releases, places.at, strict=True):
        for row in release.rows:
            said = [str(row[label]) for label in labels if row.get(label) is not None]
            if part and said[:1] != [part]:
                continue
            place = " · ".join(said[bool(part) :]) or "choice"
            made.append(Choice(at, release.batch, place, candidate(row, names)))
    title = "what was chosen"
    return OwnChart(title, choices(made, picture(releases), title=f"{job}: {title} over time"))
