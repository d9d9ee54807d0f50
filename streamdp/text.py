"""Text for people: times as they are written, and names that a terminal does not obey."""

from __future__ import annotations

from datetime import UTC, datetime


def printable(text: str, *, lines: bool = True) -> str:
    r"""A text with its control characters written out.

    Args:
        text: Any.
        lines: Whether line ends stay as they are.

    >>> print(printable("x[/y]\x1b[31m.csv"), printable("a\tb\nc", lines=False))
    x[/y]\x1b[31m.csv a\tb\nc
    """
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or (lines and one == "\n") else _escaped(one) for one in text
    )


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def iso(seconds: int | None) -> str | None:
    """POSIX seconds as RFC 3339 in UTC.

    >>> iso(1_356_998_400)
    '2013-01-01T00:00:00Z'
    """
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
