"""Sources and the engines that read them, by what the configuration names."""

from __future__ import annotations

from streamdp.config.formats import file_format
from streamdp.config.sources import Partitions, Windows
from streamdp.config.sources import Source as SourceSection
from streamdp.types import Backend, Source


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
