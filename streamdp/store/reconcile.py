"""Bind a store to its anchor again, by an operator's decision, kept in the ledger.

`adopt` goes on without a lost anchor and charges a bound of what the store may have forgotten.
Nobody can tell whether a store whose anchor is lost is the newest, or what was spent since. So
each source is charged an upper bound, and no batch that may have been paid for is paid for again
beyond its cap. Where the bound covers all room of these batches each is filled up to its cap. Where
it is less it is one charge that counts once over the lifetime and in every stretch, and against
each of these batches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from streamdp.database import Database
from streamdp.errors import IntegrityError, StoreError
from streamdp.privacy.amounts import ATTO, NANO, delta_text, epsilon_text
from streamdp.privacy.events import approximate, charge_of, pure, zero_concentrated
from streamdp.privacy.filters import Measure
from streamdp.store import row_checksums
from streamdp.store.anchor import (
    RECONCILE,
    SHARED,
    Anchor,
    AnchorLine,
    Difference,
    NewerAnchorError,
    Spending,
    StoreState,
    charges_after,
    difference,
    history,
    is_older,
    is_readable,
    newest_target,
    refusal,
    scan,
    state_of,
)
from streamdp.store.database import connect, connect_to_read, transaction
from streamdp.store.gates import end_open_runs
from streamdp.store.ledger import ledger, source_binding
from streamdp.store.ledger.charges import ASSUMED
from streamdp.store.ledger.ledger import Terms
from streamdp.store.migrations import migrate
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
        IntegrityError: One of them is damaged or another's, the anchor is older than the store, or
            a scope is not configured.
    """
    with closing(Anchor.open(anchor_path)) as anchor, writing(path, now) as database:
        require_own(database, anchor)
        base = state_of(database)
        if anchor.last is None or base == anchor.last.target:
            raise StoreError("ledger and anchor agree: there is nothing to reconcile")
        found = difference(database, anchor_path)
        if is_older(found, base):
            raise refusal(found, base, anchor_path)
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


def next_epoch(database: Database, known: int) -> StoreState:
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


_BEFORE = -1
"""Epoch in the first lines of an anchor that is begun anew: the state of no store. So a store is
not taken for the newest before what was adopted is committed."""

_LARGEST = 10_000 * NANO
"""One charge of pure loss at most, whose zero-concentrated loss the ledger has room for."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The most that a source may have spent and its store has forgotten.

    Args:
        measure: Of the amounts, which is that of the source's caps.
        nano: The bound.
        room: Batches that it may have been spent on, with the most that each has room for.
        stated: Whether a person has said so.
        why: What it follows from, in words.
        delta_atto: The most delta that it may have spent and its store has forgotten.
    """

    measure: Measure
    nano: int
    room: tuple[tuple[Batch, int], ...]
    stated: bool
    why: str
    delta_atto: int = 0

    @property
    def fills(self) -> bool:
        """Whether it covers all room of the batches together."""
        return self.nano >= sum(room for _, room in self.room)


def adopt(
    path: Path,
    anchor_path: Path,
    bounds: Mapping[str, Bound],
    terms: Mapping[str, Terms],
    data: Mapping[str, Json],
    about: Json,
    now: int,
) -> None:
    """Go on with a new anchor, or with one that is older than the store, and charge the bounds.

    Args:
        path: The store.
        anchor_path: Of its anchor.
        bounds: One for each source that the ledger knows, or that may have spent anything since.
        terms: Of sources that the ledger may not know.
        data: What each of them reads.
        about: Who decides, and why.
        now: POSIX time.

    Raises:
        StoreError: They agree, or one of them cannot be used.
        IntegrityError: The anchor knows of charges that the ledger does not, or is another's; or a
            source has no bound, or one below what an anchor that is damaged knows.
    """
    with writing(path, now, create=False) as database:
        base = state_of(database)
        known = _known_before_damage(database, anchor_path)
        _require_bounds(database, bounds, known)
        with closing(_anchor_to_adopt(anchor_path, now)) as anchor:
            _bring_up(database, anchor, base)
            ledger.note(
                database, {"what": "anchor adopted", **_facts_of_bounds(bounds), **about}, now
            )
            tested = open_runs(database)
            end_open_runs(database, now)
            said = {"by": "anchor adopt", **about}
            for scope, bound in bounds.items():
                if (bound.nano or bound.delta_atto) and ledger.declaration_of(
                    database, scope
                ) is None:
                    bind_scope(database, scope, terms, data, now)
                _charge(database, scope, bound, tested[scope], said, now)
            assert anchor.last is not None  # noqa: S101
            target = next_epoch(database, anchor.last.target.epoch)
            anchor.assume(base, target, charges_after(database, base.seq))


def _bring_up(database: Database, anchor: Anchor, base: StoreState) -> None:
    """Write down all that the ledger has spent, in an anchor that binds no store yet.

    Raises:
        StoreError: Ledger and anchor agree.
        IntegrityError: It knows of charges that the ledger does not, or is another's.
    """
    nowhere = base._replace(epoch=_BEFORE)
    if anchor.last is None:
        (store_id,) = database.execute("SELECT store_id FROM instance").fetchone()
        past = [(at._replace(epoch=_BEFORE), spent) for at, spent in history(database)]
        anchor.begin(store_id, past, nowhere)
        return
    require_own(database, anchor)
    if base == anchor.last.target:
        raise StoreError("ledger and anchor agree: there is nothing to adopt")
    found = difference(database, anchor.path)
    if found.missing:
        raise IntegrityError(
            "this anchor knows of charges that the ledger does not",
            where=str(anchor.path),
            hint=f"{RECONCILE} charges them",
        )
    anchor.rebind(nowhere, nowhere, found.unknown)


def agree(path: Path, anchor_path: Path) -> bool:
    """Whether a store and its anchor know the same: nothing is lost.

    Raises:
        NewerAnchorError: A later version has written the anchor.
    """
    if not path.exists() or not is_readable(anchor_path):
        return False
    with closing(connect_to_read(path)) as database:
        return newest_target(anchor_path) == state_of(database)


def scopes_of(database: Database) -> list[str]:
    """Sources that have a budget in the ledger."""
    rows = database.execute(
        "SELECT DISTINCT scope FROM ledger WHERE purpose = 'cap' AND job IS NULL"
    )
    return sorted(scope for (scope,) in rows)


def _require_bounds(
    database: Database, bounds: Mapping[str, Bound], known: Counter[tuple[str, Measure]]
) -> None:
    """Refuse to forget: each source needs a bound, and no lower one than is known.

    Raises:
        IntegrityError: One has none, or a lower one.
    """
    spent = ledger.spent_by_scope(database)
    for scope in {*scopes_of(database), *(scope for scope, _ in known)}:
        bound = bounds.get(scope)
        if bound is None:
            raise IntegrityError(
                f"nothing bounds what {scope} may have spent since",
                hint=f"`streamdp anchor adopt --spent {scope}=AMOUNT`",
            )
        least = known[scope, "delta"] - spent[scope, "delta"]
        if bound.delta_atto < least:
            raise IntegrityError(
                f"the damaged anchor knows that {scope} has spent a delta of {delta_text(least)}"
                f" more than the ledger has, which is above {delta_text(bound.delta_atto)}",
                hint="give the configuration that it was spent by, with its caps on delta",
            )
        least = known[scope, bound.measure] - spent[scope, bound.measure]
        if bound.nano < least:
            raise IntegrityError(
                f"the damaged anchor knows that {scope} has spent {epsilon_text(least)}"
                f" {bound.measure} more than the ledger has, which is above"
                f" {epsilon_text(bound.nano)}",
                hint=f"`streamdp anchor adopt --spent {scope}=AMOUNT`, no less than that",
            )


def _charge(
    database: Database, scope: str, bound: Bound, joined: int, about: Json, now: int
) -> None:
    """Charge a bound; `joined` is what open runs, which are paid, may have counted a batch.

    Delta is one charge, which counts in full against each of the batches.
    """
    if bound.delta_atto:
        least = charge_of(approximate(pure(Fraction(0)), Fraction(bound.delta_atto, ATTO)))
        spent = Spending(scope, "", least.epsilon_nano, least.rho_nano, delta_atto=least.delta_atto)
        seq = assume_spent(database, spent, ASSUMED, about, now)
        for batch, _ in bound.room:
            assume_joined(database, seq, batch, now)
    if bound.fills:
        for batch, room in bound.room:
            for part in _parts(bound.measure, room):
                spent = Spending(scope, batch.key, *part, 0, batch.start, batch.end)
                assume_spent(database, spent, ASSUMED, about, now)
        rest = bound.nano - sum(room for _, room in bound.room)
        for part in _parts(bound.measure, rest):
            assume_spent(database, Spending(scope, "", *part), ASSUMED, about, now)
        return
    shared = bound.nano + (joined if bound.room else 0)
    for part in _parts(bound.measure, shared):
        seq = assume_spent(database, Spending(scope, "", *part), ASSUMED, about, now)
        for batch, _ in bound.room:
            assume_joined(database, seq, batch, now)


def _parts(measure: Measure, nano: int) -> Iterator[tuple[int | None, int]]:
    """An amount as charges that the ledger has room for: their pure and zero-concentrated loss."""
    while nano > 0:
        part = min(nano, _LARGEST)
        amount = Fraction(part, NANO)
        charge = charge_of(pure(amount) if measure == "epsilon" else zero_concentrated(amount))
        yield charge.epsilon_nano, charge.rho_nano
        nano -= part


def open_runs(database: Database) -> Counter[str]:
    """What the open runs of gates cost, by source: they may have tested further batches."""
    costs: Counter[str] = Counter()
    rows = database.execute(
        "SELECT l.scope, l.epsilon_nano, l.rho_nano FROM gate_run r JOIN ledger l ON l.seq = r.run"
        " WHERE r.ended IS NULL"
    )
    for scope, epsilon, rho in rows:
        measure = ledger.caps_of(database, scope).measure
        costs[scope] += rho if measure == "rho" or epsilon is None else epsilon
    return costs


def _known_before_damage(database: Database, path: Path) -> Counter[tuple[str, Measure]]:
    """What each source has spent by the unaltered lines of the store's anchor, if it is damaged."""
    (store_id,) = database.execute("SELECT store_id FROM instance").fetchone()
    sums: Counter[tuple[str, Measure]] = Counter()
    last: AnchorLine | None = None
    try:
        with path.open("rb") as file:
            for _, _, line in scan(path, file):
                if isinstance(line, str):
                    if line != store_id:
                        return Counter()
                    continue
                if last is not None and line.follows:
                    _add(sums, last)
                last = line
    except OSError:
        return Counter()
    except NewerAnchorError:
        raise
    except IntegrityError:
        if last is not None:
            _add(sums, last)
        return sums
    return Counter()


def _add(sums: Counter[tuple[str, Measure]], line: AnchorLine) -> None:
    for spent in line.spent:
        if not spent.joined:
            sums[spent.scope, "epsilon"] += spent.epsilon_nano or 0
            sums[spent.scope, "rho"] += spent.rho_nano
            sums[spent.scope, "delta"] += spent.delta_atto


def _anchor_to_adopt(path: Path, now: int) -> Anchor:
    """The existing anchor; a damaged one is moved aside, and one of a later version is refused."""
    try:
        return Anchor.open(path, create=True)
    except NewerAnchorError:
        raise
    except IntegrityError:
        path.rename(path.with_name(f"{path.name}.damaged-{now}"))
        return Anchor.open(path, create=True)


def _facts_of_bounds(bounds: Mapping[str, Bound]) -> Json:
    return {
        "bounds": {
            scope: {"nano": each.nano, "measure": each.measure, "stated": each.stated}
            | ({"delta": each.delta_atto} if each.delta_atto else {})
            for scope, each in bounds.items()
        }
    }
