"""Where batches lie: by their window, by the date or number in their key, or as they arrived."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Literal

from streamdp.types import Release

Axis = Literal["time", "number", "order"]
"""What the places of some batches are: POSIX seconds, numbers of keys, or ranks."""

FIRST_YEAR, LAST_YEAR = 1900, 2199
"""Years that digits of a key may stand for."""

_DIGITS = 20
_DATE = re.compile(
    r"(?<!\d)(\d{4})(?:([-_./]?)(\d{2})(?:\2(\d{2})(?:[T _-](\d{2})(?::?(\d{2}))?)?)?"
    r"|-?W(\d{2}))(?!\d)"
)
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class BatchPlaces:
    """Where some releases lie on one axis, in their order.

    Args:
        releases: The first in place comes first.
        at: The place of each.
        axis: What places are.
        said: What they go by, in words; empty where batches have windows.
    """

    releases: tuple[Release, ...]
    at: tuple[int, ...]
    axis: Axis
    said: str = ""


def places_of(releases: Sequence[Release]) -> BatchPlaces:
    """Place the releases of one job: as ranks only where keys have neither a date nor a number.

    Batches that grow all begin as one: their ends are their places.
    """
    found = sorted(releases, key=lambda each: (_place(each), each.batch))
    begins = {each.window_start for each in found}
    if len(found) > 1 and len(begins) == 1 and None not in begins:
        found.sort(key=lambda each: each.window_end or 0)
        return BatchPlaces(tuple(found), tuple(each.window_end or 0 for each in found), "time")
    moments = [_known_moment(each) for each in found]
    if None not in moments:
        said = "" if None not in begins else "by the date in the name of each batch"
        return BatchPlaces(tuple(found), tuple(each or 0 for each in moments), "time", said)
    numbers = _numbers([each.batch for each in found])
    if numbers is not None:
        said = "by the number in the name of each batch"
        return BatchPlaces(tuple(found), numbers, "number", said)
    said = "one after the other: their names have neither a date nor a number in common"
    return BatchPlaces(tuple(found), tuple(range(len(found))), "order", said)


def moment_of(release: Release) -> int:
    """POSIX seconds at which a batch lies; when it was released, where nothing else is known."""
    known = _known_moment(release)
    return release.released_at if known is None else known


@lru_cache(maxsize=1 << 17)
def moment_of_key(key: str) -> int | None:
    """POSIX seconds of the date in a key: a time, a day, a week or a month; None without one.

    >>> moment_of_key("day-1970-01-02.csv"), moment_of_key("19700201"), moment_of_key("part-7")
    (86400, 2678400, None)
    """
    for year, _, month, day, hour, minute, week in _DATE.findall(key):
        if FIRST_YEAR <= int(year) <= LAST_YEAR:
            try:
                if week:
                    found = datetime.fromisocalendar(int(year), int(week), 1)
                else:
                    found = datetime(int(year), int(month), int(day or 1))  # noqa: DTZ001
                found += timedelta(hours=int(hour or 0), minutes=int(minute or 0))
            except ValueError:
                continue
            return int(found.replace(tzinfo=UTC).timestamp())
    return None


@lru_cache(maxsize=1 << 17)
def place_of_key(key: str, released_at: int) -> str:
    """Text in whose order batches without windows lie: dates, then numbers, then arrivals.

    >>> place_of_key("part-9", 5) < place_of_key("part-10", 4) < place_of_key("last", 3)
    True
    """
    moment = moment_of_key(key)
    if moment is not None:
        return f"0{moment + 10**11:012d}{_natural(key)}"
    if any(letter.isdigit() for letter in key):
        return f"1{_natural(key)}"
    return f"2{released_at:012d}{key}"


def add_functions(connection: sqlite3.Connection) -> None:
    """Let statements of a connection place batches by their keys."""
    connection.create_function("moment_of_key", 1, moment_of_key, deterministic=True)
    connection.create_function("place_of_key", 2, place_of_key, deterministic=True)


def _known_moment(release: Release) -> int | None:
    if release.window_start is not None:
        return release.window_start
    return moment_of_key(release.batch)


def _place(release: Release) -> tuple[int, str]:
    if release.window_start is not None:
        return (release.window_start, "")
    return (moment_of_key(release.batch) or 0, place_of_key(release.batch, release.released_at))


def _numbers(keys: Sequence[str]) -> tuple[int, ...] | None:
    """The last number of each key, where keys are alike but for it; None if they are not."""
    cut = [(key, list(_NUMBER.finditer(key))[-1:]) for key in keys]
    if not all(found for _, found in cut):
        return None
    alike = {(key[: at[0].start()], key[at[0].end() :]) for key, at in cut}
    numbers = tuple(int(at[0][0]) for _, at in cut)
    if len(alike) > 1 or len(set(numbers)) < len(numbers) or max(numbers) >= 2**53:
        return None
    return numbers


def _natural(key: str) -> str:
    """The key with its numbers as long as each other."""
    return _NUMBER.sub(lambda found: found[0].zfill(_DIGITS), key)
