"""`streamdp report` and `streamdp plot`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import (
    config_option,
    job_argument,
    load_configuration,
    moment,
    require_job,
)
from streamdp.errors import ConfigurationError, StreamdpError

if TYPE_CHECKING:
    from streamdp.config.model import ReportForm
    from streamdp.reports.releases.digest import Digest
    from streamdp.reports.releases.sentences import Period

_PERIODS = ("day", "week", "month", "quarter", "year", "all")

_FORMS: dict[str, ReportForm] = {".html": "html", ".pdf": "pdf", ".md": "md"}

_output = click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="The file to write.",
)
_period = click.option(
    "--period",
    type=click.Choice(_PERIODS),
    default="month",
    show_default=True,
    help="Period of the calendar, in the time zone of the batches: the last whole one.",
)
_until = click.option("--at", callback=moment, help="Day (ISO) whose period is taken instead.")


@click.command()
@job_argument
@config_option
@_period
@_until
@_output
def report(job: str, config_path: Path, period: Period, at: int | None, output: Path) -> None:
    """Write what JOB published in a period as .html, .pdf or .md, and what changed since before.

    HTML and PDF are one file; pictures of Markdown are .svg files beside it. A report holds what
    was released, what follows from it, and facts of configuration and ledger, nothing else. Needs
    the extra `web`; a PDF needs the extra `pdf` too. The section `reports` of the configuration
    writes one each period.
    """
    from streamdp.cli.web import require_extra

    form = _FORMS.get(output.suffix)
    if form is None:
        found = output.suffix or "without an ending"
        raise ConfigurationError(f"a report is .html, .pdf or .md, not {found}")
    require_extra()
    from streamdp.web.report import written

    digest = _digest(job, config_path, period, at)
    for path, content in written(digest, int(time.time()), form, output).items():
        _write(path, content)


@click.command()
@job_argument
@config_option
@_period
@_until
@_output
def plot(job: str, config_path: Path, period: Period, at: int | None, output: Path) -> None:
    """Draw what JOB published in a period: .svg, or .png and .pdf with the extra `plot`."""
    if output.suffix not in (".svg", ".png", ".pdf"):
        raise ConfigurationError("a picture is .svg, .png or .pdf", where=str(output))
    found = _digest(job, config_path, period, at)
    if output.suffix == ".svg":
        from streamdp.reports.charts.frame import alone
        from streamdp.reports.charts.panels import chart_of

        _write(output, alone(chart_of(job, found.picture, found.events)).encode())
        return
    from streamdp.reports.charts.files import draw_series

    _write(output, draw_series(found, output.suffix[1:]))


def _digest(job: str, path: Path, period: Period, at: int | None) -> Digest:
    from streamdp.cli.web import columns_of
    from streamdp.reports.releases.digest import digest
    from streamdp.store.migrations import open_to_read

    configuration = load_configuration(path)
    require_job(configuration, job)
    database = open_to_read(configuration.store.path)
    columns = columns_of(configuration, job)
    return digest(configuration, database, job, period, at, int(time.time()), columns)


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    if not path.parent.is_dir():
        raise StreamdpError(
            f"there is no folder {path.parent}", where=str(path), hint="make it, and ask again"
        )
    made = path.with_name(f".{path.name}.{os.getpid()}")
    made.write_bytes(content)
    made.replace(path)
    click.echo(f"wrote {path}", err=True)
