"""The section of a PostgreSQL server."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from streamdp.backends.section import Location, ServerEngineSection, Start
from streamdp.errors import ConfigurationError, require_extra
from streamdp.sections.dialects import Dialect
from streamdp.sections.secrets import Concealed, reveal
from streamdp.types import Backend


class PostgresEngine(ServerEngineSection):
    """A PostgreSQL server."""

    dialect: ClassVar[Dialect] = "postgres"

    kind: Literal["postgres"] = Field(description="`postgres`: a PostgreSQL server.")
    connection: Concealed = Field(
        description="Connection URL or libpq string. A role with SELECT suffices. A password must"
        " come from the environment or a file.",
        examples=["postgresql://reader@db/warehouse", {"file": "/run/secrets/connection"}],
    )

    def backend(self, location: Location, start: Start | None = None) -> Backend:
        """The server's table, read through a connection that is made when it is first asked."""
        require_extra("psycopg", "postgres", "sources.engine")
        from streamdp.backends.postgres.engine import PostgresBackend

        table, time_column = location.table(), location.time_column
        return PostgresBackend(reveal(self.connection), table, time_column, self.limits())

    def server(self) -> str:
        """Host, port and database."""
        require_extra("psycopg", "postgres", "sources.engine")
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict

        try:
            known = conninfo_to_dict(reveal(self.connection))
        except ProgrammingError:
            raise ConfigurationError(
                "this is not a connection string",
                where="sources.engine.connection",
                hint="host=db dbname=warehouse user=streamdp, or"
                " postgresql://streamdp@db/warehouse",
            ) from None
        return f"postgres://{known.get('host')}:{known.get('port') or 5432}/{known.get('dbname')}"
