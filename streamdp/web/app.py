"""The page as an ASGI application: which address is answered by what; and its server."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import ClassVar

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from streamdp.config import Configuration
from streamdp.config.model import Web
from streamdp.errors import IntegrityError, StreamdpError
from streamdp.reports.state import is_alive, why_not_ready
from streamdp.sections.secrets import reveal
from streamdp.web import api, pages
from streamdp.web.downloads import download
from streamdp.web.forms import STATIC, render, static
from streamdp.web.guard import Access, Guard, Limiter
from streamdp.web.metrics import metrics
from streamdp.web.reader import KindOf, Reader, View
from streamdp.web.requests import MovedRequest, RefusedRequest, problem, tagged

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
    # Starlette would answer `/budget/` with an absolute address, of http behind a TLS proxy.
    app.router.redirect_slashes = False
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
        except MovedRequest as moved:
            return RedirectResponse(moved.to, HTTPStatus.PERMANENT_REDIRECT)
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


PATIENCE = 15.0
"""Seconds for a whole request to arrive, for an answer to be taken, and between two requests."""

MOST_CONNECTIONS, MOST_OF_ONE = 512, 256
"""Connections at a time: of all clients, and of one address, whose oldest idle one makes room."""

LONGEST_HEAD = 16_384


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1 with time limits: hangs up on clients that send or read too slowly."""

    patience = PATIENCE

    most_of_one = MOST_OF_ONE
    by_client: ClassVar[dict[str, dict[ImpatientProtocol, None]]] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room among the client's own connections, and wait for the first request."""
        super().connection_made(transport)
        own = self.by_client.setdefault(self._address(), {})
        own[self] = None
        if len(own) > self.most_of_one:
            leaves = next((each for each in own if each._place()[1]), self)
            del own[leaves]
            leaves.transport.abort()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        own = self.by_client.get(self._address(), {})
        own.pop(self, None)
        if not own:
            self.by_client.pop(self._address(), None)
        super().connection_lost(exc)

    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def handle_events(self) -> None:
        """Serve what has arrived, and wait for the whole of a request that has begun."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._wait()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        self._wait()

    def _wait(self) -> None:
        """Hang up unless the connection has come to its next request or answer by then."""
        self.loop.call_later(self.patience, self._hang_up, self._place())

    def _place(self) -> tuple[int, bool]:
        """Number of the connection's request, and whether it was answered."""
        return id(self.cycle), self.cycle is None or self.cycle.response_complete

    def _hang_up(self, place: tuple[int, bool]) -> None:
        if self._place() != place or self.transport.is_closing():
            return
        if self.cycle is not None and not (self.cycle.more_body or self.cycle.response_started):
            self._wait()  # The answer is being computed: nobody is slow but this server.
        else:
            self.transport.abort()


def serve(
    path: Path, configuration: Configuration, kind_of: KindOf, *, until_eof: bool = False
) -> None:
    """Serve the page until a signal.

    Args:
        path: The configuration's file.
        configuration: What was loaded from it.
        kind_of: Makes the kind of a job.
        until_eof: End when standard input does, as it does with a parent.

    Raises:
        ConfigurationError: The token cannot be read.
        StreamdpError: The address is in use, or not this machine's.
    """
    web = configured(configuration)
    sockets = listening(web)
    server = uvicorn.Server(
        uvicorn.Config(
            application(Reader(path, configuration, kind_of), web, beside=until_eof),
            http=ImpatientProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=int(PATIENCE),
            timeout_graceful_shutdown=3,
            h11_max_incomplete_event_size=LONGEST_HEAD,
        )
    )
    if until_eof:
        threading.Thread(target=_leave_with_parent, args=[server], daemon=True).start()
    server.run(sockets)


def listening(web: Web) -> list[socket.socket]:
    """A socket on each address that the configured one means, as `localhost` may mean two.

    Raises:
        StreamdpError: There is none: it is in use, or not this machine's.
    """
    found: list[socket.socket] = []
    why = ""
    try:
        meant = socket.getaddrinfo(web.host(), web.port(), type=socket.SOCK_STREAM)
        for family, _, _, _, place in meant:
            try:
                found.append(socket.create_server(place[:2], family=family))
                # Connections take it over. asyncio sets it only where a socket names its protocol,
                # and without it a kept connection waits 40 ms for each answer.
                found[-1].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as error:
                if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise
                why = _reason(error)
    except OSError as error:
        found, why = [], _reason(error)
    if not found:
        raise StreamdpError(
            f"the page cannot be served on {web.listen}: {why}",
            where="web.listen",
            hint="name another address or port: `web: {listen: 127.0.0.1:8766}`",
        )
    return found


def _reason(error: OSError) -> str:
    """The system's words, without Python's in brackets."""
    return (error.strerror or "").partition(" (")[0]


def _leave_with_parent(server: uvicorn.Server) -> None:
    sys.stdin.buffer.read()
    server.should_exit = True
