"""Batches cut from one stream by time: half-open windows of one length, in UTC or a time zone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from zoneinfo import ZoneInfo

from streamdp.files import resolve, skipped
from streamdp.sources.markers import is_complete
from streamdp.types import Batch, Skipped
from streamdp.zones import first_shown, shown

DAY = 86_400


@dataclass(frozen=True, slots=True)
class WindowSource:
    """Windows [start + k·length, start + (k+1)·length), whether or not they hold records.

    Which windows there are follows from the configuration and the clock alone: a window that is
    missing because nobody was there would tell that nobody was there.

    In a time zone the borders are the moments at which its clocks first show these times, or pass
    over them: days of 23 or 25 hours where clocks change. A day that a zone left out is no window,
    so windows follow each other without a gap and share no moment.

    Args:
        name: Of the source.
        start: First second of the first window (POSIX time; in a time zone, what clocks show).
        length: Seconds in a window; in a time zone whole days.
        end: Second after the last window, or None if the stream goes on.
        lateness: Seconds after its end in which a window still fills; a record that comes later is
            in no batch.
        marker: Path with `{key}` of the file that says that a window is complete, or None.
        growing: Whether a batch holds all windows up to its own.
        pattern: Path or glob of the files that all batches are read from; empty for a database.
        zone: Whose clocks count, or None for UTC.
    """

    name: str
    start: int
    length: int
    end: int | None = None
    lateness: int = 0
    marker: str | None = None
    growing: bool = False
    pattern: str = ""
    zone: ZoneInfo | None = None

    def batches(self, now: int) -> Iterator[Batch]:
        """Windows that ended `lateness` seconds ago or earlier and are complete, in order."""
        files = resolve(self.pattern) if self.pattern else ()
        first = self._moment(self.start)
        for wall, start, end in self._windows(now - self.lateness):
            key = self._key(wall)
            if is_complete(self.marker, key):
                begin = first if self.growing else start
                clocks = self.zone and (shown(begin, self.zone), shown(end, self.zone))
                yield Batch(self.name, key, begin, end, files=files, wall=clocks or None)

    def skipped(self) -> tuple[Skipped, ...]:
        """Reasons for which names of the pattern are not read, one for each name.

        Privacy: the names are not said. Keys of windows are public, names of files in them are not:
        one may be that of a person.
        """
        return tuple(Skipped("", why) for _, why in skipped(self.pattern)) if self.pattern else ()

    def _windows(self, stop: int) -> Iterator[tuple[int, int, int]]:
        """Windows that have ended: local begin, first second, and second after the last."""
        start = self._moment(self.start)
        for wall in count(self.start, self.length):
            end = self._moment(wall + self.length)
            if end > stop or (self.end is not None and wall + self.length > self.end):
                return
            if start < end:
                yield wall, start, end
            start = end

    def _moment(self, wall: int) -> int:
        """POSIX time of what clocks show."""
        if self.zone is None:
            return wall
        return first_shown(datetime.fromtimestamp(wall, UTC).replace(tzinfo=None), self.zone)

    def _key(self, wall: int) -> str:
        moment = datetime.fromtimestamp(wall, UTC)
        whole_days = self.start % DAY == 0 and self.length % DAY == 0
        return moment.strftime("%Y-%m-%d" if whole_days else "%Y-%m-%dT%H:%M:%SZ")
