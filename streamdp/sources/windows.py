"""Batches cut from one stream by time: half-open windows of one length, in UTC or a time zone.

A marker is a file that another program leaves when the records of a batch are complete.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from zoneinfo import ZoneInfo

from pydantic import Field, field_validator, model_validator

from streamdp.files import resolve, skipped
from streamdp.lakes import Lake
from streamdp.objects import is_address, parsed
from streamdp.sections.section import Section
from streamdp.sections.values import Duration, Moment, PositiveDuration, TimeZone
from streamdp.types import Batch, Skipped
from streamdp.zones import first_shown, shown

DAY = 86_400


class Windows(Section):
    """Batches cut by time: half-open windows, in UTC or by the clocks of a time zone."""

    column: str = Field(
        min_length=1,
        description="Column of type date or timestamp that gives the time of a record.",
        examples=["created_at"],
    )
    every: PositiveDuration = Field(
        description="Length of a window, as a duration of at least 1m.", examples=["1d"]
    )
    start: Moment = Field(
        description="Start of the first window, an ISO date or time; UTC unless it has an offset.",
        examples=["2026-01-01"],
    )
    timezone: TimeZone = Field(
        default="UTC",
        description="Time zone whose days windows are, with `every` in whole days: a day on which"
        " clocks change has 23 or 25 hours. Timestamps without an offset are in UTC all the same;"
        " dates are days of this zone. Default UTC.",
        examples=["Europe/Berlin"],
    )
    end: Moment | None = Field(
        default=None,
        description="End of the last window, an ISO date or time. Default: windows go on.",
        examples=["2027-01-01"],
    )
    lateness: Duration = Field(
        default=0,
        description="Time after its end during which a window still takes records, as a duration."
        " Later records are in no batch. Default 0s.",
        examples=["6h"],
    )
    growing: bool = Field(
        default=False,
        strict=True,
        description="Each batch holds all records up to the window's end, for gates that renew one"
        " answer. Default false.",
    )
    marker: str | None = Field(
        default=None,
        description="Path of a file that says that a window is complete; `{key}` stands for the"
        " batch's key. Default: no marker.",
        examples=["done/{key}"],
    )

    @field_validator("marker")
    @classmethod
    def _names_its_batch(cls, value: str | None) -> str | None:
        return value if value is None else with_key(value)

    @field_validator("every")
    @classmethod
    def _not_too_short(cls, value: int) -> int:
        if value < 60:
            raise ValueError("a window is a minute or longer")
        return value

    @model_validator(mode="after")
    def _has_whole_days(self) -> Windows:
        walls = (self.start, self.every, self.end or 0)
        if self.timezone != "UTC" and any(seconds % DAY for seconds in walls):
            raise ValueError(
                "with a timezone windows are whole days: every: 1d, and start a date without a time"
            )
        return self

    @model_validator(mode="after")
    def _ends_after_it_starts(self) -> Windows:
        if self.end is not None and self.end < self.start + self.every:
            raise ValueError("between start and end there is no whole window")
        return self

    def source(self, name: str, pattern: str = "") -> WindowSource:
        """The source of a name; `pattern` is of the files that all windows are read from."""
        return WindowSource(
            name,
            self.start,
            self.every,
            self.end,
            self.lateness,
            self.marker,
            self.growing,
            pattern,
            None if self.timezone == "UTC" else ZoneInfo(self.timezone),
        )


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


KEY = "{key}"
"""Stands in a marker's path for the key of the batch."""


def is_complete(marker: str | None, key: str) -> bool:
    """Whether the marker of a batch is there; without markers each batch is complete.

    That it is there is public, as is the hour at which it came.
    """
    return marker is None or os.path.isfile(marker.replace(KEY, key))


def with_key(marker: str) -> str:
    """A configured marker in its one form.

    Raises:
        ValueError: No batch's key stands in it.
    """
    if KEY not in marker or glob.has_magic(marker):
        raise ValueError("a marker is a path with {key} in it, where the batch's key stands")
    return str(parsed(marker)) if is_address(marker) else marker


@dataclass(frozen=True, slots=True)
class LakeSource:
    """Windows over a table whose files may be rewritten: its records stay those of the window.

    Args:
        windows: Which windows there are.
        folder: Of the table.
        lake: Reader of its format.
    """

    windows: WindowSource
    folder: str
    lake: Lake

    @property
    def name(self) -> str:
        """Name of the source."""
        return self.windows.name

    @property
    def growing(self) -> bool:
        """Whether each batch holds all windows up to its own."""
        return self.windows.growing

    def batches(self, now: int) -> Iterator[Batch]:
        """Windows in order, all of one version of the table.

        Raises:
            SourceError: The table cannot be read.
        """
        files = self.lake.files_of(self.folder)
        return (replace(batch, files=files) for batch in self.windows.batches(now))
