"""Responses: their headers, entity tags, and problem documents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from streamdp.types import Json

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
