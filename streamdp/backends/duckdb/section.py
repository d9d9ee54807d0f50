"""The section of the embedded engine, which reads files, objects, lakes and DuckDB databases."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from streamdp.backends.limits import Limits
from streamdp.backends.section import EngineSection, Location, Start
from streamdp.lakes import lake_of
from streamdp.objects import is_address
from streamdp.sections.dialects import Dialect
from streamdp.sections.document import Document, Path
from streamdp.types import Backend


class DuckDBEngine(EngineSection):
    """Embedded: reads files, or a table of a DuckDB database."""

    dialect: ClassVar[Dialect] = "duckdb"

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

    def limits(self) -> Limits:
        """Limits of one question, and the threads of all."""
        return Limits(self.memory, self.timeout, self.threads)

    def check(self, location: Location, document: Document, path: Path) -> None:
        """Refuse a table without a database."""
        if not location.path:
            self.refuse_location(document, path)

    def backend(self, location: Location, start: Start | None = None) -> Backend:
        """DuckDB over a database, a lake's table, objects or files."""
        from streamdp.backends.duckdb.engine import DuckDBBackend

        path, time_column, limits = location.path, location.time_column, self.limits()
        instance = None if start is None else start(replace(limits, seconds=None))
        if location.relation is not None:
            table = location.relation
            return DuckDBBackend(path, "duckdb", time_column, limits, table, instance=instance)
        if location.format == "delta" or location.format == "iceberg":
            from streamdp.backends.duckdb.lakes import LakeBackend

            folder, lake = os.path.realpath(path), lake_of(location.format)
            return LakeBackend(folder, "parquet", time_column, limits, lake=lake)
        types, newlines = location.types, location.quoted_newlines
        if is_address(path):
            from streamdp.backends.duckdb.objects import ObjectsBackend

            return ObjectsBackend(
                path, location.format, limits=limits, types=types, quoted_newlines=newlines
            )
        return DuckDBBackend(
            path,
            location.format,
            time_column,
            limits,
            types=types,
            quoted_newlines=newlines,
            instance=instance,
        )
