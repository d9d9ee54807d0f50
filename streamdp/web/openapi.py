"""The OpenAPI description of the API."""

from __future__ import annotations

from streamdp.reports.state.jobs import SHOWN, Form
from streamdp.store.ledger.chain import PURPOSES
from streamdp.types import Json
from streamdp.version import __version__
from streamdp.web.charts import STRETCHES
from streamdp.web.log import LEVELS

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
                "Job": _job(),
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


def _job() -> Json:
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
