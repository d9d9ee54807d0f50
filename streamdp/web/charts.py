"""The charts of a job: which stretch, which series, as SVG and as numbers for whoever points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from streamdp.reports.charts.frame import colours
from streamdp.reports.charts.own import OwnChart, own_charts
from streamdp.reports.charts.panels import Panel, panels
from streamdp.reports.releases.ahead import ahead
from streamdp.reports.releases.happenings import Happenings, happenings
from streamdp.reports.releases.series import Ahead, Picture, SeriesLine, picture
from streamdp.store import rollups
from streamdp.store.reading.browse import WindowRange, newest_releases, sampled_releases
from streamdp.types import Json, Release, Row
from streamdp.web.reader import View
from streamdp.web.requests import Parameters, bad

STRETCHES = ("7", "30", "90", "365", "all")
"""How many releases are drawn."""

POINTS = 730
"""Releases in one picture at most: of more, every second, third… is drawn."""

AT_ONCE = 60
"""Series that are drawn at once, unless they were asked for."""

PARAMETERS = ("last", "since", "until", "part", "series", "per")

_OF_ROLLUPS = ("step", "revision")
"""Labels of rollups that name no series."""


_NOTHING = Happenings((), ())


@dataclass(frozen=True, slots=True)
class Wanted:
    """Choice of a job's series that is to be drawn."""

    last: str
    stretch: WindowRange
    part: str | None
    series: tuple[str, ...]
    per: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Series of a job over a stretch.

    Args:
        parts: What many series are divided into; one of them is looked at.
        part: Which.
        whole: All series of that part.
        shown: Names of those that are drawn.
        every: Of how many releases each point is one.
        events: Other events of the batches.
        panels: The charts, one for each question.
        own: Charts that the kind brings.
        per: The step of the rollups that are drawn in place of releases; empty for releases.
        steps: Of which there are rollups.
    """

    parts: tuple[str, ...]
    part: str
    whole: Picture
    shown: tuple[str, ...]
    every: int
    events: Happenings
    panels: tuple[Panel, ...]
    own: tuple[OwnChart, ...]
    per: str = ""
    steps: tuple[str, ...] = ()

    def numbers(self, job: str) -> Json:
        """The series as numbers, for the chart that zooms and for other programs."""
        found = self.whole.only(self.shown)
        names = colours([each.name for each in found.series])
        return {
            "job": job,
            "every": self.every,
            "unit": found.unit,
            "axis": found.axis,
            "placed": found.said,
            "times": found.times,
            "batches": found.batches,
            "releases": found.ids,
            "series": [
                {
                    "name": each.name,
                    "called": found.called(each),
                    "colour": colour,
                    "value": _line(each.raw),
                    "estimate": None if each.estimate is None else _line(each.estimate),
                    "flags": {at: flag for at, flag in enumerate(each.flags) if flag},
                }
                for each, colour in zip(found.series, names, strict=True)
            ],
            "events": [
                {"batch": each.batch, "time": each.moment, "what": each.what, "text": each.meaning}
                for each in self.events.events
                if each.what != "no"
            ],
            "carried": [
                {"from": since, "to": until, "batch": of}
                for since, until, of in self.events.carried
            ],
        }


def wanted(parameters: Parameters) -> Wanted:
    """Choice that a request asks for."""
    stretch = WindowRange(parameters.moment("since"), parameters.moment("until"))
    if stretch.since is not None and stretch.until is not None and stretch.since >= stretch.until:
        raise bad("since is before until")
    last = parameters.choice("last", STRETCHES, "all" if stretch != WindowRange() else "365")
    return Wanted(
        last,
        stretch,
        parameters.text("part"),
        tuple(parameters.texts("series")),
        parameters.text("per") or "",
    )


def draw(view: View, job: str, what: Wanted) -> Drawing:
    """Read what is to be drawn, at most once a minute for all requests."""
    if what == Wanted(what.last, WindowRange(), None, ()):
        return view.once(
            ("drawing", job, what.last, view.now // 60), lambda: _read(view, job, what)
        )
    return _read(view, job, what)


def _read(view: View, job: str, what: Wanted) -> Drawing:
    """Read the series of a job; unknown names of parts, series and steps are ignored."""
    steps = rollups.steps(view.database, job)
    per = what.per if what.per in steps else ""
    together = frozenset[str]()
    if per:
        releases, together = _rolled_up(view, job, per, what)
        every = 1
    elif what.last == "all":
        releases, every = sampled_releases(view.database, job, POINTS, what.stretch)
    else:
        releases, every = newest_releases(view.database, job, int(what.last), what.stretch), 1
    whole = picture(releases, view.columns(job))
    of_all = (each.name for each in whole.series if together.intersection(each.labels))
    whole = replace(whole, together=frozenset(of_all))
    if not per and what.stretch == WindowRange() and releases:
        whole = replace(whole, ahead=_ahead(view, job, whole))
    parts = whole.parts()
    part = what.part if what.part in parts else next(iter(parts), "")
    whole = whole.part(part) if part else whole
    names = [each.name for each in whole.series]
    shown = [name for name in names if name in what.series] or names[:AT_ONCE]
    events = _NOTHING if per else happenings(view.configuration, view.database, job, view.now)
    return Drawing(
        parts,
        part or "",
        whole,
        tuple(shown),
        every,
        events,
        tuple(panels(job, whole.only(shown), events)),
        tuple(own_charts(job, releases, view.columns(job), part or "")),
        per,
        steps,
    )


def _ahead(view: View, job: str, whole: Picture) -> tuple[Ahead, ...]:
    """What the next batch is expected to have: computed once for each newest release."""

    def compute() -> tuple[Ahead, ...]:
        recent = newest_releases(view.database, job, 1)
        measured = view.measured(job, recent[0])
        return ahead(view.configuration, view.database, job, recent, whole, measured)

    return view.known(("ahead", job), whole.ids[-1], compute)


def _rolled_up(
    view: View, job: str, step: str, what: Wanted
) -> tuple[tuple[Release, ...], frozenset[str]]:
    """The newest revisions of the rollups of one step, as releases; where batches miss, flagged.

    Also the labels by which rows of all groups together go.
    """
    by = view.configuration.releases[job].by
    last, stretch = POINTS if what.last == "all" else int(what.last), what.stretch
    found = rollups.select(view.database, job, step, last, stretch.since, stretch.until)
    labels = [_of_all(each.rows, by) for each in found]
    made = tuple(
        replace(
            each,
            rows=_rows_of_rollup(each.rows, by, label),
            columns=tuple(column for column in each.columns if column.name not in _OF_ROLLUPS),
        )
        for each, label in zip(found, labels, strict=True)
    )
    return made, frozenset(labels) if by else frozenset()


def _of_all(rows: Sequence[Row], by: Sequence[str]) -> str:
    """The label of rows of all groups together: not of all records."""
    groups = {tuple(row.get(name) for name in by) for row in rows}
    return f"{len([each for each in groups if None not in each])} groups together"


def _rows_of_rollup(rows: Sequence[Row], by: Sequence[str], of_all: str) -> tuple[Row, ...]:
    """Rows as charts take them: one of no group is of all of them together, and says so."""
    found = []
    for row in rows:
        kept = {name: value for name, value in row.items() if name not in _OF_ROLLUPS}
        if row.get("missing") and not row.get("flag"):
            kept["flag"] = f"{row['missing']} batches missing"
        if by and row.get(by[0]) is None:
            kept[by[0]] = of_all
        found.append(kept)
    return tuple(found)


def _line(line: SeriesLine) -> Json:
    return {
        "column": line.column,
        "values": line.values,
        "lower": line.lower,
        "upper": line.upper,
    }
