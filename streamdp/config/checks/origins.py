"""Check sources: one name for one set of records, in a form that can be read."""

from __future__ import annotations

import glob
from functools import cache

from pydantic import SecretStr

from streamdp.config.base.formats import file_format
from streamdp.config.base.paths import file_ids, same_records
from streamdp.config.base.yaml import Document, Path
from streamdp.config.model import Configuration
from streamdp.config.refusal import refuse, refuse_password
from streamdp.config.sections.batches import Partitions, Windows
from streamdp.config.sections.engines import DuckDBEngine, ServerEngine, SparkEngine
from streamdp.config.sections.queries import table_query
from streamdp.config.sections.sources import Source
from streamdp.lakes.folders import MARK, LakeFormat, lies_in_table
from streamdp.objects.address import is_address

_NAMING = ("path", "query", "table")
"""Keys that say where the records are, in the order in which one of them is told."""

_TABLE: dict[LakeFormat, str] = {"delta": "a Delta table", "iceberg": "an Iceberg table"}

_QUERY = (
    "SELECT column, expression AS name FROM table WHERE condition; what needs more stands in a view"
    " of one row a record, which `table` or the query names"
)


def check_sources(configuration: Configuration, document: Document) -> None:
    """Refuse two names for the same records, which would be two budgets for one's data.

    Raises:
        ConfigurationError: There are two, or a source cannot be read as it is described.
    """
    seen: dict[str, str] = {}
    ids = cache(file_ids)
    for name, source in configuration.sources.items():
        path: Path = ("sources", name)
        _check_query(source, configuration.privacy.unit.column, document, path)
        _check_form(source, document, path)
        place = _place(source)
        for known, other in seen.items():
            if same_records(place, known, ids):
                refuse(
                    f"this is the same data as source {other!r}, with a budget of its own",
                    document,
                    (*path, next(key for key in _NAMING if getattr(source, key))),
                    f"give both releases the source {other!r}",
                )
        seen[place] = name


def _place(source: Source) -> str:
    """Where the records are; for the comparison alone, as it may hold a password."""
    table = (source.table_name() or "").lower()
    if source.path:
        place = source.place()
        return f"{place}#{table}" if table else place
    engine = source.engine
    if isinstance(engine, ServerEngine):
        found = engine.connection
        text = found.get_secret_value() if isinstance(found, SecretStr) else str(found.file)
        return f"{engine.kind}#{text}#{table}"
    return f"spark#{table}"


def _check_query(source: Source, unit: str | None, document: Document, path: Path) -> None:
    """Require a query that makes a row of one record, with the columns of its time and unit."""
    if source.query is None:
        return
    if source.table is not None:
        refuse("the query says which table is read", document, (*path, "table"), "leave it out")
    place: Path = (*path, "query")
    try:
        found = table_query(source.query, source.engine.kind)
        if unit is not None:
            found.origin(unit)
        if isinstance(source.batches, Windows):
            place = (*path, "batches", "column")
            found.origin(source.batches.column)
    except ValueError as error:
        refuse(str(error), document, place, _QUERY)


def _check_form(source: Source, document: Document, path: Path) -> None:
    """Require that path, table and engine fit together."""
    engine, table = source.engine, source.table_name()
    if isinstance(engine, ServerEngine):
        refuse_password(engine.connection, document, (*path, "engine", "connection"))
    if "settle" in source.model_fields_set and source.batches != "files":
        refuse(
            "only files that are batches settle",
            document,
            (*path, "settle"),
            "windows have lateness, partitions their marker",
        )
    if source.types and table is not None:
        refuse("a table knows the types of its columns", document, (*path, "types"), "leave it out")
    if is_address(source.path) and table is not None:
        refuse(
            "a table is in a database, and this path names objects",
            document,
            (*path, "path"),
            "leave the table out",
        )
    if table is None and not isinstance(engine, ServerEngine):
        _check_files(source, document, path)
    elif source.batches == "files" or not hasattr(source.batches, "every"):
        refuse(
            "a table is cut by time",
            document,
            (*path, "batches"),
            "batches: {column: , every: , start: }",
        )
    _check_engine(source, document, path)


def _check_engine(source: Source, document: Document, path: Path) -> None:
    """Require that the engine reads what path and table name."""
    engine, table = source.engine, source.table_name()
    if (
        (table is None and isinstance(engine, ServerEngine))
        or (table is not None and isinstance(engine, DuckDBEngine) and not source.path)
        or (source.path and isinstance(engine, ServerEngine))
        or (source.path and table is not None and isinstance(engine, SparkEngine))
    ):
        refuse(
            f"path and table do not fit the engine {engine.kind}",
            document,
            path,
            "duckdb reads path, or table in the database at path; a server a table; spark either",
        )


def _check_files(source: Source, document: Document, path: Path) -> None:
    if not source.path:
        refuse("this key is missing", document, (*path, "path"), "a file, glob or database")
    format = source.format or file_format(source.path)
    if format is None:
        refuse(
            "the format cannot be told from this name",
            document,
            (*path, "path"),
            "add format: parquet, csv, jsonl or arrow",
        )
    if source.types and format not in ("csv", "jsonl"):
        refuse(
            f"the types of columns stand in {format} files",
            document,
            (*path, "types"),
            "leave it out",
        )
    if format == "delta" or format == "iceberg":
        _check_lake(source, format, document, path)
    elif within := lies_in_table(source.path):
        refuse(
            f"these files are of {_TABLE[within]}, whose log says which of them count",
            document,
            (*path, "path"),
            f"the folder that has {MARK[within]}, with format: {within}",
        )
    if is_address(source.path):
        _check_objects(source, document, path)
    if "\\" in source.path:
        refuse(
            "a backslash is no separator of folders",
            document,
            (*path, "path"),
            "write / between folders, and rename a file whose name holds a backslash",
        )
    if isinstance(source.engine, SparkEngine) and (format != "parquet" or "`" in source.path):
        refuse("spark reads Parquet files", document, (*path, "path"), "or name a table")


def _check_objects(source: Source, document: Document, path: Path) -> None:
    """Objects are batches, alone or by partition: a batch is copied before it is charged."""
    cut = source.batches
    if isinstance(cut, Windows):
        refuse(
            "objects are not cut by time: each window would copy all of them",
            document,
            (*path, "batches"),
            "batches: files, or {partition: day, marker: s3://BUCKET/day={key}/_SUCCESS}",
        )
    if isinstance(cut, Partitions) and not is_address(cut.marker):
        refuse(
            "the marker of objects is an object",
            document,
            (*path, "batches", "marker"),
            "s3://BUCKET/day={key}/_SUCCESS",
        )
    if not isinstance(source.engine, DuckDBEngine):
        refuse(
            "objects are read by the embedded engine",
            document,
            (*path, "engine"),
            "leave it out, or name a table of Spark's catalog in place of the path",
        )


def _check_lake(source: Source, format: LakeFormat, document: Document, path: Path) -> None:
    """A table in a folder, cut by time: its files are no batches, since they are written anew."""
    if not isinstance(source.batches, Windows):
        refuse(
            "a table is cut by time",
            document,
            (*path, "batches"),
            "batches: {column: , every: , start: }",
        )
    if is_address(source.path) or glob.has_magic(source.path):
        refuse(
            f"{_TABLE[format]} is read from a folder of this machine",
            document,
            (*path, "path"),
            f"the folder that has {MARK[format]}, without wildcards",
        )
    if not isinstance(source.engine, DuckDBEngine):
        refuse(
            f"spark reads {format.capitalize()} tables of its catalog",
            document,
            (*path, "engine"),
            "name the table in place of the path",
        )
