"""The page as an ASGI application: which address is answered by what."""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Callable
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from streamdp.config import Configuration
from streamdp.config.web import Web
from streamdp.errors import IntegrityError, StreamdpError
from streamdp.reports.state.status import is_alive, why_not_ready
from streamdp.sections.secrets import reveal
from streamdp.web import api, pages
from streamdp.web.downloads import download
from streamdp.web.forms import STATIC, render, static
from streamdp.web.http.answers import problem, tagged
from streamdp.web.http.guard import Access, Guard, Limiter
from streamdp.web.http.parameters import RefusedRequest
from streamdp.web.metrics import metrics
from streamdp.web.reader import Reader, View

Answer = Callable[[Request, View], Response]

PAGES: dict[str, Answer] = {
    "/": pages.show_overview,
    "/jobs/{job}": pages.show_job,
    "/jobs/{job}/learned": pages.show_learned,
    "/jobs/{job}/sheet": pages.show_sheet,
    "/releases/{release}": pages.show_release,
    "/budget": pages.show_budget,
    "/verification": pages.show_verification,
    "/statement": pages.show_statement,
    "/log": pages.show_log,
}
DATA: dict[str, Answer] = {
    "/jobs/{job}/releases.{form}": download,
    "/metrics": metrics,
    "/api/v1/openapi.json": api.describe,
    "/api/v1/status": api.status,
    "/api/v1/jobs/{job}/releases": api.releases,
    "/api/v1/jobs/{job}/series": api.series,
    "/api/v1/releases/{release}": api.release,
    "/api/v1/budget": api.budget,
    "/api/v1/ledger": api.ledger,
    "/api/v1/statement": api.statement,
    "/api/v1/log": api.log,
}


def application(reader: Reader, web: Web, *, beside: bool = False) -> Guard:
    """The page over a store, behind its guard.

    Args:
        reader: Of the store.
        web: The section of the configuration.
        beside: Whether it runs beside the daemon, whose heart its probe of life then asks.

    Raises:
        ConfigurationError: The token cannot be read.
    """
    routes = [
        Route("/static/{name}", _static),
        Route("/healthz", _alive(reader) if beside else _answers),
        Route("/readyz", _ready(reader)),
        *(Route(path, _served(reader, answer, as_page=False)) for path, answer in DATA.items()),
        *(Route(path, _served(reader, answer, as_page=True)) for path, answer in PAGES.items()),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _unknown})
    return Guard(app, access(web), Limiter(web.requests_per_second))


def access(web: Web) -> Access:
    """Access rules of the configuration."""
    names = {web.host().lower(), *(name.lower() for name in web.hosts)}
    if web.is_loopback():
        names |= {"localhost", "127.0.0.1", "::1"}
    return Access(
        hosts=frozenset(names),
        token=None if web.token is None else reveal(web.token),
        proxy_header=None if web.proxy is None else web.proxy.header,
        proxies=() if web.proxy is None else tuple(map(ipaddress.ip_network, web.proxy.addresses)),
    )


def _served(reader: Reader, answer: Answer, *, as_page: bool) -> Callable[[Request], Response]:
    """An endpoint that reads one moment of the store, or says why it cannot."""

    def endpoint(request: Request) -> Response:
        try:
            with reader.look() as view:
                return answer(request, view)
        except RefusedRequest as refused:
            return _refused(refused.status, refused.why, as_page=as_page)
        except IntegrityError:
            why = (
                "the store is damaged, or another version wrote it: `streamdp run` mends the latter"
            )
            return _refused(HTTPStatus.INTERNAL_SERVER_ERROR, why, as_page=as_page)
        except StreamdpError:
            why = "the store cannot be read now: `streamdp status` says more"
            return _refused(HTTPStatus.SERVICE_UNAVAILABLE, why, as_page=as_page)
        except Exception as error:  # noqa: BLE001
            print(f"the page failed: {type(error).__name__}", file=sys.stderr, flush=True)
            why = "this page has failed; the others may not"
            return _refused(HTTPStatus.INTERNAL_SERVER_ERROR, why, as_page=as_page)

    return endpoint


def _refused(status: HTTPStatus, why: str, *, as_page: bool) -> Response:
    if not as_page:
        return problem(status, why)
    whole = render("error.html", status=status, why=why)
    return Response(whole, status_code=status, media_type="text/html")


def _unknown(request: Request, error: Exception) -> Response:
    status = HTTPStatus(error.status_code if isinstance(error, HTTPException) else 500)
    as_page = not request.url.path.startswith(("/api/", "/static/"))
    return _refused(status, "there is nothing at this address", as_page=as_page)


def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    kept = {"Cache-Control": "public, max-age=31536000, immutable"}
    return tagged(request, static(name), STATIC[name], **kept)


def _answers(request: Request) -> Response:
    """The page answers."""
    return PlainTextResponse("alive\n")


def _alive(reader: Reader) -> Callable[[Request], Response]:
    """Whether the daemon's heart beats."""

    def endpoint(request: Request) -> Response:
        if is_alive(reader.configuration.store.path, reader.now()):
            return PlainTextResponse("alive\n")
        return PlainTextResponse("no sign of life\n", HTTPStatus.SERVICE_UNAVAILABLE)

    return endpoint


def _ready(reader: Reader) -> Callable[[Request], Response]:
    """Whether the daemon gives signs of life, and the store can be read and written."""

    def endpoint(request: Request) -> Response:
        try:
            with reader.look() as view:
                why = why_not_ready(view.database, view.configuration.store.path, view.now)
        except StreamdpError:
            why = "no store"
        status = HTTPStatus.SERVICE_UNAVAILABLE if why else HTTPStatus.OK
        return PlainTextResponse(f"{why or 'ready'}\n", status)

    return endpoint


def configured(configuration: Configuration) -> Web:
    """The section `web`, or what it is by default."""
    return configuration.web or Web()
