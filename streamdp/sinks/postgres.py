"""A table of a PostgreSQL database: one line for each row of a release, all of them or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamdp.errors import SinkError
from streamdp.sinks.columns import Column, columns
from streamdp.types import Release

if TYPE_CHECKING:
    import psycopg
    from psycopg.sql import Composed

CONNECT_SECONDS = 10
STATEMENT_SECONDS = 60

_TYPES = {
    "text": "text",
    "number": "double precision",
    "integer": "bigint",
    "time": "timestamp with time zone",
    "boolean": "boolean",
}
_KNOWN = (
    "SELECT attname FROM pg_attribute"
    " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
)


class PostgresTableSink:
    """Appends in one transaction what the table does not have; makes the table and new columns.

    A role that may INSERT and SELECT is enough once the table is there with all its columns.

    Args:
        name: Of the sink.
        conninfo: Where the server is, as libpq reads it; never shown.
        table: Made by the first release; with its schema before a dot, or in the search path.
    """

    def __init__(self, name: str, conninfo: str, table: str) -> None:
        self.name = name
        self._conninfo = conninfo
        self._parts = table.split(".")

    def deliver(self, release: Release) -> None:
        """Append the lines of one release, once.

        Raises:
            SinkError: The server cannot be reached or refused; its own words are dropped.
        """
        import psycopg

        found = columns(release)
        try:
            with psycopg.connect(
                self._conninfo,
                connect_timeout=CONNECT_SECONDS,
                application_name="streamdp",
                options=f"-c statement_timeout={STATEMENT_SECONDS}s -c TimeZone=UTC",
            ) as connection:
                self._prepare(connection, found)
                self._append(connection, release, found)
        except psycopg.Error as error:
            raise SinkError(
                f"sink {self.name} cannot write: {type(error).__name__}",
                hint="is the server up, may this role write the table, is the table its own?",
                sink=self.name,
            ) from None

    def _prepare(self, connection: psycopg.Connection[Any], found: list[Column]) -> None:
        """The table with all columns; what is there already needs no more rights."""
        from psycopg.sql import SQL, Identifier

        table = self._table()
        known = {name for (name,) in connection.execute(_KNOWN, [table.as_string(connection)])}
        typed = {
            each.name: SQL("{} {}").format(Identifier(each.name), SQL(_TYPES[each.kind]))
            for each in found
        }
        if not known:
            key = SQL("PRIMARY KEY (release_id, row)")
            parts = SQL(", ").join([*typed.values(), key])
            connection.execute(SQL("CREATE TABLE {} ({})").format(table, parts))
            return
        for name, column in typed.items():
            if name not in known:
                connection.execute(SQL("ALTER TABLE {} ADD COLUMN {}").format(table, column))

    def _append(
        self, connection: psycopg.Connection[Any], release: Release, found: list[Column]
    ) -> None:
        from psycopg.sql import SQL, Identifier, Placeholder

        table = self._table()
        once = SQL("SELECT 1 FROM {} WHERE release_id = %s LIMIT 1").format(table)
        if connection.execute(once, [release.id]).fetchone() is not None:
            return
        names = SQL(", ").join(Identifier(each.name) for each in found)
        marks = SQL(", ").join(Placeholder() for _ in found)
        line = SQL("INSERT INTO {} ({}) VALUES ({})").format(table, names, marks)
        lines = list(zip(*(each.values for each in found), strict=True))
        connection.cursor().executemany(line, lines)

    def _table(self) -> Composed:
        from psycopg.sql import SQL, Identifier

        return SQL("{}").format(Identifier(*self._parts))
