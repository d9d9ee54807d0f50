"""Text for people: times as they are written, names that a terminal does not obey, and hints."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import overload

from streamdp.errors import ConfigurationError

YEARS = range(1000, 9001)
"""Years of moments that a person may name: with any duration added they are in the calendar."""


class Figure(str):
    """A number as a person reads it; it stands at the right of its column."""

    __slots__ = ()


def is_text(text: str) -> bool:
    r"""Whether a text can be written: bytes of a command line that are no UTF-8 cannot.

    >>> is_text("a\u00e9"), is_text("\udcff")
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


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


@overload
def iso(seconds: int) -> str: ...
@overload
def iso(seconds: None) -> None: ...
@overload
def iso(seconds: int | None) -> str | None: ...
def iso(seconds: int | None) -> str | None:
    """POSIX seconds as RFC 3339 in UTC.

    >>> iso(1_356_998_400)
    '2013-01-01T00:00:00Z'
    """
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def known_names(name: str, known: Sequence[str]) -> str:
    """The hint about a name that is not known: the nearest one, or all.

    >>> known_names("air_tme", ["air_time"]), known_names("x", ["a", "b"]), known_names("x", [])
    ("did you mean 'air_time'?", 'there are: a, b', 'there are: none')
    """
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known) or 'none'}"


def require_name(name: str, table: Iterable[str], what: str) -> None:
    """Refuse a name that is not in a section of the configuration.

    Raises:
        ConfigurationError: With the nearest name.
    """
    names = list(table)
    if name not in names:
        raise ConfigurationError(
            f"there is no {what} {name!r}",
            where=f"{what}s",
            hint=known_names(name, names),
        )
