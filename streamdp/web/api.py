"""The JSON API, read-only, paged, with entity tags; and its OpenAPI description."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from streamdp.log import LEVELS
from streamdp.privacy.amounts import ATTO, NANO, number_text
from streamdp.reports.budget import Budget, ends_of, jobs_of, then_of
from streamdp.reports.releases.series import columns_of
from streamdp.reports.state import SHOWN, Form, GateStatus, JobView, overview
from streamdp.sinks.columns import record
from streamdp.store.ledger.chain import PURPOSES
from streamdp.store.ledger.ledger import Room
from streamdp.store.ledger.privacy_guarantee import claim_of
from streamdp.store.reading.browse import find_by_id, ledger_page, newest_releases
from streamdp.types import Json
from streamdp.version import __version__
from streamdp.web import forms
from streamdp.web.charts import PARAMETERS, STRETCHES, draw, wanted
from streamdp.web.pages import asked_lines, asked_names, asked_of, budgets_of, job_of, statement_of
from streamdp.web.reader import View
from streamdp.web.requests import Parameters, as_json, missing

MOST = 500
"""Items of one answer."""


def describe(request: Request, view: View) -> Response:
    """The OpenAPI description."""
    Parameters(request)
    return as_json(request, description())


def status(request: Request, view: View) -> Response:
    """Daemon, jobs, gates and alerts."""
    Parameters(request)
    found = overview(view.configuration, view.database, view.now, view.spent)
    return as_json(
        request,
        {
            "daemon": {"state": found.daemon, "heartbeat_at": forms.iso(found.pulse.heartbeat_at)},
            "jobs": [_job(each) for each in found.jobs],
            "gates": [_gate(each) for each in found.gates],
            "alerts": [
                {"level": each.level, "of": each.of, "text": each.text} for each in found.alerts
            ],
        },
    )


def releases(request: Request, view: View) -> Response:
    """Releases of a job, the last batch first; `next` is where to go on."""
    job = job_of(request, view)
    parameters = Parameters(request, "limit", "before", "since", "until")
    limit = parameters.number("limit", 100, 1, MOST)
    stretch = wanted(parameters).stretch
    before = parameters.release_id("before")
    found = newest_releases(view.database, job, limit + 1, stretch, before)
    items = found[:limit]
    columns = [each.written() for each in columns_of(items, view.columns(job))]
    return _paged(
        request,
        [record(each) for each in items],
        items[-1].id if len(found) > limit else None,
        columns=columns,
    )


def series(request: Request, view: View) -> Response:
    """Series of a job over time, as the chart draws them."""
    job = job_of(request, view)
    return as_json(request, draw(view, job, wanted(Parameters(request, *PARAMETERS))).numbers(job))


def release(request: Request, view: View) -> Response:
    """One release with its claim."""
    Parameters(request)
    found = find_by_id(view.database, request.path_params["release"])
    if found is None:
        raise missing("release")
    return as_json(request, record(found) | {"claim": claim_of(view.database, found.id)})


def budget(request: Request, view: View) -> Response:
    """Spent and remaining budget of each source, and for how long it would last otherwise."""
    parameters = Parameters(request, *asked_names(view))
    found = budgets_of(view)
    _, then = asked_of(parameters, view, found)
    items = [_budget(each) for each in found]
    for item, each in zip(items, found, strict=True):
        if each.report.scope in then:
            item["if"] = then_of(each, then[each.report.scope], _amount, forms.iso)
    return as_json(request, {"items": items})


def ledger(request: Request, view: View) -> Response:
    """Rows of the ledger, newest first."""
    parameters = Parameters(request, "limit", "before", "scope", "job", "purpose")
    limit = parameters.number("limit", 100, 1, MOST)
    rows = ledger_page(
        view.database,
        limit + 1,
        parameters.number("before", 0, 1, 2**62) or None,
        parameters.text("scope"),
        parameters.text("job"),
        parameters.choice("purpose", ("", *sorted(PURPOSES)), "") or None,
    )
    items = [{**row, "at": forms.iso(row["at"])} for row in rows[:limit]]
    return _paged(request, items, rows[limit - 1]["seq"] if len(rows) > limit else None)


def statement(request: Request, view: View) -> Response:
    """Statement of the guarantee of all jobs."""
    Parameters(request)
    return as_json(request, statement_of(view))


def log(request: Request, view: View) -> Response:
    """The last lines of the log."""
    return as_json(request, {"items": asked_lines(request, view)[1]})


def _paged(request: Request, items: list[Json], following: Json, **more: Json) -> Response:
    """Items, and the address of the next page if there is one."""
    if following is None:
        return as_json(request, {"items": items, "next": None, **more})
    address = request.url.include_query_params(before=following)
    target = f"{address.path}?{address.query}"
    return as_json(
        request, {"items": items, "next": target, **more}, Link=f'<{target}>; rel="next"'
    )


def _amount(units: int, measure: str = "epsilon") -> Json:
    """An amount as a number, and as the exact text."""
    unit = ATTO if measure == "delta" else NANO
    return {"number": units / unit, "exact": number_text(units, measure)}


def _job(view: JobView) -> Json:
    """The fields of a job that say what they are about, under their names."""
    shown = [(each, getattr(view, each.name)) for each in SHOWN]
    return {
        each.name: _written(value, each.metadata["form"])
        for each, value in shown
        if value is not None or not each.metadata["optional"]
    }


def _written(value: Any, form: Form) -> Json:
    if value is None:
        return None
    match form:
        case "time":
            return forms.iso(value)
        case "amount":
            return _amount(value)
        case "delta":
            return _amount(value, "delta")
        case "texts":
            return list(value)
        case "holds":
            return [{**asdict(hold), "since": forms.iso(hold.since)} for hold in value]
        case _:
            return value


def _gate(status: GateStatus) -> Json:
    report = status.report
    return {
        "gate": report.gate,
        "state": status.state,
        "held_by": [{"cap": cap, "frees": frees} for cap, frees in status.held],
        "answers": report.asked,
        "accepted": report.accepted,
        "last_batch": report.last_batch,
        "last_accepted": report.last_accepted,
        "runs": report.runs,
        "measure": report.measure,
        "spent": _amount(report.spent_nano),
    }


def _budget(budget: Budget) -> dict[str, Json]:
    report = budget.report
    return {
        "scope": report.scope,
        "measure": report.measure,
        "worst_batch": _amount(budget.worst_nano),
        "batch_cap": _amount(report.batch_cap_nano),
        "spent": _amount(report.lifetime_spent_nano),
        "lifetime_cap": _amount(report.lifetime_cap_nano),
        "left": _amount(budget.left_nano),
        "burnt": _amount(report.burnt_nano),
        "fits_next": _amount(budget.fits_next_nano),
        **ends_of(budget, forms.iso),
        "jobs": jobs_of(budget, _amount),
        "windows": [_window(each) for each in budget.windows],
    }


def _window(room: Room) -> Json:
    return {
        "window": room.limit.name,
        "measure": room.limit.measure,
        "cap": _amount(room.limit.nano, room.limit.measure),
        "fullest": _amount(room.fullest_nano, room.limit.measure),
        "fits_next": _amount(room.left_nano, room.limit.measure),
        "has_room": room.frees,
    }


_JOB = {"name": "job", "in": "path", "required": True, "schema": {"type": "string"}}
_ID = {"name": "release", "in": "path", "required": True, "schema": {"type": "string"}}


def _asked(name: str, about: str, **schema: Json) -> Json:
    return {
        "name": name,
        "in": "query",
        "description": about,
        "schema": schema or {"type": "string"},
    }


_LIMIT = _asked(
    "limit", "Items of one answer.", type="integer", minimum=1, maximum=500, default=100
)
_SINCE = _asked("since", "Windows that begin at this day or time in UTC, or later.", type="string")
_UNTIL = _asked("until", "Windows that begin before it.", type="string")
_AFTER = _asked("before", "Where an answer before ended; `next` has the whole address.")

_PATHS: dict[str, tuple[str, str, list[Json]]] = {
    "/api/v1/status": ("status", "Daemon, jobs, gates and alerts.", []),
    "/api/v1/jobs/{job}/releases": (
        "releases",
        "Releases of a job, the last batch first.",
        [_JOB, _LIMIT, _AFTER, _SINCE, _UNTIL],
    ),
    "/api/v1/jobs/{job}/series": (
        "series",
        "Series of a job over time, as the chart draws them.",
        [
            _JOB,
            _asked("last", "How many releases.", type="string", enum=list(STRETCHES)),
            _SINCE,
            _UNTIL,
            _asked("part", "Of many series those whose first label says this."),
            _asked("series", "Only of these names.", type="array", items={"type": "string"}),
            _asked("per", "Rollups of this step, as `week`, in place of releases."),
        ],
    ),
    "/api/v1/releases/{release}": ("release", "One release with its claim.", [_ID]),
    "/api/v1/budget": (
        "budget",
        "What each source has spent and has left, and until when it lasts.",
        [
            _asked(
                "if.NAME",
                "Another price of a job or gate, or of SOURCE.another, or another cap,"
                " SOURCE.lifetime: `if` then says for how long it would last.",
                type="number",
            )
        ],
    ),
    "/api/v1/ledger": (
        "ledger",
        "Rows of the ledger, newest first.",
        [
            _LIMIT,
            _asked("before", "Rows before this number.", type="integer"),
            _asked("scope", "Only of this source."),
            _asked("job", "Only of this job or gate."),
            _asked("purpose", "Only of this purpose.", type="string", enum=sorted(PURPOSES)),
        ],
    ),
    "/api/v1/statement": ("statement", "What is promised of all jobs.", []),
    "/api/v1/log": (
        "log",
        "The last lines of the log, with times to the minute.",
        [
            _asked("job", "Only of this job."),
            _asked("batch", "Only of this batch."),
            _asked("release", "Only of this release."),
            _asked("level", "At this level or above.", type="string", enum=list(LEVELS)),
        ],
    ),
}


_ANSWERS: dict[str, Json] = {
    "status": {
        "properties": {"jobs": {"type": "array", "items": {"$ref": "#/components/schemas/Job"}}}
    }
}
"""What is said of an answer beyond that it is an object, by operation."""

_AMOUNT = {
    "type": ["object", "null"],
    "properties": {"number": {"type": "number"}, "exact": {"type": "string"}},
}
_SCHEMAS: dict[Form, Json] = {
    "text": {"type": ["string", "null"]},
    "texts": {"type": "array", "items": {"type": "string"}},
    "count": {"type": ["integer", "null"]},
    "time": {"type": ["string", "null"], "format": "date-time"},
    "amount": _AMOUNT,
    "delta": _AMOUNT,
    "holds": {"type": "array", "items": {"type": "object"}},
}


def description() -> Json:
    """OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "streamdp",
            "version": __version__,
            "description": "Releases and ledger facts, for reading. Answers have ETags; a problem"
            " is told in the form of RFC 9457.",
        },
        "paths": {path: {"get": _operation(*about)} for path, about in _PATHS.items()},
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "password": {"type": "http", "scheme": "basic"},
            },
            "schemas": {
                "Job": _job_schema(),
                "Problem": {
                    "type": "object",
                    "required": ["type", "title", "status", "detail"],
                    "properties": {
                        "type": {"type": "string"},
                        "title": {"type": "string"},
                        "status": {"type": "integer"},
                        "detail": {"type": "string"},
                    },
                },
            },
        },
        "security": [{}, {"bearer": []}, {"password": []}],
    }


def _job_schema() -> Json:
    """The schema of a job, from the fields that are shown of it."""
    return {
        "type": "object",
        "required": [each.name for each in SHOWN if not each.metadata["optional"]],
        "properties": {
            each.name: {"description": each.metadata["about"], **_SCHEMAS[each.metadata["form"]]}
            for each in SHOWN
        },
    }


def _operation(name: str, about: str, parameters: list[Json]) -> Json:
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
    answer = {"type": "object"} | _ANSWERS.get(name, {})
    refused = {"description": "Why not.", "content": {"application/problem+json": problem}}
    return {
        "operationId": name,
        "summary": about,
        "parameters": parameters,
        "responses": {
            "200": {
                "description": about,
                "headers": {"ETag": {"schema": {"type": "string"}}},
                "content": {"application/json": {"schema": answer}},
            },
            "304": {"description": "It is as it was."},
            "4XX": refused,
        },
    }
