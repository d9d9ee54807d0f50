"""Privacy guarantee that the ledger proves, of a release and of a scope: read-only.

`recompute` finds the cost of the ledger's events by today's accountants.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from streamdp.database import Database
from streamdp.errors import ConfigurationError
from streamdp.privacy.accountants import epsilon_of_rho
from streamdp.privacy.accountants_pld import Draw, draws_of, epsilon_of_draws, installed
from streamdp.privacy.amounts import ATTO, UNBOUNDED, delta_text, epsilon_text
from streamdp.privacy.events import charge_of
from streamdp.privacy.filters import Caps
from streamdp.store.ledger.chain import WHOLE_OR_REPEATED, Events
from streamdp.store.ledger.ledger import caps_of, declaration_of
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


LEFT_OUT = frozenset(
    {"type", "events", "size", "event", "epsilon", "rho", "delta", "prior", "drawn"}
    | {"branching", "node", "restriction", "level_power", "log_bump_mass", "spread", "stages"}
)
"""Keys of an event that no statement tells: how it is put together, what changes with every
release, how a tree is tuned. All else are public facts whose change over time a statement tells."""


PURE, CONCENTRATED = "pure differential privacy", "zero-concentrated differential privacy"


def definition(*, pure: bool, delta: bool) -> str:
    """The definition of privacy that losses with or without a delta have."""
    said = PURE if pure else CONCENTRATED
    return f"{said}, except with chance delta" if delta else said


_CHOSEN = f"""
    SELECT EXISTS (SELECT 1 FROM ledger WHERE scope = :scope AND purpose = 'open')
        OR EXISTS (SELECT 1 FROM ledger WHERE scope = :scope AND delta_atto > 0) AND EXISTS (
            SELECT 1 FROM ledger l WHERE scope = :scope AND purpose = 'reserve'
            AND delta_atto = 0 AND instr({WHOLE_OR_REPEATED}, '"by": [') > 0
        )
        OR EXISTS (
            SELECT 1 FROM ledger l WHERE scope = :scope AND purpose = 'reserve'
            AND epsilon_nano IS NOT NULL
            AND instr({WHOLE_OR_REPEATED}, '"type": "choice"') = 0
            AND instr({WHOLE_OR_REPEATED}, '"mechanism": "histograms"') = 0
            GROUP BY job, epsilon_nano HAVING COUNT(DISTINCT rho_nano) > 1
        )
"""  # noqa: S608
"""Whether charges of a scope may have been chosen by what was released before. A `choice` books the
worst of its ways, and histograms have one, so that these cost something else only where an operator
or another version says so. Groups beside keys with a delta may be those that keys found: while none
are known nothing is charged, and which batches those are is what releases say."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Price of all charges of a scope, in nano units of epsilon at one delta.

    Args:
        pure: Without delta: the sum; None where a charge has no pure loss.
        zcdp: By zero-concentrated accounting.
        distributions: By privacy loss distributions; None where no library computes them, or a
            charge has no pure loss.
        cap: What the lifetime cap allows, if it is in rho and was kept.
        delta_atto: The sum of the deltas of all charges, in units of 1e-18. Each figure holds at
            the delta that was asked for, and leaves so much of it to the charges.
        adaptive: Whether releases chose charges: only the sum then holds of what was spent. A sum
            of other measures that stopped where it did is no bound, unless a cap stopped it. A
            gate chooses, and keys choose whether their groups are released; and where a job paid
            the same epsilon at several rho, so may have what it released before (each draw now
            books the worst way it may take).
    """

    pure: int | None
    zcdp: int
    distributions: int | None
    cap: int | None
    adaptive: bool
    delta_atto: int = 0

    @property
    def best(self) -> tuple[str, int]:
        """The smallest bound, and what it is by; each is valid. `UNBOUNDED` if there is none."""
        found = {"sum": UNBOUNDED if self.pure is None else self.pure}
        if self.cap is not None:
            found["lifetime cap"] = self.cap
        if not self.adaptive:
            found["zero-concentrated"] = self.zcdp
        if not self.adaptive and self.distributions is not None:
            found["loss distributions"] = self.distributions
        return min(found.items(), key=lambda item: item[1])


def loss_of(database: Database, scope: str, delta: Fraction) -> Loss:
    """All that one scope has ever been charged, runs and burnt charges included.

    Raises:
        ConfigurationError: The charges have spent such a delta alone.
        IntegrityError: The ledger holds an event that this streamdp does not know.
    """
    epsilon, rho, spent, is_pure = 0, 0, 0, True
    events: dict[int, list[Json]] = {}
    for charge in recompute(database):
        if charge.scope != scope:
            continue
        rho += max(charge.rho_nano, charge.rho_now)
        spent += max(charge.delta_atto, charge.delta_now)
        if charge.epsilon_nano is None or charge.epsilon_now is None:
            is_pure = False
        else:
            epsilon += charge.epsilon_nano
            events.setdefault(id(charge.event), []).append(charge.event)
    rest = delta - Fraction(spent, ATTO)
    if rest <= 0:
        raise ConfigurationError(
            f"releases of {scope} have spent a delta of {delta_text(spent)}: at {float(delta):g}"
            " there is no epsilon",
            hint="ask for a larger delta: twice what was spent, say",
        )
    draws = Counter[Draw]()
    for equal in events.values() if is_pure else ():
        draws.update({draw: times * len(equal) for draw, times in draws_of(equal[0]).items()})
    by_draws = epsilon_of_draws(draws, rest) if is_pure and installed() else None
    (adaptive,) = database.execute(_CHOSEN, {"scope": scope}).fetchone()
    pure = epsilon if is_pure else None
    of_cap = _of_cap(caps_of(database, scope), rho, spent, delta)
    return Loss(pure, epsilon_of_rho(rho, rest), by_draws, of_cap, bool(adaptive), spent)


def _of_cap(caps: Caps, rho: int, spent: int, delta: Fraction) -> int | None:
    """Epsilon at a delta of what the caps over the lifetime admit, if in rho and kept."""
    most = min(limit.nano for limit in caps.deltas if limit.lifetime)
    rest = delta - Fraction(most, ATTO)
    kept = caps.measure == "rho" and rho <= caps.lifetime_nano and spent <= most
    return epsilon_of_rho(caps.lifetime_nano, rest) if kept and rest > 0 else None


def claim_of(database: Database, release_id: str) -> Json:
    """Guarantee of a release, in the terms that held when it was made."""
    row = database.execute(
        "SELECT c.scope, r.epsilon_nano, r.rho_nano, r.delta_atto, c.batch_cap_nano,"
        " c.lifetime_cap_nano,"
        " (SELECT event ->> 'measure' FROM ledger m WHERE +m.scope = c.scope AND m.purpose = 'cap'"
        "  AND m.job IS NULL AND m.seq < c.seq ORDER BY m.seq DESC LIMIT 1)"
        " FROM ledger c JOIN ledger r ON r.seq = c.reservation WHERE c.release_id = ?",
        [release_id],
    ).fetchone()
    if row is None:
        return None
    scope, epsilon, rho, delta, batch, lifetime, measure = row
    meaning = declaration_of(database, scope) or {}
    pure = epsilon is not None
    return {
        "definition": definition(pure=pure, delta=bool(delta)),
        "unit": meaning.get("unit"),
        "neighbours": meaning.get("neighbours"),
        **({"epsilon": epsilon_text(epsilon)} if pure else {"rho": epsilon_text(rho)}),
        **({"delta": delta_text(delta)} if delta else {}),
        **({"caps_in": measure} if measure else {}),
        "batch_cap": epsilon_text(batch),
        "lifetime_cap": epsilon_text(lifetime),
    }


def parameters_over_time(database: Database, job: str) -> list[Json]:
    """Questions to the data and their grids, a row each time they changed."""
    found: list[Json] = []
    rows = database.execute(
        "SELECT seq, batch, event FROM ledger WHERE job = ? AND purpose IN ('reserve', 'open')"
        " ORDER BY seq",
        [job],
    )
    events = Events(database)
    for seq, batch, text in rows:
        event = json.loads(events.whole(text))
        while event.get("type") == "group":
            event = event["event"]
        said = {name: each for name, each in event.items() if name not in LEFT_OUT}
        if not found or {name: found[-1].get(name) for name in said} != said:
            found.append({"since_batch": batch, "ledger_row": seq, **said})
    return found
