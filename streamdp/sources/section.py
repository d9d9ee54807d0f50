"""The section of a source: where records come from and how they are cut into batches."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from streamdp.backends.duckdb.section import DuckDBEngine
from streamdp.backends.section import AnyEngine, Location, Start
from streamdp.files import DEMO, Ids, file_format, file_ids, format_of, real, same_records
from streamdp.lakes import MARK, LakeFormat, lies_in_table
from streamdp.objects import is_address, parsed
from streamdp.sections.document import Document, Path, refuse
from streamdp.sections.section import Section
from streamdp.sections.values import Duration
from streamdp.sources.files import Partitions
from streamdp.sources.query import TABLE, table_query
from streamdp.sources.windows import Windows
from streamdp.types import Backend, Format, Json, Source
from streamdp.types.forms import FIELD_TYPES, is_time_form

NAMING = ("path", "query", "table")
"""Keys that say where the records are, in the order in which one of them is told."""

_TABLE: dict[LakeFormat, str] = {"delta": "a Delta table", "iceberg": "an Iceberg table"}

_QUERY = (
    "SELECT column, expression AS name FROM table WHERE condition; what needs more stands in a view"
    " of one row a record, which `table` or the query names"
)

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


def _form(value: Any) -> str:
    """Which of the three forms was meant, so that errors are about that one."""
    if isinstance(value, Partitions) or (isinstance(value, dict) and "partition" in value):
        return "Partitions"
    return "files" if isinstance(value, str) else "Windows"


Batches = Annotated[
    Annotated[Literal["files"], Tag("files")]
    | Annotated[Windows, Tag("Windows")]
    | Annotated[Partitions, Tag("Partitions")],
    Discriminator(_form),
]


class SourceSection(Section):
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
    engine: AnyEngine = Field(
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
    def _has_its_partition(self) -> SourceSection:
        if isinstance(self.batches, Partitions):
            above, found, below = self.path.partition(f"/{self.batches.partition}=*/")
            if not found or not below or glob.has_magic(above):
                raise ValueError(
                    f"the path needs /{self.batches.partition}=*/ before the files, and no wildcard"
                    " before that"
                )
        return self

    @model_validator(mode="after")
    def _quotes_in_csv(self) -> SourceSection:
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

    def end(self) -> int | None:
        """Where the last window ends, in POSIX seconds; None where windows come for ever."""
        return self.batches.end if isinstance(self.batches, Windows) else None

    def is_growing(self) -> bool:
        """Whether a record is in all batches from its own on."""
        return isinstance(self.batches, Windows) and self.batches.growing

    def growth(self) -> dict[str, str]:
        """How the batches of a growing source are cut; overlap does not tell two cuts apart."""
        cut = self.batches
        if not isinstance(cut, Windows) or not cut.growing:
            return {}
        zone = "" if cut.timezone == "UTC" else f" in {cut.timezone}"
        return {"growth": f"by {cut.every} s from {cut.start}{zone}"}

    def source(self, name: str) -> Source:
        """Make the source of a name: windows of time, files, or partitions; nothing is opened.

        Raises:
            ConfigurationError: The library of a format is not installed.
        """
        cut = self.batches
        if is_address(self.path):
            return self._objects(name)
        if isinstance(cut, Partitions):
            return cut.source(name, self.path)
        if not isinstance(cut, Windows):
            from streamdp.sources.files import FileSource

            return FileSource(name, self.path, self.settle)
        is_files = self.table_name() is None and not self.is_lake()
        windows = cut.source(name, self.path if is_files else "")
        if self.format == "delta" or self.format == "iceberg":
            from streamdp.lakes import lake_of
            from streamdp.sources.windows import LakeSource

            return LakeSource(windows, os.path.realpath(self.path), lake_of(self.format))
        return windows

    def _objects(self, name: str) -> Source:
        """The source of objects, or of partitions of them."""
        from streamdp.sources.files import ObjectPartitionSource, ObjectSource

        cut, address = self.batches, parsed(self.path)
        if isinstance(cut, Partitions):
            return ObjectPartitionSource(name, address, cut.partition, cut.marker)
        return ObjectSource(name, address, self.settle)

    def backend(self, start: Start | None = None) -> Backend:
        """Make the engine that reads this source.

        Args:
            start: Shares the embedded engine; by default the source has one of its own.

        Raises:
            ConfigurationError: Its connection cannot be read, or its library is not installed.
        """
        return self.engine.backend(self.location(), start)

    def location(self) -> Location:
        """Where the records are, in the words of its engine."""
        from streamdp.backends.sql.relation import Relation

        relation = None
        if self.query is not None:
            found = table_query(self.query, self.engine.dialect)
            relation = Relation(
                found.table, columns=found.columns, where=found.where, named=found.named
            )
        elif self.table is not None:
            relation = Relation(table=self.table)
        return Location(
            self.path,
            relation,
            self.format or format_of(self.path),
            self.batches.column if isinstance(self.batches, Windows) else None,
            self.types,
            self.quoted_newlines,
        )

    def identity(self, unit: str | None = None) -> Json:
        """Identity of the source, whatever its name: its data and its cut, which its budget is of.

        A query reads its table, whatever it selects: its records are those of the table. What it
        makes time and unit of is written down where it is more than the table's column of that
        name, for another time puts a record in another batch, and another unit is somebody else.
        So does the declared type of a time in text, written down where it is not `timestamp`, and
        how the records of windows are read: a date is another day in another time zone, and a line
        may be a record of two formats.

        Links are followed. Data that is shipped is named by its word: its place changes with the
        installation. Of a server there are host, port and database, and neither user nor password.

        Args:
            unit: Column of the unit; None for one record.
        """
        cut = self.batches
        place = self.place() if self.path else self.engine.server()
        shipped = os.path.realpath(str(files("streamdp").joinpath("demo")))
        if os.path.dirname(place) == shipped:
            place = DEMO + os.path.basename(place)
        column = self.origin(cut.column) if isinstance(cut, Windows) else None
        data: dict[str, Json] = {
            "path": self._with_table(place),
            "column": cut.partition if isinstance(cut, Partitions) else column,
        }
        read = self.types.get(cut.column, "timestamp") if isinstance(cut, Windows) else "timestamp"
        if read != "timestamp":
            data |= {"type": read}
        if isinstance(cut, Windows):
            data |= {"read": self._reading()}
        who = None if unit is None else self.origin(unit)
        return data if who == unit else data | {"unit": who}

    def _reading(self) -> Json:
        """How records are told apart and put into windows: by the time zone, and by the format."""
        if self.table_name() is not None:
            return {"zone": self.zone}
        ends = {"quoted_newlines": True} if self.quoted_newlines else {}
        return {"zone": self.zone, "format": self.format or format_of(self.path), **ends}

    def compared_place(self) -> str:
        """Where the records are; for comparisons alone, as it may hold a password."""
        return self._with_table(self.place() if self.path else self.engine.server_text())

    def _with_table(self, place: str) -> str:
        """A place, and the table in it if there is one."""
        table = (self.table_name() or "").lower()
        return f"{place}#{table}" if table else place

    def check(self, unit: str | None, document: Document, path: Path) -> None:
        """Refuse a source that cannot be read as it is described.

        Args:
            unit: Column of the unit; None for one record.
            document: The file.
            path: Of the source in it.

        Raises:
            ConfigurationError: With its place in the file.
        """
        self._check_query(unit, document, path)
        if "settle" in self.model_fields_set and self.batches != "files":
            refuse(
                "only files that are batches settle",
                document,
                (*path, "settle"),
                "windows have lateness, partitions their marker",
            )
        is_table = self.table_name() is not None
        if self.types and is_table:
            at = (*path, "types")
            refuse("a table knows the types of its columns", document, at, "leave it out")
        if is_address(self.path) and is_table:
            refuse(
                "a table is in a database, and this path names objects",
                document,
                (*path, "path"),
                "leave the table out",
            )
        if not is_table and self.engine.reads_files():
            self._check_files(document, path)
        else:
            self._require_windows(document, path)
        self.engine.check(self.location(), document, path)

    def _require_windows(self, document: Document, path: Path) -> None:
        if not isinstance(self.batches, Windows):
            hint = "batches: {column: , every: , start: }"
            refuse("a table is cut by time", document, (*path, "batches"), hint)

    def _check_query(self, unit: str | None, document: Document, path: Path) -> None:
        """Require a query that makes a row of one record, with the columns of its time and unit."""
        if self.query is None:
            return
        if self.table is not None:
            refuse("the query says which table is read", document, (*path, "table"), "leave it out")
        place: Path = (*path, "query")
        try:
            found = table_query(self.query, self.engine.dialect)
            if unit is not None:
                found.origin(unit)
            if isinstance(self.batches, Windows):
                place = (*path, "batches", "column")
                found.origin(self.batches.column)
        except ValueError as error:
            refuse(str(error), document, place, _QUERY)

    def _check_files(self, document: Document, path: Path) -> None:
        if not self.path:
            refuse("this key is missing", document, (*path, "path"), "a file, glob or database")
        format = self.format or file_format(self.path)
        if format is None:
            refuse(
                "the format cannot be told from this name",
                document,
                (*path, "path"),
                "add format: parquet, csv, jsonl or arrow",
            )
        if self.types and format not in ("csv", "jsonl"):
            refuse(
                f"the types of columns stand in {format} files",
                document,
                (*path, "types"),
                "leave it out",
            )
        if format == "delta" or format == "iceberg":
            self._check_lake(format, document, path)
        elif within := lies_in_table(self.path):
            refuse(
                f"these files are of {_TABLE[within]}, whose log says which of them count",
                document,
                (*path, "path"),
                f"the folder that has {MARK[within]}, with format: {within}",
            )
        if is_address(self.path):
            self._check_objects(document, path)
        if "\\" in self.path:
            refuse(
                "a backslash is no separator of folders",
                document,
                (*path, "path"),
                "write / between folders, and rename a file whose name holds a backslash",
            )

    def _check_objects(self, document: Document, path: Path) -> None:
        """Objects are batches, alone or by partition: a batch is copied before it is charged."""
        cut = self.batches
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

    def _check_lake(self, format: LakeFormat, document: Document, path: Path) -> None:
        """A table in a folder is cut by time: its files are no batches, as they are rewritten."""
        self._require_windows(document, path)
        if is_address(self.path) or glob.has_magic(self.path):
            refuse(
                f"{_TABLE[format]} is read from a folder of this machine",
                document,
                (*path, "path"),
                f"the folder that has {MARK[format]}, without wildcards",
            )


def same_data(one: Json, other: Json, ids: Ids = file_ids) -> bool:
    """Whether two identities of sources can be of the same file or table."""
    return same_records(one["path"], other["path"], ids)


def overlap() -> Callable[[Json, Json], bool]:
    """`same_data`, which looks at each file once."""
    return partial(same_data, ids=cache(file_ids))


def check_sources(
    sources: Mapping[str, SourceSection], unit: str | None, document: Document
) -> None:
    """Check each source, and refuse two names for the same records: two budgets for one's data.

    Args:
        sources: By name.
        unit: Column of the unit; None for one record.
        document: The file.

    Raises:
        ConfigurationError: With its place in the file.
    """
    seen: dict[str, str] = {}
    ids = cache(file_ids)
    for name, source in sources.items():
        path: Path = ("sources", name)
        source.check(unit, document, path)
        place = source.compared_place()
        for known, other in seen.items():
            if same_records(place, known, ids):
                refuse(
                    f"this is the same data as source {other!r}, with a budget of its own",
                    document,
                    (*path, next(key for key in NAMING if getattr(source, key))),
                    f"give both releases the source {other!r}",
                )
        seen[place] = name
