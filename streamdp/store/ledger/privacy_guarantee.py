"""What the ledger lets a person claim, of a release and of a scope: read-only."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

from sqlite_utils import Database

from streamdp.privacy.accountants import epsilon_of_rho
from streamdp.privacy.accountants_pld import Draw, draws_of, epsilon_of_draws, installed
from streamdp.privacy.amounts import epsilon_text
from streamdp.store.ledger.ledger import declaration_of
from streamdp.store.ledger.recompute import recompute
from streamdp.types import Json

LEFT_OUT = frozenset(
    {"type", "events", "size", "event", "epsilon", "prior", "drawn"}
    | {"branching", "node", "restriction", "level_power", "log_bump_mass"}
)
"""Of an event: how it is put together, what changes with every release, how a tree is tuned. All
else are public facts whose change over time a statement tells."""


_CHOSEN = """
    SELECT EXISTS (SELECT 1 FROM ledger WHERE scope = ? AND purpose = 'open')
        OR EXISTS (
            SELECT 1 FROM ledger WHERE scope = ? AND purpose = 'reserve'
            GROUP BY job, epsilon_nano HAVING COUNT(DISTINCT rho_nano) > 1
        )
"""
"""Whether charges of a scope may have been chosen by what was released before."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What all charges of a scope cost, in nano units of epsilon at one delta.

    Args:
        pure: Without delta: the sum.
        zcdp: By zero-concentrated accounting.
        distributions: By privacy loss distributions; None where no library computes them.
        adaptive: Whether releases chose charges: only the sum then holds of what was spent. A sum
            of other measures that stopped where it did is no bound, unless a cap stopped it. A
            gate chooses; and where a job paid the same epsilon at several rho, so may have what
            it released before (each draw now books the worst way it may take).
    """

    pure: int
    zcdp: int
    distributions: int | None
    adaptive: bool

    @property
    def best(self) -> tuple[str, int]:
        """The smallest bound, and what it is by; each is valid."""
        found = {"sum": self.pure}
        if not self.adaptive:
            found["zero-concentrated"] = self.zcdp
        if not self.adaptive and self.distributions is not None:
            found["loss distributions"] = self.distributions
        return min(found.items(), key=lambda item: item[1])


def loss_of(database: Database, scope: str, delta: Fraction) -> Loss:
    """All that one scope has ever been charged, runs and burnt charges included.

    Raises:
        IntegrityError: The ledger holds an event that this streamdp does not know.
    """
    epsilon, rho, draws = 0, 0, Counter[Draw]()
    for charge in recompute(database):
        if charge.scope == scope:
            epsilon += charge.epsilon_nano
            rho += max(charge.rho_nano, charge.rho_now)
            draws.update(draws_of(charge.event))
    by_draws = epsilon_of_draws(draws, delta) if installed() else None
    (adaptive,) = database.execute(_CHOSEN, [scope, scope]).fetchone()
    return Loss(epsilon, epsilon_of_rho(rho, delta), by_draws, bool(adaptive))


def claim_of(database: Database, release_id: str) -> Json:
    """What a release promises, in the terms that held when it was made."""
    row = database.execute(
        "SELECT c.scope, r.epsilon_nano, c.batch_cap_nano, c.lifetime_cap_nano"
        " FROM ledger c JOIN ledger r ON r.seq = c.reservation WHERE c.release_id = ?",
        [release_id],
    ).fetchone()
    if row is None:
        return None
    scope, *amounts = row
    meaning = declaration_of(database, scope) or {}
    epsilon, batch, lifetime = map(epsilon_text, amounts)
    return {
        "definition": "pure differential privacy",
        "unit": meaning.get("unit"),
        "neighbours": meaning.get("neighbours"),
        "epsilon": epsilon,
        "batch_cap": batch,
        "lifetime_cap": lifetime,
    }


def parameters_over_time(database: Database, job: str) -> list[Json]:
    """What was asked of the data and on which grid, a row each time it changed."""
    found: list[Json] = []
    rows = database.execute(
        "SELECT seq, batch, event FROM ledger WHERE job = ? AND purpose IN ('reserve', 'open')"
        " ORDER BY seq",
        [job],
    )
    for seq, batch, text in rows:
        event = json.loads(text)
        while event.get("type") == "group":
            event = event["event"]
        said = {name: each for name, each in event.items() if name not in LEFT_OUT}
        if not found or {name: found[-1].get(name) for name in said} != said:
            found.append({"since_batch": batch, "ledger_row": seq, **said})
    return found
