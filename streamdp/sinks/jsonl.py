"""A JSON-lines file: one line a release, whole or not there."""

from __future__ import annotations

import json
import os
from pathlib import Path

from streamdp.disk import PRIVATE, open_file, sync
from streamdp.errors import SinkError
from streamdp.sinks.record import record
from streamdp.types import Release


class JsonLinesSink:
    """Appends a line and waits for the disk; each release has one line.

    The file is read once, when the first release comes. Half a line at its end is written to its
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
        self._known: set[str] | None = None
        self._half = b""

    def deliver(self, release: Release) -> None:
        """Append one line.

        Raises:
            SinkError: The file cannot be written, or holds what this sink did not write.
        """
        line = (json.dumps(record(release)) + "\n").encode()
        try:
            if self._known is None:
                self._known, self._half = self._read()
            if release.id in self._known:
                return
            if not line.startswith(self._half):
                raise self._foreign("its last line has no end, and is not of this release")
            self._append(line.removeprefix(self._half))
            self._known.add(release.id)
            self._half = b""
        except OSError as error:
            self._known = None
            raise SinkError(
                f"sink {self.name} cannot write: {error.strerror or type(error).__name__}",
                where=str(self._path),
                hint="look at free space and permissions",
                sink=self.name,
            ) from None

    def _read(self) -> tuple[set[str], bytes]:
        """Ids of the releases that are there, and half a line at the end if there is one."""
        try:
            with os.fdopen(open_file(self._path, os.O_RDONLY), "rb") as file:
                *lines, half = file.read().split(b"\n")
        except FileNotFoundError:
            return set(), b""
        return {self._id_in(line, number) for number, line in enumerate(lines, start=1)}, half

    def _id_in(self, line: bytes, number: int) -> str:
        try:
            return str(json.loads(line)["release_id"])
        except (ValueError, TypeError, KeyError, RecursionError):
            raise self._foreign(f"line {number} is no release") from None

    def _foreign(self, what: str) -> SinkError:
        self._known = None
        return SinkError(
            f"sink {self.name} leaves this file as it is: {what}",
            where=str(self._path),
            hint="give the sink a file of its own",
            sink=self.name,
        )

    def _append(self, line: bytes) -> None:
        new = not self._path.exists()
        file = open_file(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, self._mode)
        try:
            if new:
                os.fchmod(file, self._mode)
            if os.write(file, line) != len(line):
                raise OSError("the line was cut")
            os.fsync(file)
        finally:
            os.close(file)
        if new:
            sync(self._path.parent)
