"""A report of a job as one file: HTML with its charts inside, its PDF, or Markdown."""

from __future__ import annotations

import base64
import logging
import re
from importlib.util import find_spec
from typing import assert_never

from markupsafe import Markup

from streamdp.config.sections.reports import ReportForm
from streamdp.errors import StreamdpError
from streamdp.reports.charts.frame import STYLE, alone
from streamdp.reports.charts.panels import chart_of
from streamdp.reports.releases.digest import Digest
from streamdp.reports.releases.headline import headline
from streamdp.text import printable
from streamdp.types import Json
from streamdp.web.forms import moment, number, render, static

ROWS = 400
"""Releases in the table of one report: the last."""


def written(digest: Digest, now: int, form: ReportForm) -> bytes:
    """A report in one of its formats.

    Raises:
        StreamdpError: The extra that makes PDFs is not installed.
    """
    if form == "md":
        return as_markdown(digest, now).encode()
    if form == "html":
        return as_html(digest, now).encode()
    if form == "pdf":
        return as_pdf(digest, now)
    assert_never(form)


def as_pdf(digest: Digest, now: int) -> bytes:
    """The HTML as it is printed.

    Raises:
        StreamdpError: The extra is not installed.
    """
    if find_spec("weasyprint") is None:
        raise StreamdpError(
            "a PDF needs weasyprint",
            hint="pip install 'streamdp[pdf]', or print the HTML from a browser",
        )
    import weasyprint

    # To a picture it applies no style but the picture's own, and says so at length.
    logging.getLogger("weasyprint").setLevel(logging.CRITICAL)
    text = re.sub("(<svg[^>]*>)", rf"\1<style>{STYLE}</style>", as_html(digest, now))
    made: bytes = weasyprint.HTML(string=text, url_fetcher=_refuse).write_pdf()
    return made


def _refuse(url: str) -> Json:
    raise ValueError("a report asks for no other file")


def as_html(digest: Digest, now: int) -> str:
    """HTML in one file that loads no other."""
    return render(
        "report.html",
        digest=digest,
        now=now,
        svg=Markup(chart_of(digest.job, digest.picture, digest.events)),  # noqa: S704
        headline=headline(digest.picture),
        style=Markup(static("page.css").decode()),  # noqa: S704
        rows=ROWS,
    )


def as_markdown(digest: Digest, now: int) -> str:
    """Markdown, with the chart as an embedded image."""
    main = chart_of(digest.job, digest.picture, digest.events)
    drawn = [*([(digest.job, main)] if main else []), *((c.title, c.svg) for c in digest.own)]
    first, last = digest.releases[0].batch, digest.releases[-1].batch
    lines = [
        f"# {_text(digest.job)}: {_text(first)} to {_text(last)}",
        "",
        f"As of {moment(now)} UTC: {len(digest.releases)} releases.",
        "",
        *(f"![{_text(title)}](data:image/svg+xml;base64,{_encoded(svg)})" for title, svg in drawn),
    ]
    for name, about in digest.sheet.items():
        if isinstance(about, dict):
            facts = [f"- {_text(key)}: {_text(number(value))}" for key, value in about.items()]
            lines += ["", f"## {name.capitalize()}", "", *facts]
    names = [each.name for each in digest.picture.series]
    lines += ["", "## Releases", "", *_table(["batch", *names], _rows(digest))]
    if digest.events.events:
        found = [[each.batch, each.meaning] for each in digest.events.events]
        lines += ["", "## Other events", "", *_table(["batch", "what"], found)]
    return "\n".join([*lines, ""])


def _encoded(svg: str) -> str:
    return base64.b64encode(alone(svg).encode()).decode()


def _rows(digest: Digest) -> list[list[Json]]:
    series = digest.picture.series
    count = len(digest.picture.batches)
    return [
        [digest.picture.batches[at], *(number(each.cells[at]) for each in series)]
        for at in range(count - 1, max(count - ROWS, 0) - 1, -1)
    ]


def _table(names: list[str], rows: list[list[Json]]) -> list[str]:
    lines = [[*map(_text, names)], ["---"] * len(names), *([*map(_text, row)] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def _text(value: Json) -> str:
    """Text with the characters that mean something in Markdown escaped."""
    found = printable(str(value), lines=False).replace("&", "&amp;").replace("<", "&lt;")
    for letter in "\\`*_{}[]()#!|~$":
        found = found.replace(letter, f"\\{letter}")
    return found
