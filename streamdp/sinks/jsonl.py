"""JSON lines: appended to a file, in which each release has one line, or to standard output."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import Field

from streamdp.disk import PRIVATE, lock, open_file, sync
from streamdp.errors import SinkError
from streamdp.sections.values import FileMode
from streamdp.sinks.columns import record
from streamdp.sinks.section import SinkContext, SinkSection, Written
from streamdp.types import Release


class JsonLinesSinkSection(SinkSection):
    """A file with one JSON object a line."""

    kind: Literal["jsonl"] = Field(description="`jsonl`: a file with one JSON object a line.")
    path: Path = Field(
        description="File to append to, relative to the configuration. It is created if missing.",
        examples=["releases.jsonl"],
    )
    mode: FileMode = Field(
        default=0o600,
        description="Permissions of the file when it is created, in octal. Default 0600.",
        examples=["0644"],
    )

    def sink(self, name: str, context: SinkContext) -> JsonLinesSink:
        """The sink, in a file of its own."""
        return JsonLinesSink(name, self.path, self.mode)

    def written(self) -> Written:
        """The file."""
        path = os.path.realpath(self.path)
        return Written("path", path, path)


PATIENCE, _PAUSE = 10.0, 0.01
"""Seconds that another process may take for a line before the delivery is tried later, and between
tries."""


class JsonLinesSink:
    """Appends a line and waits for the disk; each release has one line.

    The file is locked while a line is looked for and appended, and read again if another process
    wrote to it, so that two daemons leave one line too. Half a line at its end is written to its
    end if it is the beginning of the line to be written, which a crash or a full disk left there.
    A file with any other content is left as it is, and refused.

    Args:
        name: Of the sink.
        path: Of the file; made if it is not there.
        mode: Of a file that is made.
    """

    def __init__(self, name: str, path: Path, mode: int = PRIVATE) -> None:
        self.name = name
        self._path, self._mode = path, mode
        self._known: set[str] = set()
        self._half = b""
        self._size = 0

    def deliver(self, release: Release) -> None:
        """Append one line.

        Raises:
            SinkError: The file cannot be written, or holds what this sink did not write.
        """
        line = (json.dumps(record(release)) + "\n").encode()
        try:
            with self._locked() as file:
                if os.fstat(file).st_size != self._size:
                    self._read(file)
                if release.id in self._known:
                    return
                if not line.startswith(self._half):
                    raise self._foreign("its last line has no end, and is not of this release")
                rest = line.removeprefix(self._half)
                if os.write(file, rest) != len(rest):
                    raise OSError("the line was cut")
                os.fsync(file)
                self._known.add(release.id)
                self._half = b""
                self._size = os.fstat(file).st_size
        except OSError as error:
            self._size = -1
            raise SinkError(
                f"sink {self.name} cannot write: {error.strerror or type(error).__name__}",
                where=str(self._path),
                hint="look at free space and permissions",
                sink=self.name,
            ) from None

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The file, made if it is not there, for one process at a time."""
        new = not self._path.exists()
        file = open_file(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, self._mode)
        try:
            if new:
                os.fchmod(file, self._mode)
                sync(self._path.parent)
            try:
                lock(file, PATIENCE, _PAUSE)
            except BlockingIOError:
                told = "another process has locked the file"
                raise OSError(errno.EAGAIN, told) from None
            yield file
        finally:
            os.close(file)

    def _read(self, file: int) -> None:
        """Learn which releases are there, and half a line at the end if there is one."""
        with os.fdopen(os.dup(file), "rb") as content:
            content.seek(0)
            text = content.read()
        *lines, self._half = text.split(b"\n")
        self._known = {self._id_in(line, number) for number, line in enumerate(lines, start=1)}
        self._size = len(text)

    def _id_in(self, line: bytes, number: int) -> str:
        try:
            return str(json.loads(line)["release_id"])
        except (ValueError, TypeError, KeyError, RecursionError):
            raise self._foreign(f"line {number} is no release") from None

    def _foreign(self, what: str) -> SinkError:
        self._size = -1
        return SinkError(
            f"sink {self.name} leaves this file as it is: {what}",
            where=str(self._path),
            hint="give the sink a file of its own",
            sink=self.name,
        )


class StandardOutputSinkSection(SinkSection):
    """Standard output, one JSON object a line."""

    kind: Literal["stdout"] = Field(
        description="`stdout`: standard output, one JSON object a line."
    )

    def sink(self, name: str, context: SinkContext) -> StandardOutputSink:
        """The sink."""
        return StandardOutputSink(name)


class StandardOutputSink:
    """Prints a line a delivery; its reader must drop lines with a release id it has seen."""

    def __init__(self, name: str) -> None:
        self.name = name

    def deliver(self, release: Release) -> None:
        """Print one line.

        Raises:
            SinkError: Nobody reads any more.
        """
        try:
            print(json.dumps(record(release)), file=sys.stdout, flush=True)
        except (OSError, ValueError):
            raise SinkError(
                f"sink {self.name} cannot write: standard output is closed or full",
                hint="let something read it, or take the sink out",
                sink=self.name,
            ) from None
