"""Copies that the daemon makes: whole, in time, pruned by what they hold, and never a way back."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from streamdp.config import Configuration
from streamdp.daemon.runtime import Runtime, runtime
from streamdp.errors import IntegrityError, StoreError
from streamdp.store import backup
from streamdp.store.backup import add_copy, copies, name_of, newest_at, put_back
from streamdp.store.database import connect_to_read
from streamdp.store.reconcile import reconcile
from streamdp.store.verified_open import verify_copy
from tests.crash.home import CONFIG, Home
from tests.worlds import START, EventLog, ReplayedEntropy

HOUR = 3600
COPIED = f"{CONFIG}backup: {{path: copies, every: 1h, keep: 4}}\n"
WHO = {"operator": "me", "reason": "a disk died"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.furnish(tmp_path / "home", COPIED)


def live(
    home: Home,
    work: Callable[[Runtime, Configuration], None],
    log: EventLog,
    seed: str = "first",
) -> None:
    """A life of the daemon."""
    configuration = home.configuration()
    with runtime(configuration, ReplayedEntropy(seed), home.clock, log) as running:
        work(running, configuration)


def watch(running: Runtime, of: Configuration, home: Home, log: EventLog) -> None:
    running.watch(of, ReplayedEntropy("watch"), home.clock, log)


def names(home: Home) -> list[str]:
    folder = home.path / "copies"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def spent(path: Path) -> int:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
        (total,) = store.execute("SELECT coalesce(sum(epsilon_nano), 0) FROM ledger").fetchone()
    return int(total)


def test_a_copy_is_made_when_the_last_is_old(home: Home) -> None:
    """One at once, one an hour later and none before; folder and copies are the user's alone."""
    log = EventLog()

    def work(running: Runtime, of: Configuration) -> None:
        for minutes, there in ((0, 1), (59, 1), (1, 2), (30, 2)):
            home.clock.seconds += 60 * minutes
            watch(running, of, home, log)
            assert len(names(home)) == there

    live(home, work, log)
    assert log.names().count("backup.written") == 2
    folder = home.path / "copies"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_the_oldest_by_what_they_hold_are_removed(home: Home) -> None:
    """A clock that was ahead does not keep its copies, nor does it stop new ones; others stay."""
    log, folder = EventLog(), home.path / "copies"
    folder.mkdir()
    (folder / "store-notes.db").write_text("mine")

    def work(running: Runtime, of: Configuration) -> None:
        for step in (9 * HOUR, -9 * HOUR, HOUR, HOUR, HOUR, HOUR, HOUR):
            home.clock.seconds += step
            running.runner.round(running.jobs.values(), lambda batch: len(names(home)) % 2 == 0)
            watch(running, of, home, log)

    live(home, work, log)
    kept = names(home)
    assert kept.pop(kept.index("store-notes.db"))
    assert len(kept) == 4
    assert log.names().count("backup.written") == 7
    assert [path.path.name for path in copies(folder, kept[0][:14])] == kept


def test_the_copy_that_was_just_made_stays(home: Home) -> None:
    """Beside copies of later epochs, of a life that was lost together with the store's anchor."""
    home.live()
    with closing(connect_to_read(home.store)) as database:
        folder, prefix = home.path / "copies", name_of(database, home.store)
        folder.mkdir()
        for seq in range(4):
            (folder / f"{prefix}-000099-{seq:09}-20990101T000000Z.db").touch()
        made = add_copy(home.store, folder, 4, START, verify_copy)
        assert made.path.exists()
        there = copies(folder, prefix)
        assert len(there) == 4
        assert newest_at(there, database) == START


def test_stores_that_were_replaced_stay_though_the_clock_stands_still(home: Home) -> None:
    """Each is put aside under a name of its own."""
    home.live()
    made = add_copy(home.store, home.path / "copies", 4, START, verify_copy)
    for _ in range(3):
        put_back(made.path, home.store, START, verify_copy)
    assert len(list(home.path.glob("store.db.replaced-*[0-9]"))) == 3


def test_a_failure_is_told_once_and_tried_again(home: Home) -> None:
    """A folder that is a file costs no release; when it is gone a copy is made."""
    log = EventLog()
    (home.path / "copies").write_text("in the way")

    def work(running: Runtime, of: Configuration) -> None:
        watch(running, of, home, log)
        watch(running, of, home, log)
        assert running.runner.round(running.jobs.values()).released == 5
        (home.path / "copies").unlink()
        watch(running, of, home, log)

    live(home, work, log)
    assert log.names().count("backup.failed") == 1
    assert len(names(home)) == 1


def test_a_copy_is_whole_or_not_there(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a check refuses takes no name and removes no older copy; a dead copy is cleared away."""
    live(home, lambda running, of: watch(running, of, home, EventLog()), EventLog())
    before, folder, store = names(home), home.path / "copies", home.path / "store.db"

    def refuse(database: object) -> None:
        raise IntegrityError("the copy is damaged")

    with pytest.raises(IntegrityError):
        add_copy(store, folder, 1, home.clock.now(), refuse)
    assert names(home) == before
    monkeypatch.setattr(backup, "sync", lambda path: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(StoreError, match="cannot be written: full"):
        add_copy(store, folder, 1, home.clock.now(), verify_copy)
    monkeypatch.undo()
    assert names(home) == before
    left = folder / ".store.dead"
    left.mkdir()
    os.utime(left, (time.time() - 9 * 86_400, time.time() - 9 * 86_400))
    add_copy(store, folder, 9, int(time.time()), verify_copy)
    assert not left.exists()


def test_every_copy_can_be_put_back_and_none_forgets(home: Home) -> None:
    """A drill: the store is lost, any copy is put back, and all that was spent stays spent.

    It is refused until it is reconciled. Then what is left of the caps is what was left before.
    """

    def work(running: Runtime, of: Configuration) -> None:
        keys = ["2023-11-15", "2023-11-16", "2023-11-17", "a.csv"]
        for key in keys:
            running.runner.round(running.jobs.values(), lambda batch, key=key: batch.key == key)  # type: ignore[misc]
            home.clock.seconds += HOUR
            watch(running, of, home, EventLog())
        running.runner.round(running.jobs.values())

    live(home, work, EventLog())
    truth = spent(home.path / "store.db")
    kept = home.path.rename(home.path.with_name("kept"))
    made = sorted((kept / "copies").iterdir())
    assert [spent(path) for path in made] == [truth * part // 5 for part in (1, 2, 3, 4)]
    for missing, path in zip((4, 3, 2, 1), made, strict=True):
        shutil.rmtree(home.path, ignore_errors=True)
        shutil.copytree(kept, home.path)
        for part in home.path.glob("store.db*"):
            part.unlink()
        put_back(path, home.store, home.clock.now(), verify_copy)
        with pytest.raises(IntegrityError):
            live(home, lambda running, of: None, EventLog())
        of = home.configuration()
        store, anchor = of.store.paths()
        found = reconcile(store, anchor, of.terms(), of.data(), WHO, home.clock.now())
        assert len(found.missing) == missing
        assert spent(store) == truth
        home.clock.seconds += HOUR

        def again(running: Runtime, of: Configuration, missing: int = missing) -> None:
            assert running.runner.round(running.jobs.values()).released == missing

        live(home, again, EventLog(), seed="after")
        assert spent(store) == truth + truth * missing // 5
