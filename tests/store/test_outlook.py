"""For how long a budget lasts is what the ledger then admits, at these prices and at others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from streamdp.errors import BudgetExhaustedError
from streamdp.privacy.filters import Caps, Item, Limit
from streamdp.reports.budget import (
    BatchClock,
    Lasts,
    at_pace,
    clock,
    in_words,
    lasts,
    sum_of,
)
from streamdp.store.ledger.ledger import rooms
from streamdp.types import Batch
from tests.store.kept import LedgerStore, terms
from tests.store.test_runs import DAY, charge, day, opened

CAPS = [
    (Caps(300, 1000), 70),
    (Caps(300, 1000), 300),
    (Caps(300, 1000), 301),
    (Caps(300, 1000, (Limit(450, batches=7),)), 70),
    (Caps(300, 1000, (Limit(450, seconds=7 * DAY),)), 60),
    (Caps(300, 1000, (Limit(480, seconds=7 * DAY),)), 60),
    (Caps(300, 80), 100),
]


def admitted(store: LedgerStore, first: int, amount: int) -> tuple[int, str]:
    """How many batches in a row the ledger admits of one charge each, and the cap that ends it."""
    for number in range(first, 40):
        try:
            store.reserve("s", "job", day(number), charge(amount), 0)
        except BudgetExhaustedError as error:
            return number - first, str(error.fields["cap"])
    raise AssertionError("it never ended")


@pytest.mark.parametrize(("caps", "price"), CAPS)
def test_the_ledger_admits_as_many_batches(tmp_path: Path, caps: Caps, price: int) -> None:
    """Up to the lifetime cap; where a cap over less refuses first, it is named."""
    store = opened(tmp_path, caps)
    for number in range(3):
        store.reserve("s", "job", day(number), charge(25), 0)
    at = clock(store.database, "s", "epsilon", DAY)
    item = Item(0, price, price)
    found = rooms(store.database, "s", item)
    said = lasts(item, found, at, "epsilon", caps.lifetime_nano)
    number, cap = admitted(store, 3, price)
    assert said.refused_by == (() if cap == "lifetime" else (f"{cap} cap of epsilon",))
    if cap == "lifetime":
        assert (number, said.until) == (said.batches, (2 + number) * DAY)


def test_the_pace_is_what_the_last_batches_bear(tmp_path: Path) -> None:
    """A run once, batches without a charge between them too; nothing where nothing was charged."""
    store = opened(tmp_path, Caps(300, 10_000))
    assert at_pace(10_000, clock(store.database, "s", "epsilon", DAY)) is None
    for number in (0, 1, 2, 4, 5):
        store.reserve("s", "job", day(number), charge(30), 0)
    run = store.open_run("s", "gate", charge(100), 0)
    store.join_run(run, day(4), 0)
    store.join_run(run, day(5), 0)
    at = clock(store.database, "s", "epsilon", DAY)
    assert at == BatchClock(5 * DAY, DAY, 250, 6)
    pace = at_pace(9_750, at)
    assert pace == Lasts(None, 9_750 * 6 // 250, (5 + 9_750 * 6 // 250) * DAY)


def test_batches_without_windows_lie_at_the_dates_in_their_keys(tmp_path: Path) -> None:
    """One a day by its keys; without dates it is not known until when a budget lasts."""
    store = LedgerStore.open(tmp_path / "s.db", 0)
    store.declare(terms(Caps(300, 10_000)), 0)
    days = [Batch("s", f"day-2013-01-0{number}") for number in (1, 2, 3)]
    store.add_batches([(each, None) for each in [*days, Batch("s", "part")]], 0)
    for each in days:
        store.reserve("s", "job", each, charge(30), 0)
    at = clock(store.database, "s", "epsilon", None)
    assert (at.every, at.number) == (DAY, 3)
    assert (
        in_words(Lasts(None, 3, at.place_of(3)))
        == "enough for 3 more batches, up to that of 2013-01-06"
    )
    assert at.last is not None
    ending = replace(at, ends=at.last + 2 * DAY)
    before = Lasts(None, 3, at.place_of(3), ends=ending.ends_before(3))
    assert in_words(before).endswith("2013-01-06; the source ends before that, at 2013-01-05")
    assert ending.ends_before(1) is None
    store.reserve("s", "job", Batch("s", "part"), charge(30), 0)
    at = clock(store.database, "s", "epsilon", None)
    assert in_words(Lasts(None, 3, at.place_of(3))) == "enough for 3 more batches"


def test_charges_add_up_in_every_measure() -> None:
    """Without a pure loss where one has none."""
    assert sum_of([Item(0, 1, 2, 3), Item(0, 4, 5)]) == Item(0, 5, 7, 3)
    assert sum_of([Item(0, 1, 2), Item(0, None, 5)]).epsilon_nano is None
    assert sum_of([]) == Item(0, 0, 0)
