"""The charts that a kind brings: each column of a release may ask for one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from streamdp.reports.charts.choices import MOST, Choice, choices
from streamdp.reports.charts.frame import SIZES, DrawnChart, Frame
from streamdp.reports.charts.lines import has_numbers, lines
from streamdp.reports.charts.stacked import legend, stacked
from streamdp.reports.releases.series import Picture, candidate, columns_of, picture
from streamdp.store.reading.places import places_of
from streamdp.types import Column, Release


@dataclass(frozen=True, slots=True)
class OwnChart:
    """One chart of a kind.

    Args:
        title: What it shows.
        sizes: The chart by the name of its size: `wide` and `small`.
        legend: The class of each colour and what has it.
    """

    title: str
    sizes: dict[str, str]
    legend: tuple[tuple[str, str], ...] = ()

    @property
    def svg(self) -> str:
        """The chart as it stands in files."""
        return self.sizes.get("wide", "")


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
    return [each for each in found if each.sizes]


def _is_fine(whole: Picture) -> bool:
    """Whether a parameter of candidates is a number with more values than a row each can show."""
    return len({each for series in whole.series for each in series.raw.values}) > MOST


def _over_time(job: str, name: str, form: str, whole: Picture) -> OwnChart:
    said = name.replace("_", " ")
    if form == "shares":
        title = f"{said}: shares of the whole"
        return OwnChart(title, _sized(partial(stacked, whole), f"{job}: {title}"), legend(whole))
    if len({each.raw.values for each in whole.series}) == 1:
        whole = whole.only([whole.series[0].name])
    if not any(map(has_numbers, whole.series)):
        return OwnChart(said, {})
    return OwnChart(said, _sized(partial(lines, whole), f"{job}: {said} over time"))


def _sized(draw: Callable[[Frame], DrawnChart | None], title: str) -> dict[str, str]:
    """A chart in both sizes; none where nothing can be drawn."""
    found = {name: draw(frame) for name, frame in SIZES.items()}
    return {name: drawn.svg(title) for name, drawn in found.items() if drawn is not None}


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
    drawn = partial(choices, made, picture(releases))
    return OwnChart(title, _sized(drawn, f"{job}: {title} over time"))
