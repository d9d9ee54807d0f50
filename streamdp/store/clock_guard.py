"""Clock guard: the last time a store has seen, which tells a clock that jumped.

A clock set far forward would seal windows that are not over, and release them empty. So nothing is
sealed at a time that is further ahead of the last known one than a public limit; the time of a
refused moment is not written down, and the clock is right again as soon as it is set right. A clock
that goes back seals nothing twice: what was sealed and released follows from the store.

A clock that was ahead, and was accepted, is set right by accepting it again: files that arrived
meanwhile are dated back, and windows that were released ahead stay released and are not paid for
again.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

from streamdp.database import Database
from streamdp.errors import ClockError
from streamdp.store import row_checksums
from streamdp.store.ledger import ledger
from streamdp.store.ledger.renames import NAMED, all_names

TOLERANCE = 60
"""Seconds that a clock may go back unremarked."""


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


def require_not_behind(database: Database, now: int) -> None:
    """Refuse a clock that has gone back: what is dated by it counts as done by then.

    Raises:
        ClockError: It is behind the last known time by more than `TOLERANCE`.
    """
    behind = require_followed(database, now, None)
    if behind > TOLERANCE:
        raise ClockError(
            f"the clock is behind the last time this store knew, {_text(now + behind)}",
            where="store.max_clock_step",
            hint="set the clock; if it is right and was ahead before, `streamdp run --accept-clock`"
            " goes on from here. No batch that was released is released or paid for again",
        )


def require_not_ahead(database: Database, task: str, source: str, now: int) -> None:
    """Refuse a release or gate that was done with windows that have not ended.

    Raises:
        ClockError: It was, by a clock that was ahead.
    """
    windows = (
        "SELECT max(b.window_end) FROM batch b WHERE b.source = :source"
        " AND coalesce(b.window_end, b.arrived_at) > :now AND b.window_end > :now AND"
    )
    about = {"source": source, "now": now + TOLERANCE, "names": all_names(database, task)}
    (last,) = database.execute(
        f"{windows} (EXISTS (SELECT 1 FROM release r WHERE r.source = b.source"  # noqa: S608
        f" AND r.batch = b.key AND r.job {NAMED})"
        " OR EXISTS (SELECT 1 FROM gate_answer a WHERE a.source = b.source AND a.batch = b.key"
        f" AND a.gate {NAMED}))",
        about,
    ).fetchone()
    if last is not None:
        raise ClockError(
            f"windows of {task} until {_text(last)} were released or tested while the clock was"
            " ahead, before their records came: none of them is new",
            where="store.max_clock_step",
            hint="they stay as they are and are not paid for again. A release under another name"
            " asks about them once they end, at its own price and within the caps",
        )


def accept(database: Database, now: int, by: str) -> None:
    """Take the clock for right, by an operator's decision, whichever way it has gone.

    Files that arrived while the clock was ahead are dated back by as much as it was, so that caps
    over time count them beside those that come now; and what waits for a sink waits no longer.

    Raises:
        ClockError: It shows a time before the one from which an earlier jump ahead was accepted.
    """
    behind = require_followed(database, now, None)
    if behind:
        _require_since_jump(database, now)
        _date_back(database, now, behind)
    database.execute("UPDATE instance SET known_at = ?, heartbeat_at = ?", [now, now])
    row_checksums.update(database, "instance")
    ledger.note(database, {"what": "clock accepted", "by": by, "behind": behind}, now)


def _date_back(database: Database, now: int, behind: int) -> None:
    late = database.execute("SELECT source, key FROM batch WHERE arrived_at > ?", [now]).fetchall()
    for source, key in late:
        database.execute(
            "UPDATE batch SET arrived_at = max(arrived_at - ?, 0) WHERE source = ? AND key = ?",
            [behind, source, key],
        )
        row_checksums.update(database, "batch", source=source, key=key)
    waiting = database.execute(
        "SELECT seq FROM outbox WHERE delivered_at IS NULL AND next_at > ?", [now]
    ).fetchall()
    for (seq,) in waiting:
        database.execute("UPDATE outbox SET next_at = ? WHERE seq = ?", [now, seq])
        row_checksums.update(database, "outbox", seq=seq)


def _require_since_jump(database: Database, now: int) -> None:
    """Refuse a time at which the store was known to be past already, when its clock was right."""
    rows = database.execute("SELECT seq, at, event FROM ledger WHERE purpose = 'note' ORDER BY seq")
    for seq, at, event in rows:
        if json.loads(event).get("what") != "clock accepted" or at <= now:
            continue
        (before,) = database.execute(
            "SELECT coalesce(max(at), 0) FROM ledger WHERE seq < ?", [seq]
        ).fetchone()
        if now < before:
            raise ClockError(
                f"the clock shows {_text(now)}, but this store had known {_text(before)} before the"
                " clock was ahead",
                where="store.max_clock_step",
                hint="set the clock",
            )
        return


def _text(moment: int) -> str:
    try:
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"second {moment}"


def known_at(database: Database) -> int | None:
    """The last time that a store has seen, by a clock that was followed (POSIX time)."""
    (known,) = database.execute("SELECT known_at FROM instance").fetchone()
    return None if known is None else int(known)


_AGE = (
    "SELECT max(coalesce(known_at, 0), coalesce(heartbeat_at, 0),"
    " coalesce((SELECT max(at) FROM ledger), 0)) FROM instance"
)


def written_at(database: Database) -> int:
    """When a store of any schema was last written (POSIX time); 0 where it does not say."""
    names = {row[1] for row in database.execute("PRAGMA table_info(instance)")}
    sql = _AGE if "known_at" in names else _AGE.replace("coalesce(known_at, 0)", "0")
    return int(database.execute(sql).fetchone()[0])
