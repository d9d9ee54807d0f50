"""A table of a PostgreSQL database: one line for each row of a release, all of them or none."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from streamdp.errors import SinkError, require_extra
from streamdp.sections.secrets import Concealed, reveal
from streamdp.sinks.columns import CURRENT, TypedColumn, columns, flagged, supersede
from streamdp.sinks.section import SinkContext, SinkSection
from streamdp.types import Json, Release

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
INTEGERS = frozenset({"smallint", "integer", "bigint"})
_KNOWN = (
    "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
    " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
)


class PostgresSinkSection(SinkSection):
    """A table of a PostgreSQL database."""

    connections: ClassVar[tuple[str, ...]] = ("connection",)

    kind: Literal["postgres"] = Field(description="`postgres`: a table in a PostgreSQL database.")
    connection: Concealed = Field(
        description="Connection URL or libpq string. A password must come from the environment or"
        " a file.",
        examples=["postgresql://writer@db/published", {"file": "/run/secrets/connection"}],
    )
    table: str = Field(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$",
        description="Name of the table, with or without its schema. It is created if missing.",
        examples=["public.published"],
    )

    def sink(self, name: str, context: SinkContext) -> PostgresTableSink:
        """The sink, in a table of its own."""
        require_extra("psycopg", "postgres", f"sinks.{name}")
        return PostgresTableSink(name, reveal(self.connection), self.table)


class PostgresTableSink:
    """Appends in one transaction what the table does not have; makes the table and new columns.

    A role that may INSERT and SELECT is enough once the table is there with all its columns. Where
    a restored store released a batch again it must be allowed to UPDATE the column `current`, too;
    a table that was there without that column gets none.

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
                client_encoding="UTF8",
                options=f"-c statement_timeout={STATEMENT_SECONDS}s -c TimeZone=UTC",
            ) as connection:
                flags = self._prepare(connection, found)
                self._append(connection, release, found, flags=flags)
        except psycopg.Error as error:
            raise SinkError(
                f"sink {self.name} cannot write: {type(error).__name__}",
                hint="is the server up, may this role write the table, is the table its own?",
                sink=self.name,
            ) from None

    def _prepare(self, connection: psycopg.Connection[Any], found: list[TypedColumn]) -> bool:
        """Make the table or its missing columns; an existing one needs no further rights.

        Returns:
            Whether it has the flag `current`.
        """
        from psycopg.sql import SQL, Identifier

        table = self._table()
        known = dict(connection.execute(_KNOWN, [table.as_string(connection)]).fetchall())
        typed = {
            each.name: SQL("{} {}").format(Identifier(each.name), SQL(_TYPES[each.kind]))
            for each in found
        }
        if not known:
            key, flag = SQL("PRIMARY KEY (release_id, row)"), SQL(f"{CURRENT} boolean")
            parts = SQL(", ").join([*typed.values(), flag, key])
            connection.execute(SQL("CREATE TABLE {} ({})").format(table, parts))
            return True
        for name, column in typed.items():
            if name not in known:
                connection.execute(SQL("ALTER TABLE {} ADD COLUMN {}").format(table, column))
        integers = {name for name, kind in known.items() if kind in INTEGERS}
        for each in found:
            if each.kind == "number" and each.name in integers:  # it would be rounded
                change = SQL("ALTER TABLE {} ALTER COLUMN {} TYPE double precision")
                connection.execute(change.format(table, Identifier(each.name)))
        return CURRENT in known

    def _append(
        self,
        connection: psycopg.Connection[Any],
        release: Release,
        found: list[TypedColumn],
        *,
        flags: bool,
    ) -> None:
        from psycopg.sql import SQL, Identifier, Placeholder

        table = self._table()

        def ask(sql: str, values: list[Json]) -> tuple[Json, ...] | None:
            cursor = connection.execute(sql.encode(), values)
            return None if cursor.description is None else cursor.fetchone()

        once = SQL("SELECT 1 FROM {} WHERE release_id = %s LIMIT 1").format(table)
        if connection.execute(once, [release.id]).fetchone() is not None:
            return
        if flags:
            at = datetime.fromtimestamp(release.released_at, UTC)
            newest = supersede(ask, table.as_string(connection), "%s", release, at)
            found = flagged(found, newest)
        names = SQL(", ").join(Identifier(each.name) for each in found)
        marks = SQL(", ").join(Placeholder() for _ in found)
        line = SQL("INSERT INTO {} ({}) VALUES ({})").format(table, names, marks)
        lines = list(zip(*(each.values for each in found), strict=True))
        connection.cursor().executemany(line, lines)

    def _table(self) -> Composed:
        from psycopg.sql import SQL, Identifier

        return SQL("{}").format(Identifier(*self._parts))
