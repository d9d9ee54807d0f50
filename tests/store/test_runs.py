"""Runs of gates: paid once for life, counted once in each batch and window they touch."""

from pathlib import Path

import pytest

from streamdp.errors import BudgetExhaustedError, IntegrityError
from streamdp.privacy.filters import Caps, Item, Limit
from streamdp.store.ledger import chain, ledger
from streamdp.store.ledger.charges import ASSUMED
from streamdp.store.ledger.ledger import rooms
from streamdp.types import Batch, Belongs, Charge, Reservation
from tests.store.kept import LedgerStore, batch_spent, terms

DAY = 86_400


def day(number: int) -> Batch:
    return Batch("s", f"day {number:03d}", number * DAY, (number + 1) * DAY)


def charge(nano: int) -> Charge:
    return Charge({"type": "pure", "epsilon": str(nano)}, nano, nano)


def opened(path: Path, caps: Caps) -> LedgerStore:
    store = LedgerStore.open(path / "s.db", 0)
    store.declare(terms(caps), 0)
    store.add_batches([(day(number), None) for number in range(40)], 0)
    return store


def lifetime(store: LedgerStore) -> int:
    return chain.spent_of(store.database, "s")


def test_a_run_is_paid_once_and_counts_in_every_batch(tmp_path: Path) -> None:
    """Over its life it costs its charge, in each batch as much again; a release adds to it."""
    store = opened(tmp_path, Caps(300, 1000))
    run = store.open_run("s", "gate", charge(200), 0)
    for number in range(20):
        store.join_run(run, day(number), 0)
        store.join_run(run, day(number), 0)
    assert lifetime(store) == 200
    assert batch_spent(store.database, day(3).key) == 200
    store.reserve("s", "job", day(3), charge(100), 0)
    with pytest.raises(BudgetExhaustedError, match="batch cap"):
        store.reserve("s", "job", day(3), charge(1), 0)
    assert lifetime(store) == 300
    chain.verify(store.database)


def test_a_cap_refuses_a_batch_that_would_join(tmp_path: Path) -> None:
    """A batch that has paid for releases has no room for the run; nothing is written."""
    store = opened(tmp_path, Caps(300, 1000))
    run = store.open_run("s", "gate", charge(200), 0)
    store.reserve("s", "job", day(1), charge(101), 0)
    with pytest.raises(BudgetExhaustedError):
        store.join_run(run, day(1), 0)
    store.join_run(run, day(2), 0)
    assert batch_spent(store.database, day(1).key) == 101


def test_the_lifetime_cap_refuses_a_run(tmp_path: Path) -> None:
    """A run that is open holds its charge; the next is refused when it does not fit."""
    store = opened(tmp_path, Caps(300, 300))
    store.open_run("s", "gate", charge(200), 0)
    with pytest.raises(BudgetExhaustedError, match="lifetime cap"):
        store.open_run("s", "other", charge(101), 0)
    assert lifetime(store) == 200


def test_a_run_counts_once_in_a_window(tmp_path: Path) -> None:
    """A run over every day of a week costs the week its charge once, and another adds to it."""
    caps = Caps(1000, 9000, (Limit(300, batches=7), Limit(300, seconds=3 * DAY)))
    store = opened(tmp_path, caps)
    first = store.open_run("s", "gate", charge(200), 0)
    for number in range(10):
        store.join_run(first, day(number), 0)
    store.close_run(first, 0)
    second = store.open_run("s", "gate", charge(200), 0)
    for number in range(10, 16):
        with pytest.raises(BudgetExhaustedError, match=r"7-batch|3d"):
            store.join_run(second, day(number), 0)
    store.join_run(second, day(16), 0)
    assert lifetime(store) == 400


@pytest.mark.parametrize("limit", [Limit(200, batches=4), Limit(200, seconds=3 * DAY)])
@pytest.mark.parametrize("order", [(6, 5, 4, 3, 2, 1), (1, 4, 2, 6, 3, 5), (3, 4, 1, 6, 2, 5)])
def test_batches_released_in_any_order_keep_a_window(
    tmp_path: Path, limit: Limit, order: tuple[int, ...]
) -> None:
    """A batch that is late is held to what later ones have paid: two in any four days."""
    store, paid = opened(tmp_path, Caps(100, 9000, (limit,))), list[int]()
    for number in order:
        fits = all(
            sum(first <= each < first + 4 for each in (*paid, number)) <= 2 for first in order
        )
        if fits:
            store.reserve("s", "job", day(number), charge(100), 0)
            paid.append(number)
            continue
        with pytest.raises(BudgetExhaustedError):
            store.reserve("s", "job", day(number), charge(100), 0)
    assert len(paid) < len(order)


def test_files_that_a_gate_has_asked_about_stay_bound_to_their_batch(tmp_path: Path) -> None:
    """Under another name they would be asked about, and paid for, as a batch of their own."""
    store, owner = opened(tmp_path, Caps(300, 1000)), Belongs("s", day(1).key)
    store.bind_origins("s", day(1).key, ["file"], 0)
    store.join_run(store.open_run("s", "gate", charge(200), 0), day(1), 0)
    assert not store.let_go(owner)
    assert store.belongings(["file"]) == {"file": owner}


def test_a_restart_leaves_a_run_open(tmp_path: Path) -> None:
    """Recovery burns reservations, not runs: what is open goes on after a crash."""
    store = opened(tmp_path, Caps(300, 1000))
    run = store.open_run("s", "gate", charge(200), 0)
    store.join_run(run, day(1), 0)
    store.reserve("s", "job", day(1), charge(10), 0)
    again = LedgerStore.open(tmp_path / "s.db", 0)
    assert [left.job for left in again.recover(0)] == ["job"]
    assert again.open_run_of("gate") == run
    again.join_run(run, day(2), 0)


def test_a_closed_run_takes_no_more_batches(tmp_path: Path) -> None:
    """After its end it neither joins nor ends again, and the job may open another."""
    store = opened(tmp_path, Caps(300, 1000))
    run = store.open_run("s", "gate", charge(200), 0)
    with pytest.raises(IntegrityError, match="open"):
        store.open_run("s", "gate", charge(200), 0)
    store.close_run(run, 0)
    with pytest.raises(IntegrityError):
        store.join_run(run, day(1), 0)
    with pytest.raises(IntegrityError):
        store.close_run(run, 0)
    assert store.open_run_of("gate") is None
    store.open_run("s", "gate", charge(200), 0)


def test_an_assumed_charge_without_a_place_is_in_every_window(tmp_path: Path) -> None:
    """What a restored store was told was spent counts in all windows until its batch is known."""
    store = opened(tmp_path, Caps(300, 9000, (Limit(300, batches=7),)))
    with store.transaction():
        lost = Reservation(0, "s", ASSUMED, "lost")
        ledger.assume_spent(store.database, lost, charge(200), {"by": "me"}, 0)
    with pytest.raises(BudgetExhaustedError, match="7-batch"):
        store.reserve("s", "job", day(30), charge(101), 0)
    told = {room.limit.name: room for room in rooms(store.database, "s", Item(0, 101, 101))}
    assert (told["7-batch"].left_nano, told["7-batch"].frees) == (100, "never")
    assert (told["batch"].left_nano, told["batch"].frees) == (300, "now")
    store.add_batches([(Batch("s", "lost", -DAY, 0), None)], 0)
    store.reserve("s", "job", day(30), charge(101), 0)
