"""Webhooks: signed, to the configured host alone, within their time, and silent about secrets."""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from streamdp.errors import RefusedError, SinkError
from streamdp.sinks.webhook import Webhook, WebhookSink
from tests.sinks.targets import release
from tests.worlds import HandClock

KEY = "a key of sixteen bytes or more"


@dataclass
class Receiver:
    """A server on this machine that answers as it is told and keeps what it got."""

    port: int = 0
    answers: list[int] = field(default_factory=list)
    hangs: bool = False
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    def webhook(self, timeout: float = 5.0) -> Webhook:
        url = f"http://127.0.0.1:{self.port}/in/T0PSECRET?token=T0PSECRET"
        return Webhook("hook", url, KEY, timeout, HandClock())


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            found.got.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            if found.hangs:
                self._drip()
                return
            self.send_response(found.answers.pop(0) if found.answers else 204)
            self.send_header("location", f"http://127.0.0.1:{found.port}/elsewhere")
            self.send_header("content-length", "0")
            self.end_headers()

        def _drip(self) -> None:
            """A byte now and then, so that no single read ever times out."""
            try:
                for letter in b"HTTP/1.1 200 OK\r\nx-slow: " + b"z" * 200:
                    self.wfile.write(bytes([letter]))
                    time.sleep(0.05)
            except OSError:
                return

        def log_message(self, format: str, *arguments: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    yield found
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_receiver_can_check_the_signature(receiver: Receiver) -> None:
    """Id, time and body are signed with the shared key; the id is that of the release."""
    WebhookSink(receiver.webhook(), 3).deliver(release(7))
    ((path, headers, body),) = receiver.got
    assert path == "/in/T0PSECRET?token=T0PSECRET"
    assert headers["webhook-id"] == headers["idempotency-key"] == "id7"
    assert headers["webhook-timestamp"] == str(HandClock().now())
    signed = f"id7.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.new(KEY.encode(), signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
    assert json.loads(body)["data"]["release_id"] == "id7"


@pytest.mark.parametrize("answer", [301, 302, 307, 308, 400, 410, 500, 503])
def test_what_is_not_taken_is_an_error_and_tried_under_the_same_id(
    receiver: Receiver, answer: int
) -> None:
    """No redirect is followed; a second attempt carries the same id and body."""
    receiver.answers = [answer]
    sink = WebhookSink(receiver.webhook(), 3)
    with pytest.raises(SinkError, match=f"answered {answer}"):
        sink.deliver(release(1))
    sink.deliver(release(1))
    (path, first, body), (again, second, same) = receiver.got
    assert (path, first["webhook-id"], body) == (again, second["webhook-id"], same)


@pytest.mark.parametrize(
    ("answer", "last"), [(301, True), (401, True), (404, True), (410, True), (429, False)]
)
def test_a_refusal_is_not_tried_again(receiver: Receiver, answer: int, last: bool) -> None:
    """A redirect, a wrong address or key ends alike each time; too many requests do not."""
    receiver.answers = [answer]
    with pytest.raises(SinkError) as caught:
        WebhookSink(receiver.webhook(), 3).deliver(release(1))
    assert isinstance(caught.value, RefusedError) == last


def test_a_receiver_that_hangs_is_left(receiver: Receiver) -> None:
    """A byte now and then keeps a socket awake for ever; the exchange ends all the same."""
    receiver.hangs = True
    with pytest.raises(SinkError, match=r"did not answer within 0\.2 s"):
        WebhookSink(receiver.webhook(timeout=0.2), 3).deliver(release(1))


@pytest.mark.parametrize(
    ("scheme", "says"),
    [
        ("http", b""),
        ("http", b"HTTP/1.1 100 Continue\r\n\r\n"),
        ("https", b""),
        ("https", b"\x16\x03\x03\x40\x00" + bytes(200)),
    ],
)
def test_who_was_reached_and_does_not_answer_is_told_so(scheme: str, says: bytes) -> None:
    """Nothing, a promise for ever, a handshake without an end: none is a network that is down."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()

        def talk() -> None:
            other, _ = server.accept()
            with suppress(OSError), other:
                for part in itertools.cycle([says[i : i + 5] for i in range(0, len(says), 5)]):
                    if ended.wait(0.02):
                        break
                    other.sendall(part)
                ended.wait(10)

        thread = threading.Thread(target=talk)
        thread.start()
        url = f"{scheme}://127.0.0.1:{server.getsockname()[1]}/"
        with pytest.raises(SinkError, match=r"did not answer within 0\.3 s"):
            Webhook("hook", url, KEY, 0.3, HandClock()).post("id", {})
        ended.set()
        thread.join()


def test_nobody_there(receiver: Receiver) -> None:
    """A refused connection is a sink error that shows host and name only."""
    webhook = Webhook("hook", "http://127.0.0.1:1/T0PSECRET", KEY, 1.0, HandClock())
    with pytest.raises(SinkError) as caught:
        webhook.post("id", {})
    assert "127.0.0.1" in str(caught.value)


def test_secrets_are_in_no_error_and_no_repr(receiver: Receiver) -> None:
    """Neither the address behind the host nor the key is shown."""
    receiver.answers = [500]
    webhook = receiver.webhook()
    with pytest.raises(SinkError) as caught:
        webhook.post("id", {})
    shown = f"{caught.value} {caught.value.fields} {webhook!r}"
    assert "T0PSECRET" not in shown
    assert KEY not in shown
