"""CSV or Parquet, one file or one object of a storage a release: whole, or not there."""

from __future__ import annotations

import csv
import io
import os
import re
import stat
import tempfile
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from streamdp.disk import PRIVATE, make_folder, write_whole
from streamdp.errors import SinkError, SourceError
from streamdp.objects import folder_of, listed, parsed, write
from streamdp.sections.values import FileMode
from streamdp.sinks.columns import TypedColumn, columns, duckdb_lines
from streamdp.sinks.section import SinkContext, SinkSection, Written
from streamdp.types import Json, Release

Form = Literal["csv", "parquet"]


class FilesSinkSection(SinkSection):
    """A folder with one file a release: `FOLDER/JOB/BATCH.ID.csv` or `.parquet`."""

    kind: Literal["csv", "parquet"] = Field(
        description="`csv` or `parquet`: one file a release, in that format."
    )
    path: Path = Field(
        description="Folder of the files, relative to the configuration. It is created if missing.",
        examples=["published"],
    )
    mode: FileMode = Field(
        default=0o600,
        description="Permissions of each file, in octal. Folders get the matching permission to"
        " enter them. Default 0600.",
        examples=["0644"],
    )

    def sink(self, name: str, context: SinkContext) -> FilesSink:
        """The sink, in a folder of its own."""
        return FilesSink(name, self.path, self.kind, self.mode)

    def written(self) -> Written:
        """The folder."""
        path = os.path.realpath(self.path)
        return Written("path", path, f"{path}/job/batch.{self.kind}")


class FilesSink:
    """Writes one file a release, atomically: under its name stands the whole file or none.

    The name holds the random id of the release, so what has this name, or the name of an unfinished
    file, is of an earlier attempt.

    Args:
        name: Of the sink.
        folder: Has one folder a job.
        form: Of the files.
        mode: Of the files.
    """

    def __init__(self, name: str, folder: Path, form: Form, mode: int = PRIVATE) -> None:
        self.name = name
        self._folder, self._form, self._mode = folder, form, mode

    def deliver(self, release: Release) -> None:
        """Write one file.

        Raises:
            SinkError: The disk refused, or something else has the file's name.
        """
        target = self.path_of(release)
        try:
            if _is_there(target):
                return
            for folder in (self._folder, target.parent):
                make_folder(folder, self._mode)
            write_whole(target, partial(WRITERS[self._form], columns(release)), self._mode)
        except _refusals() as error:
            why = error.strerror if isinstance(error, OSError) else None
            raise SinkError(
                f"sink {self.name} cannot write: {why or type(error).__name__}",
                where=str(target.parent),
                hint="look at free space and permissions; the sink needs a folder of its own",
                sink=self.name,
            ) from None

    def path_of(self, release: Release) -> Path:
        """Where a release is kept."""
        return self._folder / release.job / file_name(release, self._form)


def file_name(release: Release, form: Form) -> str:
    """Name of the file of a release; names sort as batches do."""
    batch = re.sub(r"[^A-Za-z0-9_-]", "_", release.batch)[:80]
    return f"{batch}.{release.id}.{form}"


def _is_there(target: Path) -> bool:
    """Whether a file has this name; what has it and is no file raises an error."""
    try:
        found = target.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(found.st_mode):
        raise FileExistsError(0, "something that is no file has the name of this one")
    return True


def _write_csv(found: list[TypedColumn], file: int) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.name for column in found])
    writer.writerows(zip(*(map(_in_text, column.values) for column in found), strict=True))
    with os.fdopen(file, "wb", closefd=False) as stream:
        stream.write(text.getvalue().encode())


def _in_text(value: Json) -> Json:
    return value.strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(value, datetime) else value


def _write_parquet(found: list[TypedColumn], file: int) -> None:
    """Typed columns, through an engine of their own that reads nothing, into the open file."""
    import duckdb

    lines, values = duckdb_lines(found)
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(f"CREATE TABLE release AS {lines}", values)
        into = "COPY release TO ? (FORMAT parquet, USE_TMP_FILE false)"
        connection.execute(into, [f"/dev/fd/{file}"])


WRITERS: dict[Form, Callable[[list[TypedColumn], int], None]] = {
    "csv": _write_csv,
    "parquet": _write_parquet,
}
"""Writers of columns into an open file, by form."""


def _refusals() -> tuple[type[Exception], ...]:
    import duckdb

    return OSError, duckdb.Error


class ObjectsSinkSection(SinkSection):
    """Objects of an S3-compatible storage, one a release: `ADDRESS/JOB/BATCH.ID.csv`."""

    kind: Literal["objects"] = Field(
        description="`objects`: one object a release, in an S3-compatible storage."
    )
    address: str = Field(
        description="`s3://BUCKET/FOLDER` above the objects. Credentials are those of the"
        " environment or the instance.",
        examples=["s3://published/streamdp"],
    )
    form: Literal["csv", "parquet"] = Field(
        default="parquet", description="`csv` or `parquet`: format of the objects. Default parquet."
    )

    @field_validator("address")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        return folder_of(value)

    def sink(self, name: str, context: SinkContext) -> ObjectsSink:
        """The sink, under an address of its own."""
        return ObjectsSink(name, self.address, self.form)

    def written(self) -> Written:
        """The address, for objects of one form."""
        example = f"{self.address}/job/batch.{self.form}"
        return Written("address", f"{self.address}.{self.form}", example)


class ObjectsSink:
    """Writes one object a release, under the release's own key.

    A storage shows an object when it has all of it. The key holds the random id of the release, so
    what has this key is of an earlier attempt.

    Args:
        name: Of the sink.
        address: Above the objects; has one folder a job.
        form: Of the objects.
    """

    def __init__(self, name: str, address: str, form: Form) -> None:
        self.name = name
        self._address, self._form = address, form

    def deliver(self, release: Release) -> None:
        """Write one object.

        Raises:
            SinkError: The storage refused, or there is no room for the file.
        """
        target = parsed(f"{self._address}/{release.job}/{file_name(release, self._form)}")
        try:
            if listed(target):
                return
            with tempfile.TemporaryFile() as file:
                WRITERS[self._form](columns(release), file.fileno())
                file.seek(0)
                write(target, file)
        except SourceError as error:
            raise SinkError(
                f"sink {self.name} cannot write: {error.what}",
                where=error.where,
                hint="may this user list the bucket, and write and read its objects?",
                sink=self.name,
            ) from None
        except OSError as error:
            raise SinkError(
                f"sink {self.name} cannot write: {error.strerror}",
                where=tempfile.gettempdir(),
                hint="look at free space; TMPDIR names another folder",
                sink=self.name,
            ) from None
