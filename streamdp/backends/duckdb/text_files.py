"""CSV and JSON lines files as a SELECT over their lines.

A column has the type that the configuration declares for it, and a value that is none of that type
is null. Columns are cut out of lines where a question names them, and there are no others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streamdp.backends.duckdb.dialect import Dialect, dialect_of, header_of
from streamdp.backends.duckdb.lines import LineStream, require_well_formed, require_whole
from streamdp.backends.duckdb.text_values import typed
from streamdp.backends.sql.words import quoted
from streamdp.errors import SourceError
from streamdp.types import File

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
