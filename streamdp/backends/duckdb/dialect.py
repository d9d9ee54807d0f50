"""The dialect of a CSV file, read off its header line alone.

A dialect guessed from the rows, as engines like to do, would let one record decide how all the
others are read. The header is public; the delimiter is the candidate that stands in it most often.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass

from streamdp.backends.duckdb.lines import unpacked
from streamdp.errors import SourceError

DELIMITERS = (",", ";", "\t", "|")

LONGEST_HEADER = 2**16
"""Bytes that a header line may have."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the rows of a file are cut.

    Args:
        delimiter: Between fields.
        columns: Names in the order of the header.
    """

    delimiter: str
    columns: tuple[str, ...]


def dialect_of(header: str, file: str = "") -> Dialect:
    """The dialect that a header line tells; a column without a name has its place for one.

    Raises:
        SourceError: The line is no header.

    >>> dialect_of('date;"air; time"')
    Dialect(delimiter=';', columns=('date', 'air; time'))
    >>> dialect_of(",x").columns
    ('column 1', 'x')
    """
    delimiter = max(DELIMITERS, key=header.count)
    if header.count('"') % 2:
        raise _no_header("has a quote that does not end", file, "names have no line breaks")
    try:
        (found,) = csv.reader([header], delimiter=delimiter)
    except csv.Error:
        raise _no_header("cannot be cut into names", file) from None
    names = tuple(name or f"column {place}" for place, name in enumerate(found, start=1))
    if len({name.lower() for name in names}) < len(names):
        hint = "names that differ in capitals alone are one name; is the first line a header?"
        raise _no_header("names a column twice", file, hint)
    return Dialect(delimiter, names)


def header_of(file: str) -> str | None:
    """The first line of a file, unpacked; None if it has no bytes.

    No later line is taken for it: the error that names the columns of a file would show a record.

    Raises:
        SourceError: It cannot be read, or is no line of text in UTF-8.
    """
    try:
        with unpacked(file) as opened:
            start = opened.read(LONGEST_HEADER + 2)
    except OSError:
        hint = "is it there, readable, and compressed as its ending says?"
        raise SourceError("a file cannot be opened", where=file, hint=hint) from None
    if not start:
        return None
    line = start.partition(b"\n")[0].removesuffix(b"\r")
    if b"\r" in line:
        raise _no_header("has a carriage return in it", file, "lines end with LF or CRLF")
    if len(line) > LONGEST_HEADER:
        raise _no_header("is too long", file)
    try:
        header = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        hint = "write the file in UTF-8; a compressed file ends in .gz or .zst"
        raise _no_header("is no UTF-8", file, hint) from None
    if not header.strip():
        raise _no_header("is empty", file)
    return header


def _no_header(how: str, file: str, hint: str = "the first line names the columns") -> SourceError:
    return SourceError(f"the first line of a CSV file {how}", where=file, hint=hint)
