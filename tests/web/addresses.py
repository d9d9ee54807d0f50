"""Every address of a page, what each answers, and what a notebook shows of the same store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from starlette.testclient import TestClient

import streamdp
from streamdp.cli.web import kind_of
from streamdp.config import load
from streamdp.config.model import Web
from streamdp.errors import StreamdpError
from streamdp.reports.charts.panels import chart_of
from streamdp.reports.releases.digest import digest
from streamdp.store.reading.browse import newest_releases
from streamdp.web.app import application
from streamdp.web.reader import Reader
from streamdp.web.report import as_html, as_markdown

HOST = "http://127.0.0.1:8765"


@contextmanager
def page_of(path: Path) -> Iterator[TestClient]:
    """A client of the page that a configuration at a path has."""
    reader = Reader(path, load(path), kind_of)
    with TestClient(application(reader, Web()), base_url=HOST) as client:
        yield client


def addresses(client: TestClient) -> list[str]:
    """Every page, answer and file there is; of releases those of each job's last batch."""
    found = ["/", "/budget", "/statement", "/log?level=debug", "/verification", "/metrics"]
    found += ["/healthz", "/readyz"]
    for job in (each["job"] for each in client.get("/api/v1/status").json()["jobs"]):
        found += [f"/jobs/{job}?last=all", f"/jobs/{job}/sheet", f"/jobs/{job}/learned"]
        found += [f"/api/v1/jobs/{job}/releases", f"/api/v1/jobs/{job}/series?last=all"]
        found += [f"/jobs/{job}/releases.{form}" for form in ("csv", "json", "parquet")]
        for each in client.get(f"/api/v1/jobs/{job}/releases").json()["items"][:1]:
            name = each["release_id"]
            found += [f"/releases/{name}", f"/api/v1/releases/{name}"]
    of_all = ("status", "budget", "ledger", "statement", "log?level=debug", "openapi.json")
    return [*found, *(f"/api/v1/{name}" for name in of_all)]


def answers(config: Path, now: int) -> dict[str, tuple[int, bytes]]:
    """Status and content of every address, and reports and tables of every job, at one moment."""
    reader = Reader(config, load(config), kind_of, lambda: now)
    with TestClient(application(reader, Web(requests_per_second=1000)), base_url=HOST) as client:
        found = {address: client.get(address) for address in addresses(client)}
    shown = {address: (each.status_code, each.content) for address, each in found.items()}
    store = load(config).store.path
    return shown | {
        name: (0, text) for name, text in (*_reports(reader, now), *_in_a_notebook(store))
    }


def _reports(reader: Reader, now: int) -> Iterator[tuple[str, bytes]]:
    with reader.look() as view:
        for job in view.configuration.releases:
            if not newest_releases(view.database, job, 1):
                continue
            columns = view.columns(job)
            found = digest(view.configuration, view.database, job, "all", None, now, columns)
            yield f"report {job}.html", as_html(found, now).encode()
            yield f"report {job}.md", as_markdown(found, now, []).encode()
            yield f"report {job}.svg", chart_of(job, found.picture, found.events).encode()


def _in_a_notebook(path: Path) -> Iterator[tuple[str, bytes]]:
    with streamdp.open(path) as store:
        yield "notebook jobs", store.jobs()._repr_html_().encode()
        yield "notebook budget", store.budget()._repr_html_().encode()
        for row in store.jobs():
            job = str(row["job"])
            yield f"notebook releases {job}", store.releases(job)._repr_html_().encode()
            with suppress(StreamdpError):  # some have nothing that can be drawn
                yield f"notebook plot {job}", store.plot(job)._repr_html_().encode()
