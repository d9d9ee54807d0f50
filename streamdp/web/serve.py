"""The server of the page: uvicorn, with limits on connections, headers and patience."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from streamdp.config import Configuration
from streamdp.web.app import application, configured
from streamdp.web.reader import Declared, Reader

PATIENCE = 10.0
"""Seconds for a whole request to arrive."""

MOST_CONNECTIONS = 512
LONGEST_HEAD = 16_384


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1 that hangs up on whoever does not finish a first request in time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        self.loop.call_later(PATIENCE, self._hang_up)

    def _hang_up(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()


def serve(
    path: Path, configuration: Configuration, declared: Declared, *, until_eof: bool = False
) -> None:
    """Serve the page until a signal.

    Args:
        path: The configuration's file.
        configuration: What was loaded from it.
        declared: Columns that the kind of a job declares.
        until_eof: End when standard input does, as it does with a parent.

    Raises:
        ConfigurationError: The token cannot be read.
    """
    web = configured(configuration)
    server = uvicorn.Server(
        uvicorn.Config(
            application(Reader(path, configuration, declared), web),
            host=web.host(),
            port=web.port(),
            http=ImpatientProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=3,
            h11_max_incomplete_event_size=LONGEST_HEAD,
        )
    )
    if until_eof:
        threading.Thread(target=_leave_with_parent, args=[server], daemon=True).start()
    server.run()


def _leave_with_parent(server: uvicorn.Server) -> None:
    sys.stdin.buffer.read()
    server.should_exit = True
