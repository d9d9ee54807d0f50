"""A webhook: JSON posted to an address, signed as Standard Webhooks says.

The receiver checks `webhook-signature`, `v1,` and the base64 of
HMAC-SHA256(key, "{webhook-id}.{webhook-timestamp}.{body}"), refuses old timestamps, and drops an
id it has seen: the id of a release is the same at every attempt.

References:
    https://www.standardwebhooks.com
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from streamdp.errors import RefusedError, SinkError
from streamdp.sinks.record import record
from streamdp.types import Clock, Json, Release

KEY_PREFIX = "whsec_"

PASSING = frozenset({408, 421, 425, 429})
"""Answers below 500 that another attempt may change: too slow, misdirected, too early, too many."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where to post, and with which key to sign.

    Redirects are not followed: the body goes to the configured host or nowhere. The answer's body
    is not read.

    Args:
        name: What errors call it.
        url: Address; only its host is ever shown.
        key: Of the signature: `whsec_` and base64, or any text.
        timeout: Seconds that one whole exchange may take.
        clock: Source of the timestamp.
    """

    name: str
    url: str = field(repr=False)
    key: str = field(repr=False)
    timeout: float
    clock: Clock

    def post(self, identity: str, content: Json) -> None:
        """Send one object.

        Args:
            identity: The same at every attempt; the receiver drops what it has seen.
            content: What `json.dumps` takes.

        Raises:
            SinkError: There was no answer in time, or one that another attempt may change.
            RefusedError: The receiver redirects or refuses.
        """
        body = json.dumps(content).encode()
        try:
            status = self._exchange(body, self._headers(identity, body))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._failure(f"cannot be reached: {type(error).__name__}") from None
        if 300 <= status < 500 and status not in PASSING:
            raise self._refusal(status)
        if not 200 <= status < 300:
            raise self._failure(f"answered {status}")

    def _headers(self, identity: str, body: bytes) -> dict[str, str]:
        at = str(self.clock.now())
        signed = f"{identity}.{at}.".encode() + body
        digest = hmac.new(_key_bytes(self.key), signed, hashlib.sha256).digest()
        return {
            "content-type": "application/json",
            "user-agent": "streamdp",
            "idempotency-key": identity,
            "webhook-id": identity,
            "webhook-timestamp": at,
            "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
        }

    def _exchange(self, body: bytes, headers: dict[str, str]) -> int:
        address = urlsplit(self.url)
        path = (address.path or "/") + (f"?{address.query}" if address.query else "")
        connection = _connection(address, self.timeout)
        try:
            connection.connect()
            with _deadline(connection, self.timeout):
                connection.request("POST", path, body, headers)
                return connection.getresponse().status
        finally:
            connection.close()

    def _failure(self, what: str) -> SinkError:
        return SinkError(
            f"webhook {self.name} {what}",
            where=urlsplit(self.url).hostname or "",
            hint="it is tried again, with longer and longer waits",
            sink=self.name,
        )

    def _refusal(self, status: int) -> RefusedError:
        redirects = status < 400
        return RefusedError(
            f"webhook {self.name} answered {status}" + (", a redirect" if redirects else ""),
            where=urlsplit(self.url).hostname or "",
            hint="set the address it redirects to" if redirects else "look at address and secret",
            sink=self.name,
        )


class WebhookSink:
    """Posts each release under its id, and gives up after so many attempts or a refusal."""

    def __init__(self, webhook: Webhook, attempts: int) -> None:
        self.name = webhook.name
        self.attempts = attempts
        self._webhook = webhook

    def deliver(self, release: Release) -> None:
        """Post one release.

        Raises:
            SinkError: The receiver did not take it; it may at another attempt.
            RefusedError: The receiver will not take it.
        """
        content = record(release)
        self._webhook.post(release.id, {"type": content["type"], "data": content})


def _connection(address: SplitResult, timeout: float) -> http.client.HTTPConnection:
    host = address.hostname or ""
    if address.scheme == "http":
        return http.client.HTTPConnection(host, address.port, timeout=timeout)
    context = ssl.create_default_context()
    return http.client.HTTPSConnection(host, address.port, timeout=timeout, context=context)


@contextmanager
def _deadline(connection: http.client.HTTPConnection, seconds: float) -> Iterator[None]:
    """End the whole exchange after some seconds: a socket's timeout starts anew at every byte."""
    sock = connection.sock
    timer = threading.Timer(seconds, _shut, [sock])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _shut(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


def _key_bytes(key: str) -> bytes:
    """Bytes of a key.

    >>> _key_bytes("whsec_c3RyZWFtZHA="), _key_bytes("streamdp")
    (b'streamdp', b'streamdp')
    """
    if key.startswith(KEY_PREFIX):
        return base64.b64decode(key.removeprefix(KEY_PREFIX))
    return key.encode()
