"""The section of a MariaDB server, and its address, from a URL."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import Field

from streamdp.backends.section import Location, ServerEngineSection, Start
from streamdp.errors import ConfigurationError, require_extra
from streamdp.sections.dialects import Dialect
from streamdp.sections.secrets import Concealed, reveal
from streamdp.types import Backend

PORT = 3306
CONNECT_SECONDS = 10
_HERE = ("localhost", "127.0.0.1", "::1")
_OPTIONS = ("socket", "sslmode", "sslrootcert")
_MODES = ("disable", "verify-full")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server, a database and a user.

    Args:
        host: Name or address; ignored where a socket is named.
        port: Of the server.
        database: That tables without one before their name belong to.
        user: Name.
        password: Not shown.
        socket: Path of the socket of a server of this machine.
        encrypted: Whether the connection is, to a server whose certificate names the host.
        authority: File of certificates that are trusted; those of the system by default.
    """

    host: str
    port: int
    database: str
    user: str
    password: str = field(repr=False)
    socket: str | None = None
    encrypted: bool = True
    authority: str | None = None

    @classmethod
    def of(cls, url: str) -> ServerAddress:
        """An address from `mariadb://USER:PASSWORD@HOST:PORT/DATABASE?OPTION=…`.

        Raises:
            ConfigurationError: It is none. Its text is not told: it may hold a password.

        >>> ServerAddress.of("mariadb://reader:secret@db/warehouse?sslmode=disable")
        ServerAddress(host='db', port=3306, database='warehouse', user='reader', socket=None, \
encrypted=False, authority=None)
        """
        try:
            parts = urlsplit(url)
            options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True))
            port = parts.port or PORT
        except ValueError:
            raise _no_address() from None
        host, database = unquote(parts.hostname or "localhost"), unquote(parts.path[1:])
        here = host in _HERE or "socket" in options
        mode = options.get("sslmode", "disable" if here else "verify-full")
        known = set(options) <= set(_OPTIONS) and mode in _MODES
        if parts.scheme != "mariadb" or not known or not database or "/" in database:
            raise _no_address()
        return cls(
            host,
            port,
            database,
            unquote(parts.username or ""),
            unquote(parts.password or ""),
            options.get("socket"),
            mode != "disable",
            options.get("sslrootcert"),
        )

    @property
    def is_here(self) -> bool:
        """Whether the server is reached by a name that each machine has for itself."""
        return self.socket is not None or self.host in _HERE

    def arguments(self) -> dict[str, Any]:
        """Arguments of PyMySQL for it.

        Raises:
            OSError: The file of certificates cannot be read.
        """
        trusted = ssl.create_default_context(cafile=self.authority) if self.encrypted else None
        return {
            "host": self.host,
            "port": self.port,
            "unix_socket": self.socket,
            "database": self.database,
            "user": self.user,
            "password": self.password,
            "ssl": trusted,
            "ssl_disabled": trusted is None,
            "charset": "utf8mb4",
            "autocommit": True,
            "connect_timeout": CONNECT_SECONDS,
            "program_name": "streamdp",
            "local_infile": False,
        }


def _no_address() -> ConfigurationError:
    return ConfigurationError(
        "this is not a connection string",
        where="sources.engine.connection",
        hint="mariadb://reader@db:3306/warehouse, with ?sslmode=verify-full or disable,"
        " sslrootcert=FILE, or socket=PATH",
    )


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
        from streamdp.backends.mariadb.engine import MariaDBBackend

        address = ServerAddress.of(reveal(self.connection))
        return MariaDBBackend(address, location.table(), location.time_column, self.limits())

    def server(self) -> str:
        """Host or socket, port and database."""
        address = ServerAddress.of(reveal(self.connection))
        return f"mariadb://{address.socket or address.host}:{address.port}/{address.database}"
