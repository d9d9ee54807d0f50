"""The section of a MariaDB server."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from streamdp.backends.section import Location, ServerEngineSection, Start
from streamdp.errors import require_extra
from streamdp.sections.dialects import Dialect
from streamdp.sections.secrets import Concealed, reveal
from streamdp.types import Backend


class MariaDBEngine(ServerEngineSection):
    """A MariaDB server."""

    dialect: ClassVar[Dialect] = "mariadb"

    kind: Literal["mariadb"] = Field(description="`mariadb`: a MariaDB server.")
    connection: Concealed = Field(
        description="Connection URL, with `?sslmode=verify-full` (the default for another machine)"
        " or `disable`, `sslrootcert=FILE`, `socket=PATH`. A user with SELECT suffices. A password"
        " must come from the environment or a file.",
        examples=["mariadb://reader@db/warehouse", {"file": "/run/secrets/connection"}],
    )

    def backend(self, location: Location, start: Start | None = None) -> Backend:
        """The server's table, read through a connection that is made when it is first asked."""
        require_extra("pymysql", "mariadb", "sources.engine")
        from streamdp.backends.mariadb.connection import ServerAddress
        from streamdp.backends.mariadb.engine import MariaDBBackend

        address = ServerAddress.of(reveal(self.connection))
        return MariaDBBackend(address, location.table(), location.time_column, self.limits())

    def server(self) -> str:
        """Host or socket, port and database."""
        from streamdp.backends.mariadb.connection import ServerAddress

        address = ServerAddress.of(reveal(self.connection))
        return f"mariadb://{address.socket or address.host}:{address.port}/{address.database}"
