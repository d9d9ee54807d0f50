"""Clocks on the wall of a time zone: which zones there are, and when a clock shows a time."""

from __future__ import annotations

import difflib
import functools
import zoneinfo
from datetime import UTC, datetime
from zoneinfo import ZoneInfo


@functools.cache
def zones() -> tuple[str, ...]:
    """Names of all time zones that this system knows."""
    return tuple(sorted(zoneinfo.available_timezones()))


def known_zone(name: str) -> str:
    """The name of a time zone.

    Raises:
        ValueError: There is no such zone; the nearest name is said.
    """
    if name not in zones():
        near = difflib.get_close_matches(name, zones(), n=1)
        meant = f"did you mean {near[0]!r}?" if near else "a name like Europe/Berlin"
        raise ValueError(f"this time zone is not known: {meant}")
    return name


@functools.cache
def offsets(name: str) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Seconds by which clocks of a zone are ahead of UTC: first, and from each moment of change on.

    Years before 1900 have the first, years from 2100 on the last.

    >>> offsets("UTC"), offsets("Europe/Berlin")[1][-1]
    ((0, ()), (4096573200, 3600))
    """
    zone, moves = ZoneInfo(name), list[tuple[int, int]]()
    moment, last = _FIRST, _ahead(_FIRST, zone)
    first = last
    while moment < _LAST:
        behind = min(moment + _STRIDE, _LAST)
        if (ahead := _ahead(behind, zone)) != last:
            moves.append((_gap(moment, behind, zone), ahead))
            last = ahead
        moment = behind
    return first, tuple(moves)


_FIRST, _LAST = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (1900, 2100))

_STRIDE = 86_400
"""Seconds; clocks are not changed twice in this time."""


def _ahead(moment: int, zone: ZoneInfo) -> int:
    offset = datetime.fromtimestamp(moment, zone).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


def shown(moment: int, zone: ZoneInfo) -> int:
    """Local time of a moment, as seconds of a clock that is never changed."""
    wall = datetime.fromtimestamp(moment, zone).replace(tzinfo=UTC)
    return int(wall.timestamp())


def first_shown(wall: datetime, zone: ZoneInfo) -> int:
    """The moment at which a clock on the wall first shows a time, or has passed over it."""
    early, late = (int(wall.replace(tzinfo=zone, fold=fold).timestamp()) for fold in (0, 1))
    if early <= late:
        return early
    shown_late = datetime.fromtimestamp(late, zone)
    return _gap(late, int(shown_late.timestamp()) + (early - late), zone)


def _gap(before: int, behind: int, zone: ZoneInfo) -> int:
    """The first moment after a change of clocks between two moments."""
    offset = datetime.fromtimestamp(before, zone).utcoffset()
    while behind - before > 1:
        middle = (before + behind) // 2
        same = datetime.fromtimestamp(middle, zone).utcoffset() == offset
        before, behind = (middle, behind) if same else (before, middle)
    return behind
