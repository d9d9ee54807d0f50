"""Templates, and how times and amounts are written in them; all that is filled in is escaped."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.datastructures import QueryParams

from streamdp.privacy.amounts import delta_text, epsilon_text, number_text
from streamdp.privacy.filters import Item, Measure
from streamdp.reports.budget import in_words
from streamdp.reports.releases.headline import is_unusual, rounded
from streamdp.reports.releases.series import Series
from streamdp.text import printable
from streamdp.types import Json, Release
from streamdp.version import __version__
from streamdp.web.tables import of_mappings

STATIC = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""Files of the page, by name; no others can be asked for."""


@cache
def static(name: str) -> bytes:
    """A file of the page."""
    return files("streamdp.web").joinpath("static", name).read_bytes()


def embedded(name: str) -> Markup:
    """A file of the page inside a document."""
    return Markup(static(name).decode())  # noqa: S704


@cache
def static_address(name: str) -> str:
    """Address of a file of the page, another one whenever its content changes."""
    return f"/static/{name}?v={hashlib.sha256(static(name)).hexdigest()[:12]}"


def _shown(value: Json) -> Json:
    """What is filled in, with control signs written out: names may be somebody else's."""
    return printable(value) if type(value) is str else value


@cache
def templates() -> Environment:
    """The templates; a name that is not filled in is an error."""
    made = Environment(
        loader=PackageLoader("streamdp.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.tests["unusual"] = is_unusual
    made.filters |= {
        "epsilon": epsilon_text,
        "delta": delta_text,
        "amount": number_text,
        "cost": cost,
        "lasting": in_words,
        "bare": bare,
        "symbol": symbol,
        "moment": moment,
        "iso": iso,
        "number": number,
        "measured": measured,
        "but": but,
        "arranged": of_mappings,
        "sized": sized,
        "linked": linked,
        "coded": coded,
    }
    made.globals |= {"static": static_address, "version": __version__}
    return made


def render(name: str, **content: Json) -> str:
    """Render a page."""
    return templates().get_template(name).render(**content)


STATEMENT = "streamdp statement"
"""The command that prints what a page shows, and that stands as a link there."""


def spans(text: str) -> Iterator[tuple[str, bool]]:
    """Parts of a sentence, and whether each is a command: those between backticks.

    >>> list(spans("`streamdp statement` has the sum"))
    [('streamdp statement', True), (' has the sum', False)]
    """
    for at, part in enumerate(text.split("`")):
        if part:
            yield part, at % 2 == 1


_CODE = Markup("<code>{}</code>")
_LINK = Markup('<a href="/statement">the statement</a>')


def coded(text: str) -> Markup:
    """A sentence with its commands as such."""
    return Markup("").join(
        _CODE.format(part) if is_command else escape(part) for part, is_command in spans(text)
    )


def linked(text: str) -> Markup:
    """A sentence with its commands as such; the one that prints the statement leads to its page."""
    return coded(text).replace(_CODE.format(STATEMENT), _LINK)


def moment(seconds: int | None) -> str:
    """Day and minute in UTC."""
    return "" if seconds is None else _time(seconds).strftime("%Y-%m-%d %H:%M")


def iso(seconds: int | None) -> str | None:
    """A time in ISO format."""
    return None if seconds is None else _time(seconds).strftime("%Y-%m-%dT%H:%MZ")


def number(value: Json) -> str:
    """A cell of a table: numbers short, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def measured(series: Series, at: int) -> Markup:
    """A value that was drawn, with the digits that its interval supports, and that interval."""
    value, flag, ends = series.cells[at], series.flag(at), series.raw.interval(at)
    about_flag = Markup("")
    if flag is not None:
        about_flag = Markup(' <span class="badge warning">{}</span>').format(flag)
    if not isinstance(value, int | float) or ends is None:
        return escape(number(value)) + about_flag
    about = " to ".join(rounded(each, ends) for each in ends)
    cell = '{} <span class="muted small">{}</span>'
    return Markup(cell).format(rounded(value, ends), about) + about_flag  # noqa: S704


def but(query: QueryParams, **changes: Json) -> str:
    """A query with some of its parameters changed, or left out where they are empty."""
    kept = [(name, value) for name, value in query.multi_items() if name not in changes and value]
    return "?" + urlencode([*kept, *((name, text) for name, text in changes.items() if text)])


def sized(charts: Mapping[str, str]) -> Markup:
    """A chart in each of its sizes, of which a style sheet shows the one that fits."""
    if len(charts) == 1:
        return Markup("".join(charts.values()))  # noqa: S704
    cell = Markup('<div class="only {}">{}</div>')
    return Markup("").join(cell.format(name, Markup(svg)) for name, svg in charts.items())  # noqa: S704


def _time(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def symbol(measure: Measure) -> str:
    """The Greek letter of a measure of loss."""
    return "ρ" if measure == "rho" else "ε"


def bare(price: Item) -> str:
    """A price in its own measure, without a letter."""
    return epsilon_text(price.rho_nano if price.epsilon_nano is None else price.epsilon_nano)


def cost(of: Item | Release) -> str:
    """A price with its letters: pure, or zero-concentrated where it is not pure; delta, if any."""
    delta = f", δ {delta_text(of.delta_atto)}" if of.delta_atto else ""
    if of.epsilon_nano is not None:
        return f"ε {epsilon_text(of.epsilon_nano)}{delta}"
    return f"ρ {epsilon_text(of.rho_nano or 0)}{delta}"
