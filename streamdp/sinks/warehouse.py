"""A table in a DuckDB database: one line for each row of a release, all of them or none."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from streamdp.disk import followed, open_file
from streamdp.errors import SinkError
from streamdp.sinks.columns import TypedColumn, columns, duckdb_lines, flagged, quoted, supersede
from streamdp.sinks.section import SinkContext, SinkSection, Written
from streamdp.types import Json, Release

if TYPE_CHECKING:
    import duckdb


INTEGERS = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"})
"""Types in which another job, or whoever made the table, keeps integers."""


class DuckDBSinkSection(SinkSection):
    """A table in a DuckDB database."""

    kind: Literal["duckdb"] = Field(description="`duckdb`: a table in a DuckDB database.")
    path: Path = Field(
        description="Database file, relative to the configuration. It is created if missing.",
        examples=["published.duckdb"],
    )
    table: str = Field(
        pattern=r"^[A-Za-z][A-Za-z0-9_]{0,62}$",
        description="Name of the table. It is created if missing.",
        examples=["published"],
    )

    def sink(self, name: str, context: SinkContext) -> DuckDBTableSink:
        """The sink, in a table of its own."""
        return DuckDBTableSink(name, self.path, self.table)

    def written(self) -> Written:
        """The database, which may hold the tables of several sinks."""
        path = os.path.realpath(self.path)
        return Written("path", path, path, self.table)


class DuckDBTableSink:
    """Appends in one transaction what the table does not have; makes the table and new columns.

    The file is open for no longer than a delivery takes, so that others may read it meanwhile.

    Args:
        name: Of the sink.
        path: Of the database; made if it is not there.
        table: Made by the first release.
    """

    def __init__(self, name: str, path: Path, table: str) -> None:
        self.name = name
        self._path = path
        self._table = quoted(table)

    def deliver(self, release: Release) -> None:
        """Append the lines of one release, once.

        Raises:
            SinkError: The database cannot be opened or written; its own words are dropped.
        """
        import duckdb

        found = columns(release)
        try:
            with duckdb.connect(self._database(), config={"threads": 1}) as connection:
                connection.execute("BEGIN")
                self._prepare(connection, found)
                self._append(connection, release, found)
                connection.execute("COMMIT")
        except (duckdb.Error, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else None
            raise SinkError(
                f"sink {self.name} cannot write: {why or type(error).__name__}",
                where=str(self._path),
                hint="does nobody else hold the database, is there room, is the table its own?",
                sink=self.name,
            ) from None

    def _database(self) -> str:
        """The file to open; refuses pipes, where DuckDB would wait for ever, and links."""
        with suppress(FileNotFoundError):
            os.close(open_file(self._path, os.O_RDONLY))
        return str(followed(self._path))

    def _prepare(self, connection: duckdb.DuckDBPyConnection, found: list[TypedColumn]) -> None:
        """Make the table or its missing columns, and let integers be numbers where some come."""
        typed = [f"{each.quoted} {each.duckdb_type}" for each in flagged(found, newest=True)]
        connection.execute(f"CREATE TABLE IF NOT EXISTS {self._table} ({', '.join(typed)})")
        for column in typed:
            connection.execute(f"ALTER TABLE {self._table} ADD COLUMN IF NOT EXISTS {column}")
        described = connection.execute(f"DESCRIBE {self._table}").fetchall()
        integers = {name.lower() for name, kind, *_ in described if kind in INTEGERS}
        for each in found:
            if each.kind == "number" and each.name.lower() in integers:  # it would be rounded
                change = f"ALTER COLUMN {each.quoted} SET DATA TYPE DOUBLE"
                connection.execute(f"ALTER TABLE {self._table} {change}")

    def _append(
        self, connection: duckdb.DuckDBPyConnection, release: Release, found: list[TypedColumn]
    ) -> None:
        known = f"SELECT 1 FROM {self._table} WHERE release_id = ? LIMIT 1"  # noqa: S608
        if connection.execute(known, [release.id]).fetchone() is not None:
            return

        def ask(sql: str, values: list[Json]) -> tuple[Json, ...] | None:
            return connection.execute(sql, values).fetchone()

        at = datetime.fromtimestamp(release.released_at, UTC).replace(tzinfo=None)
        newest = supersede(ask, self._table, "?", release, at)
        lines, values = duckdb_lines(flagged(found, newest))
        connection.execute(f"INSERT INTO {self._table} BY NAME {lines}", values)
