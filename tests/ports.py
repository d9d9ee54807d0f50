"""Ports for servers of tests: no other socket is given one before its server listens."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port of this machine that is kept for a server which this test starts.

    It is bound until this process ends, and nobody listens on it. A server that asks for the same
    address with SO_REUSEADDR, as all do, may listen on it; whoever asks for any port gets another.
    """
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    port = int(kept.getsockname()[1])
    kept.detach()
    return port
