"""The log: a closed list of events, the section that says where they go, and the file read back.

A field of an event is on the list only if it follows from the configuration, the clock and the
ledger. There are no values, no counts of rows, no durations: two neighbouring batches leave the
same lines. Tracebacks are never written: structlog's would print local variables, which hold
private counts.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, get_args

from pydantic import Field

from streamdp.disk import keep_private, open_file
from streamdp.errors import ConfigurationError
from streamdp.sections.section import Section
from streamdp.sections.values import Size
from streamdp.text import printable
from streamdp.types import Json, Log

if TYPE_CHECKING:
    import structlog
    from structlog.typing import EventDict, WrappedLogger

Level = Literal["debug", "info", "warning", "error"]

Console = Literal["text", "json", "off"]
"""What standard error gets: readable lines, JSON lines, or nothing."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event's level, its fields, and its meaning for operators."""

    level: Level
    fields: frozenset[str]
    meaning: str


def _event(level: Level, fields: str, meaning: str) -> Event:
    return Event(level, frozenset(fields.split()), meaning)


EVENTS = {
    "daemon.started": _event("info", "pid", "the daemon holds the store and works"),
    "anchor.on-one-volume": _event(
        "warning", "", "store and anchor are on one volume, and lost together; told at each start"
    ),
    "store.on-network": _event(
        "warning", "kind", "several hosts may share the store's file system; told at each start"
    ),
    "daemon.stopped": _event("info", "", "the daemon ended on purpose"),
    "daemon.reloaded": _event("info", "", "a new configuration is in force"),
    "daemon.reload-refused": _event("error", "code reason", "the old configuration stays"),
    "wake": _event("debug", "job", "a schedule woke a job"),
    "recovery.burnt": _event("warning", "job batch", "a process died; its charge stays spent"),
    "batch.sealed": _event("debug", "source batch", "a batch was written down"),
    "batch.altered": _event("error", "source batch reason", "a file changed after it arrived"),
    "batch.refused": _event("warning", "source batch reason", "a second name of a known file"),
    "batch.unreadable": _event(
        "error", "source batch reason", "a batch cannot be read; told once a change"
    ),
    "input.skipped": _event(
        "warning",
        "source batch reason",
        "what a pattern finds is not read: a pipe, a socket, a device, a link to nothing, a folder"
        " without permission; told once a process, for windows once a reason",
    ),
    "release.reserved": _event("debug", "job batch epsilon_nano", "a charge is spent"),
    "release.committed": _event("info", "job batch release", "a release is in the store"),
    "release.burnt": _event("warning", "job batch epsilon_nano", "spent, and no release"),
    "release.delivered": _event("debug", "job batch release sink", "a sink has it"),
    "rollup.made": _event("info", "job batch release", "a closed period is rolled up, for nothing"),
    "release.failed": _event(
        "error", "job code source id reason", "a job's turn ended in an error"
    ),
    "job.waits": _event("info", "job reason", "no group was found before its batches yet"),
    "job.rests": _event("warning", "job until", "charges were burnt; the next try waits so long"),
    "budget.exhausted": _event(
        "warning", "job batch cap measure left_nano frees", "a cap refused a release; told once"
    ),
    "cap.lowered": _event("info", "scope", "the configuration lowered a cap"),
    "store.failed": _event("error", "code reason", "store or clock refuse; it is tried again"),
    "clock.behind": _event("warning", "", "the clock has gone back; nothing is done twice"),
    "learner.restarted": _event("warning", "job code", "what was learned was put aside"),
    "learner.replayed": _event("info", "job releases", "a learner began with so many releases"),
    "gate.armed": _event("info", "gate epsilon_nano", "a run is charged and begins"),
    "gate.asked": _event("debug", "gate batch answer", "the answer, at its slot"),
    "gate.accepted": _event("info", "gate batch", "a yes: the run is over, its actions are queued"),
    "gate.exhausted": _event("warning", "gate", "a run is over: it had all its tests"),
    "gate.lost": _event("warning", "gate", "a test was cut off: its run is over"),
    "gate.changed": _event("warning", "gate", "a run is over: the configuration changed"),
    "sink.failed": _event("error", "job batch release sink code reason", "it is tried again"),
    "sink.gave-up": _event("error", "job batch release sink code reason", "see `streamdp outbox`"),
    "alert": _event(
        "warning", "alert job batch reason", "a condition needs an operator, or is over; told once"
    ),
    "report.written": _event("info", "report job", "a report of a period is in its folder"),
    "report.failed": _event(
        "error", "report job reason", "a report could not be written; told once, tried again"
    ),
    "backup.written": _event("info", "name", "a copy of the store is in its folder"),
    "backup.failed": _event(
        "error", "code reason", "a copy could not be made; told once, tried again"
    ),
    "log.refused": _event("error", "name", "an event or field outside this list was dropped"),
}


def refused(event: str, fields: dict[str, Json]) -> bool:
    """Whether an event, or one of its fields, is not on the list."""
    return event not in EVENTS or not fields.keys() <= EVENTS[event].fields


class Rotation(Section):
    """When a log file is closed and how many are kept."""

    size: Size = Field(
        default=10_000_000,
        description="Size at which the log file is closed, in B, kB, MB or GB. Default 10 MB.",
        examples=["10 MB"],
    )
    keep: int = Field(
        default=5,
        ge=1,
        le=1000,
        strict=True,
        description="Number of closed log files that are kept. Default 5.",
    )


class LogSection(Section):
    """The log: JSON lines in a file, readable lines on the terminal."""

    path: Path | None = Field(
        default=None,
        description="File for the log in JSON lines, relative to the configuration. Default: no"
        " file.",
        examples=["streamdp.log"],
    )
    level: Level = Field(
        default="info", description="Least severe level that is logged. Default `info`."
    )
    stderr: Console = Field(
        default="text",
        description="What the daemon writes to standard error: readable lines (`text`), JSON lines"
        " (`json`, for containers), or nothing (`off`). Default `text`.",
    )
    rotate: Rotation = Field(
        default=Rotation(),
        description="When the log file is closed, and how many closed files are kept.",
        examples=[{"size": "10 MB", "keep": 5}],
    )

    def start(self, *, console: bool) -> Log:
        """Send events there, and to the terminal if wanted."""
        shown = self.stderr if console else "off"
        return configure(self.path, self.level, self.rotate.size, self.rotate.keep, shown)


_NAME = "streamdp"

SECONDS = "%Y-%m-%dT%H:%M:%SZ"
"""Form of the time of a line: from its fractions one could read how long a batch took to scan."""

_counts: Counter[str] = Counter()


class _PrivateFile(RotatingFileHandler):
    """A rotated file that is its user's alone, from its first byte, whatever the umask."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Ignore errors of writing, on which `logging` would print a traceback."""

    def close(self) -> None:
        """Give the file back, though what is left to write may not fit on its disk."""
        with suppress(OSError):
            super().close()

    def _open(self) -> TextIOWrapper:
        file = open_file(Path(self.baseFilename), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        keep_private(file)
        return TextIOWrapper(os.fdopen(file, "ab"), encoding="utf-8", line_buffering=True)


def configure(path: Path | None, level: Level, size: int, keep: int, console: Console) -> Log:
    """Send events to a file and, if wanted, to standard error; returns where to say them.

    Args:
        path: The file, or None for no file.
        level: Events below it are dropped.
        size: Bytes after which the file is rotated.
        keep: Rotated files to keep.
        console: What standard error gets.

    Raises:
        ConfigurationError: The file cannot be written.
    """
    handlers: list[logging.Handler] = [logging.NullHandler()]
    if path is not None:
        handlers.append(_file_handler(path, size, keep))
    if console != "off" and sys.stderr is not None:
        stream = logging.StreamHandler(sys.stderr)
        stream.setFormatter(_json() if console == "json" else _text())
        handlers.append(stream)
    close()
    logger = logging.getLogger(_NAME)
    logger.handlers, logger.propagate = handlers, False
    logger.setLevel(level.upper())
    return _say


def _json() -> structlog.stdlib.ProcessorFormatter:
    import structlog

    return _formatter(structlog.processors.JSONRenderer())


def _text() -> structlog.stdlib.ProcessorFormatter:
    """Readable lines, in colours on a terminal."""
    import structlog

    return _formatter(
        _printable,
        structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        ),
    )


def counts() -> dict[str, int]:
    """How often each warning and error was said by this process, wherever it is written."""
    return dict(_counts)


def close() -> None:
    """Close the file and forget the terminal; nothing is written until `configure`."""
    for handler in logging.getLogger(_NAME).handlers:
        handler.close()
    logging.getLogger(_NAME).handlers = []


def _say(event: str, /, **fields: str | int | None) -> None:
    """Write one event; one that is not on the list is replaced by a notice of that."""
    if refused(event, fields):
        event, fields = "log.refused", {"name": event if event in EVENTS else "unknown"}
    level = getattr(logging, EVENTS[event].level.upper())
    if level >= logging.WARNING:
        _counts[event] += 1
    logging.getLogger(_NAME).log(level, {"event": event, **fields})


def _formatter(*renderers: structlog.typing.Processor) -> structlog.stdlib.ProcessorFormatter:
    import structlog  # 80 ms, of which commands that log nothing pay none

    stamp = structlog.processors.TimeStamper(fmt=SECONDS, utc=True)
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[_unfold, structlog.stdlib.add_log_level, stamp],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
    )


def _unfold(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Our records carry their event as a mapping."""
    record: logging.LogRecord = event["_record"]
    record.exc_info = record.exc_text = record.stack_info = None
    kept = {key: value for key, value in event.items() if key.startswith("_")}
    return {**record.msg, **kept} if isinstance(record.msg, dict) else kept


def _printable(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Escape control characters: names of batches are names of files."""
    return {
        key: printable(value, lines=False) if isinstance(value, str) else value
        for key, value in event.items()
    }


def _file_handler(path: Path, size: int, keep: int) -> logging.Handler:
    try:
        handler = _PrivateFile(path, maxBytes=size, backupCount=keep, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"the log cannot be written: {error.strerror}", where=f"log.path {path}"
        ) from None
    handler.setFormatter(_json())
    return handler


LEVELS = get_args(Level)


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
