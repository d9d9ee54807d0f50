"""structlog set up: JSON lines in a rotated file, readable lines on the terminal.

Tracebacks are never written: structlog's would print local variables, which hold private counts.
"""

from __future__ import annotations

import logging
import os
import sys
from collections import Counter
from contextlib import suppress
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Literal

import structlog
from structlog.typing import EventDict, WrappedLogger

from streamdp.disk import keep_private, open_file
from streamdp.errors import ConfigurationError
from streamdp.log.events import EVENTS, Level, refused
from streamdp.text import printable
from streamdp.types import Log

_NAME = "streamdp"

SECONDS = "%Y-%m-%dT%H:%M:%SZ"
"""Form of the time of a line: from its fractions one could read how long a batch took to scan."""

_counts: Counter[str] = Counter()

Console = Literal["text", "json", "off"]


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
        console: What standard error gets: readable lines, JSON lines, or nothing.

    Raises:
        ConfigurationError: The file cannot be written.
    """
    handlers: list[logging.Handler] = [logging.NullHandler()]
    if path is not None:
        handlers.append(_file_handler(path, size, keep))
    if console != "off" and sys.stderr is not None:
        stream = logging.StreamHandler(sys.stderr)
        stream.setFormatter(
            _formatter(structlog.processors.JSONRenderer()) if console == "json" else _text()
        )
        handlers.append(stream)
    close()
    logger = logging.getLogger(_NAME)
    logger.handlers, logger.propagate = handlers, False
    logger.setLevel(level.upper())
    return _say


def _text() -> structlog.stdlib.ProcessorFormatter:
    """Readable lines, in colours on a terminal."""
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
    handler.setFormatter(_formatter(structlog.processors.JSONRenderer()))
    return handler
