"""The server of the page: uvicorn, with limits on connections, headers and time."""

from __future__ import annotations

import asyncio
import errno
import socket
import sys
import threading
from pathlib import Path
from typing import ClassVar

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from streamdp.config import Configuration
from streamdp.config.web import Web
from streamdp.errors import StreamdpError
from streamdp.web.app import application, configured
from streamdp.web.reader import KindOf, Reader

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
