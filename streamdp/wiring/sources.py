"""Sources and the engines that read them, by what the configuration names."""

from __future__ import annotations

import os
from importlib.resources import files

from streamdp.config.formats import file_format
from streamdp.config.load import DEMO
from streamdp.config.paths import overlap
from streamdp.config.sources import Partitions, Windows
from streamdp.config.sources import Source as SourceSection
from streamdp.types import Backend, Json, Source


def source(name: str, section: SourceSection) -> Source:
    """Windows of time, files, or partitions."""
    from streamdp.sources.files import FileSource
    from streamdp.sources.partitions import PartitionSource
    from streamdp.sources.windows import WindowSource

    cut = section.batches
    if isinstance(cut, Windows):
        return WindowSource(name, cut.start, cut.every, cut.end, cut.lateness, cut.marker)
    if isinstance(cut, Partitions):
        return PartitionSource(name, section.path, cut.partition, cut.marker)
    return FileSource(name, section.path)


def backend(section: SourceSection) -> Backend:
    """DuckDB, which reads files of every format."""
    from streamdp.backends.duckdb import DuckDBBackend

    time_column = section.batches.column if isinstance(section.batches, Windows) else None
    kind = section.format or file_format(section.path) or "parquet"
    return DuckDBBackend(section.path, kind, time_column)


def data_of(section: SourceSection) -> Json:
    """What a source reads and is cut by, whatever it is called: what its budget belongs to.

    Links are followed. Data that is shipped is named by its word: its place changes with the
    installation.
    """
    cut, path = section.batches, os.path.realpath(section.path)
    shipped = os.path.realpath(str(files("streamdp").joinpath("demo")))
    if os.path.dirname(path) == shipped:
        path = DEMO + os.path.basename(path)
    column = cut.column if isinstance(cut, Windows) else None
    return {"path": path, "column": cut.partition if isinstance(cut, Partitions) else column}


def same_data(one: Json, other: Json) -> bool:
    """Whether two sources can read the same file."""
    return overlap(one["path"], other["path"])
