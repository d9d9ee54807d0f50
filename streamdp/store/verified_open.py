"""Open a store for work, verified: sound, unaltered, no copy, and bound to its anchor."""

from __future__ import annotations

import sqlite3
from contextlib import closing, nullcontext
from fractions import Fraction
from pathlib import Path

from streamdp.database import Database
from streamdp.errors import IntegrityError, LockedError
from streamdp.privacy.amounts import ATTO, NANO
from streamdp.privacy.events import approximate, pure, zero_concentrated
from streamdp.store import archive, row_checksums
from streamdp.store.anchor import (
    RECONCILE,
    SHARED,
    Anchor,
    AnchorLine,
    Spending,
    StoreState,
    charges_after,
    difference,
    history,
    missing,
    read,
    refusal,
    start_of,
    state_of,
)
from streamdp.store.database import connect, require_sound, transaction, translate
from streamdp.store.ledger import chain, ledger
from streamdp.store.ledger.charges import ASSUMED, CUT_OFF
from streamdp.store.migrations import (
    is_current,
    migrate,
    require_known,
    require_schema,
)
from streamdp.types import Batch, Charge, Json, Reservation


def open_store(path: Path, anchor_path: Path, now: int) -> tuple[Database, Anchor]:
    """Migrate, verify, and take a new epoch that the anchor knows of.

    Raises:
        StoreError: Store or anchor cannot be used.
        LockedError: Another process writes to the anchor right now.
        IntegrityError: One of the two is damaged, altered or newer than this streamdp, or they
            do not belong together.
    """
    require_store(path, anchor_path)
    database, anchor = connect(path), None
    try:
        migrate(database, now)
        with transaction(database):
            anchor = hold_anchor(database, anchor_path)
            verify(database)
            begun = _begin_epoch(database, anchor, now)
        with transaction(database):
            if state_of(database).epoch != begun.epoch:
                raise taken_over()
            anchor.confirm(begun)
    except BaseException as error:
        database.close()
        if anchor is not None:
            anchor.close()
        if isinstance(error, sqlite3.Error):
            raise translate(error, path) from None
        raise
    return database, anchor


def require_store(path: Path, anchor_path: Path) -> None:
    """Refuse to make a new store where an anchor knows of an old one.

    Raises:
        IntegrityError: The store is gone.
    """
    gone = not path.exists() or path.stat().st_size == 0
    if gone and anchor_path.exists() and any(read(anchor_path)):
        raise IntegrityError(
            "the store is gone or empty, but its anchor is there",
            where=str(path),
            hint=f"bring the store back, from a backup if need be; {RECONCILE} then charges what is"
            " missing, or makes a store that has only that",
        )


def verify(database: Database) -> None:
    """Verify every page, the schema, the ledger's chain, every release and checksum.

    Raises:
        IntegrityError: Something was changed, removed or added by other hands.
    """
    require_sound(database)
    require_schema(database)
    chain.verify(database)
    archive.verify(database)
    row_checksums.verify(database)


def verify_copy(database: Database) -> None:
    """Verify a copy, which may be of an earlier schema and lack parts that `verify` checks.

    Raises:
        IntegrityError: Something was changed, removed or added by other hands, or is newer.
    """
    require_known(database)
    if is_current(database):
        verify(database)
    else:
        require_sound(database)
        require_schema(database)
        chain.verify(database)


def require_own_anchor(database: Database, path: Path) -> None:
    """Require that an anchor, where there is one, is that of a store; nothing is written.

    Raises:
        IntegrityError: It is altered, or another store's.
    """
    (store_id,) = database.execute("SELECT store_id FROM instance").fetchone()
    with closing(Anchor.open(path)) if path.exists() else nullcontext() as anchor:
        if anchor is not None and anchor.store_id not in (None, store_id):
            raise _foreign(path)


def hold_anchor(database: Database, path: Path) -> Anchor:
    """Open the anchor; only a store that never had one gets a new one.

    Raises:
        IntegrityError: It is missing, altered, or another store's.
    """
    store_id, anchored = database.execute("SELECT store_id, anchored FROM instance").fetchone()
    anchor = Anchor.open(path, create=not anchored)
    if anchor.store_id == store_id or (anchor.store_id is None and not anchored):
        return anchor
    anchor.close()
    if anchor.store_id is None:
        raise missing(path)
    raise _foreign(path)


def _foreign(path: Path) -> IntegrityError:
    return IntegrityError(
        "this anchor belongs to another store",
        where=str(path),
        hint="each store has an anchor of its own: set store.anchor to this one's",
    )


def begin_anchor(database: Database, anchor: Anchor) -> AnchorLine:
    """The last line of an anchor; one that is empty, or was not begun to its end, gets the past."""
    if anchor.last is None or _half_begun(database, anchor.last):
        (store_id,) = database.execute("SELECT store_id FROM instance").fetchone()
        anchor.begin(store_id, history(database), state_of(database))
    assert anchor.last is not None  # noqa: S101
    return anchor.last


def _half_begun(database: Database, last: AnchorLine) -> bool:
    """Whether a crash has cut off the first lines of an anchor: no epoch was ever begun with it."""
    base = state_of(database)
    (anchored,) = database.execute("SELECT anchored FROM instance").fetchone()
    if anchored or last.target == base or last.target.epoch != base.epoch:
        return False
    return last.target in {start_of(base), *(state for state, _ in history(database))}


def taken_over() -> LockedError:
    """The error of a process that is no longer the newest to have opened the store."""
    return LockedError(
        "another process has taken this store over",
        hint="this one was suspended or its lock was lost: stop it",
    )


def _begin_epoch(database: Database, anchor: Anchor, now: int) -> StoreState:
    """Burn what a crash cut off, raise the epoch, and tell the anchor before it is committed."""
    base, last = state_of(database), begin_anchor(database, anchor)
    shared = 0
    for spent in _cut_off(database, anchor.path, last, base):
        if spent.joined == SHARED:
            batch = Batch(spent.scope, spent.batch, spent.start, spent.end)
            assume_joined(database, shared, batch, now, CUT_OFF)
        else:
            shared = assume_spent(database, spent, CUT_OFF, {"by": "recovery"}, now)
    raised = "UPDATE instance SET epoch = max(epoch, ?) + 1, anchored = 1, stopped_at = NULL"
    database.execute(raised, [last.target.epoch])
    row_checksums.update(database, "instance")
    begun = state_of(database)
    anchor.intend(base, begun, charges_after(database, base.seq))
    return begun


def assume_spent(database: Database, spent: Spending, job: str, about: Json, now: int) -> int:
    """Charge and burn what is assumed to be spent, and write down the window that paid.

    A cut of the source into other windows is refused from then on, as it was before.

    Returns:
        The row of the charge.
    """
    if spent.epsilon_nano is None:
        event = zero_concentrated(Fraction(spent.rho_nano, NANO))
    else:
        event = pure(Fraction(spent.epsilon_nano, NANO))
    if spent.delta_atto:
        event = approximate(event, Fraction(spent.delta_atto, ATTO))
    charge = Charge(event, *spent.losses)
    _keep_window(database, Batch(spent.scope, spent.batch, spent.start, spent.end), now)
    reservation = Reservation(0, spent.scope, job, spent.batch)
    return ledger.assume_spent(database, reservation, charge, about, now)


def assume_joined(database: Database, seq: int, batch: Batch, now: int, job: str = ASSUMED) -> None:
    """Count an assumed charge against one more batch too."""
    _keep_window(database, batch, now)
    ledger.assume_joined(database, seq, batch, job, now)


def _keep_window(database: Database, batch: Batch, now: int) -> None:
    if batch.start is not None:
        archive.add_batch(database, batch, None, now)


def _cut_off(
    database: Database, anchor: Path, last: AnchorLine, store: StoreState
) -> tuple[Spending, ...]:
    """Charges of the anchor's last line if its transaction is missing.

    Raises:
        IntegrityError: The store does not stand where the anchor was left.
    """
    if store == last.target:
        return ()
    if store == last.base and not last.rebound:
        return last.spent
    raise refusal(difference(database, anchor), store, anchor)
