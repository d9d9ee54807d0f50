"""Two who want one store at the same moment: one waits, or is told that the other has it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest

from streamdp.database import Database
from streamdp.errors import LockedError, SinkError, StoreError
from streamdp.sinks.table import TableSink
from streamdp.store import verified_open
from streamdp.store.database import connect, one_writer, transaction, truncate_log
from streamdp.store.sqlite import SqliteStore
from tests.sinks.targets import release
from tests.store.test_anchor import charge
from tests.worlds import World


def test_a_new_store_waits_for_another_that_is_just_made(tmp_path: Path) -> None:
    """SQLite's own patience does not cover the switch to a log that is written ahead."""
    path = tmp_path / "store.db"
    busy = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    busy.execute("BEGIN IMMEDIATE")
    end = Timer(0.2, busy.rollback)
    end.start()
    database = connect(path)
    end.join()
    busy.close()
    assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    database.close()


def test_a_charge_while_another_opens_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The anchor is read when nobody else can write: it and the ledger are of one moment."""
    world = World(tmp_path, days=1)

    @contextmanager
    def late(database: Database) -> Iterator[None]:
        monkeypatch.undo()
        charge(world.store, "just before")
        with transaction(database):
            yield

    monkeypatch.setattr(verified_open, "transaction", late)
    SqliteStore.open(world.path, 0).close()
    world.store.close()


def test_who_lost_the_store_is_told_so_before_it_delivers(tmp_path: Path) -> None:
    """Its anchor has moved on too, but nothing is damaged: another process works."""
    world = World(tmp_path, days=2)
    world.sink.fails = True
    world.runner.round([world.job()])
    later = world.clock.now() + 10**6
    SqliteStore.open(world.path, later).close()
    with pytest.raises(LockedError, match="taken this store over"):
        next(world.store.due_deliveries(later, [world.sink.name]))
    world.store.close()


def test_no_one_empties_the_log_while_another_writes(tmp_path: Path) -> None:
    """SQLite may lose the commit of one whose log another copies at that moment."""
    path, said = tmp_path / "store.db", list[str]()
    writing, emptying = connect(path), connect(path)
    emptying.conn.set_trace_callback(said.append)
    with transaction(writing):
        assert not truncate_log(emptying)
    assert not any("checkpoint" in each for each in said)
    assert truncate_log(emptying)
    assert any("checkpoint" in each for each in said)
    writing.close()
    emptying.close()


def test_no_one_writes_while_another_empties_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waited too long is told so before anything is written."""
    monkeypatch.setattr(one_writer.__wrapped__, "__defaults__", (0.01,))  # type: ignore[attr-defined]
    path = tmp_path / "store.db"
    writing, emptying = connect(path), connect(path)
    with one_writer(emptying, 0):
        with pytest.raises(StoreError, match="cannot be used"), transaction(writing):
            raise AssertionError
        with pytest.raises(SinkError, match="cannot be used"):
            TableSink("table", writing, "rows", one_writer).deliver(release(1))
    writing.close()
    emptying.close()


def test_who_loses_the_store_while_it_opens_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its epoch and the anchor's line that confirms it another may open the store."""
    world = World(tmp_path, days=1)
    turns: list[int] = []

    @contextmanager
    def early(database: Database) -> Iterator[None]:
        with transaction(database):
            yield
        if not turns:
            turns.append(1)
            SqliteStore.open(world.path, 0).close()

    world.store.close()
    monkeypatch.setattr(verified_open, "transaction", early)
    with pytest.raises(LockedError, match="taken this store over"):
        SqliteStore.open(world.path, 0)
    SqliteStore.open(world.path, 0).close()
