"""Engines that read a source: the embedded one, or a server near the records."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from streamdp.config.base.secrets import Concealed
from streamdp.config.base.section import Section
from streamdp.config.base.values import PositiveDuration, Size


class _Limited(Section):
    """Limits of one question; by default, those of the engine."""

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


class DuckDBEngine(_Limited):
    """Embedded: reads files, or a table of a DuckDB database."""

    kind: Literal["duckdb"] = Field(
        description="`duckdb`: the embedded engine, for files and DuckDB databases."
    )
    threads: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        strict=True,
        description="Number of threads of the engine. Default: its own choice.",
    )


class ServerEngine(_Limited):
    """A database server, reached by a connection, whose table is read."""

    connection: Concealed


class PostgresEngine(ServerEngine):
    """A PostgreSQL server."""

    kind: Literal["postgres"] = Field(description="`postgres`: a PostgreSQL server.")
    connection: Concealed = Field(
        description="Connection URL or libpq string. A role with SELECT suffices. A password must"
        " come from the environment or a file.",
        examples=["postgresql://reader@db/warehouse", {"file": "/run/secrets/connection"}],
    )


class MariaDBEngine(ServerEngine):
    """A MariaDB server."""

    kind: Literal["mariadb"] = Field(description="`mariadb`: a MariaDB server.")
    connection: Concealed = Field(
        description="Connection URL, with `?sslmode=verify-full` (the default for another machine)"
        " or `disable`, `sslrootcert=FILE`, `socket=PATH`. A user with SELECT suffices. A password"
        " must come from the environment or a file.",
        examples=["mariadb://reader@db/warehouse", {"file": "/run/secrets/connection"}],
    )


class SparkEngine(_Limited):
    """Spark: a table of its catalog, or Parquet files."""

    kind: Literal["spark"] = Field(
        description="`spark`: Apache Spark, for tables of its catalog and Parquet files."
    )
    master: str = Field(
        default="local[*]",
        min_length=1,
        description="URL of the Spark master. Default: `local[*]`, this machine.",
        examples=["spark://host:7077"],
    )


Engine = Annotated[
    DuckDBEngine | PostgresEngine | MariaDBEngine | SparkEngine, Field(discriminator="kind")
]
