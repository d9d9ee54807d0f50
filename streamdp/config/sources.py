"""The section `sources`: where records come from and how they are cut into batches."""

from __future__ import annotations

import glob
import re
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from streamdp.config.engines import DuckDBEngine, Engine
from streamdp.config.queries import TABLE, table_query
from streamdp.config.section import Section
from streamdp.config.values import Duration, Moment, PositiveDuration
from streamdp.types import Format, Json

SETTLE = 60
"""Seconds; a program that writes a file piece by piece pauses for less."""

FieldType = Literal["number", "timestamp", "date", "boolean", "text"]
"""What a column of a text format may be declared to hold."""


class Windows(Section):
    """Batches cut by time: half-open windows in UTC."""

    column: str = Field(min_length=1, description="Date or timestamp column.")
    every: PositiveDuration = Field(description="Length of a window.")
    start: Moment = Field(description="Where the first window begins.")
    end: Moment | None = Field(default=None, description="Where the last one ends, if it does.")
    lateness: Duration = Field(
        default=0,
        description="How long a window fills after its end; what comes later is left out.",
    )
    growing: bool = Field(
        default=False,
        strict=True,
        description="Each batch is all records up to its end: for gates that renew one answer.",
    )
    marker: str | None = Field(
        default=None, description="File with {key} in its path that says that a window is complete."
    )

    @field_validator("marker")
    @classmethod
    def _names_its_batch(cls, value: str | None) -> str | None:
        return value if value is None else _with_key(value)

    @field_validator("every")
    @classmethod
    def _not_too_short(cls, value: int) -> int:
        if value < 60:
            raise ValueError("a window is a minute or longer")
        return value

    @model_validator(mode="after")
    def _ends_after_it_starts(self) -> Windows:
        if self.end is not None and self.end < self.start + self.every:
            raise ValueError("between start and end there is no whole window")
        return self


class Partitions(Section):
    """Batches that are folders: one for each value of the partition column in the path."""

    partition: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="day in path day=*/.")
    marker: str = Field(description="File with {key} in its path that says a folder is complete.")

    @field_validator("marker")
    @classmethod
    def _names_its_batch(cls, value: str) -> str:
        return _with_key(value)


def _with_key(marker: str) -> str:
    if "{key}" not in marker or glob.has_magic(marker):
        raise ValueError("a marker is a path with {key} in it, where the batch's key stands")
    return marker


def _form(value: Any) -> str:
    """Which of the three was meant, so that errors speak of that alone."""
    if isinstance(value, Partitions) or (isinstance(value, dict) and "partition" in value):
        return "Partitions"
    return "files" if isinstance(value, str) else "Windows"


Batches = Annotated[
    Annotated[Literal["files"], Tag("files")]
    | Annotated[Windows, Tag("Windows")]
    | Annotated[Partitions, Tag("Partitions")],
    Discriminator(_form),
]


class Source(Section):
    """Where records come from and how they are cut into batches."""

    path: str = Field(
        default="", description="File or glob, demo:NAME for shipped data, or a DuckDB database."
    )
    table: str | None = Field(
        default=None,
        pattern=TABLE,
        description="Table or view of a database; one row must be one record.",
    )
    query: str | None = Field(
        default=None,
        description="In place of table: SELECT columns and expressions over one record FROM one"
        " table [WHERE condition], in DuckDB's dialect whatever the engine.",
    )
    engine: Engine = Field(default=DuckDBEngine(kind="duckdb"), description="What reads it.")
    format: Format | None = Field(
        default=None, description="By default, what the name of the file says."
    )
    types: dict[str, FieldType] = Field(
        default={},
        description="What columns of CSV and JSON lines hold, by name; others are text.",
    )
    batches: Batches = Field(description="Time windows, one file a batch, or one partition.")
    settle: Duration = Field(
        default=SETTLE,
        description="How long a file that is a batch is left alone before it counts as whole.",
    )

    @field_validator("path")
    @classmethod
    def _can_be_a_path(cls, value: str) -> str:
        if "\0" in value:
            raise ValueError("a path holds no null character")
        return value

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

    def table_name(self) -> str | None:
        """The table whose records these are, named or read by the query; None for files."""
        return self.table if self.query is None else table_query(self.query).table

    def origin(self, column: str) -> Json:
        """What a column is made of: its name in the table, or an expression; in no engine's words.

        Raises:
            ValueError: The query has no such column.
        """
        return column if self.query is None else table_query(self.query).origin(column)

    def is_growing(self) -> bool:
        """Whether a record is in all batches from its own on."""
        return isinstance(self.batches, Windows) and self.batches.growing
