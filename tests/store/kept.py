"""A store for tests of the ledger: terms of its scopes, what batches bear, and runs."""

from __future__ import annotations

from streamdp.database import Database
from streamdp.privacy.filters import Caps, Place
from streamdp.store import gates
from streamdp.store.ledger.charges import borne_by
from streamdp.store.ledger.ledger import Terms
from streamdp.store.sqlite import SqliteStore
from streamdp.types import Batch, Charge, Run


def terms(
    caps: Caps, *scopes: str, unit: str = "person", neighbours: str = "add-remove"
) -> dict[str, Terms]:
    """The same for each scope, by default for `s`."""
    return {scope: (caps, {"unit": unit, "neighbours": neighbours}) for scope in scopes or ("s",)}


def batch_spent(database: Database, batch: str) -> int:
    """Sum of the charges that a batch of scope `s` bears, runs included."""
    borne = borne_by(database, "s", [Place(batch, 0, 0)])
    return sum(item.amount("epsilon") for item in borne.get(batch, ()))


class LedgerStore(SqliteStore):
    """With the transactions of runs that a gate's store makes part of larger ones."""

    def open_run(self, scope: str, job: str, charge: Charge, now: int) -> Run:
        with self.transaction():
            return gates.open_run(self.database, scope, job, charge, now)

    def join_run(self, run: Run, batch: Batch, now: int) -> None:
        with self.transaction():
            gates.join_run(self.database, run, batch, now)

    def close_run(self, run: Run, now: int) -> None:
        with self.transaction():
            gates.close_run(self.database, run, now)

    def open_run_of(self, job: str) -> Run | None:
        return gates.open_run_of(self.database, job)
