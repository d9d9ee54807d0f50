"""Clock guard: the last time a store has seen, which tells a clock that jumped.

A clock set far forward would seal windows that are not over, and release them empty. So nothing is
sealed at a time that is further ahead of the last known one than a public limit; the time of a
refused moment is not written down, and the clock is right again as soon as it is set right. A clock
that goes back seals nothing twice: what was sealed and released follows from the store.
"""

from __future__ import annotations

from datetime import UTC, datetime

from streamdp.database import Database
from streamdp.errors import ClockError
from streamdp.store import row_checksums


def keep_time(database: Database, now: int, longest_step: int | None) -> int:
    """Write a time down; returns by how many seconds it is behind the last known one, or 0.

    Args:
        database: The store, in a transaction.
        now: POSIX time.
        longest_step: Seconds it may be ahead of the last known one; None for any.

    Raises:
        ClockError: It is further ahead.
    """
    behind = require_followed(database, now, longest_step)
    database.execute("UPDATE instance SET known_at = ?", [now + behind])
    row_checksums.update(database, "instance")
    return behind


def require_followed(database: Database, now: int, longest_step: int | None) -> int:
    """Look at a time without writing it down; returns by how many seconds it is behind, or 0.

    Raises:
        ClockError: It is further ahead of the last known one than a clock is followed.
    """
    row = database.execute("SELECT coalesce(known_at, heartbeat_at) FROM instance").fetchone()
    known = now if row[0] is None else int(row[0])
    if longest_step is not None and now - known > longest_step:
        raise ClockError(
            f"the clock shows {_text(now)}, but this store last knew {_text(known)}",
            where="store.max_clock_step",
            hint="set the clock; if it is right, `streamdp run --accept-clock` goes on from here",
        )
    return max(known - now, 0)


def _text(moment: int) -> str:
    try:
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"second {moment}"
