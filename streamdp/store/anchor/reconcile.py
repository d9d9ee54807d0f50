"""Bind a store to its anchor again, by an operator's decision, kept in the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from streamdp.database import Database
from streamdp.errors import IntegrityError, StoreError
from streamdp.store import row_checksums
from streamdp.store.anchor.anchor import Anchor
from streamdp.store.anchor.check import Difference, difference, state_of
from streamdp.store.anchor.lines import SHARED, State
from streamdp.store.database import connect, transaction
from streamdp.store.gates import end_open_runs
from streamdp.store.ledger import ledger, source_binding
from streamdp.store.ledger.budgets import Terms
from streamdp.store.ledger.charges import ASSUMED
from streamdp.store.schema.migrations import migrate
from streamdp.store.verified_open import assume_joined, assume_spent, verify
from streamdp.types import Batch, Json


def reconcile(
    path: Path,
    anchor_path: Path,
    terms: Mapping[str, Terms],
    data: Mapping[str, Json],
    about: Json,
    now: int,
) -> Difference:
    """Charge what the anchor knows and the ledger does not, and go on from there.

    A store that is gone is made anew, with these charges alone.

    Args:
        path: The store.
        anchor_path: Its anchor.
        terms: Of scopes that the ledger may not know.
        data: What each of them reads: what is charged belongs to it, whatever it is called later.
        about: Who decides, and why.
        now: POSIX time.

    Raises:
        StoreError: They agree, or one of them cannot be used.
        IntegrityError: One of them is damaged or another's, or a scope is not configured.
    """
    with closing(Anchor.open(anchor_path)) as anchor, writing(path, now) as database:
        require_own(database, anchor)
        base = state_of(database)
        if anchor.last is None or base == anchor.last.target:
            raise StoreError("ledger and anchor agree: there is nothing to reconcile")
        found = difference(database, anchor_path)
        charged = {"by": "reconcile", **about}
        for scope in dict.fromkeys(spent.scope for spent in found.missing):
            if ledger.declaration_of(database, scope) is None:
                bind_scope(database, scope, terms, data, now)
        shared = 0
        for spent in found.missing:
            if spent.joined == SHARED:
                batch = Batch(spent.scope, spent.batch, spent.start, spent.end)
                assume_joined(database, shared, batch, now)
            else:
                shared = assume_spent(database, spent, ASSUMED, charged, now)
        ledger.note(database, {"what": "reconciled", **_facts(found), **about}, now)
        end_open_runs(database, now)
        target = next_epoch(database, anchor.last.target.epoch)
        again = [each._replace(joined=0) for each in found.missing if each.joined == 1]
        anchor.rebind(base, target, (*found.unknown, *again))
    return found


@contextmanager
def writing(path: Path, now: int, *, create: bool = True) -> Iterator[Database]:
    """A transaction on a store that is sound but not opened for work."""
    database = connect(path, create=create)
    try:
        migrate(database, now)
        with transaction(database):
            verify(database)
            yield database
    finally:
        database.close()


def require_own(database: Database, anchor: Anchor) -> None:
    """Refuse another store's anchor; an empty store takes the identity of the lost one.

    Raises:
        IntegrityError: It is another's.
    """
    if state_of(database).seq == 0 and anchor.store_id is not None:
        database.execute("UPDATE instance SET store_id = ?", [anchor.store_id])
    (store_id,) = database.execute("SELECT store_id FROM instance").fetchone()
    if store_id != anchor.store_id:
        raise IntegrityError("this anchor belongs to another store", where=str(anchor.path))


def bind_scope(
    database: Database, scope: str, terms: Mapping[str, Terms], data: Mapping[str, Json], now: int
) -> None:
    """Give a source that the ledger does not know its caps and its data.

    Raises:
        IntegrityError: It is not configured.
    """
    if scope not in terms:
        raise IntegrityError(
            f"the anchor knows charges of {scope}, which is not configured",
            where=f"sources.{scope}",
            hint="bring this source back into the configuration, and reconcile again",
        )
    caps, said = terms[scope]
    ledger.set_caps(database, scope, caps, {**said, "by": "reconcile"}, now)
    source_binding.write(database, scope, data[scope], {"by": "reconcile"}, now)


def next_epoch(database: Database, known: int) -> State:
    """Begin an epoch behind all that store and anchor know; the state of the store then."""
    database.execute("UPDATE instance SET epoch = max(epoch, ?) + 1, anchored = 1", [known])
    row_checksums.update(database, "instance")
    return state_of(database)


def _facts(found: Difference) -> Json:
    return {
        "ledger_seq": found.ledger_seq,
        "anchor_seq": found.anchor.seq,
        "common_seq": found.common,
        "charges": len(found.missing),
    }
