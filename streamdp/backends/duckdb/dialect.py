"""The dialect of a CSV file, read off its header line alone.

A dialect guessed from the rows, as engines like to do, would let one record decide how all the
others are read. The header is public; the delimiter is the candidate that stands in it most often.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass

DELIMITERS = (",", ";", "\t", "|")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the rows of a file are cut.

    Args:
        delimiter: Between fields.
        columns: Names in the order of the header.
    """

    delimiter: str
    columns: tuple[str, ...]


def dialect_of(header: str) -> Dialect:
    """The dialect that a header line tells.

    >>> dialect_of('date;"air; time"')
    Dialect(delimiter=';', columns=('date', 'air; time'))
    """
    delimiter = max(DELIMITERS, key=header.count)
    try:
        (names,) = csv.reader([header.removeprefix("\ufeff")], delimiter=delimiter)
    except csv.Error:
        names = []
    return Dialect(delimiter, tuple(names))
