"""CSV and JSON lines files as a SELECT over their lines.

A column has the type that the configuration declares for it, and a value that is none of that type
is null. Columns are cut out of lines where a question names them, and there are no others.

The dialect of a CSV file is read off its header line alone. A dialect guessed from the rows, as
engines like to do, would let one record decide how all the others are read. The header is public;
the delimiter is the candidate that stands in it most often.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streamdp.backends.duckdb.lines import LineStream, require_well_formed, require_whole, unpacked
from streamdp.backends.sql.words import quoted
from streamdp.errors import SourceError
from streamdp.types import File
from streamdp.types.text_fields import has_time_of_day

if TYPE_CHECKING:
    import duckdb


TABLE = "lines_of_files"
"""Name of the lines in DuckDB."""


@dataclass(slots=True)
class TextFiles:
    """The text files of a source.

    Args:
        is_csv: Whether they are CSV; else they are JSON lines.
        types: Declared types of columns, by name; other columns are text.
        quoted_newlines: Whether line ends in quotes are text, in CSV.
        columns: All that the files have; of JSON lines, those that are declared.
    """

    is_csv: bool
    types: Mapping[str, str] = field(default_factory=dict)
    quoted_newlines: bool = False
    columns: tuple[str, ...] = field(default=(), init=False)
    _looked_at: set[File] = field(default_factory=set, init=False, repr=False)

    def select(
        self,
        connection: duckdb.DuckDBPyConnection,
        files: Sequence[File],
        named: Sequence[str],
    ) -> str:
        """Register the lines of files with a connection; return SQL of the named columns.

        Raises:
            SourceError: A file cannot be read to its end, or is not as the others are.
        """
        asked = {name.lower() for name in named}
        if self.is_csv:
            return self._csv(connection, files, asked)
        self.columns = tuple(self.types)
        self._look_at(files)
        connection.register(TABLE, LineStream(tuple(file.path for file in files)))
        chosen = [name for name in self.columns if name.lower() in asked]
        columns = ", ".join(
            self._typed(f"found[{place}]", name) for place, name in enumerate(chosen, start=1)
        )
        places = ", ".join(quoted(_place(name), "'") for name in chosen)
        return (
            f"SELECT {columns or '1 AS one'} FROM (SELECT TRY(json_extract_string(field_0,"
            f" [{places}]::VARCHAR[])) AS found FROM {TABLE}) AS lines"
        )

    def _csv(
        self, connection: duckdb.DuckDBPyConnection, files: Sequence[File], asked: set[str]
    ) -> str:
        """The named columns; files of no bytes have neither a header nor a record."""
        dialects = {file: _dialect(file.path) for file in files}
        kinds = set(dialects.values()) - {None}
        if len(kinds) > 1:
            raise SourceError(
                "the files do not all have one header line",
                where=files[0].path,
                hint="files of one source need the same columns in the same order",
            )
        dialect = next(iter(kinds), None)
        if dialect is None:
            columns = ", ".join(self._typed("CAST(NULL AS VARCHAR)", name) for name in asked)
            return f"SELECT {columns or '1 AS one'} WHERE false"
        self.columns = dialect.columns
        read = [file for file, each in dialects.items() if each is not None]
        self._look_at(read, dialect.delimiter)
        places = [place for place, name in enumerate(self.columns) if name.lower() in asked]
        paths = tuple(file.path for file in read)
        stream = LineStream(paths, dialect.delimiter, tuple(places), self.quoted_newlines)
        connection.register(TABLE, stream)
        columns = ", ".join(
            self._typed(f"field_{number}", self.columns[place])
            for number, place in enumerate(places)
        )
        return f"SELECT {columns or '1 AS one'} FROM {TABLE}"

    def _look_at(self, files: Sequence[File], delimiter: str = "") -> None:
        """Look through files that could not be read to their end, once in each of their states."""
        for file in files:
            if file not in self._looked_at:
                require_whole(file.path)
                if self.quoted_newlines:
                    require_well_formed(file.path, delimiter)
        self._looked_at = set(files)

    def _typed(self, text: str, name: str) -> str:
        name_sql = quoted(name, '"')
        return f"{typed(text, self.types.get(name, 'text'))} AS {name_sql}"


def _dialect(path: str) -> Dialect | None:
    """The dialect of a file, from its first line; None if it has no bytes."""
    header = header_of(path)
    return None if header is None else dialect_of(header, path)


def _place(column: str) -> str:
    """Where in an object a value stands: a JSON path, or a JSON pointer for a name with quotes."""
    if '"' in column or "\\" in column:
        return "/" + column.replace("~", "~0").replace("/", "~1")
    return f'$."{column}"'


TYPES = {
    "number": "DOUBLE",
    "timestamp": "TIMESTAMPTZ",
    "date": "DATE",
    "boolean": "BOOLEAN",
    "text": "VARCHAR",
}
"""Types that the engine reads by itself. A time without an offset is UTC."""

_COMMA = r"\s*[-+]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?\s*"
"""A point stands between thousands only: `12.5` would otherwise be read as 125."""


def typed(text: str, declared: str) -> str:
    """SQL of the value that a text has under a declared type; it looks at this text alone.

    Args:
        text: SQL of the text.
        declared: One of `FIELD_TYPES`, or how dates or times are written.
    """
    if declared == "text":
        return text
    if declared in TYPES:
        return f"TRY_CAST({text} AS {TYPES[declared]})"
    if declared == "decimal-comma":
        fits = f"regexp_full_match({text}, {quoted(_COMMA, chr(39))})"
        number = f"replace(replace({text}, '.', ''), ',', '.')"
        return f"TRY_CAST(CASE WHEN {fits} THEN {number} END AS DOUBLE)"
    kind = "TIMESTAMPTZ" if has_time_of_day(declared) else "DATE"
    return f"TRY_CAST(TRY_STRPTIME({text}, {quoted(declared, chr(39))}) AS {kind})"


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
