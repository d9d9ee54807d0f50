"""Events: what was drawn, in the words of the ledger, so that a better accountant can re-read it.

An event is a JSON object with a `type`. The vocabulary only grows; an unknown type is refused.
Amounts in events are exact rationals written as text.

* `bounded-range`: one draw whose loss has range `epsilon` over outputs
  (Durfee & Rogers 2019): epsilon-DP and epsilon²/8-zCDP (Cesar & Rogers 2021).
* `pure`: anything of pure privacy loss `epsilon`: epsilon·tanh(epsilon/2)-zCDP.
* `zero-concentrated`: anything that is `rho`-zCDP and has no pure loss, such as Gaussian noise. Any
  event that holds one has none either.
* `parallel`: events on disjoint parts of a batch over which one record's weights sum to at most
  one; costs its worst.
* `choice`: one of several events, picked by looking at past releases, or as a draw goes on at what
  it has drawn so far; costs its worst in each measure, so that a sum of charges does not depend on
  releases. A bound on the sum of every way is a valid filter (Feldman & Zrnic 2021).
* `sequence`: events one after the other on the same records; costs their sum.
* `group`: an event on a unit of up to `size` records: size times its pure loss, size² times its
  zero-concentrated one (Bun & Steinke 2016, Proposition 1.9), or what its pure loss implies.
* `approximate`: what its event says, except with chance `delta` (Bun & Steinke 2016, definition
  8.1). Deltas of a sequence add up, of `parallel` and `choice` the largest counts. A `group` holds
  none: steps of one record would multiply delta by powers of e^epsilon, so a kind with a delta
  says what it costs a whole unit.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from streamdp.errors import IntegrityError
from streamdp.privacy.accountants import rho_of_epsilon
from streamdp.privacy.amounts import atto_up, nano_up
from streamdp.types import Charge, Json


def charge_of(event: Json) -> Charge:
    """An event with its price in both measures and its delta, rounded up."""
    epsilon = epsilon_of(event)
    pure = None if epsilon is None else nano_up(epsilon)
    return Charge(event, pure, nano_up(rho_of(event)), atto_up(delta_of(event)))


def bounded_range(epsilon: Fraction) -> Json:
    """One exponential-mechanism draw with loss of range `epsilon`."""
    return {"type": "bounded-range", "epsilon": str(epsilon)}


def pure(epsilon: Fraction) -> Json:
    """Anything of pure privacy loss `epsilon`."""
    return {"type": "pure", "epsilon": str(epsilon)}


def zero_concentrated(rho: Fraction) -> Json:
    """Anything of zero-concentrated loss `rho` that has no pure loss."""
    return {"type": "zero-concentrated", "rho": str(rho)}


def approximate(event: Json, delta: Fraction) -> Json:
    """What an event says, except with chance `delta`."""
    return {"type": "approximate", "delta": str(delta), "event": event}


def sequence(events: Iterable[Json], **about: Json) -> Json:
    """Events in sequence; `about` names the mechanism and its public parameters."""
    return {"type": "sequence", "events": list(events), **about}


def parallel(events: Iterable[Json], **about: Json) -> Json:
    """Events on disjoint shares of one record; `about` says what the parts are."""
    return {"type": "parallel", "events": list(events), **about}


def choice(events: Iterable[Json], **about: Json) -> Json:
    """One of several events, which one depends on past releases."""
    return {"type": "choice", "events": list(events), **about}


def group(event: Json, size: int) -> Json:
    """An event as it costs a unit that may hold `size` records of the batch.

    Raises:
        ValueError: It has a delta, which does not grow with the size of a unit.
    """
    if delta_of(event):
        raise ValueError("an event with a delta is priced for whole units, not by record")
    return {"type": "group", "size": size, "event": event}


def epsilon_of(event: Json) -> Fraction | None:
    """Pure privacy loss of an event, except with chance `delta_of` it; None where it has none.

    >>> epsilon_of(sequence([bounded_range(Fraction(1, 40))] * 4))
    Fraction(1, 10)
    """
    match event:
        case {"type": "bounded-range" | "pure", "epsilon": str(epsilon)}:
            return Fraction(epsilon)
        case {"type": "zero-concentrated", "rho": str()}:
            return None
        case {"type": "sequence", "events": [*events]}:
            parts = _pure(events)
            return None if parts is None else sum(parts, Fraction(0))
        case {"type": "parallel" | "choice", "events": [*events]}:
            parts = _pure(events)
            return None if parts is None else max(parts, default=Fraction(0))
        case {"type": "group", "size": int(size), "event": one} if size >= 1:
            epsilon_of_one = epsilon_of(one)
            return None if epsilon_of_one is None else size * epsilon_of_one
        case {"type": "approximate", "delta": str(), "event": one}:
            return epsilon_of(one)
    raise _unknown(event)


def _pure(events: Iterable[Json]) -> list[Fraction] | None:
    """Pure losses of events; None if one has none."""
    parts = [epsilon_of(each) for each in events]
    known = [part for part in parts if part is not None]
    return known if len(known) == len(parts) else None


def rho_of(event: Json) -> Fraction:
    """Zero-concentrated loss ρ of an event; a bounded-range draw has ε²/8.

    For `parallel`, a share w_v of a record moves a draw by w_v as much: its ρ is w_v² times as
    large (of a bounded-range draw (w_v ε_v)²/8), and w_v with sum at most 1 give at most the worst.

    What is ε-DP except with chance δ is a function of randomised response of ε and of a coin of
    bias δ (Kairouz, Oh & Viswanath 2015), so it is ε·tanh(ε/2)-zCDP except with chance δ.
    """
    match event:
        case {"type": "bounded-range", "epsilon": str(epsilon)}:
            return Fraction(epsilon) ** 2 / 8
        case {"type": "pure", "epsilon": str(epsilon)}:
            return rho_of_epsilon(Fraction(epsilon))
        case {"type": "zero-concentrated", "rho": str(rho)}:
            return Fraction(rho)
        case {"type": "sequence", "events": [*events]}:
            return sum((rho_of(each) for each in events), Fraction(0))
        case {"type": "parallel" | "choice", "events": [*events]}:
            return max((rho_of(each) for each in events), default=Fraction(0))
        case {"type": "group", "size": int(size), "event": one} if size >= 1:
            steps, whole = size**2 * rho_of(one), epsilon_of(event)
            return steps if whole is None else min(steps, rho_of_epsilon(whole))
        case {"type": "approximate", "delta": str(), "event": one}:
            return rho_of(one)
    raise _unknown(event)


def delta_of(event: Json) -> Fraction:
    """The chance with which an event may lose more than its epsilon or rho; 0 for most.

    >>> delta_of(sequence([approximate(pure(Fraction(1)), Fraction(1, 10**9))] * 2))
    Fraction(1, 500000000)
    """
    match event:
        case {"type": "bounded-range" | "pure", "epsilon": str()}:
            return Fraction(0)
        case {"type": "zero-concentrated", "rho": str()}:
            return Fraction(0)
        case {"type": "approximate", "delta": str(delta), "event": one}:
            return Fraction(delta) + delta_of(one)
        case {"type": "sequence", "events": [*events]}:
            return sum((delta_of(each) for each in events), Fraction(0))
        case {"type": "parallel" | "choice", "events": [*events]}:
            return max((delta_of(each) for each in events), default=Fraction(0))
        case {"type": "group", "size": int(size), "event": one} if size >= 1 and not delta_of(one):
            return Fraction(0)
    raise _unknown(event)


def _unknown(event: Json) -> IntegrityError:
    name = event.get("type") if isinstance(event, dict) else None
    return IntegrityError(
        f"the ledger holds an event of unknown type {name!r}",
        hint="it was written by a newer streamdp: install that version or a later one",
    )
