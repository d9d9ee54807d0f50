"""Charges of the batches of a scope, and whether every cap has room for one more.

The order of batches is that of their source: by window, files by name. A batch is in it once it
was written down, whatever was spent on it. A later arrival between two others only moves them
apart, so a stretch that was within its cap stays within.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from streamdp.database import Database
from streamdp.errors import BudgetExhaustedError, IntegrityError
from streamdp.privacy.amounts import NO_DELTA, NO_PURE_LOSS, UNBOUNDED, delta_text, number_text
from streamdp.privacy.filters import (
    NO_DELTA_LIMIT,
    Borne,
    Caps,
    Item,
    Limit,
    Place,
    full_since,
    fullest,
)
from streamdp.store.ledger.chain import spent_of
from streamdp.types import Batch

CHARGES = (
    "(SELECT j.scope, r.job, j.batch, r.seq, r.epsilon_nano, r.rho_nano, r.delta_atto FROM ledger j"
    " JOIN ledger r ON r.seq = coalesce(j.reservation, j.seq)"
    " WHERE j.purpose IN ('reserve', 'join'))"
)
"""Rows of charge and batch, all of a charge with its `seq`.

A run has one for each batch it joined, a window of batches one for each of them.

The purposes are those of the index of batches, in its words: SQLite uses it for no others.
"""

ASSUMED, CUT_OFF = "(assumed)", "(cut off)"
"""Jobs of charges whose job is not known: what was reconciled, and what a crash cut off."""

_PLACE = (
    "SELECT key, coalesce(window_start, arrived_at), coalesce(window_end, arrived_at)"
    " FROM batch WHERE source = :source"
)


def require_room(
    database: Database, caps: Caps, job: str, batch: Batch, item: Item, *, new: bool
) -> None:
    """Refuse a charge that does not fit under every cap.

    Args:
        database: The store.
        caps: Of the scope, which is the source of the batch.
        job: Who asks.
        batch: What it is for.
        item: The charge.
        new: False for a run that was counted over the lifetime when it was opened.

    Raises:
        BudgetExhaustedError: A cap refuses.
    """
    scope, what = batch.source, f"{job} for {batch.key}"
    for limit in caps.limits_of(item):
        cost = item.amount(limit.measure)
        if limit.lifetime:
            if new:
                _require_lifetime(database, limit, scope, cost, what)
            continue
        near = neighbours(database, limit, batch)
        borne = borne_by(database, scope, near)
        borne = {**borne, batch.key: [*borne.get(batch.key, ()), *unplaced(database, limit, scope)]}
        if fullest(limit, near, borne, batch.key, item) > limit.nano:
            used = fullest(limit, near, borne, batch.key)
            here = next(place for place in near if place.key == batch.key)
            if any(place.start >= here.end and place.key in borne for place in near):
                near = last_places(database, limit, scope)
            raise _exhausted(
                limit, used, cost, what, scope, frees(database, limit, scope, cost, near)
            )


def require_lifetime(database: Database, caps: Caps, scope: str, job: str, item: Item) -> None:
    """Refuse a run that a cap over the lifetime has no room for.

    Raises:
        BudgetExhaustedError: A cap refuses.
    """
    for limit in caps.limits_of(item):
        if limit.lifetime:
            cost = item.amount(limit.measure)
            _require_lifetime(database, limit, scope, cost, f"a run of {job}")


def _require_lifetime(database: Database, limit: Limit, scope: str, cost: int, what: str) -> None:
    used = lifetime_spent(database, scope, limit)
    if used + cost > limit.nano:
        raise _exhausted(limit, used, cost, what, scope, "never")


def lifetime_spent(database: Database, scope: str, limit: Limit) -> int:
    """Sum of all charges of a scope, in the measure of a limit."""
    return spent_of(database, scope, limit.measure)


def borne_by(database: Database, scope: str, places: Iterable[Place]) -> Borne:
    """The charges of some batches."""
    borne: dict[str, list[Item]] = {}
    rows = database.execute(
        f"SELECT batch, seq, epsilon_nano, rho_nano, delta_atto FROM {CHARGES}"  # noqa: S608
        " WHERE scope = ? AND batch IN (SELECT value FROM json_each(?))",
        [scope, json.dumps([place.key for place in places])],
    )
    for key, *item in rows:
        borne.setdefault(key, []).append(Item(*item))
    return borne


def unplaced(database: Database, limit: Limit, scope: str) -> list[Item]:
    """Charges assumed for batches that are not written down: they might be in any stretch.

    But not in that of one batch alone, which has a key.
    """
    if limit.batches == 1:
        return []
    rows = database.execute(
        "SELECT DISTINCT r.seq, r.epsilon_nano, r.rho_nano, r.delta_atto FROM ledger l"
        " JOIN ledger r ON r.seq = coalesce(l.reservation, l.seq)"
        " WHERE l.job IN (:assumed, :cut_off) AND l.purpose IN ('reserve', 'join')"
        " AND +l.scope = :scope AND l.batch != '' AND NOT EXISTS"
        " (SELECT 1 FROM batch b WHERE b.source = :scope AND b.key = l.batch)",
        {"scope": scope, "assumed": ASSUMED, "cut_off": CUT_OFF},
    )
    return [Item(*row) for row in rows]


def neighbours(database: Database, limit: Limit, batch: Batch) -> list[Place]:
    """A batch and all that share a stretch of a limit with it, in the order of their source."""
    about: dict[str, str | int] = {"source": batch.source, "key": batch.key}
    found = database.execute(f"{_PLACE} AND key = :key", about).fetchone()
    here = Place(*found) if found else Place(batch.key, batch.start or 0, batch.end or 0)
    if limit.seconds is not None:
        about |= {"since": here.start - limit.seconds, "until": here.end + limit.seconds}
        rows = database.execute(
            f"{_PLACE} AND key != :key AND coalesce(window_end, arrived_at) > :since"
            " AND coalesce(window_start, arrived_at) < :until",
            about,
        )
        return [here, *(Place(*row) for row in rows)]
    about |= {"start": batch.start or 0, "number": (limit.batches or 1) - 1}
    before, after = (
        database.execute(
            f"{_PLACE} AND coalesce(window_start, 0) {side}= :start"
            f" AND (coalesce(window_start, 0), key) {side} (:start, :key)"
            f" ORDER BY coalesce(window_start, 0) {way}, key {way} LIMIT :number",
            about,
        ).fetchall()
        for side, way in (("<", "DESC"), (">", "ASC"))
    )
    return [Place(*row) for row in (*before[::-1], (here.key, here.start, here.end), *after)]


def last_places(database: Database, limit: Limit, source: str) -> list[Place]:
    """The last batches of a source: all that share a stretch of a limit with the next one."""
    about = {"source": source, "width": limit.seconds, "number": (limit.batches or 0) - 1}
    rows = database.execute(
        f"{_PLACE} AND (:width IS NULL OR coalesce(window_end, arrived_at) + :width >"  # noqa: S608
        " (SELECT max(coalesce(window_end, arrived_at)) FROM batch WHERE source = :source))"
        " ORDER BY coalesce(window_start, 0) DESC, key DESC LIMIT :number",
        about,
    ).fetchall()
    return [Place(*row) for row in reversed(rows)]


def all_places(database: Database, source: str) -> list[Place]:
    """All batches of a source, in order."""
    rows = database.execute(
        f"{_PLACE} ORDER BY coalesce(window_start, 0), key", {"source": source}
    ).fetchall()
    return [Place(*row) for row in rows]


def frees(database: Database, limit: Limit, scope: str, cost: int, near: Sequence[Place]) -> str:
    """When a batch behind some places finds room for a cost, in words."""
    cost += sum(item.amount(limit.measure) for item in unplaced(database, limit, scope))
    if cost > limit.nano or limit.lifetime:
        return "never"
    gone = full_since(limit, near, borne_by(database, scope, near), cost)
    if gone is None or limit.batches == 1:
        return "with the next batch"
    if limit.seconds is None:
        return f"{limit.batches} batches after {gone.key}"
    moment = datetime.fromtimestamp(gone.end + limit.seconds, UTC)
    return f"from {moment.strftime('%Y-%m-%dT%H:%M:%SZ')} on"


def _exhausted(
    limit: Limit, used: int, cost: int, what: str, scope: str, when: str
) -> BudgetExhaustedError:
    """A refusal that says what is left, hence what would fit, and when it frees."""
    left = max(limit.nano - used, 0)
    if cost >= UNBOUNDED:
        return BudgetExhaustedError(
            f"the {limit.name} cap of {scope} is in pure epsilon, and {what} has no pure loss: it"
            " is paid in rho",
            hint=NO_PURE_LOSS,
            cap=limit.name,
            measure=limit.measure,
            left_nano=left,
            frees="never",
        )
    if limit == NO_DELTA_LIMIT:
        return BudgetExhaustedError(
            f"the caps of {scope} have no delta, and {what} costs a delta of {delta_text(cost)}",
            hint=NO_DELTA,
            cap=limit.name,
            measure=limit.measure,
            left_nano=left,
            frees="never",
        )
    hint = "`streamdp budget` shows what was spent; `streamdp cap` changes a cap"
    if when != "never":
        hint = f"it has room for as much {when}; {hint}"
    return BudgetExhaustedError(
        f"the {limit.name} cap of {scope} has {number_text(left, limit.measure)} of"
        f" {number_text(limit.nano, limit.measure)} {limit.measure} left, {what} costs"
        f" {number_text(cost, limit.measure)}",
        hint=hint,
        cap=limit.name,
        measure=limit.measure,
        left_nano=left,
        frees=when,
    )


def require_own_source(scope: str, batch: Batch) -> None:
    """Refuse a scope of another source: stretches are counted in the order of one.

    Raises:
        IntegrityError: The batch is of another source.
    """
    if batch.source != scope:
        raise IntegrityError(f"a batch of {batch.source} cannot be charged to {scope}")
