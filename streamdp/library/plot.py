"""Charts for notebooks: what a job has released over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streamdp.errors import StreamdpError
from streamdp.reports.charts.frame import alone
from streamdp.reports.charts.own import own_charts
from streamdp.reports.charts.panels import chart
from streamdp.reports.releases.series import MANY, picture
from streamdp.types import Release


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart or several, which a notebook shows.

    Args:
        job: What they are of.
        svgs: Each as the text of an SVG file.
    """

    job: str
    svgs: tuple[str, ...] = field(repr=False)

    def _repr_html_(self) -> str:
        """The charts below each other, for a notebook."""
        return "".join(f"<div>{svg}</div>" for svg in self.svgs)

    def save(self, path: str | Path) -> None:
        """Write the first chart as an SVG file."""
        Path(path).write_text(self.svgs[0], encoding="utf-8")


def drawn(job: str, releases: Sequence[Release]) -> Chart:
    """Charts of releases over time: their series with intervals, and those the kind brings.

    Raises:
        StreamdpError: There is nothing that can be drawn.
    """
    whole = picture(releases)
    few = whole.only([each.name for each in whole.series[:MANY]])
    is_choice = any(each.chart == "choices" for each in whole.columns)
    main = "" if is_choice else chart(few, title=f"{job}: releases over time")
    found = [main, *(each.svg for each in own_charts(job, releases, ()))]
    svgs = tuple(alone(svg) for svg in found if svg)
    if not svgs:
        raise StreamdpError(f"{job} has released nothing that can be drawn")
    return Chart(job, svgs)
