"""Sources and the engines that read them, by what the configuration names."""

from __future__ import annotations

from streamdp.config.engines import PostgresEngine, SparkEngine
from streamdp.config.formats import file_format
from streamdp.config.secrets import reveal
from streamdp.config.sources import Partitions, Windows
from streamdp.config.sources import Source as SourceSection
from streamdp.types import Backend, Source
from streamdp.wiring.extras import require_extra


def source(name: str, section: SourceSection) -> Source:
    """Windows of time, files, or partitions."""
    from streamdp.sources.files import FileSource
    from streamdp.sources.partitions import PartitionSource
    from streamdp.sources.windows import WindowSource

    cut = section.batches
    if isinstance(cut, Windows):
        return WindowSource(name, cut.start, cut.every, cut.end, cut.lateness, cut.marker)
    if isinstance(cut, Partitions):
        return PartitionSource(name, section.path, cut.partition, cut.marker)
    return FileSource(name, section.path)


def backend(section: SourceSection) -> Backend:
    """The engine that reads a source.

    Raises:
        ConfigurationError: Its connection cannot be read, or its library is not installed.
    """
    from streamdp.backends.limits import Limits
    from streamdp.backends.relation import Relation

    engine = section.engine
    time_column = section.batches.column if isinstance(section.batches, Windows) else None
    relation = Relation(table=section.table or "")
    if isinstance(engine, PostgresEngine):
        require_extra("psycopg", "postgres", "sources.engine")
        from streamdp.backends.postgres import PostgresBackend

        limits = Limits(engine.memory, engine.timeout)
        return PostgresBackend(reveal(engine.connection), relation, time_column, limits)
    if isinstance(engine, SparkEngine):
        require_extra("pyspark", "spark", "sources.engine")
        from streamdp.backends.spark import SparkBackend

        if section.path:
            relation = Relation(query=f"SELECT * FROM parquet.`{section.path}`")  # noqa: S608
        limits = Limits(engine.memory, engine.timeout)
        return SparkBackend(engine.master, relation, time_column, limits)
    from streamdp.backends.duckdb import DuckDBBackend

    limits = Limits(engine.memory, engine.timeout, engine.threads)
    if section.table is not None:
        return DuckDBBackend(section.path, "duckdb", time_column, limits, relation)
    kind = section.format or file_format(section.path) or "parquet"
    return DuckDBBackend(section.path, kind, time_column, limits)
