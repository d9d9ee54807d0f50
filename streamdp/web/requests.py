"""Query parameters of requests, checked, and responses with their headers and entity tags."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from streamdp.types import Json

LONGEST = 200
"""Letters of a parameter."""

RELEASE_ID = re.compile(r"[0-9A-Za-z-]{1,64}")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?Z?)?")


class RefusedRequest(Exception):  # noqa: N818
    """A request that is answered with a reason."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


def bad(why: str) -> RefusedRequest:
    """The error for a parameter that is wrong."""
    return RefusedRequest(HTTPStatus.BAD_REQUEST, why)


def missing(what: str) -> RefusedRequest:
    """The error for something that is not there."""
    return RefusedRequest(HTTPStatus.NOT_FOUND, f"there is no such {what}")


class MovedRequest(Exception):  # noqa: N818
    """A request for something that has another address now."""

    def __init__(self, to: str) -> None:
        super().__init__("it has another address")
        self.to = to


class Parameters:
    """The query of a request.

    Args:
        request: Whose.
        names: What may stand in it; anything else is refused.
    """

    def __init__(self, request: Request, *names: str) -> None:
        self._given = request.query_params
        for name, value in self._given.multi_items():
            if name not in names:
                raise bad(f"there is no parameter of that name; there are: {', '.join(names)}")
            if len(value) > LONGEST or any(ord(letter) < 32 for letter in value):
                raise bad(f"{name} is too long, or holds control characters")

    def text(self, name: str) -> str | None:
        """A text, only ever compared with names."""
        return self._given.get(name) or None

    def texts(self, name: str) -> list[str]:
        """All texts given under a name."""
        return [value for value in self._given.getlist(name) if value]

    def choice(self, name: str, options: Sequence[str], default: str) -> str:
        """One of some words."""
        value = self._given.get(name) or default
        if value not in options:
            raise bad(f"{name} is one of {', '.join(options)}")
        return value

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number in a range."""
        text = self._given.get(name)
        if not text:
            return default
        if not re.fullmatch(r"[0-9]{1,18}", text) or not low <= int(text) <= high:
            raise bad(f"{name} is a whole number from {low} to {high}")
        return int(text)

    def release_id(self, name: str) -> str | None:
        """An id of a release."""
        text = self.text(name)
        if text is not None and not RELEASE_ID.fullmatch(text):
            raise bad(f"{name} is the id of a release")
        return text

    def moment(self, name: str) -> int | None:
        """POSIX seconds of a day or a time in UTC."""
        text = self.text(name)
        if text is None:
            return None
        try:
            if not _MOMENT.fullmatch(text):
                raise ValueError
            found = datetime.fromisoformat(text.removesuffix("Z")).replace(tzinfo=UTC)
        except ValueError:
            raise bad(f"{name} is a day or a time in UTC, such as 2013-06-01") from None
        return int(found.timestamp())


HEADERS = tuple(
    (name.encode(), value.encode())
    for name, value in {
        "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self';"
        " img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none';"
        " frame-ancestors 'none'; require-trusted-types-for 'script'",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "cross-origin-embedder-policy": "require-corp",
        "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        "cache-control": "private, no-cache",
    }.items()
)
"""Headers of every answer."""


def tagged(request: Request, content: str | bytes, media_type: str, **headers: str) -> Response:
    """A response with an entity tag; 304 without content if the client has it."""
    body = content.encode() if isinstance(content, str) else content
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    known = request.headers.get("if-none-match", "")
    if tag in (each.strip().removeprefix("W/") for each in known.split(",")):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": tag, **headers})
    return Response(body, media_type=media_type, headers={"ETag": tag, **headers})


def as_json(request: Request, content: Json, **headers: str) -> Response:
    """A JSON response with an entity tag."""
    return tagged(request, json.dumps(content, indent=1), "application/json", **headers)


def problem(status: HTTPStatus, why: str, headers: Mapping[str, str] | None = None) -> Response:
    """A refusal in the form of RFC 9457."""
    body = {"type": "about:blank", "title": status.phrase, "status": int(status), "detail": why}
    return Response(
        json.dumps(body),
        status_code=status,
        media_type="application/problem+json",
        headers=dict(headers or {}),
    )
