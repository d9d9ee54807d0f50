"""The anchor finds out every store that is not the newest of its kind, and no ordinary crash."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamdp.database import Database
from streamdp.errors import BudgetExhaustedError, IntegrityError, LockedError, StoreError
from streamdp.privacy.filters import Caps
from streamdp.store import archive, database
from streamdp.store.anchor import (
    Anchor,
    NewerAnchorError,
    Spending,
    StoreState,
    default_anchor,
    newest_target,
    read,
    scan,
    sealed,
)
from streamdp.store.ledger import chain
from streamdp.store.reconcile import agree
from streamdp.store.sqlite import SqliteStore
from streamdp.types import Batch, Charge
from tests.worlds import EPSILON_NANO, World, without


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Five windows released and delivered, the store closed."""
    made = World(tmp_path)
    made.runner.round([made.job()])
    made.store.close()
    return made


def copy(path: Path, to: str) -> None:
    """A copy of a store, as a backup program makes it."""
    source, target = sqlite3.connect(path), sqlite3.connect(path.with_name(to))
    source.backup(target)
    source.close()
    target.close()


def restore(path: Path, backup: str) -> None:
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    shutil.copy(path.with_name(backup), path)


def charge(store: SqliteStore, key: str, nano: int = 10) -> None:
    store.burn(store.reserve("s", "j", Batch("s", key), Charge({"type": "x"}, nano, 1), 0), 0)


def test_the_last_line_is_read_from_the_end(world: World) -> None:
    """It names the state; torn, altered, alone or gone, it is left to the reader of all lines."""
    anchor = default_anchor(world.path)
    text = anchor.read_bytes()
    assert newest_target(anchor) == list(read(anchor))[-1].target
    for broken in (text[:-1], text + b"[", text[:-20] + b"0" + text[-19:], text[:40], b""):
        anchor.write_bytes(broken)
        assert newest_target(anchor) is None
    anchor.write_bytes(b"".join(text.splitlines(keepends=True)[:1]))
    assert newest_target(anchor) is None, "an identity is no state"
    anchor.unlink()
    assert newest_target(anchor) is None


def test_an_ordinary_life_is_accepted(world: World) -> None:
    """Opened, worked and closed again and again, with nothing charged beside the releases."""
    for _ in range(3):
        world.open()
        world.runner.round([world.job()])
        world.store.close()
    world.open()
    assert world.count("SELECT sum(epsilon_nano) FROM ledger") == 5 * EPSILON_NANO


def test_memory_that_runs_out_while_a_line_is_written_locks_nobody_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line is not taken for that of another process; nothing is charged, and work goes on."""
    world.open()
    sync = os.fsync
    failures: list[int] = []

    def starved(file: int) -> None:
        sync(file)
        if not failures:
            failures.append(file)
            raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", starved)
        with pytest.raises(StoreError, match="not enough memory"):
            charge(world.store, "never")
    assert failures
    charge(world.store, "next")
    world.store.close()
    world.open()
    burnt = "SELECT count(*) FROM ledger WHERE purpose = 'burn' AND batch = "
    assert [world.count(f"{burnt}'{key}'") for key in ("never", "next")] == [0, 1]


@pytest.mark.parametrize("reopened", [False, True])
def test_every_older_copy_is_refused(tmp_path: Path, reopened: bool) -> None:
    """A copy made after any transaction is refused once a charge, or only a start, has followed."""
    world = World(tmp_path, days=3)
    path, copies = world.path, 0
    commit = world.store.commit

    def copy_then_commit(*arguments: object) -> None:
        nonlocal copies
        copy(path, f"copy{copies}")
        commit(*arguments)  # type: ignore[arg-type]
        copy(path, f"copy{copies + 1}")
        copies += 2

    world.store.commit = copy_then_commit  # type: ignore[method-assign,assignment]
    world.runner.round([world.job()])
    if reopened:
        world.store.close()
        world.open()
    world.store.close()
    for number in range(copies if reopened else copies - 1):
        restore(path, f"copy{number}")
        with pytest.raises(IntegrityError, match="reconcile") as caught:
            SqliteStore.open(path, 0)
        assert caught.value.fields["anchor_seq"] == 7


def test_a_ledger_without_its_last_rows_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chain of what is left is whole, and the anchor knows that there was more.

    So it is even for a forger who has kept the learned state that the store has forgotten.
    """
    monkeypatch.setattr(archive, "_require_newest_states", lambda database: None)
    raw = sqlite3.connect(world.path)
    raw.execute("PRAGMA foreign_keys=OFF")
    with without(raw, "ledger_keeps_rows"), without(raw, "measurement_keeps_rows"):
        raw.execute("DELETE FROM learner WHERE version = 5")
        raw.execute("DELETE FROM learned_state WHERE reservation = 10")
        raw.execute("DELETE FROM measurement WHERE reservation = 10")
        raw.execute("DELETE FROM release WHERE reservation = 10")
        raw.execute("DELETE FROM outbox WHERE release_id NOT IN (SELECT id FROM release)")
        raw.execute("DELETE FROM ledger WHERE seq > 9")
    raw.commit()
    chain.verify(Database(raw))
    raw.close()
    with pytest.raises(IntegrityError, match="row 9, its anchor at row 11"):
        SqliteStore.open(world.path, 0)


def test_a_store_that_is_gone_is_not_made_anew(world: World) -> None:
    """The anchor knows that there was one; neither a missing nor an empty file is written to."""
    world.path.write_bytes(b"")
    with pytest.raises(IntegrityError, match="gone"):
        SqliteStore.open(world.path, 0)
    assert world.path.read_bytes() == b""
    world.path.unlink()
    with pytest.raises(IntegrityError, match="gone"):
        SqliteStore.open(world.path, 0)
    assert not world.path.exists()


def test_an_anchor_that_is_gone_is_not_made_anew(world: World) -> None:
    """Nor is an empty one taken for new."""
    default_anchor(world.path).unlink()
    for _ in range(2):
        with pytest.raises(IntegrityError, match="not there"):
            SqliteStore.open(world.path, 0)
    default_anchor(world.path).touch()
    with pytest.raises(IntegrityError, match="not there"):
        SqliteStore.open(world.path, 0)


def test_an_anchor_older_than_the_store_is_refused(world: World) -> None:
    """Wherever it was cut between two lines, except where it says the same with a line less."""
    path = default_anchor(world.path)
    lines = path.read_bytes().splitlines(keepends=True)
    for kept in range(2, len(lines) - 1):
        path.write_bytes(b"".join(lines[:kept]))
        with pytest.raises(IntegrityError, match="older than the store"):
            SqliteStore.open(world.path, 0)


def test_two_copies_with_one_anchor(world: World, tmp_path: Path) -> None:
    """While one works the other is refused, and whoever was passed by stays refused."""
    anchor = default_anchor(world.path)
    copy(world.path, "other.db")
    other = tmp_path / "other.db"
    first = SqliteStore.open(world.path, 0, anchor)
    with pytest.raises(IntegrityError, match="reconcile"):
        SqliteStore.open(other, 0, anchor)
    charge(first, "x")
    first.close()
    with pytest.raises(IntegrityError, match="row 11, its anchor at row 13"):
        SqliteStore.open(other, 0, anchor)


def test_two_copies_that_start_at_once(world: World, tmp_path: Path) -> None:
    """Whoever writes to the anchor second finds the line of the first, and commits nothing."""
    anchor = default_anchor(world.path)
    first = SqliteStore.open(world.path, 0, anchor)
    held = Anchor.open(anchor)
    charge(first, "x")
    assert held.last is not None
    before = anchor.read_bytes()
    with pytest.raises(LockedError):
        held.intend(held.last.target, held.last.target)
    assert anchor.read_bytes() == before


def test_an_anchor_of_another_store_is_refused(world: World, tmp_path: Path) -> None:
    """Two stores do not share one."""
    SqliteStore.open(tmp_path / "new.db", 0).close()
    with pytest.raises(IntegrityError, match="another store"):
        SqliteStore.open(tmp_path / "new.db", 0, default_anchor(world.path))


def test_two_new_stores_do_not_write_over_each_other(tmp_path: Path) -> None:
    """Whoever is late finds the lines of the first and leaves them; half a head is written over."""
    path = tmp_path / "anchor"
    state = StoreState.of(0, 0, "0" * 64)
    path.write_bytes(b'["streamdp-anch')
    early, late = Anchor.open(path, create=True), Anchor.open(path, create=True)
    early.begin("one", [], state)
    before = path.read_bytes()
    with pytest.raises(LockedError):
        late.begin("other", [], state)
    assert path.read_bytes() == before
    assert Anchor.open(path).store_id == "one"


def test_every_flipped_bit_of_the_anchor_is_found(world: World) -> None:
    """Any byte of any line; the newline at the end alone makes a line that counts as torn."""
    path = default_anchor(world.path)
    whole = path.read_bytes()
    for place in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(IntegrityError):
            SqliteStore.open(world.path, 0)


@pytest.mark.parametrize(
    "word",
    [[9, 1, 12, "ab"], [1, 1, 12, "ab", ["s", "k", 1, 1, 0, None, None, 0, 7]]],
    ids=["another bit", "a longer charge"],
)
def test_a_line_of_a_later_version_is_called_that(world: World, word: list[object]) -> None:
    """Nobody altered it, and nobody is led to adopt a new anchor."""
    path = default_anchor(world.path)
    with path.open("rb") as file:
        *_, (check, _, _) = scan(path, file)
    with path.open("ab") as file:
        file.write(sealed(check, word)[1])
    before = path.read_bytes()
    with pytest.raises(NewerAnchorError, match="a newer streamdp") as caught:
        SqliteStore.open(world.path, 0)
    assert "adopt" not in str(caught.value)
    with pytest.raises(NewerAnchorError):
        agree(world.path, path)
    assert path.read_bytes() == before


def test_a_torn_line_is_ordinary(world: World) -> None:
    """However much of a line a crash left, the store starts, and the next line is whole."""
    path = default_anchor(world.path)
    whole = path.read_bytes()
    last = whole.splitlines(keepends=True)[-2]
    for length in range(1, len(last)):
        path.write_bytes(path.read_bytes() + last[:length])
        SqliteStore.open(world.path, 0).close()
    assert len(list(read(path))) == len(whole.splitlines()) - 1 + 2 * (len(last) - 1)


@contextmanager
def dying_at_commit(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Transactions write their anchor's line and are then cut off, as by SIGKILL."""
    real = database.transaction

    class Killed(BaseException):
        pass

    @contextmanager
    def cut(connection: Database) -> Iterator[None]:
        with real(connection):
            yield
            raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):  # noqa: PT012
        for module in ("sqlite", "verified_open"):
            patch.setattr(f"streamdp.store.{module}.transaction", cut)
        yield


def test_a_crash_between_line_and_commit_burns_the_charge(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store starts by itself, the charge is spent, and only once, whatever follows."""
    world.open()
    for times in (1, 2):
        with dying_at_commit(monkeypatch):
            charge(world.store, "x", 7)
        for _ in range(2):
            with dying_at_commit(monkeypatch):
                world.open()
        world.open()
        assert world.count("SELECT sum(epsilon_nano) FROM ledger WHERE batch = 'x'") == 7 * times
        assert world.count("SELECT count(*) FROM ledger WHERE purpose = 'burn'") == times
        chain.verify(world.store.database)


def test_a_crash_before_the_first_commit_is_ordinary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store whose anchor was written and whose first epoch was not starts by itself."""
    with dying_at_commit(monkeypatch):
        World(tmp_path)
    World(tmp_path)


def test_a_commit_that_fails_spends_nothing(world: World) -> None:
    """The anchor is a line ahead, the process lives and goes on from the same base."""
    world.open()
    anchor = world.store._anchor
    world.store.database.execute("PRAGMA max_page_count = 1")
    (pages,) = world.store.database.execute("PRAGMA page_count").fetchone()
    assert pages > 1
    for key in range(100):
        try:
            charge(world.store, "y" * 400 + str(key))
        except StoreError:
            break
    else:
        raise AssertionError("the store was never full")
    world.store.database.execute("PRAGMA max_page_count = 100000")
    charge(world.store, "z")
    assert anchor.last is not None
    world.open()
    spent = world.count("SELECT sum(epsilon_nano) FROM ledger")
    assert spent == sum(each.epsilon_nano or 0 for each in committed(default_anchor(world.path)))


def committed(path: Path) -> list[Spending]:
    """Charges of all lines of an anchor that were committed."""
    spent: list[Spending] = []
    last: tuple[Spending, ...] = ()
    for line in read(path):
        spent += last if line.follows else ()
        last = line.spent
    return [*spent, *last]


def test_without_the_anchor_nothing_is_charged(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full volume, a volume that is gone, a file that was replaced: no charge, then as before."""
    world.open()
    path = default_anchor(world.path)
    rows = world.count("SELECT count(*) FROM ledger")
    size = path.stat().st_size

    def full(file: int, text: bytes) -> int:
        return real(file, text[: len(text) // 2])

    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(StoreError, match="anchor"):
            charge(world.store, "x")
    assert path.stat().st_size == size
    path.rename(path.with_name("away"))
    with pytest.raises(StoreError, match="anchor"):
        charge(world.store, "x")
    shutil.copy(path.with_name("away"), path)
    with pytest.raises(IntegrityError, match="replaced"):
        charge(world.store, "x")
    path.with_name("away").rename(path)
    assert world.count("SELECT count(*) FROM ledger") == rows
    charge(world.store, "x")


def test_a_release_is_confirmed_before_it_is_handed_out(tmp_path: Path) -> None:
    """When a sink sees a release, the anchor says that its commit is certain."""
    world = World(tmp_path, days=2)
    path, seen = default_anchor(world.path), []

    class Looking:
        name = "list"

        def deliver(self, release: object) -> None:
            *_, line = read(path)
            seen.append(line.base == line.target and line.target.seq)

    world.runner.sinks = {"list": Looking()}
    world.runner.round([world.job()])
    assert seen == [3, 5]


def test_a_line_is_a_few_dozen_bytes(world: World) -> None:
    """A release takes three lines; ten years of one every hour stay below 20 MB."""
    per_release = default_anchor(world.path).stat().st_size / 5
    assert per_release * 24 * 3652 < 25e6


def test_a_refused_charge_leaves_no_line(world: World) -> None:
    """What a cap refuses is not in the anchor."""
    world.caps = Caps(EPSILON_NANO, 5 * EPSILON_NANO)
    world.open()
    size = default_anchor(world.path).stat().st_size
    with pytest.raises(BudgetExhaustedError):
        charge(world.store, "x")
    assert default_anchor(world.path).stat().st_size == size


def test_a_folder_that_cannot_be_synced_is_an_error_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new anchor whose name is not on the disk is no anchor; nothing is made of the store."""

    def full(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("streamdp.store.anchor.sync", full)
    with pytest.raises(StoreError, match="anchor"):
        World(tmp_path)
