"""Sources and the engines that read them, by what the configuration names."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from streamdp.config.base.formats import file_format
from streamdp.config.base.paths import Ids, file_ids, same_records
from streamdp.config.base.secrets import reveal
from streamdp.config.load import DEMO
from streamdp.config.model import Configuration
from streamdp.config.sections.batches import Partitions, Windows
from streamdp.config.sections.engines import DuckDBEngine, MariaDBEngine, PostgresEngine
from streamdp.config.sections.queries import table_query
from streamdp.config.sections.sources import Source as SourceSection
from streamdp.errors import ConfigurationError
from streamdp.extras import require_extra
from streamdp.objects.address import is_address, parsed
from streamdp.types import Backend, Format, Json, Source

if TYPE_CHECKING:
    from streamdp.backends.duckdb.instance import Instance
    from streamdp.backends.limits import Limits
    from streamdp.backends.sql.relation import Relation
    from streamdp.lakes.lake import Lake


def source(name: str, section: SourceSection) -> Source:
    """The source of a section: windows of time, files, or partitions."""
    from streamdp.sources.files import FileSource
    from streamdp.sources.partitions import PartitionSource
    from streamdp.sources.windows import WindowSource

    cut = section.batches
    if is_address(section.path):
        return _objects(name, section)
    if isinstance(cut, Windows):
        windows = WindowSource(
            name,
            cut.start,
            cut.every,
            cut.end,
            cut.lateness,
            cut.marker,
            cut.growing,
            section.path if section.table_name() is None and not section.is_lake() else "",
            None if cut.timezone == "UTC" else ZoneInfo(cut.timezone),
        )
        if not section.is_lake():
            return windows
        from streamdp.sources.lakes import LakeSource

        return LakeSource(windows, os.path.realpath(section.path), _lake(section))
    if isinstance(cut, Partitions):
        return PartitionSource(name, section.path, cut.partition, cut.marker)
    return FileSource(name, section.path, section.settle)


def _objects(name: str, section: SourceSection) -> Source:
    """The source of objects, or of partitions of them."""
    from streamdp.sources.objects import ObjectPartitionSource, ObjectSource

    cut, address = section.batches, parsed(section.path)
    if isinstance(cut, Partitions):
        return ObjectPartitionSource(name, address, cut.partition, cut.marker)
    return ObjectSource(name, address, section.settle)


def backends(configuration: Configuration, *, apart: bool = False) -> Callable[[str], Backend]:
    """The engine that reads each source: one for all that is asked of it.

    Sources that DuckDB reads within the same limits share one of it, unless they are asked at the
    same time: its memory would be that of both questions.
    """
    from streamdp.backends.duckdb.instance import Instance

    started = Instance if apart else cache(Instance)
    return cache(lambda name: backend(configuration.sources[name], started))


def backend(section: SourceSection, started: Callable[[Limits], Instance] | None = None) -> Backend:
    """The engine that reads a source.

    Args:
        section: The source.
        started: The DuckDB for some limits; by default one of its own.

    Raises:
        ConfigurationError: Its connection cannot be read, or its library is not installed.
    """
    from streamdp.backends.limits import Limits

    engine = section.engine
    if isinstance(engine, DuckDBEngine):
        return _duckdb(section, engine, started)
    limits, time_column = Limits(engine.memory, engine.timeout), _time_column(section)
    relation = _relation(section)
    if isinstance(engine, PostgresEngine):
        require_extra("psycopg", "postgres", "sources.engine")
        from streamdp.backends.postgres.engine import PostgresBackend

        return PostgresBackend(reveal(engine.connection), relation, time_column, limits)
    if isinstance(engine, MariaDBEngine):
        require_extra("pymysql", "mariadb", "sources.engine")
        from streamdp.backends.mariadb.connection import Address
        from streamdp.backends.mariadb.engine import MariaDBBackend

        address = Address.of(reveal(engine.connection))
        return MariaDBBackend(address, relation, time_column, limits)
    require_extra("pyspark", "spark", "sources.engine")
    from streamdp.backends.spark.engine import SparkBackend

    pattern = section.path if section.table_name() is None else ""
    return SparkBackend(engine.master, relation, time_column, limits, pattern)


def _duckdb(
    section: SourceSection,
    engine: DuckDBEngine,
    started: Callable[[Limits], Instance] | None,
) -> Backend:
    """DuckDB over a database, a lake's table, objects or files."""
    from streamdp.backends.duckdb.engine import DuckDBBackend
    from streamdp.backends.limits import Limits

    path, time_column = section.path, _time_column(section)
    limits = Limits(engine.memory, engine.timeout, engine.threads)
    instance = None if started is None else started(replace(limits, seconds=None))
    if section.table_name() is not None:
        relation = _relation(section)
        return DuckDBBackend(path, "duckdb", time_column, limits, relation, instance=instance)
    if section.is_lake():
        from streamdp.backends.duckdb.lakes import LakeBackend

        folder, lake = os.path.realpath(path), _lake(section)
        return LakeBackend(folder, "parquet", time_column, limits, lake=lake)
    kind = format_of(path, section.file_format())
    if is_address(path):
        from streamdp.backends.duckdb.objects import ObjectsBackend

        return ObjectsBackend(
            path,
            kind,
            limits=limits,
            types=section.types,
            quoted_newlines=section.quoted_newlines,
        )
    return DuckDBBackend(
        path,
        kind,
        time_column,
        limits,
        types=section.types,
        quoted_newlines=section.quoted_newlines,
        instance=instance,
    )


def _time_column(section: SourceSection) -> str | None:
    """Column whose UTC value puts a record in a window; None where batches are not windows."""
    return section.batches.column if isinstance(section.batches, Windows) else None


def _lake(section: SourceSection) -> Lake:
    """Reader of the table in a folder.

    Raises:
        ConfigurationError: Its library is not installed.
    """
    from streamdp.lakes import delta, iceberg

    if section.format == "iceberg":
        require_extra("pyiceberg", "iceberg", "sources.format")
        return iceberg
    require_extra("deltalake", "delta", "sources.format")
    return delta


def records(data: Any, name: str) -> Backend:
    """The engine that reads records in memory; `name` is the column that one array is.

    Raises:
        SourceError: The data are no columns.
    """
    from streamdp.backends.duckdb.instance import kept
    from streamdp.backends.duckdb.records import RecordsBackend, records_of

    return RecordsBackend("", "arrow", instance=kept(), records=records_of(data, name))


def format_of(path: str, said: Format | None) -> Format:
    """The format of files."""
    return said or file_format(path) or "parquet"


def _relation(section: SourceSection) -> Relation:
    """The table, or what the query makes of its rows."""
    from streamdp.backends.sql.relation import Relation

    if section.query is None:
        return Relation(table=section.table or "")
    found = table_query(section.query, section.engine.kind)
    return Relation(found.table, columns=found.columns, where=found.where, named=found.named)


def data_of(section: SourceSection, unit: str | None = None) -> Json:
    """Identity of a source, whatever its name: its data and its cut, which its budget belongs to.

    A query reads its table, whatever it selects: its records are those of the table. What it makes
    time and unit of is written down where it is more than the table's column of that name, for
    another time puts a record in another batch, and another unit is somebody else. So does the
    declared type of a time in text, written down where it is not `timestamp`.

    Links are followed. Data that is shipped is named by its word: its place changes with the
    installation. Of a server there are host, port and database, and neither user nor password.
    """
    cut, table = section.batches, (section.table_name() or "").lower()
    place = _server_of(section) if not section.path else section.place()
    shipped = os.path.realpath(str(files("streamdp").joinpath("demo")))
    if os.path.dirname(place) == shipped:
        place = DEMO + os.path.basename(place)
    column = section.origin(cut.column) if isinstance(cut, Windows) else None
    data: dict[str, Json] = {
        "path": f"{place}#{table}" if table else place,
        "column": cut.partition if isinstance(cut, Partitions) else column,
    }
    read = section.types.get(cut.column, "timestamp") if isinstance(cut, Windows) else "timestamp"
    if read != "timestamp":
        data |= {"type": read}
    who = None if unit is None else section.origin(unit)
    return data if who == unit else data | {"unit": who}


def same_data(one: Json, other: Json, ids: Ids = file_ids) -> bool:
    """Whether two sources can read the same file or table."""
    return same_records(one["path"], other["path"], ids)


def _server_of(section: SourceSection) -> str:
    engine = section.engine
    if isinstance(engine, MariaDBEngine):
        from streamdp.backends.mariadb.connection import Address

        address = Address.of(reveal(engine.connection))
        return f"mariadb://{address.socket or address.host}:{address.port}/{address.database}"
    if not isinstance(engine, PostgresEngine):
        return engine.kind
    require_extra("psycopg", "postgres", "sources.engine")
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        known = conninfo_to_dict(reveal(engine.connection))
    except ProgrammingError:
        raise ConfigurationError(
            "this is not a connection string",
            where="sources.engine.connection",
            hint="host=db dbname=warehouse user=streamdp, or postgresql://streamdp@db/warehouse",
        ) from None
    return f"postgres://{known.get('host')}:{known.get('port') or 5432}/{known.get('dbname')}"
