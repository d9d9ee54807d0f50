"""A report of a job: HTML or PDF in one file, or Markdown with its pictures beside it."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import assert_never
from urllib.parse import quote

from streamdp.config.model import ReportForm
from streamdp.errors import StreamdpError
from streamdp.reports.charts.frame import STYLE, alone
from streamdp.reports.charts.panels import Chart, Panel, chart_of, panels
from streamdp.reports.releases.changes import Comparison, Interval, Moved, PeriodRow
from streamdp.reports.releases.digest import Digest
from streamdp.reports.releases.headline import headline_series
from streamdp.reports.releases.sentences import CLEAR, amounts, digits_of_amounts, in_100, of_size
from streamdp.reports.releases.series import MEASURED, NESTED, Picture
from streamdp.reports.releases.summary import GLOSSARY, Point
from streamdp.text import printable
from streamdp.types import Json
from streamdp.types.releases import HARDLY_ANY
from streamdp.web.forms import embedded, moment, number, render, spans
from streamdp.web.tables import BELOW, WIDEST, Cell, TableColumn, columns

ROWS = 400
"""Releases in the table of one report: the last."""

PAPER = (
    ".panels,.panel .charts,.panel.many .charts{display:block;orphans:1;widows:1}"
    ".panel.many{break-inside:auto}"
    ".panels:not(.one) .panel:not(.many),.panel.many .picture"
    "{display:inline-block;width:32.5%;vertical-align:top;margin:0 0 2mm}"
    ".panels.few .panel:not(.many),.panel.many.few .picture{width:48.5%}"
    ".panels:not(.one) .panel:not(.many) .picture{width:100%}"
    ".panels:not(.one) .panel :is(.tick,.name){font-size:13px}"
    ".report{font-size:8.6pt;line-height:1.35}.report .lead{font-size:11pt;margin:2mm 0}"
    ".report .ways{display:none}.report h2{font-size:10pt;padding-top:2mm;margin:3mm 0 1.5mm}"
    ".report h3{font-size:8.6pt;margin:0}.report p,.report ul{margin:1mm 0}"
    ".report p,.report li,.report .prose{max-width:none}.report table{font-size:7pt}"
    ".report :is(th,td){padding:.6mm 1.2mm .6mm 0}.report .range{font-size:5.8pt;line-height:1.1}"
    ".report .facts{grid-template-columns:repeat(4,1fr);gap:1.5mm 4mm}"
    ".report :is(thead th,dt,.small){font-size:6.8pt}.report thead th{font-size:6.4pt}"
    ".report .prose div{padding:.6mm 0}.report .scroll+.scroll{margin-top:2mm}"
)
"""Style of paper: small, charts beside each other; its printer knows no columns that fill."""

PARTS = 12
"""Parts of many series that are drawn: the first."""

LETTERS, PAGE, SHEET = 9, 100, 150
"""Letters of a narrow column, and of all columns of a table that fits a page; on paper."""

COLUMNS = 12
"""Rows of a release that paper has a column of each of; of more those like the headline."""

SAME = (*MEASURED, NESTED, "cell")
"""Labels that rows like the headline share: they differ in their group alone."""


def written(digest: Digest, now: int, form: ReportForm, path: Path) -> dict[Path, bytes]:
    """The files of a report in one of its formats, itself the last.

    Args:
        digest: What it is about.
        now: POSIX time.
        form: The format.
        path: Of the report; pictures of Markdown lie beside it, under its name and a number.

    Raises:
        StreamdpError: The extra that makes PDFs is not installed.
    """
    if form == "md":
        drawn = [(title, alone(svg)) for title, svg in pictures(digest)]
        beside = [path.with_name(f"{path.stem}-{at}.svg") for at in range(1, len(drawn) + 1)]
        found = {each: svg.encode() for each, (_, svg) in zip(beside, drawn, strict=True)}
        shown = [(title, each.name) for each, (title, _) in zip(beside, drawn, strict=True)]
        return {**found, path: as_markdown(digest, now, shown).encode()}
    if form == "html":
        return {path: as_html(digest, now).encode()}
    if form == "pdf":
        return {path: as_pdf(digest, now)}
    assert_never(form)


def pictures(digest: Digest) -> list[tuple[str, str]]:
    """Titles and charts of a report whose pictures are files: as the page draws them."""
    drawn = [
        (name or f"{digest.job} over time", chart_of(digest.job, part, digest.events))
        for name, part in _parts(digest.picture)
    ]
    own = [(each.title, each.svg) for each in digest.own]
    return [(title, svg) for title, svg in [*drawn, *own] if svg]


def _parts(whole: Picture) -> list[tuple[str, Picture]]:
    """The parts of many series, as the page shows them; the whole, where it has none."""
    return [(name, whole.part(name)) for name in whole.parts()[:PARTS]] or [("", whole)]


def _panels(digest: Digest) -> list[Panel]:
    """The panels of the page, of all parts below each other."""
    found = [
        replace(each, title=" · ".join(filter(None, (name, each.title))))
        for name, part in _parts(digest.picture)
        for each in panels(digest.job, part, digest.events)
    ]
    if len(found) == 1:
        return found
    last = {each.about: at for at, each in enumerate(found)}
    return [
        replace(
            each,
            charts=tuple(map(_small, each.charts)),
            about=each.about if last[each.about] == at else "",
        )
        for at, each in enumerate(found)
    ]


def _small(chart: Chart) -> Chart:
    """A chart that stands beside others."""
    return replace(chart, sizes={"small": chart.sizes["small"]})


def as_pdf(digest: Digest, now: int) -> bytes:
    """The HTML as it is printed.

    Raises:
        StreamdpError: The extra is not installed.
    """
    made: bytes = sheets(digest, now).write_pdf()
    return made


def sheets(digest: Digest, now: int) -> Json:
    """The sheets of paper of a report, before they are a file.

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
    text = as_html(digest, now, paper=True)
    text = re.sub("(<svg[^>]*>)", rf"\1<style>{STYLE}</style>", text)
    text = text.replace("</style>", f"{PAPER}</style>", 1)
    return weasyprint.HTML(string=text, url_fetcher=_refuse).render()


def _refuse(url: str) -> Json:
    raise ValueError("a report asks for no other file")


def as_html(digest: Digest, now: int, *, paper: bool = False) -> str:
    """HTML in one file that loads no other; on paper with a column for few rows of a release."""
    table = _for_paper(digest) if paper else digest.picture
    return render(
        "report.html",
        digest=digest,
        words=digest.words,
        now=now,
        panels=_panels(digest),
        changes=changes_grid(digest.compared, digest.picture.unit),
        batches=_batches(table, SHEET if paper else PAGE),
        left_out=_left_out(digest, table),
        glossary=GLOSSARY,
        style=embedded("page.css"),
        rows=ROWS,
    )


def as_markdown(digest: Digest, now: int, shown: list[tuple[str, str]]) -> str:
    """Markdown that shows pictures of other files: their titles and names."""
    words = digest.words
    lines = [
        f"# {_text(digest.job)}: {_text(words.title)}",
        "",
        f"**{_text(words.headline)}**",
        "",
        f"## Since the {digest.compared.step} before" if digest.compared else "## Changes",
        "",
        *(f"- {_text(each)}" for each in words.changed),
        *([""] if words.changed else []),
        _text(words.about_changes),
        *(line for title, name in shown for line in ("", f"![{_text(title)}]({_address(name)})")),
    ]
    head, rows = changes_grid(digest.compared, digest.picture.unit)
    unit = f" in {_text(digest.picture.unit)}" if digest.picture.unit else ""
    if rows:
        table = [[_flat(cell) for cell in row] for row in rows]
        lines += ["", f"## {_text(words.heading)}{unit}", ""]
        lines += _table(head, table)
    lines += ["", f"## Batches{unit}"]
    for head, rows in _batches(digest.picture):
        lines += ["", *_table(head, [[_named(row[0]), *map(_flat, row[1:])] for row in rows])]
    for each in filter(None, (words.about_batches, _left_out(digest, digest.picture))):
        lines += ["", _with_commands(each)]
    if digest.events.events:
        found = [[each.batch, each.meaning] for each in digest.events.events[:ROWS]]
        lines += ["", "## Other events", "", *_table(["batch", "what"], found)]
        left = len(digest.events.events) - len(found)
        lines += ["", f"And {left} more, earlier."] if left else []
    lines += ["", "## How sure is it?", *_points(words.sure)]
    lines += ["", "## What did it cost?", "", _text(words.cost)]
    lines += ["", "## May I show it?", *_points(words.showing)]
    lines += [
        "",
        "## Words",
        "",
        *(f"- *{_text(word)}*: {_text(said)}." for word, said in GLOSSARY),
    ]
    for name, about in digest.sheet.items():
        if isinstance(about, dict):
            facts = [f"- {_text(key)}: {_text(number(value))}" for key, value in about.items()]
            lines += ["", f"## {name.capitalize()}", "", *facts]
    return "\n".join([*lines, "", f"As of {moment(now)} UTC.", ""])


def _points(points: Sequence[Point]) -> list[str]:
    """Points of an answer, a paragraph each."""
    return [
        line for e in points for line in ("", f"**{_text(e.title)}**: {_with_commands(e.text)}")
    ]


Grid = tuple[list[str], list[list[Cell]]]
"""Names of columns, and rows."""


def changes_grid(compared: Comparison | None, unit: str) -> Grid:
    """Each row of a period: its value, its change, and how sure that is where it is measured.

    Rows say their unit where the table has not one for all.
    """
    rows = [] if compared is None else compared.rows[:ROWS]
    if compared is None or not rows:
        return [], []
    name = compared.dates
    head = ["row", f"{name}, {compared.part}" if compared.part else name]
    moved = any(each.moved for each in rows)
    known = any(each.moved and each.moved.differ is not None for each in rows)
    if moved:
        head.append(f"change since the {compared.step} before")
    if known:
        head.append("chance that the records changed")
    found, alike = [], _like_digits(rows)
    for row in rows:
        digits, of_change = alike[_measured(row)]
        line = [Cell(_in(compared.called(row), "" if unit else row.unit)), _value(row, digits)]
        if moved:
            by = row.moved and _cell(row.moved.by, of_change, signed=True)
            line.append(by or Cell("–"))
        if known:
            line.append(_chance(row.moved))
        found.append(line)
    return head, found


def _chance(moved: Moved | None) -> Cell:
    """How likely it is that records changed, and beyond usual ups and downs where that is clear."""
    if moved is None or moved.differ is None or moved.rose is None:
        return Cell("–")
    said = f"beyond usual: {in_100(max(moved.rose, 1 - moved.rose))}"
    if not moved.direction:
        said = "which way is not clear" if moved.differ >= CLEAR else "no clear change"
    return Cell(f"{in_100(moved.differ)} in 100", said)


def _measured(row: PeriodRow) -> tuple[str | None, ...]:
    """What a row measures: rows that measure the same have as many digits."""
    return tuple(row.labels.get(name) for name in MEASURED)


def _like_digits(rows: Sequence[PeriodRow]) -> dict[tuple[str | None, ...], tuple[int, int]]:
    """Digits after the point of values and of changes, by what rows measure: the fewest."""
    found: dict[tuple[str | None, ...], tuple[list[int], list[int]]] = {}
    for row in rows:
        values, changes = found.setdefault(_measured(row), ([], []))
        values.append(digits_of_amounts(*row.shown))
        changes += [digits_of_amounts(*row.moved.by)] if row.moved else []
    return {each: (min(one), min(two, default=0)) for each, (one, two) in found.items()}


def _value(row: PeriodRow, digits: int) -> Cell:
    """The value of a period; 0 where noise took all of its interval below."""
    return Cell("0", BELOW) if row.is_impossible else _cell(row.shown, digits)


def _cell(value: Interval, digits: int, *, signed: bool = False) -> Cell:
    """A value and its interval, to the digits that the interval, and those beside it, support."""
    at, low, high = amounts(*value, digits)
    plus = "+" if signed and value[0] > 0 and at != "0" else ""
    return Cell(plus + at, f"{low} to {high}" if value[1] < value[2] else "")


def _for_paper(digest: Digest) -> Picture:
    """The series that have a column on paper: all, or those that measure what the headline does."""
    whole, row = digest.picture, digest.compared and digest.compared.headline
    main = headline_series(whole)
    if len(whole.series) <= COLUMNS or main is None:
        return whole
    labels = row.labels if row else whole.labels_of(main)
    alike = [
        each.name
        for each in whole.series
        if all(whole.labels_of(each).get(n) == labels.get(n) for n in SAME if n in labels)
    ]
    return whole.only(alike[:WIDEST])


def _left_out(digest: Digest, table: Picture) -> str:
    """Which rows, batches and parts are shown of many; nothing where all are."""
    many, shown = len(digest.picture.series), min(len(table.series), WIDEST)
    batches, parts = len(digest.picture.batches), len(digest.picture.parts())
    left = []
    if shown < many:
        first = "the first" if len(table.series) == many else "here are those like the headline,"
        left.append(f"{first} {shown} of {many} rows of a release")
    if batches > ROWS:
        left.append(f"the last {ROWS} of {batches:,} batches")
    if parts > PARTS:
        left.append(f"charts of the first {PARTS} of {parts} {digest.picture.labels[0]}s")
    if not left:
        return ""
    said = f"{'; '.join(left)}; `streamdp releases {digest.job} --csv` has all."
    return said[0].upper() + said[1:]


def _batches(whole: Picture, letters: int = PAGE) -> list[Grid]:
    """Each batch in its own order, a column a series as charts draw it: tables that fit a page."""
    places = range(max(len(whole.batches) - ROWS, 0), len(whole.batches))
    first = [Cell(whole.batches[at], flag="; ".join(whole.flags_at(at))) for at in places]
    found: list[Grid] = []
    room = 0
    for each in columns(whole):
        name = _in(whole.called(each.series), "" if whole.unit else whole.unit_of(each.series))
        cells = _legible(each).cells()
        wide = max(len(name), LETTERS) + 2
        if wide > room:
            found.append((["batch"], [[cell] for cell in first]))
            room = letters
        room -= wide
        head, rows = found[-1]
        head.append(name)
        for row, at in zip(rows, places, strict=True):
            row.append(Cell("–") if cells[at].flag == HARDLY_ANY else cells[at])
    return found


def _in(name: str, unit: str) -> str:
    return f"{name}, in {unit}" if unit else name


def _legible(column: TableColumn) -> TableColumn:
    """A column without intervals, with three digits of its usual value."""
    known = [abs(each) for each in column.line.values if each and each != round(each)]
    if column.digits is not None or not known:
        return column
    return replace(column, digits=max(of_size(median(known), 3), 0))


def _named(cell: Cell) -> str:
    """The first cell of a row, with what is odd about the row."""
    return f"{cell.value}: {cell.flag}" if cell.flag else cell.value


def _flat(cell: Cell) -> str:
    """A cell of a table in one line."""
    interval = f" ({cell.interval})" if cell.interval else ""
    return f"{cell.value}{interval}"


def _address(name: str) -> str:
    """The name of a file beside, as Markdown takes it."""
    return quote(name)


def _table(names: list[str], rows: Sequence[Sequence[Json]]) -> list[str]:
    lines = [[*map(_text, names)], ["---"] * len(names), *([*map(_text, row)] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def _with_commands(text: str) -> str:
    """Text in which commands stand as such."""
    return "".join(f"`{part}`" if is_command else _text(part) for part, is_command in spans(text))


def _text(value: Json) -> str:
    """Text with the characters that mean something in Markdown escaped."""
    found = printable(str(value), lines=False).replace("&", "&amp;").replace("<", "&lt;")
    for letter in "\\`*_{}[]#!|~$":
        found = found.replace(letter, f"\\{letter}")
    return found
