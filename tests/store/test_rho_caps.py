"""Caps in zero-concentrated loss, and charges that have no other."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.errors import BudgetExhaustedError, ConfigurationError, IntegrityError
from streamdp.privacy.accountants import epsilon_of_rho
from streamdp.privacy.amounts import UNBOUNDED
from streamdp.privacy.events import charge_of, pure, zero_concentrated
from streamdp.privacy.filters import Caps, Limit
from streamdp.store.anchor import default_anchor, require_agreement
from streamdp.store.database import connect_to_read, transaction
from streamdp.store.ledger import chain, ledger
from streamdp.store.ledger.privacy_guarantee import loss_of, recompute
from streamdp.store.reading.reports import job_report, scope_reports
from streamdp.store.reconcile import reconcile
from streamdp.store.sqlite import SqliteStore
from streamdp.store.verified_open import verify
from streamdp.types import Batch, Charge
from tests.store.kept import LedgerStore, terms
from tests.store.test_anchor import copy, restore
from tests.worlds import without

CAPS = Caps(300, 1000, (Limit(500, "rho", batches=2),), "rho")
DELTA = Fraction(1, 10**9)
GAUSS = charge_of(zero_concentrated(Fraction(100, 10**9)))


def opened(path: Path, caps: Caps = CAPS) -> LedgerStore:
    store = LedgerStore.open(path, 0)
    store.declare(terms(caps), 0)
    return store


def batch(key: str) -> Batch:
    return Batch("s", key)


def test_a_charge_of_rho_has_no_epsilon() -> None:
    """It is not a charge of nothing."""
    assert (GAUSS.epsilon_nano, GAUSS.rho_nano) == (None, 100)


ASKED = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.integers(1, 250), st.booleans(), st.booleans())
)


@settings(max_examples=30, deadline=None)
@given(ASKED)
def test_charges_never_exceed_a_cap_in_rho(
    tmp_path_factory: pytest.TempPathFactory, asked: list[tuple[str, int, bool, bool]]
) -> None:
    """Pure or not, burnt or not: rho of batches, of two in a row and of all stay within caps."""
    store = opened(tmp_path_factory.mktemp("s") / "s.db")
    with transaction(store.database):
        for key in "abcdef":
            store.database.execute(
                "INSERT INTO batch (source, key, arrived_at) VALUES ('s', ?, 0)", [key]
            )
    spent = dict.fromkeys("abcdef", 0)
    for key, nano, is_pure, burnt in asked:
        after = spent | {key: spent[key] + nano}
        pairs = [after[a] + after[b] for a, b in zip("abcde", "bcdef", strict=True) if key in a + b]
        fits = after[key] <= 300 and max(pairs) <= 500 and sum(after.values()) <= 1000
        try:
            charge = Charge(pure(Fraction(1)), 10**9 if is_pure else None, nano)
            reservation = store.reserve("s", "j", batch(key), charge, 0)
        except BudgetExhaustedError:
            assert not fits
            continue
        assert fits
        spent = after
        if burnt:
            store.burn(reservation, 0)
    chain.verify(store.database)
    assert chain.spent_of(store.database, "s", "rho") == sum(spent.values())
    (report,) = scope_reports(store.database)
    assert (report.measure, report.lifetime_spent_nano) == ("rho", sum(spent.values()))
    assert report.worst_batch_nano == max(spent.values())


@pytest.mark.parametrize(
    ("caps", "name"),
    [
        (Caps(10**9, 10**9), "lifetime"),
        (Caps(10**9, 10**9, (), "rho"), None),
        (Caps(10**9, 10**9, (Limit(10**9, batches=3),), "rho"), "3-batch"),
    ],
)
def test_a_cap_in_pure_epsilon_refuses_it_with_the_reason(
    tmp_path: Path, caps: Caps, name: str | None
) -> None:
    """However much room there is; nothing is spent."""
    store = opened(tmp_path / "s.db", caps)
    if name is None:
        store.reserve("s", "j", batch("a"), GAUSS, 0)
        return
    with pytest.raises(BudgetExhaustedError, match=f"the {name} cap .* no pure loss") as caught:
        store.reserve("s", "j", batch("a"), GAUSS, 0)
    assert "{epsilon: 1, delta: 1e-9}" in str(caught.value.hint)
    assert caught.value.fields["frees"] == "never"
    assert chain.spent_of(store.database, "s") == 0


def test_runs_of_gates_are_counted_in_rho(tmp_path: Path) -> None:
    """Once over the lifetime, and against each batch and window they join."""
    store = opened(tmp_path / "s.db")
    run = store.open_run("s", "g", Charge(pure(Fraction(1)), 10**9, 250), 0)
    store.join_run(run, batch("a"), 0)
    store.reserve("s", "j", batch("a"), Charge({}, None, 50), 0)
    with pytest.raises(BudgetExhaustedError, match="batch cap of s has 0 of"):
        store.reserve("s", "j", batch("a"), Charge({}, None, 1), 0)
    with pytest.raises(BudgetExhaustedError, match="lifetime cap"):
        store.open_run("s", "h", Charge({}, None, 701), 0)


def test_a_ledger_tells_what_was_spent_in_the_measure_of_its_caps(tmp_path: Path) -> None:
    """And in ε at a δ; a sum of ε that leaves a charge out is never told."""
    store = opened(tmp_path / "s.db", Caps(10**9, 10**9, (), "rho"))
    store.reserve("s", "pure", batch("a"), charge_of(pure(Fraction(1, 100))), 0)
    before = loss_of(store.database, "s", DELTA)
    assert before.pure == 10**7 >= before.best[1]
    rho = charge_of(zero_concentrated(Fraction(1, 100)))
    store.burn(store.reserve("s", "gauss", batch("a"), rho, 0), 0)
    loss, total = loss_of(store.database, "s", DELTA), 10**7 + 50_000
    assert loss.pure is None
    assert loss.distributions is None
    assert loss.best == ("zero-concentrated", epsilon_of_rho(total, DELTA))
    assert loss.cap == epsilon_of_rho(10**9, DELTA)
    assert chain.spent_of(store.database, "s") == UNBOUNDED
    assert job_report(store.database, "gauss").spent_nano == 10**7
    assert job_report(store.database, "pure").measure == "rho"
    (report,) = scope_reports(store.database)
    assert (report.lifetime_spent_nano, report.burnt_nano) == (total, 10**7)
    assert [charge.differs for charge in recompute(store.database)] == [False, False]
    with closing(sqlite3.connect(tmp_path / "s.db")) as database:
        (row,) = database.execute("SELECT measure, spent, left FROM v_budget").fetchall()
    assert row == ("rho", total / 1e9, (10**9 - total) / 1e9)


def test_where_charges_were_chosen_the_cap_is_the_bound(tmp_path: Path) -> None:
    """A gate has chosen: a sum of rho that stopped where it did is none, but the cap is."""
    store = opened(tmp_path / "s.db", Caps(10**9, 10**9, (), "rho"))
    store.open_run("s", "g", charge_of(pure(Fraction(1, 10))), 0)
    store.reserve("s", "j", batch("a"), charge_of(zero_concentrated(Fraction(1, 10))), 0)
    loss = loss_of(store.database, "s", DELTA)
    assert loss.adaptive
    assert loss.best == ("lifetime cap", epsilon_of_rho(10**9, DELTA))


def test_under_caps_in_epsilon_again_nothing_fits(tmp_path: Path) -> None:
    """Who changes the caps has changed what is promised, not what was spent."""
    store = opened(tmp_path / "s.db", Caps(10**9, 10**9, (), "rho"))
    store.reserve("s", "j", batch("a"), GAUSS, 0)
    with transaction(store.database):
        ledger.set_caps(store.database, "s", Caps(10**10, 10**10), {"by": "me"}, 0)
    with pytest.raises(BudgetExhaustedError, match="lifetime cap of s has 0 of"):
        store.reserve("s", "j", batch("b"), charge_of(pure(Fraction(1, 10))), 0)
    (report,) = scope_reports(store.database)
    assert report.lifetime_spent_nano == report.worst_batch_nano == UNBOUNDED
    loss = loss_of(store.database, "s", DELTA)
    assert (loss.pure, loss.cap, loss.best[0]) == (None, None, "zero-concentrated")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Caps(300, 1000), Caps(300, 1000, (), "rho")),
        (Caps(300, 1000), Caps(1, 1, (), "rho")),
        (Caps(300, 1000, (), "rho"), Caps(300, 1000)),
        (Caps(300, 1000, (), "rho"), Caps(301, 1000, (), "rho")),
    ],
)
def test_an_edit_changes_no_cap_into_one_of_another_measure(
    tmp_path: Path, old: Caps, new: Caps
) -> None:
    """It could allow more: `streamdp cap` writes it down."""
    store = opened(tmp_path / "s.db", old)
    with pytest.raises(ConfigurationError, match=r"streamdp cap|allows s more"):
        store.declare(terms(new), 0)
    assert ledger.caps_of(store.database, "s") == old


def test_a_backup_put_back_is_charged_what_it_forgot_in_rho(tmp_path: Path) -> None:
    """The anchor knows charges without epsilon; they come back as such, and count as such."""
    path = tmp_path / "s.db"
    store = opened(path, CAPS)
    store.reserve("s", "j", batch("a"), GAUSS, 0)
    store.close()
    copy(path, "early")
    store = opened(path, CAPS)
    store.reserve("s", "j", batch("b"), GAUSS, 0)
    store.close()
    restore(path, "early")
    with pytest.raises(IntegrityError, match=r"charges of rho 0\.0000001 more"):
        SqliteStore.open(path, 0)
    about = {"operator": "me", "reason": "test"}
    found = reconcile(path, default_anchor(path), terms(CAPS), {"s": {"path": "f"}}, about, 0)
    assert [(each.epsilon_nano, each.rho_nano) for each in found.missing] == [(None, 100)]
    store = opened(path, CAPS)
    verify(store.database)
    assert chain.spent_of(store.database, "s", "rho") == 200
    assert [charge.differs for charge in recompute(store.database)] == [False, False]
    store.close()
    require_agreement(connect_to_read(path), default_anchor(path))


@pytest.mark.parametrize(
    "change",
    [
        "epsilon_nano = 0",
        "rho_nano = 1",
        "lifetime_rho_nano = 0",
        "rho_nano = 1, lifetime_rho_nano = 1",
    ],
)
def test_an_edited_loss_is_found(tmp_path: Path, change: str) -> None:
    """A charge without epsilon that is made one of nothing, or a sum that forgets it."""
    path = tmp_path / "s.db"
    store = opened(path, CAPS)
    store.reserve("s", "j", batch("a"), GAUSS, 0)
    store.close()
    database = sqlite3.connect(path)
    with without(database, "ledger_keeps_values"):
        database.execute(f"UPDATE ledger SET {change} WHERE purpose = 'reserve'")
    database.commit()
    database.close()
    with pytest.raises(IntegrityError, match="row 2"):
        SqliteStore.open(path, 0)
