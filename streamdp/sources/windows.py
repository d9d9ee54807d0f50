"""Batches cut from one stream by time: half-open UTC windows of one length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from streamdp.files import resolve
from streamdp.sources.markers import is_complete
from streamdp.types import Batch

DAY = 86_400


@dataclass(frozen=True, slots=True)
class WindowSource:
    """Windows [start + k·length, start + (k+1)·length), whether or not they hold records.

    Which windows there are follows from the configuration and the clock alone: a window that is
    missing because nobody was there would tell that nobody was there.

    Args:
        name: Of the source.
        start: First second of the first window (POSIX time).
        length: Seconds in a window.
        end: Second after the last window, or None if the stream goes on.
        lateness: Seconds after its end in which a window still fills; a record that comes later is
            in no batch.
        marker: Path with `{key}` of the file that says that a window is complete, or None.
        growing: Whether a batch holds all windows up to its own.
        pattern: Path or glob of the files that all batches are read from; empty for a database.
    """

    name: str
    start: int
    length: int
    end: int | None = None
    lateness: int = 0
    marker: str | None = None
    growing: bool = False
    pattern: str = ""

    def batches(self, now: int) -> Iterator[Batch]:
        """Windows that ended `lateness` seconds ago or earlier and are complete, in order."""
        files = resolve(self.pattern) if self.pattern else ()
        stop = now - self.lateness if self.end is None else min(now - self.lateness, self.end)
        for start in range(self.start, stop - self.length + 1, self.length):
            key = self._key(start)
            if is_complete(self.marker, key):
                begin = self.start if self.growing else start
                yield Batch(self.name, key, begin, start + self.length, files=files)

    def _key(self, start: int) -> str:
        moment = datetime.fromtimestamp(start, UTC)
        whole_days = self.start % DAY == 0 and self.length % DAY == 0
        return moment.strftime("%Y-%m-%d" if whole_days else "%Y-%m-%dT%H:%M:%SZ")
