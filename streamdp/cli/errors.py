"""Errors as a person sees them."""

from __future__ import annotations

import os
from typing import Any

import click

from streamdp.errors import StreamdpError
from streamdp.text import printable


def has_no_color() -> bool:
    """Whether the environment asks for plain text (https://no-color.org)."""
    return bool(os.environ.get("NO_COLOR"))


def print_error(code: str, message: str) -> None:
    """Print an error to standard error; its code stands there if it says more than `error`."""
    style: dict[str, Any] = {} if has_no_color() else {"fg": "red", "bold": True}
    kind = "" if code == StreamdpError.code else f" ({code})"
    click.echo(click.style(f"error{kind}: ", **style), nl=False, err=True)
    click.echo(printable(message), err=True)
