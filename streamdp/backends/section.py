"""What the section of every engine says of it, and the registry that finds one by its `kind`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar, NoReturn

from pydantic import Field, SecretStr

from streamdp.backends.limits import Limits
from streamdp.errors import InternalError
from streamdp.lakes import LakeFormat
from streamdp.registry import Registry, subclass_of
from streamdp.sections.dialects import Dialect
from streamdp.sections.document import Document, Path, refuse
from streamdp.sections.secrets import Concealed, refuse_password
from streamdp.sections.section import ByKind, Section
from streamdp.sections.values import PositiveDuration, Size
from streamdp.types import Backend, Format

if TYPE_CHECKING:
    from streamdp.backends.duckdb.instance import Instance
    from streamdp.backends.sql.relation import Relation

Start = Callable[[Limits], "Instance"]
"""Starts the embedded engine with some limits, or returns one that has them."""


@dataclass(frozen=True, slots=True)
class Location:
    """Where the records of a source are, and how they are written.

    Args:
        path: File, glob, database or address; empty where the server itself knows the table.
        relation: A table, or what a query makes of its rows; None for files and folders.
        format: Of files, or of the table in a folder.
        time_column: Column whose UTC value puts a record in a window; None without windows.
        types: Declared types of columns in text files.
        quoted_newlines: Whether line ends within quotes of a CSV file are text.
    """

    path: str
    relation: Relation | None = None
    format: Format | LakeFormat = "parquet"
    time_column: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    quoted_newlines: bool = False

    def table(self) -> Relation:
        """The table, of a location that `require_table` admitted."""
        if self.relation is None:
            raise InternalError("there is no table here")
        return self.relation


class EngineSection(Section):
    """The keys of an engine with the limits of one question, and the engine that they make."""

    kind: str
    dialect: ClassVar[Dialect]
    """That expressions of its sources are written in."""

    memory: Size | None = Field(
        default=None,
        description="Most memory for one query, in B, kB, MB or GB. With PostgreSQL it is for each"
        " sort or hash, with MariaDB for the session, with Spark for the driver. Default: the"
        " engine's own.",
        examples=["2 GB"],
    )
    timeout: PositiveDuration = Field(
        default=3600,
        description="Longest time for one query, as a duration; a query that takes longer is"
        " cancelled at the engine, and its charge is burnt. Default 1h.",
        examples=["10m"],
    )

    @abstractmethod
    def backend(self, location: Location, start: Start | None = None) -> Backend:
        """Make the engine that reads a source; nothing is opened.

        Args:
            location: Where its records are.
            start: Shares the embedded engine; by default the source has one of its own.

        Raises:
            ConfigurationError: A connection cannot be read, or a package is not installed.
        """

    @abstractmethod
    def check(self, location: Location, document: Document, path: Path) -> None:
        """Refuse a location that this engine does not read.

        Raises:
            ConfigurationError: With its place in the file, the source at `path`.
        """

    def reads_files(self) -> bool:
        """Whether records of this engine may be in files."""
        return True

    def server(self) -> str:
        """Identity of the server that knows the tables, without user and password.

        Raises:
            ConfigurationError: The connection cannot be read.
        """
        return self.kind

    def server_text(self) -> str:
        """What two sources of one server write alike; for comparisons alone: it may be secret."""
        return self.kind

    def limits(self) -> Limits:
        """Limits of one question."""
        return Limits(self.memory, self.timeout)

    def refuse_location(self, document: Document, path: Path) -> NoReturn:
        """Refuse a path and table that do not fit this engine.

        Raises:
            ConfigurationError: With the place of the source in the file.
        """
        refuse(
            f"path and table do not fit the engine {self.kind}",
            document,
            path,
            "duckdb reads path, or table in the database at path; a server a table; spark either",
        )


class ServerEngineSection(EngineSection):
    """A database server, reached by a connection, whose table is read."""

    connection: Concealed

    def reads_files(self) -> bool:
        """None: a server reads its tables."""
        return False

    def server_text(self) -> str:
        """Kind and connection."""
        found = self.connection
        text = found.get_secret_value() if isinstance(found, SecretStr) else str(found.file)
        return f"{self.kind}#{text}"

    def check(self, location: Location, document: Document, path: Path) -> None:
        """Refuse a password in the file, files, and a source without a table."""
        refuse_password(self.connection, document, (*path, "engine", "connection"))
        if location.relation is None or location.path:
            self.refuse_location(document, path)


ENGINES: Registry[type[EngineSection]] = Registry(
    "streamdp.engines",
    "engine",
    {
        "duckdb": "streamdp.backends.duckdb.section:DuckDBEngine",
        "postgres": "streamdp.backends.postgres:PostgresEngine",
        "mariadb": "streamdp.backends.mariadb:MariaDBEngine",
        "spark": "streamdp.backends.spark:SparkEngine",
    },
    subclass_of(EngineSection),
)
"""Engines by name; other packages offer an `EngineSection` in the group `streamdp.engines`."""

AnyEngine = Annotated[EngineSection, ByKind("engine", ENGINES.names, ENGINES.find)]
"""The section of an engine, of whatever kind it says."""
