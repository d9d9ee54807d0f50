"""The section `sources`: where records come from and how they are cut into batches."""

from __future__ import annotations

import glob
import re
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    Field,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from streamdp.config.base.formats import file_format
from streamdp.config.base.paths import real
from streamdp.config.base.section import Section
from streamdp.config.base.values import Duration
from streamdp.config.sections.batches import Batches, Partitions, Windows
from streamdp.config.sections.engines import DuckDBEngine, Engine
from streamdp.config.sections.queries import TABLE, table_query
from streamdp.lakes.folders import MARK, LakeFormat
from streamdp.objects.address import is_address, parsed
from streamdp.types import Format, Json
from streamdp.types.text_fields import FIELD_TYPES, is_time_form

SETTLE = 60
"""Seconds; a program that writes a file piece by piece pauses for less."""


def _field_type(value: str) -> str:
    if value not in FIELD_TYPES and not is_time_form(value):
        raise ValueError(
            f"this must be {', '.join(FIELD_TYPES)}, or how times are written: '%d.%m.%Y %H:%M'"
        )
    return value


FieldType = Annotated[
    str,
    AfterValidator(_field_type),
    WithJsonSchema(
        {"type": "string", "anyOf": [{"enum": [*FIELD_TYPES]}, {"pattern": "%"}]}, mode="validation"
    ),
]
"""Types that a column of a text format may be declared to hold."""


class Source(Section):
    """Where records come from and how they are cut into batches."""

    path: str = Field(
        default="",
        description="File, glob or DuckDB database, relative to the configuration;"
        " `s3://BUCKET/KEY` for objects of a storage, with the same wildcards; `demo:NAME` for data"
        " that comes with streamdp.",
        examples=["flights/*.parquet", "s3://lake/flights/*.parquet"],
    )
    table: str | None = Field(
        default=None,
        pattern=TABLE,
        description="Table or view of the database. One row must be one record.",
        examples=["public.flights"],
    )
    query: str | None = Field(
        default=None,
        description="Query in place of `table`: SELECT columns and expressions of one record FROM"
        " one table [WHERE condition]. It is in DuckDB's dialect whatever the engine.",
        examples=["SELECT at, price * pieces AS amount FROM sales"],
    )
    engine: Engine = Field(
        default=DuckDBEngine(kind="duckdb"),
        description="Engine that reads the records, with its limits. Default: DuckDB.",
        examples=[{"kind": "duckdb", "memory": "2 GB"}],
    )
    format: Format | LakeFormat | None = Field(
        default=None,
        description="Format of the files; `delta` or `iceberg` for a table of that format, whose"
        " folder `path` names. Default: from the ending of the file name.",
    )
    types: dict[str, FieldType] = Field(
        default={},
        description="Types of columns in CSV and JSON lines, by column name: number, timestamp,"
        " date, boolean, text, decimal-comma (`1.234,50`), or how dates and times are written, as"
        " `%d.%m.%Y %H:%M`. A value that is none of its type counts as null. Default: text.",
        examples=[{"price": "number", "at": "timestamp"}],
    )
    quoted_newlines: bool = Field(
        default=False,
        strict=True,
        description="Whether line ends within quotes are text, in CSV. It assumes that whoever"
        " writes the files quotes every field that holds a quote, a delimiter or a line end, and"
        " doubles quotes in it; a file that is otherwise is refused. Default false: a record is a"
        " line, whatever its quotes are.",
    )
    batches: Batches = Field(
        description="How records are cut into batches: time windows, `files` (one file a batch),"
        " or partitions (one folder a batch).",
        examples=[{"column": "at", "every": "1d", "start": "2026-01-01"}, "files"],
    )
    settle: Duration = Field(
        default=SETTLE,
        description="Time for which a file must be unchanged before it counts as complete, as a"
        " duration; with `batches: files`. Default 1m.",
        examples=["5m"],
    )

    @field_validator("path")
    @classmethod
    def _can_be_a_path(cls, value: str) -> str:
        if "\0" in value:
            raise ValueError("a path holds no null character")
        if re.search(r"(^|/)s3[an]?:/[^/]", value, re.IGNORECASE):
            raise ValueError("an address has two slashes: s3://bucket/folder/*.parquet")
        return str(parsed(value)) if is_address(value) else value

    @field_validator("batches", mode="before")
    @classmethod
    def _never_by_count(cls, value: Any) -> Any:
        counting = {"rows", "records", "count", "size", "every_rows"}
        if isinstance(value, dict) and re.fullmatch(r"\d+\s*[smhdw]", str(value.get("size"))):
            raise ValueError(f"the length of a window is called every: every: {value['size']}")
        if isinstance(value, int) or (isinstance(value, dict) and counting & value.keys()):
            raise ValueError(
                "batches cannot be cut by counting records: one record more would move the"
                " borders of every later batch, so it would be in all of their releases;"
                " cut by time, or give each batch a file"
            )
        if isinstance(value, str) and value != "files":
            raise ValueError(
                "write files, one file a batch, or cut by time:"
                " {column: at, every: 1d, start: 2026-01-01}"
            )
        return value

    @model_validator(mode="after")
    def _has_its_partition(self) -> Source:
        if isinstance(self.batches, Partitions):
            above, found, below = self.path.partition(f"/{self.batches.partition}=*/")
            if not found or not below or glob.has_magic(above):
                raise ValueError(
                    f"the path needs /{self.batches.partition}=*/ before the files, and no wildcard"
                    " before that"
                )
        return self

    @model_validator(mode="after")
    def _quotes_in_csv(self) -> Source:
        is_csv = (self.format or file_format(self.path)) == "csv" and not (self.table or self.query)
        if self.quoted_newlines and not is_csv:
            raise ValueError("quoted_newlines is for CSV files alone: leave it out")
        return self

    def place(self) -> str:
        """Form in which two paths are compared: no links; of a table, all that is in its folder."""
        return f"{real(self.path)}/**" if self.is_lake() else real(self.path)

    def is_lake(self) -> bool:
        """Whether the path is the folder of a table."""
        return self.format in MARK

    def file_format(self) -> Format | None:
        """The declared format of files; None where names tell it, and for Delta and Iceberg."""
        if self.format == "delta" or self.format == "iceberg":
            return None
        return self.format

    def table_name(self) -> str | None:
        """The table whose records these are, named or read by the query; None for files."""
        return self.table if self.query is None else table_query(self.query).table

    def origin(self, column: str) -> Json:
        """Source of a column: its name in the table, or an expression; in no engine's dialect.

        Raises:
            ValueError: The query has no such column.
        """
        return column if self.query is None else table_query(self.query).origin(column)

    @property
    def zone(self) -> str:
        """Time zone of the batches, whose clocks show parts of times."""
        return self.batches.timezone if isinstance(self.batches, Windows) else "UTC"

    def every(self) -> int | None:
        """Seconds of a window; None where batches are no windows of time."""
        return self.batches.every if isinstance(self.batches, Windows) else None

    def is_growing(self) -> bool:
        """Whether a record is in all batches from its own on."""
        return isinstance(self.batches, Windows) and self.batches.growing
