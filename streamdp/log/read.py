"""The log file read back: filtered, and followed across rotation."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

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
        since: At this ISO time or later.
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
            and LEVELS.index(line.get("level", "debug")) >= LEVELS.index(self.level)
            and (self.since is None or line.get("timestamp", "") >= self.since)
        )


def read(path: Path, wanted: Filter) -> Iterator[dict[str, Json]]:
    """Lines of the rotated files, then of the current one, oldest first."""
    rotated = sorted(
        (file for file in path.parent.glob(f"{path.name}.*") if file.suffix[1:].isdigit()),
        key=lambda file: -int(file.suffix[1:]),
    )
    for file in (*rotated, path):
        if file.exists():
            yield from _wanted(file.read_text(encoding="utf-8").splitlines(), wanted)


def follow(
    path: Path, wanted: Filter, pause: Callable[[], None] = lambda: time.sleep(0.5)
) -> Iterator[dict[str, Json]]:
    """New lines as they come, from the end of the file on, for ever; rotation is followed."""
    position, identity = (path.stat().st_size, path.stat().st_ino) if path.exists() else (0, 0)
    held = ""
    while True:
        if path.exists():
            state = path.stat()
            if state.st_ino != identity or state.st_size < position:
                position, identity, held = 0, state.st_ino, ""
            with path.open(encoding="utf-8") as file:
                file.seek(position)
                *lines, held = (held + file.read()).split("\n")
                position = file.tell()
            yield from _wanted(lines, wanted)
        pause()


def _wanted(lines: list[str], wanted: Filter) -> Iterator[dict[str, Json]]:
    for text in lines:
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and wanted.admits(line):
            yield line
