"""Pages of releases and of the ledger: read-only, found by an index, never a whole table.

Batches are in the order of their source: of its windows, or of the dates or numbers in its keys.
Releases of a job are those of all its names.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from streamdp.database import Database
from streamdp.privacy.filters import Measure
from streamdp.store.archive import DELTA_OF_RELEASE, RHO_OF_RELEASE
from streamdp.store.ledger.renames import NAMED, all_names
from streamdp.store.release_rows import OF_RELEASE, ROWS_OF_RELEASE, columns_from
from streamdp.types import Json, Release

_ORDER = "coalesce(b.window_start, 0)"
_RELEASE = (
    "SELECT r.id, r.job, r.source, r.batch, b.window_start, b.window_end, r.kind,"
    f" r.epsilon_nano, {RHO_OF_RELEASE} AS rho_nano, {DELTA_OF_RELEASE} AS delta_atto,"
    f" r.released_at, {ROWS_OF_RELEASE} AS rows, {OF_RELEASE} AS columns"
)
_RELEASED = (
    f"{_RELEASE} FROM batch b CROSS JOIN release r ON r.source = b.source AND r.batch = b.key"
)
_OF_JOB = f"r.job {NAMED}"
_MOMENT = "coalesce(b.window_start, moment_of_key(b.key), r.released_at)"
_WITHIN = (
    f"b.source = :source AND (:since IS NULL OR {_MOMENT} >= :since)"
    f" AND (:until IS NULL OR {_MOMENT} < :until)"
)


@dataclass(frozen=True, slots=True)
class WindowRange:
    """Windows that begin at `since` or later, and before `until`; None for no end.

    A batch without a window lies at the date in its key, or when it was released.
    """

    since: int | None = None
    until: int | None = None


EVERYTHING = WindowRange()


@dataclass(frozen=True, slots=True)
class Missed:
    """A batch whose release was burnt or refused."""

    batch: str
    window_start: int | None
    at: int
    what: Literal["burn", "refuse"]


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """Answer of a gate on a batch, at the end of its slot."""

    batch: str
    window_start: int | None
    window_end: int | None
    slot: int
    accepted: bool


def newest_releases(
    database: Database,
    job: str,
    limit: int,
    stretch: WindowRange = EVERYTHING,
    before: str | None = None,
) -> tuple[Release, ...]:
    """Releases of a job, the last batch first.

    Args:
        database: The store.
        job: Whose.
        limit: At most so many.
        stretch: Of windows.
        before: Id of a release: only of batches before its own.
    """
    about = _about(database, job, stretch)
    order = _order(database, about["source"])
    if before is not None:
        place = database.execute(
            f"SELECT {order}, b.key FROM release r"  # noqa: S608
            " JOIN batch b ON b.source = r.source AND b.key = r.batch WHERE r.id = ?",
            [before],
        ).fetchone()
        if place is None:
            return ()
        about |= {"order": place[0], "key": place[1]}
    behind = "" if before is None else f" AND ({order}, b.key) < (:order, :key)"
    rows = database.query(
        f"{_RELEASED} AND {_OF_JOB} WHERE {_WITHIN}{behind}"
        f" ORDER BY {order} DESC, b.key DESC LIMIT :limit",
        {**about, "limit": limit},
    )
    return tuple(map(_release, rows))


def newest_moment(database: Database, job: str, stretch: WindowRange = EVERYTHING) -> int | None:
    """Where the last release of a job in a stretch lies in time; None if there is none."""
    about = _about(database, job, stretch)
    (windows,) = database.execute(
        "SELECT EXISTS (SELECT 1 FROM batch WHERE source = :source AND window_start NOT NULL)",
        {"source": about["source"]},
    ).fetchone()
    order = f"{_ORDER if windows else _MOMENT} DESC, b.key DESC"
    found = database.execute(
        f"SELECT {_MOMENT} FROM batch b CROSS JOIN release r"  # noqa: S608
        f" ON r.source = b.source AND r.batch = b.key AND {_OF_JOB}"
        f" WHERE {_WITHIN} ORDER BY {order} LIMIT 1",
        about,
    ).fetchone()
    return None if found is None else int(found[0])


def sampled_releases(
    database: Database, job: str, most: int, stretch: WindowRange = EVERYTHING
) -> tuple[tuple[Release, ...], int]:
    """Releases of a job in the order of batches, and of how many each is one.

    Where there are more than `most`, every second, third… is taken, the last one always.
    """
    about = _about(database, job, stretch)
    order = _order(database, about["source"])
    ids = database.execute(
        "SELECT r.rowid FROM batch b CROSS JOIN release r"  # noqa: S608
        f" ON r.source = b.source AND r.batch = b.key AND {_OF_JOB}"
        f" WHERE {_WITHIN} ORDER BY {order} DESC, b.key DESC",
        about,
    ).fetchall()
    every = -(-len(ids) // most) or 1
    found = _by_rowid(database, [rowid for (rowid,) in ids[::every]])
    return found[::-1], every


def find_by_id(database: Database, release_id: str) -> Release | None:
    """The release with an id, whatever its job."""
    row = next(database.query(f"{_RELEASED} AND r.id = ?", [release_id]), None)
    return _release(row) if row else None


def count_releases(database: Database, job: str) -> int:
    """How many releases a job has made, under whatever name."""
    counted = f"SELECT count(*) FROM release r WHERE {_OF_JOB}"  # noqa: S608
    return int(database.execute(counted, {"names": all_names(database, job)}).fetchone()[0])


def missed_batches(database: Database, job: str, limit: int) -> tuple[Missed, ...]:
    """The last batches of a job that were charged in vain or refused by a cap, newest first."""
    rows = database.execute(
        "SELECT l.batch, b.window_start, l.at, l.purpose FROM ledger l"
        " LEFT JOIN batch b ON b.source = l.scope AND b.key = l.batch"
        " WHERE l.job = ? AND l.purpose IN ('burn', 'refuse') ORDER BY l.seq DESC LIMIT ?",
        [job, limit],
    )
    return tuple(Missed(*row) for row in rows)


def gate_answers(database: Database, gate: str, now: int, limit: int) -> tuple[GateAnswer, ...]:
    """The last answers of a gate whose slots are over, newest first."""
    rows = database.execute(
        "SELECT a.batch, b.window_start, b.window_end, a.slot, a.accepted FROM gate_answer a"
        " JOIN batch b ON b.source = a.source AND b.key = a.batch"
        " WHERE a.gate = ? AND a.slot <= ? ORDER BY a.slot DESC, a.batch DESC LIMIT ?",
        [gate, now, limit],
    )
    return tuple(GateAnswer(key, at, end, slot, bool(yes)) for key, at, end, slot, yes in rows)


def ledger_page(
    database: Database,
    limit: int,
    before: int | None = None,
    scope: str | None = None,
    job: str | None = None,
    purpose: str | None = None,
) -> list[dict[str, Json]]:
    """Rows of the ledger, newest first, all if `limit` is -1; events without their parameters."""
    wanted = {"scope": scope, "job": job, "purpose": purpose}
    conditions = [f"{name} = :{name}" for name, value in wanted.items() if value is not None]
    if before is not None:
        conditions.append("seq < :before")
    return list(
        database.query(
            "SELECT seq, at, purpose, scope, job, batch, reservation, epsilon_nano, rho_nano,"  # noqa: S608
            " delta_atto, release_id, lifetime_spent_nano, lifetime_rho_nano, lifetime_delta_atto,"
            " lifetime_cap_nano,"
            " event ->> 'what' AS decided,"
            " coalesce(event ->> 'operator', event ->> 'by') AS by, event ->> 'reason' AS reason,"
            " event ->> 'cap' AS cap, lower(hex(hash)) AS hash FROM ledger"
            f" WHERE {' AND '.join(conditions) or 'true'} ORDER BY seq DESC LIMIT :limit",
            {**wanted, "before": before, "limit": limit},
        )
    )


@dataclass(frozen=True, slots=True)
class ScopeSpending:
    """What a scope has spent, up to each batch in their order.

    Args:
        points: Place of a batch, and the sum spent on it and on all before it; the first is what
            was spent on no batch that is known, at the place of the first.
        cap: Over the lifetime, now.
        dated: Whether places are POSIX seconds of batches; else they are rows of the ledger.
    """

    points: tuple[tuple[int, int], ...]
    cap: int
    dated: bool


def spending(
    database: Database, scope: str, most: int, measure: Measure = "epsilon"
) -> ScopeSpending | None:
    """What a scope has spent by its batches: where they lie, not when each was charged.

    A backfill charges many batches at once. Batches nearer to each other than one in `most` parts
    of the axis are one step, so no sum is lost. None where nothing was charged.
    """
    spent, amount = "lifetime_spent_nano", "epsilon_nano"
    if measure == "rho":
        spent, amount = "lifetime_rho_nano", "rho_nano"
    last = database.execute(
        f"SELECT coalesce({spent}, 0), lifetime_cap_nano FROM ledger WHERE scope = ?"  # noqa: S608
        " ORDER BY seq DESC LIMIT 1",
        [scope],
    ).fetchone()
    charged = database.execute(
        f"SELECT coalesce(b.window_start, moment_of_key(l.batch)) AS place, min(l.seq),"  # noqa: S608
        f" sum(coalesce(l.{amount}, 0)) FROM ledger l"
        " LEFT JOIN batch b ON b.source = l.scope AND b.key = l.batch"
        " WHERE l.scope = ? AND l.purpose = 'reserve' GROUP BY l.batch",
        [scope],
    ).fetchall()
    if last is None or not charged:
        return None
    dated = all(place is not None for place, _, _ in charged)
    placed = sorted((place if dated else seq, nano) for place, seq, nano in charged)
    found = [(placed[0][0], max(last[0] - sum(nano for _, nano in placed), 0))]
    stretch = max(placed[-1][0] - placed[0][0], 1) / most
    for place, nano in placed:
        if len(found) > 1 and place - found[-2][0] < stretch:
            found[-1] = (place, found[-1][1] + nano)
        else:
            found.append((place, found[-1][1] + nano))
    return ScopeSpending(tuple(found), last[1], dated)


def _order(database: Database, source: str | None) -> str:
    """What batches of a source are ordered by: an index, wherever that order is the right one.

    Keys of one length that are alike up to a digit are in order as texts.
    """
    windows, least, most, first, last = database.execute(
        "SELECT EXISTS (SELECT 1 FROM batch WHERE source = :source AND window_start NOT NULL),"
        " min(length(key)), max(length(key)), min(key), max(key) FROM batch"
        " WHERE source = :source AND NOT EXISTS"
        " (SELECT 1 FROM batch WHERE source = :source AND window_start NOT NULL)",
        {"source": source},
    ).fetchone()
    if windows or first == last or first is None:
        return _ORDER
    differ = next((pair for pair in zip(first, last, strict=False) if pair[0] != pair[1]), ("", ""))
    if least == most and all(map(str.isdigit, differ)):
        return _ORDER
    return "place_of_key(b.key, r.released_at)"


def _about(database: Database, job: str, stretch: WindowRange) -> dict[str, Any]:
    """Parameters of a query; the source is that of a job's releases, which it never changes."""
    names = all_names(database, job)
    found = f"SELECT r.source FROM release r WHERE {_OF_JOB} LIMIT 1"  # noqa: S608
    row = database.execute(found, {"names": names}).fetchone()
    source = row[0] if row else None
    return {"names": names, "source": source, "since": stretch.since, "until": stretch.until}


def _by_rowid(database: Database, ids: Sequence[int]) -> tuple[Release, ...]:
    rows = database.query(
        f"{_RELEASE} FROM json_each(?) e"
        " JOIN release r ON r.rowid = e.value"
        " JOIN batch b ON b.source = r.source AND b.key = r.batch ORDER BY e.key",
        [json.dumps(ids)],
    )
    return tuple(map(_release, rows))


def _release(row: dict[str, Any]) -> Release:
    rows: list[Json] = json.loads(row["rows"])
    return Release(**{**row, "rows": tuple(rows), "columns": columns_from(row["columns"])})


def ledger_of(database: Database, release: Release) -> list[dict[str, Any]]:
    """The rows of the ledger about a release: its charge, and the commit."""
    columns = "SELECT seq, purpose, reservation, at, lower(hex(hash)) AS hash FROM ledger WHERE"
    committed = list(
        database.query(
            f"{columns} purpose = 'commit' AND job = ? AND release_id = ?",
            [release.job, release.id],
        )
    )
    charge = committed[0]["reservation"] if committed else None
    return [*database.query(f"{columns} seq = ?", [charge]), *committed]
