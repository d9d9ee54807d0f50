"""What a release costs a unit, from the events of its draws."""

from __future__ import annotations

from streamdp.privacy.amounts import nano_up
from streamdp.privacy.events import epsilon_of, group, rho_of, sequence
from streamdp.types import Charge, Json


def charge_of_unit(event: Json, rows: int, bought: Json = None) -> Charge:
    """What draws cost a unit that has at most so many records.

    Args:
        event: Of what is drawn of records, a sequence or parallel events.
        rows: The most records of a unit.
        bought: Of what is drawn beside it, at a price that holds whatever a unit changes.
    """
    if bought is not None:
        draws = {name: event[name] for name in ("type", "events")}
        about = {name: event[name] for name in event if name not in draws}
        event = sequence([draws if rows == 1 else group(draws, rows), bought], **about)
    elif rows > 1:
        event = group(event, rows)
    return Charge(event, nano_up(epsilon_of(event)), nano_up(rho_of(event)))
