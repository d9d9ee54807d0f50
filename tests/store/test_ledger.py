"""The ledger: append-only, chained, never above a cap."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.errors import BudgetExhaustedError, ConfigurationError, IntegrityError, StoreError
from streamdp.privacy.filters import Caps
from streamdp.store.database import connect, transaction
from streamdp.store.ledger import chain, ledger
from streamdp.store.migrations import STEPS, migrate
from streamdp.store.sqlite import SqliteStore
from streamdp.types import Batch, Charge
from tests.store.kept import batch_spent, terms
from tests.worlds import World, without

CAPS = Caps(300, 1000)


def opened(path: Path, caps: Caps = CAPS) -> SqliteStore:
    store = SqliteStore.open(path, 0)
    store.declare(terms(caps), 0)
    return store


def batch(key: str) -> Batch:
    return Batch("s", key)


def charge(nano: int) -> Charge:
    return Charge({"type": "pure", "epsilon": "1"}, nano, 1)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 250), st.booleans())))
def test_charges_never_exceed_a_cap(
    tmp_path_factory: pytest.TempPathFactory, asked: list[tuple[str, int, bool]]
) -> None:
    """Whatever is asked and however it ends, sums stay within caps, and only a cap refuses."""
    store = opened(tmp_path_factory.mktemp("s") / "s.db")
    spent: dict[str, int] = {}
    for key, nano, burnt in asked:
        fits = spent.get(key, 0) + nano <= 300 and sum(spent.values()) + nano <= 1000
        try:
            reservation = store.reserve("s", "j", batch(key), charge(nano), 0)
        except BudgetExhaustedError:
            assert not fits
            continue
        assert fits
        spent[key] = spent.get(key, 0) + nano
        if burnt:
            store.burn(reservation, 0)
    chain.verify(store.database)
    assert chain.spent_of(store.database, "s") == sum(spent.values())


@pytest.mark.parametrize("threads", [100, pytest.param(1000, marks=pytest.mark.long)])
def test_one_wins_the_last_unit(tmp_path: Path, threads: int) -> None:
    """Of many threads with connections of their own, one gets the last unit; none overspends."""
    path = tmp_path / "s.db"
    store = opened(path, Caps(1000, 1000))
    store.reserve("s", "j", batch("b"), charge(999), 0)
    store.close()
    won: list[int] = []
    refused: list[str] = []
    barrier = threading.Barrier(threads)

    def try_it(number: int) -> None:
        own = connect(path)
        barrier.wait()
        for _ in range(20):
            try:
                with transaction(own):
                    ledger.reserve(own, "s", "j", batch("b"), charge(1), 0)
                won.append(number)
            except BudgetExhaustedError as error:
                refused.append(str(error.fields["cap"]))
            except StoreError:
                continue
            break
        own.close()

    crowd = [threading.Thread(target=try_it, args=(number,)) for number in range(threads)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    assert (len(won), len(refused)) == (1, threads - 1)
    database = connect(path)
    assert batch_spent(database, "b") == 1000
    chain.verify(database)


@pytest.mark.parametrize("column", ["epsilon_nano", "batch", "purpose", "at", "hash", "event"])
def test_an_edited_row_is_found(tmp_path: Path, column: str) -> None:
    """Any column of any row changed by other hands refuses the store at its next opening."""
    path = tmp_path / "s.db"
    store = opened(path)
    for key in "abc":
        store.burn(store.reserve("s", "j", batch(key), charge(10), 0), 0)
    store.close()
    raw = sqlite3.connect(path)
    value = {"purpose": "burn", "hash": b"7"}.get(column, "7")
    with without(raw, "ledger_keeps_values"):
        raw.execute(f"UPDATE ledger SET {column} = ? WHERE seq = 4", [value])
    raw.commit()
    raw.close()
    with pytest.raises(IntegrityError, match="row 4"):
        SqliteStore.open(path, 0)


@pytest.mark.parametrize("row", [1, 3])
def test_a_removed_row_is_found(tmp_path: Path, row: int) -> None:
    """A gap in the sequence refuses the store."""
    path = tmp_path / "s.db"
    store = opened(path)
    store.burn(store.reserve("s", "j", batch("a"), charge(10), 0), 0)
    store.reserve("s", "j", batch("b"), charge(10), 0)
    store.close()
    raw = sqlite3.connect(path)
    with without(raw, "ledger_keeps_rows"):
        raw.execute("DELETE FROM ledger WHERE seq = ?", [row])
    raw.commit()
    raw.close()
    with pytest.raises(IntegrityError):
        SqliteStore.open(path, 0)


def test_rows_cannot_be_changed_through_sql(tmp_path: Path) -> None:
    """Triggers refuse updates and deletions."""
    database = opened(tmp_path / "s.db").database
    for statement in ("UPDATE ledger SET at = 1", "DELETE FROM ledger"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            database.execute(statement)


def test_a_reservation_settles_once(tmp_path: Path) -> None:
    """Burning twice is refused by the schema."""
    store = opened(tmp_path / "s.db")
    reservation = store.reserve("s", "j", batch("a"), charge(10), 0)
    store.burn(reservation, 0)
    with pytest.raises(IntegrityError):
        store.burn(reservation, 0)


def test_caps_go_down_by_configuration_and_up_by_a_person(tmp_path: Path) -> None:
    """Lower caps take force at once; higher ones are refused until the ledger has them."""
    path = tmp_path / "s.db"
    opened(path).close()
    store = SqliteStore.open(path, 0)
    assert store.declare(terms(Caps(200, 900)), 0) == ["s"]
    with pytest.raises(ConfigurationError, match="streamdp cap"):
        store.declare(terms(CAPS), 0)
    with transaction(store.database):
        ledger.set_caps(store.database, "s", CAPS, {"by": "me", "reason": "test"}, 0)
    assert store.declare(terms(CAPS), 0) == []


def test_scopes_are_bound_all_or_none(tmp_path: Path) -> None:
    """Where one scope refuses a higher cap, no other is lowered."""
    store = opened(tmp_path / "s.db")
    store.declare(terms(Caps(300, 5000), "large"), 0)
    with pytest.raises(ConfigurationError):
        store.declare(terms(Caps(300, 2000), "large", "s"), 0)
    assert ledger.caps_of(store.database, "large") == Caps(300, 5000)


@pytest.mark.parametrize(("unit", "neighbours"), [("household", "add-remove"), ("person", "x")])
def test_the_meaning_of_a_budget_cannot_change(tmp_path: Path, unit: str, neighbours: str) -> None:
    """Another unit or another relation on the same ledger is refused."""
    store = opened(tmp_path / "s.db")
    with pytest.raises(ConfigurationError):
        store.declare(terms(CAPS, unit=unit, neighbours=neighbours), 0)


@pytest.mark.parametrize("trigger", ["ledger_keeps_rows", "ledger_keeps_values"])
def test_a_schema_that_lost_a_guard_is_refused(tmp_path: Path, trigger: str) -> None:
    """A trigger that is gone, or anything else that the steps did not make, is damage."""
    path = tmp_path / "s.db"
    opened(path).close()
    raw = sqlite3.connect(path)
    raw.execute(f"DROP TRIGGER {trigger}")
    raw.close()
    with pytest.raises(IntegrityError, match="schema"):
        SqliteStore.open(path, 0)


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    """A store that a later streamdp wrote is left alone."""
    path = tmp_path / "s.db"
    store = opened(path)
    store.database.execute("INSERT INTO migration VALUES (?, 0)", [len(STEPS) + 1])
    store.close()
    with pytest.raises(IntegrityError, match="schema"):
        SqliteStore.open(path, 0)


def test_migrations_race(tmp_path: Path) -> None:
    """Many processes may migrate at once."""
    path = tmp_path / "s.db"
    failures: list[Exception] = []

    def try_it() -> None:
        try:
            database = connect(path)
            migrate(database, 0)
            database.close()
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=try_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_the_files_are_their_owners_alone(tmp_path: Path) -> None:
    """Mode 0600, the journal included."""
    store = opened(tmp_path / "s.db")
    store.burn(store.reserve("s", "j", batch("a"), charge(10), 0), 0)
    for file in tmp_path.iterdir():
        assert file.stat().st_mode & 0o077 == 0, file


def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path) -> None:
    """Never replaced by an empty ledger."""
    path = tmp_path / "s.db"
    path.write_bytes(b"this is not SQLite" * 300)
    with pytest.raises((IntegrityError, StoreError)):
        SqliteStore.open(path, 0)
    assert path.read_bytes().startswith(b"this is not")


def test_a_full_disk_spends_nothing(tmp_path: Path) -> None:
    """When the reservation cannot be written there is none, and the store goes on afterwards."""
    store = opened(tmp_path / "s.db", Caps(10**9, 10**12))
    (pages,) = store.database.execute("PRAGMA page_count").fetchone()
    store.database.execute(f"PRAGMA max_page_count = {pages}")
    written = 0

    def fill() -> None:
        nonlocal written
        for _ in range(200):
            store.reserve("s", "j", batch("a" * 500), charge(1), 0)
            written += 1

    with pytest.raises(StoreError, match="full"):
        fill()
    assert chain.spent_of(store.database, "s") == written
    store.database.execute(f"PRAGMA max_page_count = {pages + 100}")
    store.reserve("s", "j", batch("b"), charge(1), 0)
    chain.verify(store.database)


@pytest.mark.parametrize("sums", [(0, 1, 0), (None, 1, 0), (10, 0, 0), (10, 1, 1)])
def test_a_wrong_running_total_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sums: tuple[int | None, int, int]
) -> None:
    """A chain that is whole but adds up to less than was spent refuses the store."""
    store = opened(tmp_path / "s.db")
    store.reserve("s", "j", batch("a"), charge(10), 0)
    with transaction(store.database):
        ledger.set_caps(store.database, "s", CAPS, {"by": "me"}, 0)
        monkeypatch.setattr(chain, "_sums_of", lambda database, scope: sums)
        chain.append(store.database, at=0, purpose="cap", scope="s", event={}, caps=CAPS)
    with pytest.raises(IntegrityError, match="row 4"):
        chain.verify(store.database)


def test_a_damaged_page_is_an_integrity_error(tmp_path: Path) -> None:
    """Whichever page is overwritten, opening never ends in a foreign exception.

    Pages that hold nothing, which the steps of the schema leave, may have anything in them.
    """
    path = tmp_path / "s.db"
    store = opened(path)
    for key in range(40):
        store.burn(store.reserve("s", "j", batch(str(key)), charge(1), 0), 0)
    store.close()
    with closing(sqlite3.connect(path)) as raw:
        (free,) = raw.execute("PRAGMA freelist_count").fetchone()
    whole = path.read_bytes()
    refused = 0
    for page in range(0, len(whole), 4096):
        path.write_bytes(whole[:page] + b"\x5a" * 4096 + whole[page + 4096 :])
        try:
            SqliteStore.open(path, 0).close()
        except (IntegrityError, StoreError):
            refused += 1
    assert free < 9
    assert refused >= len(whole) // 4096 - free


def test_a_wait_set_by_a_clock_of_the_future_ends(tmp_path: Path) -> None:
    """After the clock was put right, a sink does not wait for the year it once showed."""
    world = World(tmp_path, days=1)
    world.sink.fails = True
    right = world.clock.seconds
    world.clock.seconds += 10**9
    world.runner.round([world.job()])
    world.clock.seconds, world.sink.fails = right, False
    world.runner.round([])
    assert len(world.sink.taken) == 1


def test_debts_to_a_sink_that_is_gone_are_not_read(tmp_path: Path) -> None:
    """They are kept, and cost nothing until the sink is configured again."""
    world = World(tmp_path, days=1)
    world.runner.sinks = {}
    world.runner.round([world.job()])
    assert list(world.store.due_deliveries(world.clock.now(), [])) == []
    assert len(list(world.store.due_deliveries(world.clock.now(), ["list"]))) == 1


def test_files_of_a_source_that_never_spent_are_free_once_it_is_gone(tmp_path: Path) -> None:
    """A source renamed before its first charge finds its files; one that paid keeps them."""
    store = SqliteStore.open(tmp_path / "s.db", 0)
    store.declare(terms(CAPS, "gone", "paid"), 0)
    store.bind_origins("gone", "", ["one"], 0)
    store.bind_origins("paid", "", ["two"], 0)
    store.reserve("paid", "j", Batch("paid", "a"), charge(1), 0)
    assert set(store.bind_origins("new", "", ["one", "two"], 0)) == {"one", "two"}
    store.declare(terms(CAPS, "new"), 0)
    assert set(store.bind_origins("new", "", ["one", "two"], 0)) == {"two"}
    store.close()
