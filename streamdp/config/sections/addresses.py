"""Check a webhook's address and key; errors never show either."""

from __future__ import annotations

import base64
import binascii
import ipaddress
from urllib.parse import urlsplit

SHORTEST_KEY = 16
"""Bytes."""


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
