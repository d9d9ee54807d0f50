"""Deltas of charges: caps, sums, windows of batches, anchor and recovery, and what is told."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.errors import BudgetExhaustedError, ConfigurationError, IntegrityError
from streamdp.privacy.accountants import epsilon_of_rho
from streamdp.privacy.events import approximate, charge_of, pure, zero_concentrated
from streamdp.privacy.filters import Caps, Item, Limit
from streamdp.store.anchor import Anchor, default_anchor, require_agreement
from streamdp.store.database import connect_to_read
from streamdp.store.ledger import chain, ledger
from streamdp.store.ledger.charges import CHARGES
from streamdp.store.ledger.ledger import held_by, rooms
from streamdp.store.ledger.privacy_guarantee import loss_of, recompute
from streamdp.store.reconcile import Bound, adopt, reconcile
from streamdp.store.verified_open import verify
from streamdp.types import Batch, Charge
from tests.store.kept import LedgerStore, terms
from tests.store.test_anchor import copy, restore
from tests.worlds import without

PURE = Caps(10**9, 10**10)
CAPS = Caps(
    10**9,
    10**10,
    (Limit(1000, "delta"), Limit(300, "delta", 1), Limit(500, "delta", 2)),
)
KEYS = "abcdef"


def priced(atto: int, epsilon: int = 1) -> Charge:
    """A charge of so many units of delta and of epsilon."""
    event = approximate(pure(Fraction(epsilon, 10**9)), Fraction(atto, 10**18))
    return charge_of(event)


def opened(path: Path, caps: Caps = CAPS) -> LedgerStore:
    store = LedgerStore.open(path, 0)
    store.declare(terms(caps), 0)
    return store


def batch(key: str) -> Batch:
    return Batch("s", key)


def test_caps_that_say_nothing_of_delta_refuse_it_and_say_what_to_do(tmp_path: Path) -> None:
    """In epsilon and in rho, for releases and runs; nothing is spent."""
    for number, caps in enumerate((PURE, Caps(10**9, 10**10, (), "rho"))):
        store = opened(tmp_path / f"{number}.db", caps)
        with pytest.raises(
            BudgetExhaustedError, match=r"no delta.* costs a delta of 1e-18"
        ) as told:
            store.reserve("s", "j", batch("a"), priced(1), 0)
        assert "delta: {lifetime: 1e-6}" in str(told.value.hint)
        with pytest.raises(BudgetExhaustedError, match="no delta"):
            store.open_run("s", "g", priced(1), 0)
        assert [chain.spent_of(store.database, "s", each) for each in ("rho", "delta")] == [0, 0]
        assert held_by(store.database, "s", Item(0, 1, 1, 1)) == (("lifetime", "never"),)
        assert held_by(store.database, "s", Item(0, 1, 1)) == ()
        store.reserve("s", "j", batch("a"), charge_of(pure(Fraction(1, 10**9))), 0)


ASKED = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 3), st.integers(0, 250), st.booleans()),
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(ASKED)
def test_no_stretch_ever_has_more_than_its_cap(
    tmp_path_factory: pytest.TempPathFactory, asked: list[tuple[int, int, int, bool]]
) -> None:
    """Of any charges on windows of batches, those are admitted that keep all caps, each once."""
    path = tmp_path_factory.mktemp("delta") / "s.db"
    store = opened(path)
    for key in KEYS:
        with store.transaction():
            store.database.execute(
                "INSERT INTO batch (source, key, arrived_at) VALUES ('s', ?, 0)", [key]
            )
    charges: list[tuple[frozenset[int], int]] = []
    for first, width, atto, burnt in asked:
        window = range(first, min(first + width, len(KEYS)))
        trial = [*charges, (frozenset(window), atto)]
        fits = not atto or (
            sum(each for _, each in trial) <= 1000
            and all(_in(trial, {at}) <= 300 for at in range(6))
            and all(_in(trial, {at, at + 1}) <= 500 for at in range(5))
        )
        others = [batch(KEYS[at]) for at in window[:-1]]
        charge = priced(atto) if atto else charge_of(pure(Fraction(1, 10**9)))
        last = batch(KEYS[window[-1]])
        if not fits:
            with pytest.raises(BudgetExhaustedError):
                store.reserve("s", "j", last, charge, 0, others)
            continue
        reservation = store.reserve("s", "j", last, charge, 0, others)
        if burnt:
            store.burn(reservation, 0)
        charges = trial
    total = sum(each for _, each in charges)
    assert chain.spent_of(store.database, "s", "delta") == total
    found = {
        (room.limit.name, room.limit.measure): room.fullest_nano
        for room in rooms(store.database, "s", Item(0, 1, 1, 1))
    }
    assert found["lifetime", "delta"] == total
    assert found["batch", "delta"] == max(_in(charges, {at}) for at in range(6))
    assert found["2-batch", "delta"] == max(_in(charges, {at, at + 1}) for at in range(5))
    assert found["lifetime", "epsilon"] == len(charges)
    assert loss_of(store.database, "s", Fraction(1, 10)).delta_atto == total
    chain.verify(store.database)
    require_agreement(store.database, default_anchor(path))
    store.close()


def _in(charges: list[tuple[frozenset[int], int]], stretch: set[int]) -> int:
    """Delta of the charges that touch a stretch."""
    return sum(atto for window, atto in charges if window & stretch)


def test_a_flipped_bit_of_a_delta_is_found(tmp_path: Path) -> None:
    """In the row of a charge, of one without any, and in the running sum."""
    for number, change in enumerate(
        (
            "delta_atto = 0 WHERE seq = 2",
            "delta_atto = 1 WHERE seq = 3",
            "lifetime_delta_atto = 0 WHERE seq = 2",
        )
    ):
        store = opened(tmp_path / f"{number}.db")
        store.burn(store.reserve("s", "j", batch("a"), priced(100), 0), 0)
        chain.verify(store.database)
        with without(store.database.conn, "ledger_keeps_values"):
            store.database.execute(f"UPDATE ledger SET {change}")
        with pytest.raises(IntegrityError, match="altered at row"):
            chain.verify(store.database)
        store.close()


def test_a_restored_store_is_charged_for_the_delta_that_it_has_forgotten(tmp_path: Path) -> None:
    """A window counts once, against each of its batches, as it did before."""
    path = tmp_path / "s.db"
    store = opened(path)
    copy(path, "old")
    store.burn(store.reserve("s", "j", batch("c"), priced(200), 0, [batch("a"), batch("b")]), 0)
    store.burn(store.reserve("s", "j", batch("c"), priced(100, 7), 0), 0)
    store.close()
    restore(path, "old")
    found = reconcile(path, default_anchor(path), {}, {}, {"operator": "me"}, 0)
    assert [each.losses for each in found.missing] == [
        (1, 1, 200),
        (0, 0, 0),
        (0, 0, 0),
        (7, 1, 100),
    ]
    store = opened(path)
    assert _booked(store) == {"a": 200, "b": 200, "c": 300}
    assert chain.spent_of(store.database, "s", "delta") == 300
    assert chain.spent_of(store.database, "s") == 8
    assert not any(each.differs for each in recompute(store.database))
    verify(store.database)
    require_agreement(store.database, default_anchor(path))
    store.close()


def _booked(store: LedgerStore) -> dict[str, int]:
    rows = store.database.execute(f"SELECT batch, sum(delta_atto) FROM {CHARGES} GROUP BY 1")
    return dict(rows.fetchall())


def test_a_window_that_a_crash_cut_off_is_charged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The anchor knew of it, the store did not: all its batches bear it, and the source once."""
    path = tmp_path / "s.db"
    store = opened(path)

    class Killed(BaseException):
        pass

    intend = Anchor.intend

    def die(*arguments: object) -> None:
        intend(*arguments)  # type: ignore[arg-type]
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Anchor, "intend", die)
        with pytest.raises(Killed):
            store.reserve("s", "j", batch("c"), priced(200), 0, [batch("a"), batch("b")])
    assert chain.spent_of(store.database, "s", "delta") == 0
    store.database.conn.close()
    store = opened(path)
    assert chain.spent_of(store.database, "s", "delta") == 200
    assert _booked(store) == {"a": 200, "b": 200, "c": 200}
    require_agreement(connect_to_read(path), default_anchor(path))
    store.close()


def test_figures_at_a_delta_leave_the_charges_theirs(tmp_path: Path) -> None:
    """In each way of accounting; at a delta that the charges have spent there is none."""
    store = opened(tmp_path / "s.db", Caps(10**9, 10**9, (Limit(10**12, "delta"),), "rho"))
    half = Fraction(1, 2 * 10**9)
    for _ in range(2):
        event = approximate(zero_concentrated(Fraction(1, 100)), half / 2)
        store.reserve("s", "j", batch("a"), charge_of(event), 0)
    loss = loss_of(store.database, "s", 2 * half)
    assert loss.delta_atto == half * 10**18
    assert loss.zcdp == epsilon_of_rho(2 * 10**7, half) > epsilon_of_rho(2 * 10**7, 2 * half)
    assert loss.cap is None
    assert loss_of(store.database, "s", Fraction(1, 10**5)).cap == epsilon_of_rho(
        10**9, Fraction(1, 10**5) - Fraction(1, 10**6)
    )
    for delta in (half, half / 3):
        with pytest.raises(ConfigurationError, match=r"spent a delta of 5e-10"):
            loss_of(store.database, "s", delta)


@pytest.mark.parametrize(
    ("old", "new", "raised"),
    [
        (PURE, CAPS, True),
        (CAPS, PURE, False),
        (CAPS, CAPS, False),
        (CAPS, Caps(10**9, 10**10, (Limit(999, "delta"),)), True),
        (CAPS, Caps(10**9, 10**10, (Limit(300, "delta"),)), False),
        (CAPS, Caps(10**9, 10**10, (*CAPS.windows[1:], Limit(1001, "delta"))), True),
    ],
)
def test_a_delta_is_not_let_in_by_an_edit(
    tmp_path: Path, old: Caps, new: Caps, raised: bool
) -> None:
    """Caps without one are caps of none: `streamdp cap` lets it in, and fewer may go without."""
    store = opened(tmp_path / "s.db", old)
    if raised:
        with pytest.raises(ConfigurationError, match=r"allows s more than .* delta"):
            store.declare(terms(new), 0)
        return
    store.declare(terms(new), 0)
    assert ledger.caps_of(store.database, "s") == new


@pytest.mark.parametrize("forgotten", [0, 250])
def test_a_lost_anchor_costs_what_delta_may_have_been_spent(tmp_path: Path, forgotten: int) -> None:
    """Once over the lifetime, and in full against each batch that it may have been spent on."""
    path = tmp_path / "s.db"
    store = opened(path)
    store.burn(store.reserve("s", "j", batch("a"), priced(200), 0), 0)
    store.close()
    default_anchor(path).unlink()
    room = ((batch("a"), 10**9 - 1), (batch("b"), 10**9))
    bound = Bound("epsilon", 5, room, False, "", forgotten)
    adopt(path, default_anchor(path), {"s": bound}, {}, {}, {"operator": "me"}, 0)
    store = opened(path)
    assert chain.spent_of(store.database, "s", "delta") == 200 + forgotten
    expected = {"a": 200 + forgotten, "b": forgotten}
    assert {key: _booked(store)[key] for key in "ab"} == expected
    assert chain.spent_of(store.database, "s") == 1 + 5 + bool(forgotten)
    assert not any(each.differs for each in recompute(store.database))
    require_agreement(connect_to_read(path), default_anchor(path))
    store.close()
