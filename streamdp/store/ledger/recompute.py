"""Recompute the cost of the ledger's events by today's accountants: read-only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from streamdp.database import Database
from streamdp.privacy.events import charge_of
from streamdp.store.ledger.events import Events
from streamdp.types import Charge, Json

_PRIOR = re.compile('"prior": ?"[0-9a-f]{64}"')


@dataclass(frozen=True, slots=True)
class Recomputed:
    """One charge as it was booked and as it would be booked now, in the units of the ledger."""

    seq: int
    scope: str
    event: Json
    epsilon_nano: int | None
    rho_nano: int
    delta_atto: int
    epsilon_now: int | None
    rho_now: int
    delta_now: int

    @property
    def differs(self) -> bool:
        """Whether today's accountants price it unlike the ledger."""
        booked = self.epsilon_nano, self.rho_nano, self.delta_atto
        return booked != (self.epsilon_now, self.rho_now, self.delta_now)

    @property
    def falls(self) -> bool:
        """Whether all that changed is that its zero-concentrated loss is proven to be less."""
        same = self.epsilon_nano == self.epsilon_now and self.delta_atto == self.delta_now
        return same and self.rho_nano >= self.rho_now


def recompute(database: Database) -> Iterator[Recomputed]:
    """Every charge, oldest first; equal events are priced once, and are one object.

    Which prior was used, of which an event holds the digest, changes no price.

    Raises:
        IntegrityError: An event is of a type that this streamdp does not know.
    """
    rows = database.execute(
        "SELECT seq, scope, event, epsilon_nano, rho_nano, delta_atto FROM ledger"
        " WHERE purpose IN ('reserve', 'open') ORDER BY seq"
    )
    known: dict[str, Charge] = {}
    events = Events(database)
    for seq, scope, stored, epsilon, rho, delta in rows:
        text = events.whole(stored)
        asked = _PRIOR.sub("", text)
        now = known.get(asked)
        if now is None:
            now = known[asked] = charge_of(json.loads(text))
        yield Recomputed(
            *(seq, scope, now.event, epsilon, rho, delta),
            *(now.epsilon_nano, now.rho_nano, now.delta_atto),
        )
