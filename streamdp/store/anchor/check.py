"""Comparison of a ledger with its anchor: whether they agree, and how they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from streamdp.database import Database
from streamdp.errors import IntegrityError
from streamdp.privacy.amounts import Losses, total_text
from streamdp.store.anchor.anchor import LOST, Spending, StoreState, newest_target, read
from streamdp.store.database import snapshot
from streamdp.store.ledger import chain, ledger


@dataclass(frozen=True, slots=True)
class Difference:
    """How ledger and anchor differ.

    Args:
        common: Last ledger row that both know.
        ledger_seq: Last row of the ledger.
        anchor: State the anchor was left at.
        missing: Charges that the anchor knows and the ledger does not.
        unknown: Charges that the ledger knows and the anchor does not.
    """

    common: int
    ledger_seq: int
    anchor: StoreState
    missing: tuple[Spending, ...]
    unknown: tuple[Spending, ...]

    def totals(self) -> dict[str, str]:
        """What is missing of each source, as one amount in words."""
        sums: dict[str, list[Losses]] = {}
        for spent in self.missing:
            sums.setdefault(spent.scope, []).append(spent.losses)
        return {scope: total_text(losses) for scope, losses in sums.items()}


def state_of(database: Database) -> StoreState:
    """State of the store."""
    (epoch,) = database.execute("SELECT epoch FROM instance").fetchone()
    return StoreState.of(epoch, *chain.head(database))


def charges_after(database: Database, seq: int) -> tuple[Spending, ...]:
    """Charges of the ledger behind a row, as the anchor keeps them."""
    return tuple(Spending(*charge) for _, _, *charge in ledger.charges_after(database, seq))


def history(database: Database) -> list[tuple[StoreState, Spending]]:
    """All charges of the ledger, and its state after each, for an anchor begun later."""
    (epoch,) = database.execute("SELECT epoch FROM instance").fetchone()
    rows = ledger.charges_after(database, 0)
    return [(StoreState.of(epoch, seq, digest), Spending(*charge)) for seq, digest, *charge in rows]


def difference(database: Database, anchor: Path) -> Difference:
    """Compare line by line.

    A line counts as committed unless the next one says that it was not: whatever is not known to
    be unspent is spent.

    Raises:
        IntegrityError: The anchor was altered.
    """
    rows = {seq: StoreState.of(0, seq, digest).digest for seq, digest in chain.hashes(database)}
    missing: list[Spending] = []
    open_spent: tuple[Spending, ...] = ()
    common, target = 0, StoreState.of(0, 0, "")
    for line in read(anchor):
        if line.follows:
            missing += open_spent
        open_spent, target = line.spent, line.target
        bound = line.rebound and not line.assumes
        if bound and rows.get(line.base.seq) == line.base.digest:
            open_spent = ()
        if rows.get(target.seq) == target.digest:
            common, open_spent = target.seq, ()
            missing.clear()
    return Difference(
        common,
        len(rows) - 1,
        target,
        (*missing, *open_spent),
        charges_after(database, common),
    )


def require_agreement(database: Database, anchor: Path) -> None:
    """Require that the last line of the anchor is the state of the store, with the same charges.

    A daemon may work meanwhile: it has then written further lines, and the store has moved on too.

    Raises:
        IntegrityError: They differ.
    """
    with snapshot(database):
        state, spent = state_of(database), ledger.spent_by_scope(database)
    known, agrees = Counter[tuple[str, str]](), None
    line = None
    for following in read(anchor):
        known.update(_sums(line.spent if line and following.follows else ()))
        line = following
        if line.target == state:
            agrees = known + _sums(line.spent)
    at_end = line is not None and state in (line.target, line.base)
    if agrees is None or not (at_end or state_of(database) != state):
        raise refusal(difference(database, anchor), state, anchor)
    if agrees != spent:
        raise IntegrityError("ledger and anchor add up to different charges", where=str(anchor))


def require_same_end(database: Database, anchor: Path) -> None:
    """Require that the anchor's last line is the state of the store; reads all of it if it is not.

    Raises:
        IntegrityError: They differ.
    """
    if newest_target(anchor) != state_of(database):
        require_agreement(database, anchor)


def _sums(spent: Iterable[Spending]) -> Counter[tuple[str, str]]:
    """Lifetime spending of scopes, as `ledger.spent_by_scope` adds it up.

    A run that joins a batch was charged before.
    """
    sums: Counter[tuple[str, str]] = Counter()
    for each in spent:
        if not each.joined:
            sums[each.scope, "epsilon"] += each.epsilon_nano or 0
            sums[each.scope, "rho"] += each.rho_nano
            sums[each.scope, "delta"] += each.delta_atto
            sums[each.scope, "without"] += each.epsilon_nano is None
    return sums


def refusal(found: Difference, store: StoreState, anchor: Path) -> IntegrityError:
    """The error for a store whose state is not that of its anchor."""
    at, known = (
        f"the ledger ends at row {found.ledger_seq}",
        f"its anchor at row {found.anchor.seq}",
    )
    copied, ahead = store.epoch < found.anchor.epoch, found.ledger_seq > found.common
    if found.missing or found.anchor.seq > found.common or (copied and not ahead):
        what = "was restored from a backup, copied, or cut"
        if ahead:
            what = f"and the anchor part ways after row {found.common}: one of two copies"
        lost = total_text(charge.losses for charge in found.missing)
        return IntegrityError(
            f"{at}, {known}: this store {what}; the anchor knows charges of {lost} more",
            where=str(anchor),
            hint="bring the newest store back, or `streamdp reconcile --assume-spent` charges"
            " what is missing",
            ledger_seq=found.ledger_seq,
            anchor_seq=found.anchor.seq,
        )
    return IntegrityError(
        f"{at}, {known}: the anchor is older than the store",
        where=str(anchor),
        hint=f"bring the newest anchor back; {LOST}",
        ledger_seq=found.ledger_seq,
        anchor_seq=found.anchor.seq,
    )
