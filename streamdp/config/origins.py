"""What must hold of sources: one name for one set of records, in a form that can be read."""

from __future__ import annotations

import os

from pydantic import SecretStr

from streamdp.config.engines import DuckDBEngine, PostgresEngine, SparkEngine
from streamdp.config.formats import file_format
from streamdp.config.model import Configuration
from streamdp.config.paths import overlap
from streamdp.config.refusal import refuse, refuse_password
from streamdp.config.sources import Source
from streamdp.config.yaml import Document, Path

_ARROW = (".arrow", ".feather", ".ipc")


def check_sources(configuration: Configuration, document: Document) -> None:
    """Two names for the same records would be two budgets for one person's data.

    Raises:
        ConfigurationError: There are two, or a source cannot be read as it is described.
    """
    seen: dict[str, str] = {}
    for name, source in configuration.sources.items():
        path: Path = ("sources", name)
        _check_form(source, document, path)
        place = _place(source)
        for known, other in seen.items():
            if overlap(place, known):
                refuse(
                    f"this is the same data as source {other!r}, with a budget of its own",
                    document,
                    (*path, "path" if source.path else "table"),
                    f"give both releases the source {other!r}",
                )
        seen[place] = name


def _place(source: Source) -> str:
    """Where the records are; for the comparison alone, as it may hold a password."""
    if source.path:
        real = os.path.realpath(source.path)
        return real if source.table is None else f"{real}#{source.table.lower()}"
    engine = source.engine
    if isinstance(engine, PostgresEngine):
        found = engine.connection
        text = found.get_secret_value() if isinstance(found, SecretStr) else str(found.file)
        return f"postgres#{text}#{(source.table or '').lower()}"
    return f"spark#{source.table or ''}".lower()


def _check_form(source: Source, document: Document, path: Path) -> None:
    """Path, table and engine fit together."""
    engine = source.engine
    if isinstance(engine, PostgresEngine):
        refuse_password(engine.connection, document, (*path, "engine", "connection"))
    if source.table is None and not isinstance(engine, PostgresEngine):
        _check_files(source, document, path)
    elif source.batches == "files" or not hasattr(source.batches, "every"):
        refuse(
            "a table is cut by time",
            document,
            (*path, "batches"),
            "batches: {column: , every: , start: }",
        )
    if (
        (source.table is None and isinstance(engine, PostgresEngine))
        or (source.table is not None and isinstance(engine, DuckDBEngine) and not source.path)
        or (source.path and isinstance(engine, PostgresEngine))
        or (source.path and source.table and isinstance(engine, SparkEngine))
    ):
        refuse(
            f"path and table do not fit the engine {engine.kind}",
            document,
            path,
            "duckdb reads path, or table in the database at path; postgres a table; spark either",
        )


def _check_files(source: Source, document: Document, path: Path) -> None:
    if not source.path:
        refuse("this key is missing", document, (*path, "path"), "a file, glob or database")
    format = source.format or file_format(source.path)
    if format is None and source.path.endswith(_ARROW):
        refuse("Arrow files cannot be read", document, (*path, "path"), "write Parquet")
    if format is None:
        refuse(
            "the format is not to be told from this name",
            document,
            (*path, "path"),
            "add format: parquet, csv or jsonl",
        )
    if isinstance(source.engine, SparkEngine) and (format != "parquet" or "`" in source.path):
        refuse("spark reads Parquet files", document, (*path, "path"), "or name a table")
