"""The pages: what each reads of the store, and which template shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from streamdp.errors import StreamdpError
from streamdp.log import EVENTS, LEVELS
from streamdp.reports.budget import Budget, Lasts, budgets, budgets_if, questions, what_if
from streamdp.reports.charts.frame import SIZES
from streamdp.reports.charts.lines import spark, steps
from streamdp.reports.releases.changes import Comparison, PeriodRow, is_never_negative, since_before
from streamdp.reports.releases.headline import Headline, headline, headline_series
from streamdp.reports.releases.learned import learned
from streamdp.reports.releases.sentences import range_said
from streamdp.reports.releases.series import Picture, columns_of, picture
from streamdp.reports.releases.sheet import data_sheet
from streamdp.reports.releases.summary import (
    about_batches,
    about_changes,
    by_itself,
    errors_of,
    how_sure,
    may_be_shown,
    since_said,
)
from streamdp.reports.state import (
    JobView,
    daemon_state,
    holders,
    job_view,
    overview,
    signs_of_life,
)
from streamdp.reports.statement import common_delta, statement
from streamdp.reports.verification import verification
from streamdp.store.ledger.chain import PURPOSES
from streamdp.store.ledger.privacy_guarantee import claim_of
from streamdp.store.ledger.renames import names_of
from streamdp.store.reading.browse import (
    find_by_id,
    ledger_of,
    ledger_page,
    newest_releases,
    spending,
)
from streamdp.store.reading.reports import ScopeReport
from streamdp.types import Column, Json, Release
from streamdp.web import tables
from streamdp.web.charts import PARAMETERS, STRETCHES, draw, wanted
from streamdp.web.forms import render, sized, symbol
from streamdp.web.log import newest_lines
from streamdp.web.reader import View
from streamdp.web.report import Grid, changes_grid
from streamdp.web.requests import MovedRequest, Parameters, bad, missing, tagged

ROWS = 50
"""Rows of a table on one page."""

RECENT = 60
"""Releases in the little picture of a job."""


def page(request: Request, view: View, name: str, **content: Json) -> Response:
    """Render a page with what all pages have."""
    whole = render(
        name,
        here=request.url.path,
        query=request.query_params,
        now=view.now - view.now % 60,
        jobs=list(view.configuration.releases),
        stale=view.reader.stale,
        **content,
    )
    return tagged(request, whole, "text/html")


def show_overview(request: Request, view: View) -> Response:
    """Every job, what holds it, and what needs an operator."""
    Parameters(request)
    found = overview(view.configuration, view.database, view.now, view.spent)
    lasting = {each.report.scope: each.now for each in budgets_of(view)}
    looks = [_card(view, look, lasting.get(look.source)) for look in found.jobs]
    gates = [{"gate": gate, "held": holders(gate.held)} for gate in found.gates]
    said = [each["headline"]["said"] for each in looks if each["headline"]]
    sure = dict.fromkeys(
        f"{each.sure} sure: {range_said(each.level)}" for each in said if each.sure
    )
    return page(
        request,
        view,
        "overview.html",
        whole=found,
        looks=looks,
        gates=gates,
        lasting=lasting,
        sure=list(sure),
    )


def budgets_of(view: View) -> list[Budget]:
    """Every budget, as all pages say it."""
    return view.once("budgets", lambda: budgets(view.configuration, view.database))


def _card(view: View, look: JobView, lasts: Lasts | None) -> Json:
    """One job of the overview."""
    whole = _recent(view, look.job, _newest(view, look.job))
    return {
        "look": look,
        "held": "; ".join(each.told for each in look.holds),
        "headline": _headline(view, look.job, whole),
        "lasts": lasts,
    }


def _newest(view: View, job: str) -> tuple[Release, ...]:
    """The last releases of a job, oldest first."""
    return newest_releases(view.database, job, RECENT)[::-1]


def show_job(request: Request, view: View) -> Response:
    """Newest value, charts, other events, and a table of releases."""
    job = job_of(request, view)
    parameters = Parameters(request, *PARAMETERS, *tables.PARAMETERS, "before")
    what, order = wanted(parameters), tables.order_of(parameters)
    drawing = draw(view, job, what)
    before = parameters.release_id("before")
    table, following = drawing.whole, None
    if not drawing.per and (before is not None or order == tables.Order()):
        rows = ROWS if what.last == "all" else min(ROWS, int(what.last))
        releases = newest_releases(view.database, job, rows + 1, what.stretch, before)
        following = releases[rows - 1].id if len(releases) > rows else None
        table = picture(releases[:rows], view.columns(job))
        table = table.part(drawing.part) if drawing.part else table
    columns = tables.columns(table)
    heart, pulse = signs_of_life(view.database, view.configuration.store.path)
    daemon = daemon_state(heart, view.now)
    look = job_view(*_of(view), job, view.now, daemon, pulse, spent=view.spent(job))
    last = _newest(view, job)
    if drawing.per and last:
        columns = _from_0_on(view, job, last[-1], columns)
    newest = []
    if drawing.whole.times and not drawing.per:
        past = _past(view, job, drawing.whole.ids[-1], last)
        newest = tables.newest(drawing.whole, order, past)
    recent, moved = _recent(view, job, last), _moved(view, job, last)
    said, changes = _said(view, job, recent), moved.compared if moved else None
    return page(
        request,
        view,
        "job.html",
        job=job,
        look=look,
        held="; ".join(each.told for each in look.holds),
        daemon=daemon,
        said=said,
        moved=moved,
        sure=list(how_sure(recent, last[-1], said, changes)) if last else [],
        errors=errors_of(last[-1], recent.columns) if last else [],
        showing=list(may_be_shown(*_of(view), job, last[-1:], "")) if last else [],
        drawing=drawing,
        numbers={each.name: at for at, each in enumerate(drawing.whole.series)},
        beyond=drawing.whole.only(drawing.shown).beyond(),
        last=what.last,
        newest_id=last[-1].id if last else None,
        stretches=STRETCHES,
        newest=newest,
        standing_out=tables.standing_out(newest),
        next=tables.expected_next(drawing.whole),
        crossed=tables.crossed(drawing.whole, order) if drawing.whole.times else None,
        table=table,
        about_batches=about_batches(table),
        order=order,
        columns=columns,
        cells=[each.cells() for each in columns],
        places=tables.places(table, order if following is None else tables.Order()),
        following=following,
    )


def _from_0_on(
    view: View, job: str, newest: Release, columns: list[tables.TableColumn]
) -> list[tables.TableColumn]:
    """Columns of rollups: those that count records, or sum values from 0 on, know it."""
    found = view.measured(job, newest)()
    if not any(each.measurements for each in found.releases):
        return columns

    rows = [each.picture.labels_of(each.series) for each in columns]
    return [
        replace(each, never_negative=is_never_negative(found, labels))
        for each, labels in zip(columns, rows, strict=True)
    ]


def _recent(view: View, job: str, recent: Sequence[Release]) -> Picture:
    """The series of a job's last releases: made once for each newest release."""
    state = tuple(each.id for each in recent)
    return view.known(("recent", job), state, lambda: picture(recent, view.columns(job)))


def _past(view: View, job: str, last: str, recent: Sequence[Release]) -> Picture:
    """The series of a release and as many before it as the newest is compared with."""
    if recent and recent[-1].id == last:
        return _recent(view, job, recent)
    release = find_by_id(view.database, last)
    before = newest_releases(view.database, job, RECENT - 1, before=last)
    found = () if release is None else (*before[::-1], release)
    return picture(found, view.columns(job))


def _said(view: View, job: str, whole: Picture) -> Headline | None:
    """The one number of a job, and which rows are unusual: found once for each newest release."""
    section = view.configuration.releases[job]
    return view.known(
        ("said", job), whole.ids[-1:], lambda: headline(whole, section.headline, section.by)
    )


@dataclass(frozen=True, slots=True)
class SinceBefore:
    """How a job's last whole period changed, in one sentence, and of groups in a table.

    Args:
        said: The sentence.
        about: How to read the table.
        rows: How many rows it has, and how many of them are of all groups together.
        grid: A row for each group and measure.
        compared: The comparison that they say.
    """

    said: str
    about: str
    rows: str
    grid: Grid
    compared: Comparison


def _moved(view: View, job: str, recent: Sequence[Release]) -> SinceBefore | None:
    """How a job changed since the period before: computed once for each newest release."""
    if not recent:
        return None
    section = view.configuration.releases[job]

    def compute() -> SinceBefore | None:
        whole = _recent(view, job, recent)
        measured = view.measured(job, recent[-1])
        found = since_before(*_of(view), job, recent[-1], whole, measured)
        if found is None:
            return None
        said = since_said(found, section.by)
        grid: Grid = changes_grid(found, whole.unit) if found.rows else ([], [])
        about = about_changes(found)
        if len(found.rows) > 1:
            about += f" {by_itself(len(found.rows))}"
        return SinceBefore(said, about, _rows_said(found.rows, section.by), grid, found)

    return view.known(("moved", job), recent[-1].id, compute)


def _rows_said(rows: Sequence[PeriodRow], by: Sequence[str]) -> str:
    """How many rows of a table are of one group, and how many of all groups together."""
    together = len([each for each in rows if by and each.labels.get(by[0]) is None])
    apart = f"Each of {len(rows) - together} rows"
    return f"{apart}, and {together} of all groups together" if 0 < together < len(rows) else apart


def show_release(request: Request, view: View) -> Response:
    """One release, under a permanent address: what was published, its claim, and its price."""
    order = tables.order_of(Parameters(request, *tables.PARAMETERS))
    release = find_by_id(view.database, request.path_params["release"])
    if release is None:
        raise missing("release")
    columns = columns_of([release], _columns_of(view, release))
    # A column that says the same in every row is said once.
    common = {
        each: release.rows[0].get(each.name)
        for each in columns
        if len(release.rows) > 1 and len({str(row.get(each.name)) for row in release.rows}) == 1
    }
    return page(
        request,
        view,
        "release.html",
        release=release,
        columns=[each for each in columns if each not in common],
        common={each.name: value for each, value in common.items()},
        rows=tables.of_mappings(release.rows, order),
        order=order,
        flags=_flags_of(release, columns),
        claim=claim_of(view.database, release.id) or {},
        ledger=ledger_of(view.database, release),
    )


def _flags_of(release: Release, columns: Sequence[Column]) -> dict[str, int]:
    """What is odd about rows of a release, and about how many."""
    names = [each.name for each in columns if each.role == "flag"]
    return Counter(str(row[name]) for row in release.rows for name in names if row.get(name))


def _columns_of(view: View, release: Release) -> Sequence[Column]:
    """Declared columns of a release; none if its job is no longer configured."""
    return view.columns(release.job) if release.job in view.configuration.releases else ()


def show_budget(request: Request, view: View) -> Response:
    """Spent and left over time, caps and windows, rows of the ledger."""
    parameters = Parameters(request, "scope", "job", "purpose", "before", *asked_names(view))
    scope, job = parameters.text("scope"), parameters.text("job")
    purpose = parameters.choice("purpose", ("", *sorted(PURPOSES)), "")
    before = parameters.number("before", 0, 1, 2**62) or None
    rows = ledger_page(view.database, ROWS + 1, before, scope, job, purpose or None)
    found = budgets_of(view)
    charts = {budget.report.scope: _spending(view, budget.report) for budget in found}
    asked, then = asked_of(parameters, view, found)
    return page(
        request,
        view,
        "budget.html",
        budgets=found,
        charts=charts,
        asked=asked,
        then=then,
        rows=rows[:ROWS],
        following=rows[ROWS - 1]["seq"] if len(rows) > ROWS else None,
        purposes=sorted(PURPOSES),
        chosen={"scope": scope or "", "job": job or "", "purpose": purpose},
    )


def asked_names(view: View) -> list[str]:
    """Parameters that ask what would be at other prices."""
    return [f"if.{name}" for name in questions(view.configuration)]


def asked_of(
    parameters: Parameters, view: View, found: Sequence[Budget]
) -> tuple[dict[str, str], dict[str, Lasts]]:
    """Other prices and caps that a request asks about, and how long each budget would last."""
    given = {name: parameters.text(f"if.{name}") for name in questions(view.configuration)}
    asked = {name: text for name, text in given.items() if text}
    try:
        other = what_if(view.configuration, asked)
    except StreamdpError as error:
        raise bad(error.what) from None
    return asked, budgets_if(*_of(view), found, other)


def show_learned(request: Request, view: View) -> Response:
    """What a job has learned from its releases, and what follows for its next batch."""
    parameters = Parameters(request, "batch", "group", *tables.PARAMETERS)
    job = job_of(request, view)
    batch, group = parameters.text("batch"), parameters.text("group")
    try:
        found = view.once(
            ("learned", job, batch, group),
            lambda: learned(*_of(view), view.kind(job), job, batch, group),
        )
    except StreamdpError as error:
        found, why = None, error.what
    else:
        why = ""
    return page(
        request,
        view,
        "learned.html",
        job=job,
        learned=found,
        why=why,
        order=tables.order_of(parameters),
    )


def show_verification(request: Request, view: View) -> Response:
    """Whether anything in the store was altered; looked at when it is asked for."""
    Parameters(request)
    found = view.once("verification", lambda: verification(view.configuration))
    return page(request, view, "verification.html", checks=found)


def show_statement(request: Request, view: View) -> Response:
    """Statement of the guarantee, as a privacy officer signs it."""
    unfolded = Parameters(request, "unfolded").choice("unfolded", ("", "yes"), "") == "yes"
    return page(request, view, "statement.html", whole=statement_of(view), unfolded=unfolded)


def show_sheet(request: Request, view: View) -> Response:
    """Page about the releases, for the public."""
    Parameters(request)
    job = job_of(request, view)
    last = newest_releases(view.database, job, 1)
    return page(
        request,
        view,
        "sheet.html",
        job=job,
        sheet=view.once(("sheet", job), lambda: data_sheet(*_of(view), job, view.columns(job))),
        shown=list(may_be_shown(*_of(view), job, last, "")) if last else [],
    )


def show_log(request: Request, view: View) -> Response:
    """Events, the last first."""
    chosen, lines = asked_lines(request, view)
    return page(
        request,
        view,
        "log.html",
        lines=lines,
        levels=LEVELS,
        chosen={name: value or "" for name, value in chosen.items()},
        meanings={name: event.meaning for name, event in EVENTS.items()},
        kept=view.configuration.log.path is not None,
    )


def asked_lines(request: Request, view: View) -> tuple[dict[str, Json], list[dict[str, Json]]]:
    """What a request asks of the log, and the lines."""
    parameters = Parameters(request, "job", "release", "batch", "level")
    level = parameters.choice("level", LEVELS, "info")
    chosen = {name: parameters.text(name) for name in ("job", "release", "batch")}
    lines = newest_lines(view.configuration.log.path, level=level, **chosen)
    return {**chosen, "level": level}, lines


def statement_of(view: View) -> dict[str, Json]:
    """Statement of the guarantee of all jobs."""
    names = list(view.configuration.releases)
    return view.once(
        "statement", lambda: statement(*_of(view), names, common_delta(*_of(view), names))
    )


def _of(view: View) -> tuple[Json, Json]:
    return view.configuration, view.database


def job_of(request: Request, view: View) -> str:
    """The job that an address names; by a name that it had before it is at another address."""
    job: str = request.path_params["job"]
    releases = view.configuration.releases
    if job in releases:
        return job
    now = next((name for name in releases if job in names_of(view.database, name)), None)
    if now is None:
        raise missing("job")
    path = request.url.path.replace(f"/jobs/{job}", f"/jobs/{now}", 1)
    raise MovedRequest(f"{path}?{request.url.query}" if request.url.query else path)


def _headline(view: View, job: str, whole: Picture) -> Json:
    """The one number of a job, with its past as a line the size of a word."""
    chosen = view.configuration.releases[job].headline
    said, series = _said(view, job, whole), headline_series(whole, chosen)
    if said is None or series is None:
        return None
    best = series.told(series.best)
    line = Markup(spark(best.values, title=f"{job}: {said.name}"))  # noqa: S704
    return {"said": said, "spark": line}


def _spending(view: View, report: ScopeReport) -> Json:
    """The sum spent by batches, and how to read it: computed once for each state of the ledger."""
    scope, measure = report.scope, report.measure

    def compute() -> Json:
        found = spending(view.database, scope, 300, measure)
        if found is None:
            return None
        where = "up to each batch" if found.dated else "by row of the ledger"
        title = f"{scope}: {symbol(measure)} spent {where}, and its lifetime cap"
        points = [(place, spent / 1e9) for place, spent in found.points]
        charts = {
            name: steps(points, found.cap / 1e9, dated=found.dated, title=title, frame=frame)
            for name, frame in SIZES.items()
        }
        lie = "Batches lie at their dates, whenever each was charged"
        if not found.dated:
            lie = "Names of batches have no date, so rows of the ledger stand in their place"
        return {"chart": sized(charts), "about": f"{symbol(measure)} spent {where}. {lie}."}

    return view.once(("spending", scope), compute)
