"""The median that the next batch of a job is expected to have: as `streamdp ask --over next`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.errors import ConfigurationError
from streamdp.reports.releases.series import NESTED, Ahead, Picture
from streamdp.store.measurements import select_measurements
from streamdp.types import Release

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamdp.reports.releases.changes import Kept

DAY = 86_400

MOST_GROUPS = 8
"""Groups of which it is computed: each takes some hundredths of a second."""

RECENT = 90
"""Batches that it goes by, where nobody keeps the last ones."""


def ahead(
    configuration: Configuration,
    database: Database,
    job: str,
    recent: Sequence[Release],
    whole: Picture,
    measured: Kept | None = None,
) -> tuple[Ahead, ...]:
    """Where the median of each group is expected in the next batch; nothing where none is counted.

    Args:
        configuration: Of the job.
        database: The store.
        job: Which.
        recent: Its last releases, oldest first.
        whole: Their series.
        measured: Its last releases with what was measured of them, where somebody keeps them.

    Privacy: post-processing of releases; reads no data, charges nothing, writes nothing.
    """
    source = configuration.source_section(job)
    every = source.every()
    end = recent[-1].window_end if recent else None
    if every is None or end is None or source.is_growing() or NESTED not in whole.labels:
        return ()
    place = whole.labels.index(NESTED)
    medians = [each for each in whole.series if each.labels[place] == "0.5"]
    if not 0 < len(medians) <= MOST_GROUPS:
        return ()
    from streamdp.answers.job import Measured

    found = []
    kept = measured() if measured else None
    if kept is None or not kept.releases or kept.releases[-1].id != recent[-1].id:
        kept = Measured(job, select_measurements(database, job, end - RECENT * every, end))
    for each in medians:
        group = tuple(text for at, text in enumerate(each.labels) if at != place and text)
        try:
            said = kept.distribution(group).next(0.5, end / DAY)
        except ConfigurationError:  # as of releases that were drawn, and not counted
            continue
        found.append(Ahead(each.name, end, said.value, said.lower, said.upper))
    return tuple(found)
