"""Text for people: no name of a file can move a cursor, colour a line, or forge another row."""

from __future__ import annotations


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
