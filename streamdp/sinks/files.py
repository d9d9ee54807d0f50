"""A folder of CSV or Parquet files: one file a release, whole or not there."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Literal

from streamdp.disk import sync
from streamdp.errors import SinkError
from streamdp.sinks.columns import Column, columns, duckdb_lines
from streamdp.types import Json, Release

Form = Literal["csv", "parquet"]


class FilesSink:
    """Writes beside, waits for the disk, then gives the file its name.

    The name holds the id of the release, so a second delivery finds the file there.

    Args:
        name: Of the sink.
        folder: Has one folder a job.
        form: Of the files.
    """

    def __init__(self, name: str, folder: Path, form: Form) -> None:
        self.name = name
        self._folder = folder
        self._form = form

    def deliver(self, release: Release) -> None:
        """Write one file.

        Raises:
            SinkError: The disk refused.
        """
        target = self.path_of(release)
        unfinished = target.with_name(f".{target.name}.unfinished")
        try:
            if target.exists():
                return
            target.parent.mkdir(parents=True, exist_ok=True)
            _WRITERS[self._form](unfinished, columns(release))
            sync(unfinished)
            unfinished.replace(target)
            sync(target.parent)
        except _refusals() as error:
            unfinished.unlink(missing_ok=True)
            raise SinkError(
                f"sink {self.name} cannot write: {type(error).__name__}",
                where=str(target.parent),
                hint="look at free space and permissions",
                sink=self.name,
            ) from None

    def path_of(self, release: Release) -> Path:
        """Where a release is kept; names sort as batches do."""
        batch = re.sub(r"[^A-Za-z0-9_-]", "_", release.batch)[:80]
        return self._folder / release.job / f"{batch}.{release.id}.{self._form}"


def _write_csv(path: Path, found: list[Column]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.name for column in found])
    writer.writerows(zip(*(map(_in_text, column.values) for column in found), strict=True))
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(file, "wb") as stream:
        stream.write(text.getvalue().encode())


def _in_text(value: Json) -> Json:
    return value.strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(value, datetime) else value


def _write_parquet(path: Path, found: list[Column]) -> None:
    """Typed columns, through an engine of their own that reads nothing."""
    import duckdb

    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
    lines, values = duckdb_lines(found)
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(f"CREATE TABLE release AS {lines}", values)
        connection.execute("COPY release TO ? (FORMAT parquet)", [str(path)])


_WRITERS: dict[Form, Callable[[Path, list[Column]], None]] = {
    "csv": _write_csv,
    "parquet": _write_parquet,
}


def _refusals() -> tuple[type[Exception], ...]:
    import duckdb

    return OSError, duckdb.Error
