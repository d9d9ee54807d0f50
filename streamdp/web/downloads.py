"""Releases of a job as a file: CSV, JSON or Parquet, a line for each of their rows."""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
from http import HTTPStatus
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from streamdp.sinks.columns import flat, record
from streamdp.store.reading.browse import newest_releases
from streamdp.text import printable
from streamdp.types import Json, Release
from streamdp.web.charts import wanted
from streamdp.web.reader import View
from streamdp.web.requests import Parameters, RefusedRequest, missing, tagged

MOST = 10_000
"""Releases in one file."""

FORMS = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
}
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""First characters of a cell that a spreadsheet computes, or passes over to find another."""

NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)

_TIMES = ("window_start", "window_end", "released_at")


def download(request: Request, view: View) -> Response:
    """Releases of a job, oldest first."""
    job, form = request.path_params["job"], request.path_params["form"]
    if job not in view.configuration.releases or form not in FORMS:
        raise missing("file")
    stretch = wanted(Parameters(request, "since", "until")).stretch
    found = newest_releases(view.database, job, MOST + 1, stretch)[::-1]
    if len(found) > MOST:
        why = f"a file holds {MOST} releases at most: ask for a stretch, ?since=…&until=…"
        raise RefusedRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)
    name = f'attachment; filename="{job}.{form}"'
    headers = {"Content-Disposition": name}
    return tagged(request, _content(found, form), FORMS[form], **headers)


def _content(found: tuple[Release, ...], form: str) -> str | bytes:
    if form == "json":
        return json.dumps([record(each) for each in found])
    lines = [line for each in found for line in _lines(each)]
    return csv_text(lines) if form == "csv" else _parquet(lines)


def _lines(release: Release) -> list[dict[str, Json]]:
    lines = flat(release)
    if release.epsilon_nano is None:
        return lines
    return [{**line, "epsilon": float(line["epsilon"])} for line in lines]


def csv_text(rows: list[dict[str, Json]]) -> str:
    """Rows as comma-separated values, for people: a spreadsheet takes no text for a formula."""
    file = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(file, names, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows({name: _inert(value) for name, value in row.items()} for row in rows)
    return file.getvalue()


def _inert(value: Json) -> Json:
    r"""A cell with its control signs written out, behind an apostrophe where it would be computed.

    Names of files and of groups may be somebody else's. Numbers are left as they are.

    >>> [_inert(each) for each in ("=1+1", "-a", "-1.5", "a-b", -1.5)]
    ["'=1+1", "'-a", '-1.5', 'a-b', -1.5]
    >>> print(_inert("a\x1b[31m.csv"))
    a\x1b[31m.csv
    """
    if not isinstance(value, str) or NUMBER.fullmatch(value):
        return value
    shown = printable(value)
    return f"'{shown}" if value.startswith(FORMULA) else shown


def _parquet(lines: list[dict[str, Json]]) -> bytes:
    """Parquet, written by the embedded engine to a temporary file."""
    import duckdb

    names = list(dict.fromkeys(name for line in lines for name in line))
    columns = [[line.get(name) for line in lines] for name in names]
    kinds = [_kind(name, values) for name, values in zip(names, columns, strict=True)]
    parts = [
        f'unnest(CAST(? AS {kind}[])) AS "{name.replace(chr(34), chr(34) * 2)}"'
        for name, kind in zip(names, kinds, strict=True)
    ]
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as engine:
        path = Path(folder) / "releases.parquet"
        query = f"COPY (SELECT {', '.join(parts) or '1 AS none WHERE false'}) TO '{path}'"
        engine.execute(f"{query} (FORMAT parquet)", columns)
        return path.read_bytes()


def _kind(name: str, values: list[Json]) -> str:
    if name in _TIMES:
        return "TIMESTAMP"
    return "VARCHAR" if any(isinstance(value, str) for value in values) else "DOUBLE"
