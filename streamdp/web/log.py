"""The end of the log, filtered. Times are to the minute: no line tells how long work took."""

from __future__ import annotations

import re
from pathlib import Path

from streamdp.log.events import EVENTS
from streamdp.log.read import LEVELS as KNOWN
from streamdp.log.read import Filter, read
from streamdp.types import Json

LEVELS = KNOWN
MOST = 200
"""Lines."""

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
