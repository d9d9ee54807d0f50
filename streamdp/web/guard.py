"""Access and rate limits: every request passes here before anything is read.

Loopback is open to this machine. Elsewhere a request has the token, or comes from the proxy that
names its user. A name that is not the page's own is refused (DNS rebinding), and so is what another
site's page asks for.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamdp.web.requests import HEADERS, problem

LONGEST_TARGET = 2048
"""Bytes of path and query."""

MOST_ADDRESSES = 10_000
"""Addresses whose requests are counted at a time."""

PROBES = frozenset({"/healthz", "/readyz"})
"""Open to whoever reaches the port: they say one word."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Reason why a request is refused, with headers of the response."""

    status: HTTPStatus
    why: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Access:
    """Access rules of the page.

    Args:
        hosts: Names of the page, lower case, without ports.
        token: Secret that requests must have; None if any may see the page.
        proxy_header: Name of the header in which a proxy says who looks.
        proxies: Networks it is believed from.
    """

    hosts: frozenset[str]
    token: str | None = None
    proxy_header: str | None = None
    proxies: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether everyone who reaches the page may see it."""
        return self.token is None and self.proxy_header is None

    def admits(self, headers: Mapping[str, str], peer: str) -> bool:
        """Whether a request may see the page."""
        if self.is_open:
            return True
        if self.token is not None:
            given = _given_token(headers.get("authorization", ""))
            if given is not None and hmac.compare_digest(given.encode(), self.token.encode()):
                return True
        return bool(
            self.proxy_header
            and headers.get(self.proxy_header.lower(), "").strip()
            and _is_within(peer, self.proxies)
        )


@dataclass
class Limiter:
    """Rate limit of requests for each address."""

    per_second: int
    timer: Callable[[], float] = time.monotonic
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)

    def admits(self, address: str) -> bool:
        """Count a request; whether it may pass."""
        now = self.timer()
        left, since = self._left.get(address, (float(self.per_second), now))
        left = min(left + (now - since) * self.per_second, float(self.per_second))
        if address not in self._left and len(self._left) >= MOST_ADDRESSES:
            self._left.pop(next(iter(self._left)))
        self._left[address] = (left - 1 if left >= 1 else left, now)
        return left >= 1


@dataclass(frozen=True)
class Guard:
    """ASGI middleware: refuses what may not pass, and puts the headers on what is answered."""

    app: ASGIApp
    access: Access
    limiter: Limiter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the page answer."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = _with_headers(message.get("headers", []))
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            await self.app(scope, receive, guarded)
            return
        answer = problem(refusal.status, refusal.why, refusal.headers)
        await answer(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Refusal | None:
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        peer = scope["client"][0] if scope.get("client") else ""
        if not self.limiter.admits(peer):
            why = "too many requests; wait a moment"
            return Refusal(HTTPStatus.TOO_MANY_REQUESTS, why, {"Retry-After": "1"})
        return _malformed(scope, headers) or self._stranger(scope, headers, peer)

    def _stranger(self, scope: Scope, headers: Mapping[str, str], peer: str) -> Refusal | None:
        if scope["path"] in PROBES:
            return None
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or _host(headers["host"]) not in self.access.hosts:
            return Refusal(HTTPStatus.MISDIRECTED_REQUEST, "this page has another name")
        if _is_foreign(headers):
            return Refusal(HTTPStatus.FORBIDDEN, "another site may not read this")
        if not self.access.admits(headers, peer):
            asked = {"WWW-Authenticate": 'Basic realm="streamdp", charset="UTF-8"'}
            return Refusal(HTTPStatus.UNAUTHORIZED, "who looks must be known", asked)
        return None


def _malformed(scope: Scope, headers: Mapping[str, str]) -> Refusal | None:
    if scope["method"] not in ("GET", "HEAD"):
        why = "this page is for reading"
        return Refusal(HTTPStatus.METHOD_NOT_ALLOWED, why, {"Allow": "GET, HEAD"})
    target = scope.get("raw_path", b"") + b"?" + scope.get("query_string", b"")
    if len(target) > LONGEST_TARGET:
        return Refusal(HTTPStatus.REQUEST_URI_TOO_LONG, "the address is too long")
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        return Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "a request for reading has no body")
    if any(ord(letter) < 32 or letter in "\\\x7f" for letter in scope["path"]):
        return Refusal(HTTPStatus.BAD_REQUEST, "the address holds what no name does")
    return None


def _is_foreign(headers: Mapping[str, str]) -> bool:
    """Whether a page of another site made the request; following a link here is allowed."""
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != headers["host"]:
        return True
    led = headers.get("sec-fetch-mode") == "navigate" and (
        headers.get("sec-fetch-dest") == "document"
    )
    return headers.get("sec-fetch-site") in ("cross-site", "same-site") and not led


def _given_token(header: str) -> str | None:
    """The token of a bearer, or the password of a browser that asked for one."""
    scheme, _, rest = header.partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip()
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(rest, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return None


def _host(header: str) -> str:
    """Name in a Host header, without the port."""
    name = header.strip().lower()
    if name.startswith("["):
        return name.partition("]")[0].lstrip("[")
    return name.partition(":")[0].rstrip(".")


def _is_within(
    peer: str, networks: Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network]
) -> bool:
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return False
    return any(address in network for network in networks)


def _with_headers(found: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    headers = list(found)
    named = {name.lower() for name, _ in headers}
    return headers + [each for each in HEADERS if each[0] not in named]
