"""A webhook: JSON posted to an address, signed as Standard Webhooks says.

The receiver checks `webhook-signature`, `v1,` and the base64 of
HMAC-SHA256(key, "{webhook-id}.{webhook-timestamp}.{body}"), refuses old timestamps, and drops an
id it has seen: the id of a release is the same at every attempt.

References:
    https://www.standardwebhooks.com
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import http.client
import ipaddress
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, SecretStr, field_validator

from streamdp.errors import ConfigurationError, RefusedError, SinkError
from streamdp.sections.secrets import Concealed, Secret, SecretFile, reveal
from streamdp.sections.values import PositiveDuration
from streamdp.sinks.columns import record
from streamdp.sinks.section import SinkContext, SinkSection
from streamdp.types import Clock, Json, Release

KEY_PREFIX = "whsec_"

SHORTEST_KEY = 16
"""Bytes."""

PASSING = frozenset({408, 421, 425, 429})
"""Answers below 500 that another attempt may change: too slow, misdirected, too early, too many."""


class WebhookSinkSection(SinkSection):
    """An address that each release is posted to as JSON, signed."""

    secrets: ClassVar[tuple[str, ...]] = ("secret",)

    kind: Literal["webhook"] = Field(
        description="`webhook`: each release is posted to a URL as signed JSON."
    )
    url: Concealed = Field(
        description="Address to post to: https, or http on this machine. It may come from the"
        " environment or a file if it holds a secret.",
        examples=["https://example.org/hook", {"file": "/run/secrets/hook"}],
    )
    secret: Secret = Field(
        description="Key of the signature, which the receiver knows too. From the environment or a"
        " file.",
        examples=["${STREAMDP_HOOK_SECRET}", {"file": "/run/secrets/key"}],
    )
    timeout: PositiveDuration = Field(
        default=10,
        description="Longest time for one delivery, as a duration. Default 10s.",
        examples=["10s"],
    )
    attempts: int = Field(
        default=20,
        ge=1,
        le=1000,
        strict=True,
        description="Number of failed tries after which a delivery becomes a dead letter. Default"
        " 20.",
    )

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, value: SecretFile | SecretStr) -> SecretFile | SecretStr:
        if isinstance(value, SecretStr):
            require_address(value.get_secret_value())
        return value

    @field_validator("secret")
    @classmethod
    def _is_a_key(cls, value: SecretFile | SecretStr) -> SecretFile | SecretStr:
        if isinstance(value, SecretStr):
            require_key(value.get_secret_value())
        return value

    def sink(self, name: str, context: SinkContext) -> WebhookSink:
        """The sink, with its secrets read from where they are kept."""
        url, key = reveal(self.url), reveal(self.secret)
        try:
            require_address(url)
            require_key(key)
        except ValueError as error:
            raise ConfigurationError(str(error), where=f"sinks.{name}") from None
        return WebhookSink(Webhook(name, url, key, self.timeout, context.clock), self.attempts)


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
        tls = None if address.scheme == "http" else ssl.create_default_context()
        connection = _connection(address, tls)
        late = threading.Event()
        sock = socket.create_connection((connection.host, connection.port), self.timeout)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as `connect` does
            with _deadline(sock, self.timeout, late):
                connection.sock = (
                    sock if tls is None else tls.wrap_socket(sock, server_hostname=connection.host)
                )
                connection.request("POST", path, body, headers)
                return connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            if late.is_set() or isinstance(error, TimeoutError):
                raise self._failure(f"did not answer within {self.timeout:g} s") from None
            raise
        finally:
            connection.close()
            sock.close()

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


def _connection(address: SplitResult, tls: ssl.SSLContext | None) -> http.client.HTTPConnection:
    host, port = address.hostname or "", address.port
    if tls is None:
        return http.client.HTTPConnection(host, port or http.client.HTTP_PORT)
    return http.client.HTTPSConnection(host, port or http.client.HTTPS_PORT, context=tls)


@contextmanager
def _deadline(sock: socket.socket, seconds: float, late: threading.Event) -> Iterator[None]:
    """End the whole exchange after some seconds: a socket's timeout starts anew at every byte."""
    with sock.dup() as other:  # TLS takes the socket over
        timer = threading.Timer(seconds, _shut, [other, late])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _shut(sock: socket.socket, late: threading.Event) -> None:
    late.set()
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


def require_address(url: str) -> None:
    """Refuse what is no https address of a host; http is for this machine alone.

    Raises:
        ValueError: Says what is wrong with it.
    """
    try:
        address = urlsplit(url)
        named = bool(address.hostname) and (address.port is None or address.port > 0)
    except ValueError:
        named = False
    if not named or address.scheme not in ("http", "https") or not url.isascii():
        raise ValueError("this is no address: it begins with https:// and names a host")
    if address.username is not None or any(ord(letter) <= 32 for letter in url):
        raise ValueError("leave user, password and spaces out: the signature says who sends")
    if address.scheme == "http" and not _is_this_machine(address.hostname or ""):
        raise ValueError("this address is not encrypted: write https, http goes to localhost only")


def require_key(key: str) -> None:
    """Refuse a short key, or one that says it is base64 and is not.

    Raises:
        ValueError: Says what is wrong with it.
    """
    found = key.encode()
    if key.startswith("whsec_"):
        try:
            found = base64.b64decode(key.removeprefix("whsec_"), validate=True)
        except binascii.Error:
            raise ValueError("behind whsec_ stands base64; this is none") from None
    if len(found) < SHORTEST_KEY:
        raise ValueError(
            f"this secret is shorter than {SHORTEST_KEY} bytes; make one: openssl rand -hex 32"
        )


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
