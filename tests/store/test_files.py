"""Files of the store: their names, links and permissions, and what is left in them."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from streamdp.daemon.lock import store_lock
from streamdp.errors import IntegrityError, StoreError
from streamdp.store.anchor import Anchor, default_anchor
from streamdp.store.backup import backup
from streamdp.store.database import connect, connect_to_read
from streamdp.store.migrations import open_to_read
from streamdp.store.sqlite import SqliteStore
from streamdp.store.verified_open import verify, verify_copy
from tests.engine.test_gate import CAPS, Scripted, gate_of
from tests.store.test_upgrade import FIXTURES, written
from tests.worlds import START, World

OLD = next(fixture for fixture in FIXTURES if fixture.stem == "schema-7")


def test_a_hard_link_to_a_store_is_refused_as_one(tmp_path: Path) -> None:
    """Under another name its write-ahead log is not found: that is no damage, and says so."""
    world = World(tmp_path)
    link = tmp_path / "link.db"
    os.link(world.path, link)
    for opened in (connect_to_read, lambda path: SqliteStore.open(path, 0)):
        with pytest.raises(StoreError, match="hard link"):
            opened(link)
    link.unlink()
    world.store.close()
    SqliteStore.open(world.path, world.clock.now()).close()


@pytest.mark.parametrize("what", ["moved", "removed", "replaced", "led elsewhere"])
def test_what_has_lost_its_place_is_not_written_to(tmp_path: Path, what: str) -> None:
    """A store that is taken away while it is open gets no charge that nobody would find again."""
    World(tmp_path / "real", make=True).store.close()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    path = tmp_path / "link" / "store.db"
    store = SqliteStore.open(path, START)
    other = tmp_path / "copy" / "store.db"
    other.parent.mkdir()
    backup(path, other, verify_copy)
    if what == "led elsewhere":
        (tmp_path / "link").unlink()
        (tmp_path / "link").symlink_to(other.parent)
    elif what == "removed":
        path.unlink()
    else:
        os.replace(*((path, other) if what == "moved" else (other, path)))
    with pytest.raises(IntegrityError, match="moved or replaced"):
        store.beat(None, START)
    store.close()


def test_an_empty_file_becomes_private(tmp_path: Path) -> None:
    """A store and an anchor that somebody touched before, for all to read."""
    path = tmp_path / "s.db"
    for file in (path, default_anchor(path)):
        file.touch(mode=0o644)
        file.chmod(0o644)
    SqliteStore.open(path, 0).close()
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}


def test_who_may_read_the_folder_cannot_hold_up_the_store(tmp_path: Path) -> None:
    """A lock needs no right to write: writers take turns by a file that others cannot open."""
    world = World(tmp_path)
    folder = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    world.store.beat(None, world.clock.now())
    os.close(folder)


def test_a_backup_follows_no_planted_link(tmp_path: Path) -> None:
    """What stands beside the target, or in its place, is neither written nor read."""
    world = World(tmp_path)
    victim = tmp_path / "victim"
    victim.write_text("important")
    target = tmp_path / "copies" / "b.db"
    target.parent.mkdir()
    for name in ("b.db.partial", ".b.db.unfinished", "b.db-journal"):
        (target.parent / name).symlink_to(victim)
    backup(world.path, target, verify_copy)
    assert victim.read_text() == "important"
    assert not target.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o600
    target.unlink()
    target.symlink_to(tmp_path / "nowhere")
    with pytest.raises(StoreError, match="is there"):
        backup(world.path, target, verify_copy)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can plant another user's link")
def test_no_file_of_the_store_is_made_behind_another_users_link(tmp_path: Path) -> None:
    """Store, lock and anchor."""
    victim, link = tmp_path / "victim", tmp_path / "s.db"
    victim.touch()
    link.symlink_to(victim)
    os.lchown(link, 65534, 65534)
    with pytest.raises(StoreError, match="another user"):
        SqliteStore.open(link, 0)
    with pytest.raises(StoreError, match="another user"):
        Anchor.open(link, create=True)
    (tmp_path / "t.db.lock").symlink_to(victim)
    os.lchown(tmp_path / "t.db.lock", 65534, 65534)
    with pytest.raises(StoreError, match="another user"), store_lock(tmp_path / "t.db"):
        pass
    assert victim.read_bytes() == b""


def test_a_store_of_another_schema_is_said_to_be_one(tmp_path: Path) -> None:
    """An earlier one is read from an upgraded copy and stays as it is; a later one is refused."""
    path = written(OLD, tmp_path)
    before = path.read_bytes()
    with closing(open_to_read(path)) as database:
        assert database.execute("SELECT max(version) FROM migration").fetchone()[0] > 1
    assert path.read_bytes() == before
    backup(path, tmp_path / "copy.db", verify_copy)
    with sqlite3.connect(path) as newer:
        newer.execute("INSERT INTO migration VALUES (99, 0)")
    newer.close()
    with pytest.raises(IntegrityError, match="schema 99"):
        open_to_read(path)
    with pytest.raises(IntegrityError, match="schema 99"):
        backup(path, tmp_path / "other.db", verify_copy)


def test_the_threshold_of_an_ended_run_is_in_no_file(tmp_path: Path) -> None:
    """Neither in the store nor in its write-ahead log, while the daemon works."""
    world = World(tmp_path, caps=CAPS)
    gate = gate_of(world, Scripted(yes=(2,)), (world.job(),))
    hidden: list[str] = []
    real = Scripted.start

    def start(self: Scripted, entropy: object) -> object:
        found = real(self, entropy)  # type: ignore[arg-type]
        hidden.append(str(found["hidden"]))
        return found

    Scripted.start = start  # type: ignore[method-assign]
    try:
        world.runner.round([gate])
    finally:
        Scripted.start = real  # type: ignore[method-assign]
    ended = hidden[: world.count("SELECT count(*) FROM gate_run WHERE ended NOT NULL")]
    assert ended
    _search(tmp_path, ended, found=False)


def test_a_reader_delays_the_erasure_and_does_not_prevent_it(tmp_path: Path) -> None:
    """The log is emptied at a later sign of life, once nobody reads an old moment."""
    world = World(tmp_path, caps=CAPS)
    gate = gate_of(world, Scripted(yes=(2,)), (world.job(),))
    world.runner.round([gate], only=lambda batch: batch.key < "2023-11-17")
    reader = sqlite3.connect(world.path)
    reader.execute("BEGIN")
    (hidden,) = reader.execute("SELECT hidden FROM gate_run WHERE ended IS NULL").fetchone()
    world.runner.round([gate])
    _search(tmp_path, [hidden], found=True)
    reader.close()
    world.store.beat(1, world.clock.now())
    _search(tmp_path, [hidden], found=False)
    verify(world.store.database)


def _search(folder: Path, words: list[str], *, found: bool) -> None:
    whole = b"".join(file.read_bytes() for file in sorted(folder.glob("store.db*")))
    assert [word.encode() in whole for word in words] == [found] * len(words)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("journal_mode", "wal"),
        ("synchronous", 2),
        ("foreign_keys", 1),
        ("secure_delete", 1),
        ("temp_store", 2),
        ("trusted_schema", 0),
    ],
)
def test_a_connection_has_the_settings_that_keep_what_is_committed(
    tmp_path: Path, setting: str, value: object
) -> None:
    """Commits are on the disk, deleted rows are overwritten, and no temporary file is left."""
    database = connect(tmp_path / "streamdp.db")
    try:
        assert database.execute(f"PRAGMA {setting}").fetchone() == (value,)
    finally:
        database.close()
