"""Clients that are slow on purpose: none keeps a connection, and others are served meanwhile."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn

from streamdp.config.model import Web
from streamdp.types import Json
from streamdp.web.app import ImpatientProtocol, application
from streamdp.web.pages import statement_of
from streamdp.web.reader import Reader, View
from tests.ports import free_port

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"
LONGEST = 300.0
"""Seconds after which a connection that is still open counts as kept."""


class Hasty(ImpatientProtocol):
    """With less patience, so that a test need not wait."""

    patience = 1.5


@pytest.fixture
def port(reader: Reader) -> Iterator[int]:
    """A page on a free port of this machine."""
    port = free_port()
    config = uvicorn.Config(
        application(reader, Web()),
        port=port,
        http=Hasty,
        lifespan="off",
        log_config=None,
        timeout_keep_alive=60,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield port
    server.should_exit = True
    thread.join(LONGEST)


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=LONGEST)


def is_answered(client: socket.socket) -> bool:
    """Whether the whole of an answer comes that says the page is alive."""
    came = b""
    while not came.endswith(b"alive\n"):
        part = client.recv(65_536)
        if not part:
            return False
        came += part
    return b" 200 OK" in came


def is_hung_up_on(client: socket.socket) -> bool:
    """Whether the server ends the connection before long."""
    try:
        while client.recv(65_536):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize("sent", [b"", b"GET /heal", REQUEST[:-4] + b"X: 1\r\n"])
def test_a_request_that_never_ends(port: int, sent: bytes) -> None:
    """Nothing, half a line, headers without their end."""
    with connect(port) as client:
        client.sendall(sent % port if b"%d" in sent else sent)
        assert is_hung_up_on(client)


def test_a_second_request_that_never_ends(port: int) -> None:
    """Who was served once gets no more time than others."""
    with connect(port) as client:
        client.sendall(REQUEST % port)
        assert is_answered(client)
        client.sendall(b"GET /heal")
        assert is_hung_up_on(client)


def test_slow_clients_keep_nobody_out(port: int) -> None:
    """A request is answered while two hundred others say nothing."""
    slow = [connect(port) for _ in range(200)]
    with connect(port) as client:
        client.sendall(REQUEST % port)
        assert is_answered(client)
    assert all(map(is_hung_up_on, slow))
    for each in slow:
        each.close()


def test_one_address_shuts_out_no_other_and_not_itself(port: int) -> None:
    """Of many half-open connections the oldest make room; whoever asks meanwhile is answered."""
    slow = [connect(port) for _ in range(Hasty.most_of_one + 40)]
    assert is_hung_up_on(slow[39])
    assert len(Hasty.by_client["127.0.0.1"]) <= Hasty.most_of_one
    for address in ("127.0.0.1", "127.0.0.2"):
        with socket.create_connection(("127.0.0.1", port), LONGEST, (address, 0)) as client:
            client.sendall(REQUEST % port)
            assert is_answered(client)
    assert all(map(is_hung_up_on, slow))
    for each in slow:
        each.close()


def test_a_client_that_goes_on_is_kept(port: int) -> None:
    """Three requests on one connection, each within the time."""
    with connect(port) as client:
        for _ in range(3):
            client.sendall(REQUEST % port)
            assert is_answered(client)
            time.sleep(0.05)


def test_an_answer_that_takes_long_is_waited_for(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statement of a large store may take longer than a client is given."""
    slowly = statement_of

    def slow(view: View) -> dict[str, Json]:
        time.sleep(2 * Hasty.patience)
        return slowly(view)

    monkeypatch.setattr("streamdp.web.api.statement_of", slow)
    with connect(port) as client:
        client.sendall((REQUEST % port).replace(b"/healthz", b"/api/v1/statement"))
        assert b"200 OK" in client.recv(65_536)
