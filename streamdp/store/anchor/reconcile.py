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
from streamdp.store.anchor.lines import State
from streamdp.store.database import connect, transaction
from streamdp.store.gates import end_open_runs
from streamdp.store.ledger import ledger, source_binding
from streamdp.store.ledger.budgets import Terms
from streamdp.store.ledger.charges import ASSUMED
from streamdp.store.schema.migrations import migrate
from streamdp.store.verified_open import assume_spent, begin_anchor, verify
from streamdp.types import Json


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
    with closing(Anchor.open(anchor_path)) as anchor, _writing(path, now) as database:
        _require_own(database, anchor)
        base = state_of(database)
        if anchor.last is None or base == anchor.last.target:
            raise StoreError("ledger and anchor agree: there is nothing to reconcile")
        found = difference(database, anchor_path)
        charged = {"by": "reconcile", **about}
        for scope in dict.fromkeys(spent.scope for spent in found.missing):
            if ledger.declaration_of(database, scope) is None:
                _bind(database, scope, terms, data, now)
        for spent in found.missing:
            assume_spent(database, spent, ASSUMED, charged, now)
        ledger.note(database, {"what": "reconciled", **_facts(found), **about}, now)
        end_open_runs(database, now)
        target = _next_epoch(database, anchor.last.target.epoch)
        again = [each._replace(joined=0) for each in found.missing if each.joined]
        anchor.rebind(base, target, (*found.unknown, *again))
    return found


def adopt(path: Path, anchor_path: Path, about: Json, now: int) -> None:
    """Go on with a new anchor, or with one that is older than the store.

    Raises:
        StoreError: They agree, or one of them cannot be used.
        IntegrityError: The anchor knows of charges that the ledger does not, or is another's.
    """
    with (
        _writing(path, now, create=False) as database,
        closing(_anchor_to_adopt(anchor_path, now)) as anchor,
    ):
        base, new = state_of(database), anchor.last is None
        last = begin_anchor(database, anchor)
        _require_own(database, anchor)
        if base == last.target and not new:
            raise StoreError("ledger and anchor agree: there is nothing to adopt")
        if (found := difference(database, anchor_path)).missing:
            raise IntegrityError(
                "this anchor knows of charges that the ledger does not",
                where=str(anchor_path),
                hint="`streamdp reconcile --assume-spent` charges them",
            )
        ledger.note(database, {"what": "anchor adopted", **about}, now)
        end_open_runs(database, now)
        anchor.rebind(base, _next_epoch(database, last.target.epoch), found.unknown)


@contextmanager
def _writing(path: Path, now: int, *, create: bool = True) -> Iterator[Database]:
    """A transaction on a store that is sound but not opened for work."""
    database = connect(path, create=create)
    try:
        migrate(database, now)
        with transaction(database):
            verify(database)
            yield database
    finally:
        database.close()


def _anchor_to_adopt(path: Path, now: int) -> Anchor:
    """The existing anchor; a damaged one is moved aside."""
    try:
        return Anchor.open(path, create=True)
    except IntegrityError:
        path.rename(path.with_name(f"{path.name}.damaged-{now}"))
        return Anchor.open(path, create=True)


def _require_own(database: Database, anchor: Anchor) -> None:
    """Refuse another store's anchor; an empty store takes the identity of the lost one.

    Raises:
        IntegrityError: It is another's.
    """
    if state_of(database).seq == 0 and anchor.store_id is not None:
        database.execute("UPDATE instance SET store_id = ?", [anchor.store_id])
    (store_id,) = database.execute("SELECT store_id FROM instance").fetchone()
    if store_id != anchor.store_id:
        raise IntegrityError("this anchor belongs to another store", where=str(anchor.path))


def _bind(
    database: Database, scope: str, terms: Mapping[str, Terms], data: Mapping[str, Json], now: int
) -> None:
    if scope not in terms:
        raise IntegrityError(
            f"the anchor knows charges of {scope}, which is not configured",
            where=f"sources.{scope}",
            hint="bring this source back into the configuration, and reconcile again",
        )
    caps, said = terms[scope]
    ledger.set_caps(database, scope, caps, {**said, "by": "reconcile"}, now)
    source_binding.write(database, scope, data[scope], {"by": "reconcile"}, now)


def _next_epoch(database: Database, known: int) -> State:
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
