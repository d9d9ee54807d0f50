"""The question that brings texts back: which keys a batch holds, and how many units hold each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamdp.errors import ConfigurationError
from streamdp.types.questions import UnitBound

Key = tuple[str, ...]
"""One text for each column of a key."""

MOST_LONGEST = 1024
"""Bytes of one text of a key: engines compare so many without a doubt."""

NO_GROUPS: tuple[tuple[str, ...], ...] = ((),)


@dataclass(frozen=True, slots=True)
class KeyQuery:
    """How many units hold each key: of known keys all, of others those that `least` or more hold.

    A key is the texts of some columns, compared byte by byte, column by column. A record whose key
    has a text that is null, empty or longer than `longest` does not count. Without a bound each
    record is a unit of its own. With one of k, a unit counts once for each of k of its keys at
    most: those that are not known come first, then a hash of batch, unit and key decides.

    Args:
        columns: Of the key; at least one.
        known: Public keys.
        least: The fewest units of a key that is not known, 1 or more.
        longest: Bytes of one text.
        where: SQL condition on one record; where it is not true the record does not count.
        bound: Whose records belong together, and for how many keys a unit counts.

    Raises:
        ConfigurationError: A known key is listed twice, or has not one text a column.
    """

    columns: tuple[str, ...]
    known: tuple[Key, ...]
    least: int
    longest: int
    where: str | None = None
    bound: UnitBound | None = None

    def __post_init__(self) -> None:
        if not self.columns or self.least < 1 or not 1 <= self.longest <= MOST_LONGEST:
            raise ConfigurationError(
                f"keys need a column, at least one unit, and texts of 1 to {MOST_LONGEST} bytes"
            )
        if len(set(self.known)) < len(self.known):
            raise ConfigurationError("a known key is listed twice")
        if any(len(key) != len(self.columns) for key in self.known):
            raise ConfigurationError("each known key needs one text for each column")

    @property
    def by(self) -> tuple[str, ...]:
        """None: keys are found, and no public groups."""
        return ()

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The one group that holds all."""
        return NO_GROUPS


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class KeyCounts:
    """Keys and how many units hold each. Private, keys and numbers; its repr shows nothing.

    Args:
        units: Positive numbers by key; known keys that nobody holds are left out.
    """

    units: Mapping[Key, int]

    def __repr__(self) -> str:
        return "KeyCounts(<private>)"
