"""What reads a source: the embedded engine, or a server near the records."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from streamdp.config.secrets import Concealed
from streamdp.config.section import Section
from streamdp.config.values import PositiveDuration, Size


class _Limited(Section):
    """What one question may take; by default, what the engine gives it."""

    memory: Size | None = Field(default=None, description="Of one question.")
    timeout: PositiveDuration | None = Field(default=None, description="Of one question.")


class DuckDBEngine(_Limited):
    """Embedded: reads files, or a table of a DuckDB database."""

    kind: Literal["duckdb"]
    threads: int | None = Field(default=None, ge=1, le=1024, strict=True)


class PostgresEngine(_Limited):
    """A PostgreSQL server."""

    kind: Literal["postgres"]
    connection: Concealed = Field(
        description="URL or words of libpq; a role that may SELECT is enough."
    )


class SparkEngine(_Limited):
    """Spark: a table of its catalog, or Parquet files."""

    kind: Literal["spark"]
    master: str = Field(default="local[*]", min_length=1, description="URL of the cluster.")


Engine = Annotated[DuckDBEngine | PostgresEngine | SparkEngine, Field(discriminator="kind")]
