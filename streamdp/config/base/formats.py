"""Formats of files, told by their names."""

from __future__ import annotations

import os

from streamdp.types import Format

_ENDINGS: dict[str, Format] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


def file_format(path: str) -> Format | None:
    """Format by the ending of a name, compressed or not.

    >>> file_format("data/*.csv.gz"), file_format("data/flights")
    ('csv', None)
    """
    stem, ending = os.path.splitext(path)
    if ending in (".gz", ".zst"):
        ending = os.path.splitext(stem)[1]
    return _ENDINGS.get(ending)


def format_of(path: str, said: Format | None = None) -> Format:
    """Format of files: what was said, else what their name says, else Parquet."""
    return said or file_format(path) or "parquet"
