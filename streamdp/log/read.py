"""The log file read back: filtered, and followed across rotation."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from streamdp.types import Json

LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class Filter:
    """Which lines are wanted; None asks for nothing.

    Args:
        job: Of this job.
        batch: Of this batch.
        release: Of this release id.
        level: At this level or above.
        since: At this ISO time or later, without its zone: `Z` sorts behind fractions of seconds.
    """

    job: str | None = None
    batch: str | None = None
    release: str | None = None
    level: str = "debug"
    since: str | None = None

    def admits(self, line: dict[str, Json]) -> bool:
        """Whether a line is wanted."""
        wanted = {"job": self.job, "batch": self.batch, "release": self.release}
        return (
            all(value is None or line.get(name) == value for name, value in wanted.items())
            and _rank(line.get("level", "debug")) >= _rank(self.level)
            and (self.since is None or line.get("timestamp", "") >= self.since)
        )


def _rank(level: str) -> int:
    """Rank of a level; an unknown one, as a library's `critical`, is the highest."""
    return LEVELS.index(level) if level in LEVELS else len(LEVELS)


def read(path: Path, wanted: Filter) -> Iterator[dict[str, Json]]:
    """Lines of the rotated files, then of the current one, oldest first."""
    for file in (*_rotated(path), path):
        if file.exists():
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
            yield from _wanted(lines, wanted)


def follow(
    path: Path, wanted: Filter, pause: Callable[[], None] = lambda: time.sleep(0.5)
) -> Iterator[dict[str, Json]]:
    """New lines as they come, from the end of the file on, for ever.

    The file stays open when it is rotated away: its last lines are read before the next file is.
    """
    file: BinaryIO | None = None
    if path.exists():
        file = path.open("rb")
        file.seek(0, os.SEEK_END)
    held = b""
    try:
        while True:
            pause()
            file = file or (path.open("rb") if path.exists() else None)
            while file is not None:
                replaced = _is_replaced(file, path)
                *lines, held = (held + file.read()).split(b"\n")
                yield from _wanted([line.decode(errors="replace") for line in lines], wanted)
                if not replaced:
                    break
                following, held = _following(file, path), b""
                file.close()
                file = following
    finally:
        if file is not None:
            file.close()


def _is_replaced(file: BinaryIO, path: Path) -> bool:
    """Whether the writer has gone on to another file."""
    return path.exists() and path.stat().st_ino != os.fstat(file.fileno()).st_ino


def _following(file: BinaryIO, path: Path) -> BinaryIO:
    """The file that was begun after one that was rotated away, the oldest if it is gone."""
    files = [*_rotated(path), path]
    inodes = [each.stat().st_ino for each in files]
    own = os.fstat(file.fileno()).st_ino
    return files[inodes.index(own) + 1 if own in inodes else 0].open("rb")


def _rotated(path: Path) -> list[Path]:
    """Files that were put aside, oldest first."""
    files = [file for file in path.parent.glob(f"{path.name}.*") if file.suffix[1:].isdigit()]
    return sorted(files, key=lambda file: -int(file.suffix[1:]))


def _wanted(lines: list[str], wanted: Filter) -> Iterator[dict[str, Json]]:
    for text in lines:
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and wanted.admits(line):
            yield line
