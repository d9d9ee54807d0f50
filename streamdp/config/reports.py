"""The section `reports`: reports of a job that are written by themselves, a file a period."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from streamdp.sections.document import Document, refuse
from streamdp.sections.document import Path as Place
from streamdp.sections.section import Section
from streamdp.sections.values import FileMode

ReportForm = Literal["html", "pdf", "md"]


class ReportSection(Section):
    """Reports of one job, written as soon as a period is over: `FOLDER/JOB-2013-01-01.html`."""

    job: str = Field(description="Name of the release to report on.", examples=["air_time"])
    period: Literal["day", "week", "month", "quarter", "year"] = Field(
        default="month",
        description="Period of the calendar, in the time zone of the batches. It is over when a"
        " batch of a later one is released, or a day after its end. Default `month`.",
    )
    path: Path = Field(
        description="Folder of the reports, relative to the configuration. It is created if"
        " missing. If the newest report is deleted it is written again; `streamdp report` writes"
        " any other, such as that of a period that was backfilled.",
        examples=["reports"],
    )
    form: tuple[ReportForm, ...] = Field(
        default=("html",),
        min_length=1,
        description="Formats, each a file of its own: `html` and `md` need the extra `web`, `pdf`"
        " needs the extra `pdf`. Default `[html]`.",
        examples=[["html", "pdf"]],
    )
    mode: FileMode = Field(
        default=0o600,
        description="Permissions of each file, in octal. Default 0600.",
        examples=["0644"],
    )

    def check(self, document: Document, path: Place, *, growing: bool) -> None:
        """Require batches that lie in a period.

        Raises:
            ConfigurationError: They grow.
        """
        if growing:
            refuse(
                f"the batches of {self.job} grow: all begin with the first record, none is of a"
                " period",
                document,
                path,
                f"leave it out: `streamdp report {self.job} --period all` writes one of all"
                " releases",
            )
