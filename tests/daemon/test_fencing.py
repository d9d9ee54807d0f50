"""Two at once: locks that were lost, races, readers, and disks that cannot be written."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from streamdp.config import load
from streamdp.daemon.runtime import SystemClock, runtime
from streamdp.errors import StoreError
from streamdp.privacy.draws import OperatingSystemEntropy
from streamdp.store import database
from streamdp.store.anchor import default_anchor, require_agreement
from streamdp.store.database import connect_to_read
from streamdp.store.sqlite import SqliteStore
from tests.daemon.test_daemon import COMMAND, Start, home, start, wait_for
from tests.invariants import violations
from tests.worlds import EventLog, World

__all__ = ["home", "start"]


def last_row(home: Path) -> int:
    (row,) = connect_to_read(home / "streamdp.db").execute("SELECT max(seq) FROM ledger").fetchone()
    return int(row)


def test_a_suspended_daemon_that_wakes_up_writes_nothing(home: Path, start: Start) -> None:
    """Stopped in its catch-up, its lock taken by another: it finds its epoch outdated and ends."""
    first = start("run")
    wait_for(home, "release.committed", 2)
    stop_outside_of_writing(first, home)
    (home / "streamdp.db.lock").unlink()
    second = subprocess.run([*COMMAND, "run", "--once"], cwd=home, capture_output=True, text=True)
    assert second.returncode == 0, second.stderr
    before = last_row(home)
    first.send_signal(signal.SIGCONT)
    assert first.wait(timeout=600) == 5
    assert last_row(home) == before
    assert violations(home / "streamdp.db", sinks=2) == []
    assert len((home / "releases.jsonl").read_text().splitlines()) == 20
    require_agreement(connect_to_read(home / "streamdp.db"), home / "streamdp.db.anchor")


def stop_outside_of_writing(daemon: subprocess.Popen[str], home: Path) -> None:
    """Suspend it where it keeps nobody from a file: it holds the lock of its store alone."""
    allowed = {(home / name).stat().st_ino for name in ("streamdp.db.lock",)}
    while True:
        daemon.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, daemon.pid, os.WSTOPPED)
        held = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        of_it = [each for each in held if each[3:5] == ["WRITE", str(daemon.pid)]]
        if all(int(each[5].split(":")[2]) in allowed for each in of_it):
            return
        daemon.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("pairs", [1, pytest.param(100, marks=pytest.mark.long)])
def test_pairs_of_daemons_race(home: Path, pairs: int) -> None:
    """Started at the same moment: one works or both one after the other, nothing is spent twice."""
    text = (home / "config.yaml").read_text()
    for pair in range(pairs):
        folder = home / str(pair)
        folder.mkdir()
        (folder / "config.yaml").write_text(text.replace("2013-01-21", "2013-01-05"))
        both = [
            subprocess.Popen([*COMMAND, "run", "--once"], cwd=folder, stderr=subprocess.DEVNULL)
            for _ in range(2)
        ]
        codes = sorted(process.wait(timeout=600) for process in both)
        assert codes in ([0, 0], [0, 5])
        assert violations(folder / "streamdp.db", sinks=2) == []
        (charged,) = (
            connect_to_read(folder / "streamdp.db")
            .execute("SELECT count(*) FROM ledger WHERE purpose = 'reserve'")
            .fetchone()
        )
        assert charged == 4
        assert len((folder / "releases.jsonl").read_text().splitlines()) == 4


def test_a_shift_leaves_no_core_and_files_of_its_own(home: Path) -> None:
    """The memory of a daemon holds private counts: no core dump, and no file for others."""
    mask = os.umask(0o022)
    log = EventLog()
    configuration = load(home / "config.yaml")
    with runtime(configuration, OperatingSystemEntropy(), SystemClock(), log) as running:
        assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)
        running.runner.round(running.jobs.values())
    assert os.umask(mask) == 0o077
    for file in home.iterdir():
        assert file.name == "config.yaml" or file.stat().st_mode & 0o077 == 0, file


def test_a_reader_that_stays_holds_nobody_up(tmp_path: Path) -> None:
    """A read transaction over a whole round: releases go on, and it sees its old moment."""
    world = World(tmp_path)
    reader = sqlite3.connect(world.path)
    reader.execute("BEGIN")
    (before,) = reader.execute("SELECT count(*) FROM ledger").fetchone()
    assert world.runner.round([world.job()]).released == 5
    assert reader.execute("SELECT count(*) FROM ledger").fetchone() == (before,)
    reader.close()


def test_a_writer_that_stays_is_waited_for_and_then_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No partial charge, neither in the ledger nor in the anchor, and the next round works."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    world = World(tmp_path)
    size = default_anchor(world.path).stat().st_size
    other = sqlite3.connect(world.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked"):
        world.runner.round([world.job()])
    assert default_anchor(world.path).stat().st_size == size
    other.close()
    assert world.count("SELECT count(*) FROM ledger") == 1
    assert world.runner.round([world.job()]).released == 5


@pytest.mark.parametrize("where", ["store", "anchor", "folder"])
def test_what_cannot_be_written_is_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """A read-only disk under the store or the anchor, or no folder: one message, nothing made."""
    world = World(tmp_path)
    world.store.close()
    refuse: Callable[[], None] = {
        "store": lambda: refuse_writing(monkeypatch),
        "anchor": lambda: refuse_opening(monkeypatch, default_anchor(world.path)),
        "folder": lambda: setattr(world, "path", tmp_path / "none" / "store.db"),
    }[where]
    refuse()
    with pytest.raises(StoreError, match="cannot be used"):
        SqliteStore.open(world.path, 0)
    assert not (tmp_path / "none").exists()


def refuse_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    real = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda name, **how: real(name.replace("mode=rw", "mode=ro"), **how)
    )


def refuse_opening(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    real = os.open

    def opened(name: Path, flags: int, mode: int = 0o777) -> int:
        if name == path and flags & os.O_RDWR:
            raise OSError(30, os.strerror(30))
        return real(name, flags, mode)

    monkeypatch.setattr(os, "open", opened)
