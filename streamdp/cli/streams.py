"""Standard streams that may be closed, or full, before or while a command runs."""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from typing import Any

import click

from streamdp.errors import StreamdpError
from streamdp.text import printable


class _Lost(io.FileIO):
    """Stands for a stream that was closed before the command began; writing to it fails."""

    def write(self, content: object) -> int:
        """Fail, until `give_up` has replaced the stream by one that drops all."""
        try:
            return super().write(content) or 0  # type: ignore[arg-type]
        except OSError:
            raise OSError(errno.EBADF, "standard output is closed") from None


class _Forgiving(io.FileIO):
    """A stream that drops what it cannot write, as when its reader is gone or its disk full."""

    def write(self, content: object) -> int:
        """Write what can be written."""
        with suppress(OSError):
            return super().write(content) or 0  # type: ignore[arg-type]
        return len(bytes(content))  # type: ignore[call-overload]


def secure() -> None:
    """Replace closed standard streams, and let lost messages on standard error end no work.

    The kernel gives a new file the lowest free number: with standard error closed, that could be
    the store, and what a library complains of would be written into it.
    """
    closed = [number for number in range(3) if not _is_open(number)]
    for number in closed:
        os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_RDWR)
    if 1 in closed:
        lost = _Lost(1, "wb", closefd=False)
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(lost), write_through=True)
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_Forgiving(2, "wb", closefd=False)),
        encoding=getattr(sys.stderr, "encoding", None) or "utf-8",
        errors="backslashreplace",
        line_buffering=True,
        write_through=True,
    )


def finish() -> None:
    """Flush standard output.

    Raises:
        OSError: It cannot be written, and is given up.
    """
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        give_up()
        raise


def give_up() -> int:
    """Forget what could not be written: the interpreter would try again, and complain."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.stdout = io.TextIOWrapper(io.BytesIO())
    return 0


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def has_no_color() -> bool:
    """Whether the environment asks for plain text (https://no-color.org)."""
    return bool(os.environ.get("NO_COLOR"))


def print_error(code: str, message: str) -> None:
    """Print an error to standard error; its code stands there if it says more than `error`."""
    style: dict[str, Any] = {} if has_no_color() else {"fg": "red", "bold": True}
    kind = "" if code == StreamdpError.code else f" ({code})"
    click.echo(click.style(f"error{kind}: ", **style), nl=False, err=True)
    click.echo(printable(message), err=True)
