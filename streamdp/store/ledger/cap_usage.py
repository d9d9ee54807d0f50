"""Usage of every cap of a scope, and its remaining room: read-only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from streamdp.database import Database
from streamdp.privacy.filters import Item, Limit, Place, fullest
from streamdp.store.ledger.charges import (
    ASSUMED,
    CUT_OFF,
    all_places,
    borne_by,
    frees,
    last_places,
    lifetime_spent,
    unplaced,
)
from streamdp.store.ledger.ledger import caps_of, declaration_of


@dataclass(frozen=True, slots=True)
class Room:
    """One cap; amounts in units of its measure.

    Args:
        limit: The cap.
        fullest_nano: The most that any stretch of its width has ever held.
        left_nano: What it has room for in the next batch.
        frees: When the next batch finds room for the price that was asked for.
    """

    limit: Limit
    fullest_nano: int
    left_nano: int
    frees: str


def rooms(database: Database, scope: str, price: Item) -> tuple[Room, ...]:
    """Every cap in force.

    Args:
        database: The store.
        scope: One that was declared.
        price: Of all releases of a batch together.
    """
    places = all_places(database, scope)
    borne = borne_by(database, scope, places)
    found = []
    for limit in caps_of(database, scope).limits:
        left, when = _next(database, limit, scope, price)
        if limit.lifetime:
            most = lifetime_spent(database, scope, limit)
        else:
            most = fullest(limit, places, borne)
        found.append(Room(limit, most, left, when))
    return tuple(found)


def most_within(database: Database, scope: str, widths: Sequence[Limit]) -> list[int]:
    """The most that any batch, or any so many in a row, have ever been charged together.

    Args:
        database: The store.
        scope: One that was declared.
        widths: Limits over batches. Charges whose batch is not written down are in each stretch of
            several.
    """
    places = all_places(database, scope)
    keys = database.execute(
        "SELECT DISTINCT batch FROM ledger WHERE job IN (?, ?) AND +scope = ? AND batch != ''",
        [ASSUMED, CUT_OFF, scope],
    )
    known = {place.key for place in places}
    unknown = [Place(key, 0, 0) for (key,) in keys if key not in known]
    borne = borne_by(database, scope, [*places, *unknown])
    found = []
    for limit in widths:
        alone = fullest(replace(limit, batches=1), unknown, borne)
        lost = sum(each.amount(limit.measure) for each in unplaced(database, limit, scope))
        found.append(max(fullest(limit, places, borne) + lost, alone))
    return found


def held_by(database: Database, scope: str, price: Item) -> tuple[tuple[str, str], ...]:
    """Caps that have no room for a price in the next batch, and when each frees.

    Args:
        database: The store.
        scope: One that was declared, or has spent nothing yet.
        price: Of a release; of a gate's run, under its row in the ledger if it is open.
    """
    if declaration_of(database, scope) is None:
        return ()
    found = (
        (limit, _next(database, limit, scope, price)[1])
        for limit in caps_of(database, scope).limits_of(price)
        if not (limit.lifetime and price.seq)
    )
    return tuple((limit.name, when) for limit, when in found if when != "now")


def _next(database: Database, limit: Limit, scope: str, price: Item) -> tuple[int, str]:
    """Room of a cap in the next batch, and the time when it has room for a price."""
    cost = price.amount(limit.measure)
    if limit.lifetime:
        left = max(limit.nano - lifetime_spent(database, scope, limit), 0)
        return left, "now" if cost <= left else "never"
    near = last_places(database, limit, scope)
    borne = borne_by(database, scope, near)
    held = {item for place in near for item in borne.get(place.key, ())}
    held.update(unplaced(database, limit, scope))
    used = sum(item.amount(limit.measure) for item in held if item.seq != price.seq)
    left = max(limit.nano - used, 0)
    return left, "now" if cost <= left else frees(database, limit, scope, cost, near)
