"""Reports that are written by themselves: one for each period that is over and has releases.

What is due follows from the store and the folder: a period whose file is missing. Reports are made
of releases and ledger facts alone.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from streamdp.config import Configuration
from streamdp.config.model import ReportSection
from streamdp.database import Database
from streamdp.disk import make_folder, write_whole
from streamdp.errors import StreamdpError
from streamdp.reports.releases.digest import digest
from streamdp.reports.releases.sentences import day_of, period_of
from streamdp.store.reading.browse import WindowRange, newest_moment
from streamdp.types import Log

DAY = 86_400

Failures = dict[str, str]
"""Why the last attempt at a report failed, by its name: each reason is told once."""


def write_due(
    configuration: Configuration, database: Database, now: int, log: Log, failures: Failures
) -> None:
    """Write all reports that are due; log failures, and try them again in the next round."""
    for name, section in configuration.reports.items():
        try:
            zone = configuration.source_section(section.job).zone
            for stretch in _missing(database, section, now, zone):
                _write(configuration, database, section, stretch, now, zone)
                log("report.written", report=name, job=section.job)
            failures.pop(name, None)
        except Exception as error:  # noqa: BLE001
            reason = _reason(error)
            if failures.get(name) != reason:
                log("report.failed", report=name, job=section.job, reason=reason)
            failures[name] = reason


def _missing(database: Database, section: ReportSection, now: int, zone: str) -> list[WindowRange]:
    """Periods with releases that are over and have no report, the oldest first.

    Reports are written in this order, so all before the newest that is there are there.
    """
    found: list[WindowRange] = []
    stretch = WindowRange()
    while (newest := newest_moment(database, section.job, stretch)) is not None:
        period = period_of(newest, section.period, zone)
        if all(file.exists() for file in _files(section, period, zone)):
            break
        is_over = bool(stretch.until) or now >= (period.until or now) + DAY
        if is_over:
            found.append(period)
        stretch = WindowRange(None, period.since)
    return found[::-1]


def _files(section: ReportSection, period: WindowRange, zone: str) -> list[Path]:
    name = f"{section.job}-{day_of(period.since or 0, zone)}"
    return [section.path / f"{name}.{form}" for form in section.form]


def _write(
    configuration: Configuration,
    database: Database,
    section: ReportSection,
    of: WindowRange,
    now: int,
    zone: str,
) -> None:
    from streamdp import wiring
    from streamdp.web.report import written

    columns = wiring.release_kind(configuration, section.job).columns
    found = digest(configuration, database, section.job, section.period, of.since, now, columns)
    make_folder(section.path, section.mode)
    for target, form in zip(_files(section, of, zone), section.form, strict=True):
        # A report comes last, for where it is, nothing of it is missing.
        for path, content in written(found, now, form, target).items():
            write_whole(path, partial(_fill, content), section.mode)


def _fill(content: bytes, file: int) -> None:
    with os.fdopen(os.dup(file), "wb") as stream:
        stream.write(content)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or "the system refused"
    return error.line if isinstance(error, StreamdpError) else type(error).__name__
