"""Runs of gates: paid once for life, counted once in each batch and window they touch."""

from pathlib import Path

import pytest

from streamdp.errors import BudgetExhaustedError, IntegrityError
from streamdp.privacy.filters import Caps, Limit, Spent
from streamdp.store import ledger, runs
from streamdp.store.sqlite import SqliteStore
from streamdp.types import Batch, Charge, Run

DAY = 86_400


def day(number: int) -> Batch:
    return Batch("s", f"day {number:03d}", number * DAY, (number + 1) * DAY)


def charge(nano: int) -> Charge:
    return Charge({"type": "pure", "epsilon": str(nano)}, nano, nano)


def opened(path: Path, caps: Caps) -> SqliteStore:
    store = SqliteStore.open(path / "s.db", 0)
    store.declare(["s"], "person", "add-remove", caps, 0)
    store.add_batches([(day(number), None) for number in range(40)], 0)
    return store


def open_run(store: SqliteStore, scope: str, job: str, price: Charge, now: int) -> Run:
    with store.transaction():
        return runs.open_run(store.database, scope, job, price, now)


def join_run(store: SqliteStore, run: Run, batch: Batch, now: int) -> None:
    with store.transaction():
        runs.join_run(store.database, run, batch, now)


def close_run(store: SqliteStore, run: Run, now: int) -> None:
    with store.transaction():
        runs.close_run(store.database, run, now)


def lifetime(store: SqliteStore) -> int:
    return ledger.spent_of(store.database, "s", "").lifetime_nano


def test_a_run_is_paid_once_and_counts_in_every_batch(tmp_path: Path) -> None:
    """Over its life it costs its charge, in each batch as much again; a release adds to it."""
    store = opened(tmp_path, Caps(300, 1000))
    run = open_run(store, "s", "gate", charge(200), 0)
    for number in range(20):
        join_run(store, run, day(number), 0)
        join_run(store, run, day(number), 0)
    assert lifetime(store) == 200
    assert ledger.spent_of(store.database, "s", day(3).key) == Spent(200, 200)
    store.reserve("s", "job", day(3), charge(100), 0)
    with pytest.raises(BudgetExhaustedError, match="batch cap"):
        store.reserve("s", "job", day(3), charge(1), 0)
    assert lifetime(store) == 300
    ledger.verify(store.database)


def test_a_cap_refuses_a_batch_that_would_join(tmp_path: Path) -> None:
    """A batch that has paid for releases has no room for the run; nothing is written."""
    store = opened(tmp_path, Caps(300, 1000))
    run = open_run(store, "s", "gate", charge(200), 0)
    store.reserve("s", "job", day(1), charge(101), 0)
    with pytest.raises(BudgetExhaustedError):
        join_run(store, run, day(1), 0)
    join_run(store, run, day(2), 0)
    assert ledger.spent_of(store.database, "s", day(1).key).batch_nano == 101


def test_the_lifetime_cap_refuses_a_run(tmp_path: Path) -> None:
    """A run that is open holds its charge; the next is refused when it does not fit."""
    store = opened(tmp_path, Caps(300, 300))
    open_run(store, "s", "gate", charge(200), 0)
    with pytest.raises(BudgetExhaustedError, match="lifetime cap"):
        open_run(store, "s", "other", charge(101), 0)
    assert lifetime(store) == 200


def test_a_run_counts_once_in_a_window(tmp_path: Path) -> None:
    """A run over every day of a week costs the week its charge once, and another adds to it."""
    caps = Caps(1000, 9000, (Limit(300, batches=7), Limit(300, seconds=3 * DAY)))
    store = opened(tmp_path, caps)
    first = open_run(store, "s", "gate", charge(200), 0)
    for number in range(10):
        join_run(store, first, day(number), 0)
    close_run(store, first, 0)
    second = open_run(store, "s", "gate", charge(200), 0)
    for number in range(10, 16):
        with pytest.raises(BudgetExhaustedError, match=r"7-batch|3d"):
            join_run(store, second, day(number), 0)
    join_run(store, second, day(16), 0)
    assert lifetime(store) == 400


def test_a_restart_leaves_a_run_open(tmp_path: Path) -> None:
    """Recovery burns reservations, not runs: what is open goes on after a crash."""
    store = opened(tmp_path, Caps(300, 1000))
    run = open_run(store, "s", "gate", charge(200), 0)
    join_run(store, run, day(1), 0)
    store.reserve("s", "job", day(1), charge(10), 0)
    again = SqliteStore.open(tmp_path / "s.db", 0)
    assert [left.job for left in again.recover(0)] == ["job"]
    assert runs.open_run_of(again.database, "gate") == run
    join_run(again, run, day(2), 0)


def test_a_closed_run_takes_no_more_batches(tmp_path: Path) -> None:
    """After its end it neither joins nor ends again, and the job may open another."""
    store = opened(tmp_path, Caps(300, 1000))
    run = open_run(store, "s", "gate", charge(200), 0)
    with pytest.raises(IntegrityError, match="open"):
        open_run(store, "s", "gate", charge(200), 0)
    close_run(store, run, 0)
    with pytest.raises(IntegrityError):
        join_run(store, run, day(1), 0)
    with pytest.raises(IntegrityError):
        close_run(store, run, 0)
    assert runs.open_run_of(store.database, "gate") is None
    open_run(store, "s", "gate", charge(200), 0)
