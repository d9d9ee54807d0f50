"""The section of Spark."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from streamdp.backends.section import EngineSection, Location, Start
from streamdp.errors import require_extra
from streamdp.objects.address import is_address
from streamdp.sections.dialects import Dialect
from streamdp.sections.document import Document, Path, refuse
from streamdp.types import Backend


class SparkEngine(EngineSection):
    """Spark: a table of its catalog, or Parquet files."""

    dialect: ClassVar[Dialect] = "spark"

    kind: Literal["spark"] = Field(
        description="`spark`: Apache Spark, for tables of its catalog and Parquet files."
    )
    master: str = Field(
        default="local[*]",
        min_length=1,
        description="URL of the Spark master. Default: `local[*]`, this machine.",
        examples=["spark://host:7077"],
    )

    def check(self, location: Location, document: Document, path: Path) -> None:
        """Refuse objects, tables in folders, files that are no Parquet, and a path and a table."""
        if location.relation is not None:
            if location.path:
                self.refuse_location(document, path)
            return
        if is_address(location.path):
            refuse(
                "objects are read by the embedded engine",
                document,
                (*path, "engine"),
                "leave it out, or name a table of Spark's catalog in place of the path",
            )
        if location.format == "delta" or location.format == "iceberg":
            refuse(
                f"spark reads {location.format.capitalize()} tables of its catalog",
                document,
                (*path, "engine"),
                "name the table in place of the path",
            )
        if location.format != "parquet" or "`" in location.path:
            refuse("spark reads Parquet files", document, (*path, "path"), "or name a table")

    def backend(self, location: Location, start: Start | None = None) -> Backend:
        """Spark over a table of its catalog, or over files."""
        require_extra("pyspark", "spark", "sources.engine")
        from streamdp.backends.spark.engine import SparkBackend
        from streamdp.backends.sql.relation import Relation

        files = location.path if location.relation is None else ""
        table = location.relation or Relation()
        return SparkBackend(self.master, table, location.time_column, self.limits(), files)
