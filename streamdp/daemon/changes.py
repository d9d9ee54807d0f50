"""The alert `changed`: a quantile of a job rose or fell, from its releases alone."""

from __future__ import annotations

from collections.abc import Iterator

from streamdp.config import Configuration
from streamdp.config.alerts import Changed
from streamdp.database import Database
from streamdp.errors import ConfigurationError
from streamdp.store.measurements import select_measurements
from streamdp.store.reading.browse import newest_releases
from streamdp.store.reading.watch import Alert

READ = 100
"""Batches that are read: those compared, and those that tell how much days differ anyway."""

_known: dict[tuple[str, Changed], tuple[str, tuple[Alert, ...]]] = {}
"""The newest release of each job and what was found of it; a look a second costs nothing so."""


def changes(configuration: Configuration, database: Database, section: Changed) -> Iterator[Alert]:
    """Jobs of which a quantile changed in the last batches; one alert a group.

    Privacy: from measurements of releases, which are published: post-processing.
    """
    for job in configuration.releases:
        newest = next(iter(newest_releases(database, job, 1)), None)
        if newest is None or newest.window_start is None:
            continue
        key = job, section
        if _known.get(key, ("",))[0] != newest.id:
            since = newest.window_start - READ * ((newest.window_end or 0) - newest.window_start)
            _known[key] = newest.id, tuple(_found(database, job, since, section))
        yield from _known[key][1]


def _found(database: Database, job: str, since: int, section: Changed) -> Iterator[Alert]:
    from streamdp.answers.changes import changed_lately
    from streamdp.answers.job import Measured

    measured = Measured(job, select_measurements(database, job, since))
    if not any(each.measurements for each in measured.releases):
        return
    for group in measured.groups:
        try:
            of = measured.distribution(group)
        except ConfigurationError:  # what is drawn and not counted cannot be watched so
            continue
        options = section.quantile, float(section.by), section.sure
        turned = changed_lately(of.history, of.scales, *options)
        if turned:
            verb = "rose" if turned > 0 else "fell"
            named = f" of {' '.join(group)}" if group else ""
            yield Alert(
                *("changed", job, ""),
                f"the quantile {section.quantile:g}{named} {verb} by"
                f" {float(100 * section.by):g} % or more in the last batches",
            )
