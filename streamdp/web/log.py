"""The end of the log, filtered. Times are to the minute: no line tells how long work took."""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from streamdp.log import EVENTS, Filter, read
from streamdp.types import Json

MOST = 200
"""Lines."""

_EVENT = re.compile(rb'"event": "([a-z.-]+)"')
_WORTH = frozenset(name for name, event in EVENTS.items() if event.level in ("warning", "error"))

_MINUTE = re.compile(r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2})")


def newest_lines(
    path: Path | None,
    level: str = "info",
    job: str | None = None,
    release: str | None = None,
    batch: str | None = None,
) -> list[dict[str, Json]]:
    """The last lines that are wanted, newest first, with the fields that events may have."""
    if path is None:
        return []
    found = list(read(path, Filter(job, batch, release, level)))[-MOST:]
    return [_shown(line) for line in reversed(found)]


@dataclass
class EventCounts:
    """How often each warning and error is in the log; each byte of it is read once."""

    _inode: int = 0
    _read: int = 0
    _counts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, path: Path | None) -> Counter[str]:
        """Counts by event since the log's file was begun, or the page was."""
        with self._lock:
            if path is not None and path.exists():
                with path.open("rb") as file:
                    self._count(file)
            return Counter({name: self._counts[name] for name in _WORTH})

    def _count(self, file: BinaryIO) -> None:
        inode = os.fstat(file.fileno()).st_ino
        if inode != self._inode:
            self._inode, self._read = inode, 0
        file.seek(self._read)
        for text in file:
            if not text.endswith(b"\n"):
                break
            self._read += len(text)
            found = _EVENT.search(text)
            if found and found[1].decode() in _WORTH:
                self._counts[found[1].decode()] += 1


def _shown(line: dict[str, Json]) -> dict[str, Json]:
    """Time, level, event and its fields, as the closed list of events has them."""
    name = str(line.get("event", ""))
    known = EVENTS[name].fields if name in EVENTS else frozenset()
    moment = _MINUTE.match(str(line.get("timestamp", "")))
    return {
        "time": f"{moment[1]}Z" if moment else "",
        "level": str(line.get("level", "")),
        "event": name,
        "fields": {key: value for key, value in line.items() if key in known},
    }
