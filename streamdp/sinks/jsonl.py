"""A JSON-lines file: one line a release, whole or not there."""

from __future__ import annotations

import json
import os
from pathlib import Path

from streamdp.disk import sync
from streamdp.errors import SinkError
from streamdp.sinks.record import record
from streamdp.types import Release


class JsonLinesSink:
    """Appends a line and waits for the disk; each release has one line.

    The file is read once, when the first release comes: half a line that a crash left at its end
    is cut off, and the releases already there are not written again.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self._path = path
        self._known: set[str] | None = None

    def deliver(self, release: Release) -> None:
        """Append one line.

        Raises:
            SinkError: The file cannot be written, or holds a line of other hands.
        """
        try:
            if self._known is None:
                self._known = self._open()
            if release.id not in self._known:
                self._append(release)
                self._known.add(release.id)
        except (OSError, ValueError, KeyError) as error:
            self._known = None
            raise SinkError(
                f"sink {self.name} cannot write: {type(error).__name__}",
                where=str(self._path),
                hint="look at free space and permissions, and that each line is one release",
                sink=self.name,
            ) from None

    def _open(self) -> set[str]:
        if not self._path.exists():
            return set()
        whole = self._path.read_bytes()
        end = whole.rfind(b"\n") + 1
        if end < len(whole):
            os.truncate(self._path, end)
        return {json.loads(line)["release_id"] for line in whole[:end].splitlines()}

    def _append(self, release: Release) -> None:
        line = (json.dumps(record(release)) + "\n").encode()
        new = not self._path.exists()
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            if os.write(file, line) != len(line):
                raise OSError("the line was cut")
            os.fsync(file)
        finally:
            os.close(file)
        if new:
            sync(self._path.parent)
