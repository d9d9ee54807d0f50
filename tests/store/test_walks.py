"""Random walks of the ledger beside a model that keeps nothing but what was asked."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from streamdp.errors import BudgetExhaustedError
from streamdp.privacy.filters import Caps, Item, Limit
from streamdp.store.ledger import chain, ledger
from streamdp.store.ledger.ledger import rooms
from streamdp.store.reading.reports import scope_reports
from streamdp.types import Batch, Charge, Reservation, Run
from tests.store.kept import LedgerStore, batch_spent, terms
from tests.stretches import stretches

AMOUNTS = st.integers(1, 40)


@dataclass
class Spent:
    """A charge and the batches that bear it."""

    epsilon: int
    rho: int
    batches: set[str] = field(default_factory=set)

    def of(self, limit: Limit) -> int:
        return self.epsilon if limit.measure == "epsilon" else self.rho


def total(limit: Limit, charges: list[Spent], stretch: set[str]) -> int:
    if limit.lifetime:
        return sum(charge.of(limit) for charge in charges)
    return sum(charge.of(limit) for charge in charges if charge.batches & stretch)


class Walk(RuleBasedStateMachine):
    """Ingest, charge, join, settle, crash and change caps in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "s.db"
        self.batches: list[Batch] = []
        self.arrived: dict[str, int] = {}
        self.charges: list[Spent] = []
        self.open: list[Reservation] = []
        self.run: tuple[Run, Spent] | None = None
        self.now = 0

    @initialize(
        files=st.booleans(),
        batch=st.integers(20, 60),
        lifetime=st.integers(60, 300),
        windows=st.lists(
            st.builds(
                Limit,
                st.integers(10, 120),
                st.sampled_from(["epsilon", "rho"]),
                batches=st.integers(1, 5) | st.none(),
            )
            | st.builds(
                Limit,
                st.integers(10, 120),
                st.sampled_from(["epsilon", "rho"]),
                seconds=st.integers(1, 30),
            ),
            max_size=3,
        ),
    )
    def begin(self, files: bool, batch: int, lifetime: int, windows: list[Limit]) -> None:
        self.files, self.caps = files, Caps(batch, lifetime, tuple(windows))
        self.store = LedgerStore.open(self.path, 0)
        self.store.declare(terms(self.caps), 0)

    @rule(gap=st.integers(0, 4), name=st.integers(0, 99))
    def ingest(self, gap: int, name: int) -> None:
        """The next window, perhaps after a gap; or a file of any name."""
        self.now = min(self.now + gap, 100)
        if self.files:
            batch = Batch("s", f"{name:02d}", path="f")
            if batch.key in self.arrived:
                return
        else:
            start = max((each.end or 0 for each in self.batches), default=0) + gap
            if start > 100:
                return
            batch = Batch("s", f"t{start:03d}", start, start + 3)
        self.arrived[batch.key] = self.now
        self.batches.append(batch)
        self.store.add_batches([(batch, None)], self.now)

    @precondition(lambda self: self.batches)
    @rule(data=st.data(), epsilon=AMOUNTS, rho=AMOUNTS)
    def reserve(self, data: st.DataObject, epsilon: int, rho: int) -> None:
        batch = data.draw(st.sampled_from(self.batches))
        spent = Spent(epsilon, rho, {batch.key})
        charge = Charge({"type": "pure", "epsilon": "1"}, epsilon, rho)
        fits = self.fits([*self.charges, spent], {batch.key})
        try:
            self.open.append(self.store.reserve("s", "job", batch, charge, self.now))
        except BudgetExhaustedError:
            assert not fits
            return
        assert fits
        self.charges.append(spent)

    @precondition(lambda self: self.open)
    @rule()
    def burn(self) -> None:
        self.store.burn(self.open.pop(), self.now)

    @precondition(lambda self: self.run is None)
    @rule(epsilon=AMOUNTS, rho=AMOUNTS)
    def open_run(self, epsilon: int, rho: int) -> None:
        spent = Spent(epsilon, rho)
        fits = all(
            total(limit, [*self.charges, spent], set()) <= limit.nano
            for limit in self.caps.limits
            if limit.lifetime
        )
        charge = Charge({"type": "pure", "epsilon": "1"}, epsilon, rho)
        try:
            self.run = (self.store.open_run("s", "gate", charge, self.now), spent)
        except BudgetExhaustedError:
            assert not fits
            return
        assert fits
        self.charges.append(spent)

    @precondition(lambda self: self.run and self.batches)
    @rule(data=st.data())
    def join(self, data: st.DataObject) -> None:
        assert self.run is not None
        run, spent = self.run
        batch = data.draw(st.sampled_from(self.batches))
        new = Spent(spent.epsilon, spent.rho, spent.batches | {batch.key})
        others = [charge for charge in self.charges if charge is not spent]
        limits = [limit for limit in self.caps.limits if not limit.lifetime]
        fits = batch.key in spent.batches or self.fits([*others, new], {batch.key}, limits)
        try:
            self.store.join_run(run, batch, self.now)
        except BudgetExhaustedError:
            assert not fits
            return
        assert fits
        spent.batches.add(batch.key)

    @precondition(lambda self: self.run)
    @rule()
    def close(self) -> None:
        assert self.run is not None
        self.store.close_run(self.run[0], self.now)
        self.run = None

    @rule()
    def crash(self) -> None:
        """A new process recovers: what was reserved burns, what was a run goes on."""
        self.store.close()
        self.store = LedgerStore.open(self.path, self.now)
        assert len(self.store.recover(self.now)) == len(self.open)
        self.open = []
        assert self.store.open_run_of("gate") == (self.run[0] if self.run else None)

    @rule(batch=st.integers(10, 60), lifetime=st.integers(60, 300))
    def change_caps(self, batch: int, lifetime: int) -> None:
        """A person may raise and lower them at any time."""
        self.caps = Caps(batch, lifetime, self.caps.windows)
        with self.store.transaction():
            ledger.set_caps(self.store.database, "s", self.caps, {"by": "me"}, self.now)

    def order(self) -> list[tuple[str, int, int]]:
        if self.files:
            return sorted((key, at, at) for key, at in self.arrived.items())
        return [(batch.key, batch.start or 0, batch.end or 0) for batch in self.batches]

    def fits(
        self, charges: list[Spent], touched: set[str], limits: list[Limit] | None = None
    ) -> bool:
        order = self.order()
        return all(
            total(limit, charges, stretch) <= limit.nano
            for limit in (self.caps.limits if limits is None else limits)
            for stretch in stretches(limit, order)
            if touched & stretch or limit.lifetime
        )

    @invariant()
    def sums_agree(self) -> None:
        """The ledger's own figures are those of the model."""
        if not hasattr(self, "store"):
            return
        chain.verify(self.store.database)
        assert ledger.caps_of(self.store.database, "s") == self.caps
        (report,) = scope_reports(self.store.database)
        life = sum(charge.epsilon for charge in self.charges)
        assert report.lifetime_spent_nano == life
        for batch in self.batches:
            borne = sum(charge.epsilon for charge in self.charges if batch.key in charge.batches)
            assert batch_spent(self.store.database, batch.key) == borne

    def teardown(self) -> None:
        """What a person is told of each cap is the most that any stretch ever held."""
        if hasattr(self, "store"):
            price = Item(0, 1, 1)
            for room in rooms(self.store.database, "s", price):
                most = max(
                    total(room.limit, self.charges, stretch)
                    for stretch in stretches(room.limit, self.order())
                )
                assert room.fullest_nano == most
            self.store.close()
        self.folder.cleanup()


def test_short_walks() -> None:
    """What is refused and what is admitted, over every kind of window, is what the model says."""
    run_state_machine_as_test(
        Walk, settings=settings(max_examples=15, stateful_step_count=25, deadline=None)
    )


@pytest.mark.long
def test_long_walks() -> None:
    """The same, further."""
    run_state_machine_as_test(
        Walk, settings=settings(max_examples=500, stateful_step_count=60, deadline=None)
    )
