"""The ways out of a refused start, and what they cost."""

from __future__ import annotations

import json
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamdp.errors import ConfigurationError, IntegrityError, StoreError
from streamdp.privacy.filters import Caps
from streamdp.sources.windows import DAY, WindowSource
from streamdp.store import gates
from streamdp.store.anchor import Anchor, AnchorLine, default_anchor, require_agreement
from streamdp.store.backup import backup, put_back
from streamdp.store.database import connect_to_read
from streamdp.store.ledger import ledger
from streamdp.store.reconcile import Bound, adopt, reconcile
from streamdp.store.verified_open import verify
from streamdp.types import Batch, Charge
from tests.store.kept import terms
from tests.store.test_anchor import charge, copy, restore
from tests.worlds import EPSILON_NANO, START, World

ABOUT = {"operator": "me", "reason": "test"}
DATA = {"s": {"path": "a file"}}
TERMS = terms(Caps(3 * EPSILON_NANO, 100 * EPSILON_NANO))


def reconciled(world: World) -> int:
    """Number of charges that were missing."""
    path = world.path
    return len(reconcile(path, default_anchor(path), TERMS, DATA, ABOUT, 0).missing)


def adopted(world: World, nano: int = 0, room: tuple[tuple[Batch, int], ...] = ()) -> None:
    """Go on with a new anchor, where so much may have been spent."""
    bounds = {"s": Bound("epsilon", nano, room, stated=True, why="")}
    adopt(world.path, default_anchor(world.path), bounds, TERMS, DATA, ABOUT, 0)


def spent(world: World) -> int:
    return world.count("SELECT coalesce(sum(epsilon_nano), 0) FROM ledger")


def agrees(world: World) -> None:
    database = connect_to_read(world.path)
    require_agreement(database, default_anchor(world.path))
    database.close()


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two of five windows released, then a copy made, then the other three; closed."""
    made = World(tmp_path)
    made.clock.seconds = made.source.start + 2 * 86_400
    made.runner.round([made.job()])
    copy(made.path, "early")
    made.clock.seconds += 30 * 86_400
    made.runner.round([made.job()])
    made.store.close()
    agrees(made)
    return made


def test_what_a_backup_has_forgotten_is_charged(world: World) -> None:
    """To the batches it was spent on; after that the store works, and spends within its caps."""
    restore(world.path, "early")
    assert reconciled(world) == 3
    agrees(world)
    world.open()
    assert spent(world) == 5 * EPSILON_NANO
    assert world.runner.round([world.job()]).released == 3
    assert spent(world) == 8 * EPSILON_NANO
    of_last = world.count("SELECT sum(epsilon_nano) FROM ledger WHERE batch LIKE '%-19'")
    assert of_last == 2 * EPSILON_NANO
    (event,) = world.store.database.execute(
        "SELECT event FROM ledger WHERE purpose = 'note'"
    ).fetchone()
    assert json.loads(event) | ABOUT == json.loads(event)
    verify(world.store.database)
    agrees(world)


def test_putting_the_same_backup_back_again_charges_the_same(world: World) -> None:
    """Each time as much as was ever spent, and never a charge twice."""
    for _ in range(3):
        restore(world.path, "early")
        assert reconciled(world) == 3
        world.open()
        assert spent(world) == 5 * EPSILON_NANO
        world.store.close()
        agrees(world)


def test_an_anchor_that_was_put_back_too_is_no_ground_to_go_on(world: World) -> None:
    """Store and anchor are of different times, and neither knows what was spent behind both."""
    anchor = default_anchor(world.path)
    whole = anchor.read_bytes().splitlines(keepends=True)
    restore(world.path, "early")
    assert reconciled(world) == 3
    world.open()
    world.store.close()
    anchor.write_bytes(b"".join(whole[:3]))
    with pytest.raises(IntegrityError, match="older than the store") as refused:
        reconciled(world)
    assert "anchor adopt" in str(refused.value.hint)
    adopted(world, 7)
    agrees(world)


def test_without_an_anchor_the_way_out_is_named(world: World) -> None:
    """There is nothing to reconcile with, and a bound of what was spent can be charged."""
    restore(world.path, "early")
    default_anchor(world.path).unlink()
    with pytest.raises(IntegrityError) as refused:
        reconciled(world)
    assert "anchor adopt" in str(refused.value.hint)


def test_copies_that_parted_are_added_up(world: World) -> None:
    """What either of two copies spent is spent in the one that goes on."""
    shutil.copy(default_anchor(world.path), world.path.with_name("anchor of the other"))
    copy(world.path, "other")
    world.open()
    charge(world.store, "x", 7)
    world.store.close()
    shutil.copy(world.path, world.path.with_name("first"))
    first_anchor = default_anchor(world.path).read_bytes()
    restore(world.path, "other")
    default_anchor(world.path).write_bytes(world.path.with_name("anchor of the other").read_bytes())
    world.open()
    charge(world.store, "y", 11)
    world.store.close()
    default_anchor(world.path).write_bytes(first_anchor)
    with pytest.raises(IntegrityError, match="part ways"):
        world.open()
    assert reconciled(world) == 1
    world.open()
    assert spent(world) == 5 * EPSILON_NANO + 18
    agrees(world)


def test_a_store_that_is_gone_is_made_of_its_charges(world: World) -> None:
    """No release, but every charge and its window, hence no more than the caps allow."""
    world.path.unlink()
    for suffix in ("-wal", "-shm"):
        world.path.with_name(world.path.name + suffix).unlink(missing_ok=True)
    assert reconciled(world) == 5
    world.open()
    assert spent(world) == 5 * EPSILON_NANO
    assert ledger.caps_of(world.store.database, "s") == TERMS["s"][0]
    agrees(world)


@pytest.mark.parametrize("left", ["early", ""])
def test_a_store_that_was_put_back_is_not_cut_anew(world: World, left: str) -> None:
    """A record stays in the window that paid for it, also where only the anchor knows of that."""
    first = START
    if left:
        restore(world.path, left)
        first += 2 * DAY
    else:
        world.path.unlink()
    reconciled(world)
    world.open()
    half_days = replace(world.job(), source=WindowSource("s", first, DAY // 2, first + DAY))
    (error,) = world.runner.round([half_days]).errors
    assert isinstance(error, ConfigurationError)
    assert "other batches" in str(error)
    assert world.runner.round([world.job()]).released == (3 if left else 5)


def test_runs_are_reconciled_on_the_safe_side(world: World) -> None:
    """A lost run is charged once, and again for each batch that had joined it."""
    world.open()
    with world.store.transaction():
        run = gates.open_run(world.store.database, "s", "gate", Charge({"type": "x"}, 7, 1), 0)
    for key in ("2023-11-15", "2023-11-16"):
        with world.store.transaction():
            gates.join_run(world.store.database, run, Batch("s", key), 0)
    world.store.close()
    agrees(world)
    restore(world.path, "early")
    assert reconciled(world) == 6
    agrees(world)
    world.open()
    assert spent(world) == 5 * EPSILON_NANO + 3 * 7


def test_a_restored_store_goes_on_with_no_threshold(world: World) -> None:
    """The run that a backup holds may have ended since: its threshold answers nothing more."""
    world.open()
    charge = Charge({"type": "x"}, 7, 1)
    world.store.gates.arm("s", "gate", charge, {}, {"rho": 12345}, 0)
    world.store.close()
    copy(world.path, "armed")
    world.open()
    armed = world.store.gates.open_run("gate")
    assert armed is not None
    world.store.gates.end(armed.run, "accepted", False, 0)
    world.store.close()
    restore(world.path, "armed")
    reconciled(world)
    agrees(world)
    world.open()
    assert world.store.gates.open_run("gate") is None
    assert world.count("SELECT count(*) FROM gate_run WHERE hidden NOT NULL") == 0


def test_what_is_not_configured_is_refused(world: World) -> None:
    """Charges are not dropped because nobody knows their caps; nothing is written."""
    world.path.unlink()
    path, anchor = world.path, default_anchor(world.path)
    before = anchor.read_bytes()
    with pytest.raises(IntegrityError, match="not configured"):
        reconcile(path, anchor, {}, {}, ABOUT, 0)
    assert anchor.read_bytes() == before
    assert reconciled(world) == 5


def test_nothing_is_reconciled_or_adopted_without_need(world: World) -> None:
    """A store that agrees is left alone."""
    anchor = default_anchor(world.path)
    before = anchor.read_bytes()
    for do in (lambda: reconciled(world), lambda: adopted(world)):
        with pytest.raises(StoreError, match="agree"):
            do()
        assert anchor.read_bytes() == before


@pytest.mark.parametrize("what", ["missing", "empty", "damaged", "older"])
def test_an_anchor_is_adopted(world: World, what: str) -> None:
    """Lost, damaged or old: the store goes on, and the ledger says who decided it."""
    anchor = default_anchor(world.path)
    whole = anchor.read_bytes()
    if what == "missing":
        anchor.unlink()
    else:
        end = whole.index(b"\n", len(whole) // 2) + 1
        anchor.write_bytes({"empty": b"", "damaged": b"x" + whole, "older": whole[:end]}[what])
    with pytest.raises(IntegrityError):
        world.open()
    adopted(world)
    agrees(world)
    world.open()
    assert world.count("SELECT count(*) FROM ledger WHERE purpose = 'note'") == 1
    charge(world.store, "x", 7)
    agrees(world)
    world.store.close()
    restore(world.path, "early")
    assert reconciled(world) == 4


def test_an_anchor_that_knows_more_is_not_adopted(world: World) -> None:
    """That would forget charges."""
    restore(world.path, "early")
    with pytest.raises(IntegrityError, match="reconcile"):
        adopted(world)


def test_a_backup_is_whole_private_and_new(world: World) -> None:
    """Made beside a store that works; its mode is 0600; no file is overwritten."""
    world.open()
    target = world.path.with_name("backup.db")
    backup(world.path, target, verify)
    assert target.stat().st_mode & 0o777 == 0o600
    assert not list(world.path.parent.glob("backup.db-*"))
    verify(connect_to_read(target))
    with pytest.raises(StoreError):
        backup(world.path, target, verify)
    charge(world.store, "x", 7)
    world.store.close()
    put_back(target, world.path, 5, verify)
    assert world.path.with_name("store.db.replaced-5").exists()
    assert reconciled(world) == 1


def test_an_altered_store_gives_no_backup(world: World) -> None:
    """What was altered is not copied as if it were good."""
    raw = sqlite3.connect(world.path)
    raw.execute("UPDATE release SET epsilon_nano = 1 WHERE reservation = 2")
    raw.commit()
    raw.close()
    with pytest.raises(IntegrityError):
        backup(world.path, world.path.with_name("backup.db"), verify)
    assert not list(world.path.parent.glob("backup*"))


LOST = Batch("s", "2023-11-19", START + 4 * DAY, START + 5 * DAY)


def lost(world: World) -> None:
    """Put the copy of two releases back, with no anchor."""
    restore(world.path, "early")
    default_anchor(world.path).unlink()
    with pytest.raises(IntegrityError, match="anchor adopt"):
        world.open()


@pytest.mark.parametrize("again", [False, True])
def test_a_bound_that_fills_its_batches_is_charged_to_each(world: World, again: bool) -> None:
    """Each up to its cap and no further, so none is paid twice; and again after another copy."""
    lost(world)
    batches = list(world.source.batches(world.clock.now()))[2:]
    adopted(world, 10 * EPSILON_NANO, tuple((each, 3 * EPSILON_NANO) for each in batches))
    if again:
        restore(world.path, "early")
        assert reconciled(world) == 4
    agrees(world)
    world.open()
    assert spent(world) == 12 * EPSILON_NANO
    assert world.runner.round([world.job()]).released == 0
    assert spent(world) == 12 * EPSILON_NANO
    verify(world.store.database)


@pytest.mark.parametrize("again", [False, True])
def test_a_lower_bound_counts_once_and_against_each_batch(world: World, again: bool) -> None:
    """Over the lifetime what was said; each batch may have borne it, also after another copy."""
    lost(world)
    batches = list(world.source.batches(world.clock.now()))[2:]
    adopted(world, 3 * EPSILON_NANO, tuple((each, 3 * EPSILON_NANO) for each in batches))
    if again:
        restore(world.path, "early")
        assert reconciled(world) == 4
    agrees(world)
    world.open()
    assert spent(world) == 5 * EPSILON_NANO
    assert world.runner.round([world.job()]).released == 0
    other = replace(world.job(), source=WindowSource("s", START, DAY, START + 6 * DAY))
    world.clock.seconds += DAY
    assert world.runner.round([other]).released == 1
    verify(world.store.database)


def test_a_run_that_was_open_may_have_tested_each_batch(world: World) -> None:
    """It was paid over the lifetime, yet it counts against batches that it joined since."""
    world.open()
    world.store.gates.arm("s", "gate", Charge({"type": "x"}, EPSILON_NANO, 1), {}, {"rho": 1}, 0)
    world.store.close()
    copy(world.path, "early")
    lost(world)
    adopted(world, 0, ((LOST, 2 * EPSILON_NANO),))
    world.open()
    borne = "SELECT r.epsilon_nano FROM ledger j JOIN ledger r ON r.seq = j.reservation"
    assert world.count(f"{borne} WHERE j.purpose = 'join' AND j.batch = '{LOST.key}'") == (
        EPSILON_NANO
    )
    assert world.store.gates.open_run("gate") is None


def test_a_source_without_a_bound_is_not_forgotten(world: World) -> None:
    """Nothing is written where one is missing."""
    lost(world)
    with pytest.raises(IntegrityError, match="nothing bounds"):
        adopt(world.path, default_anchor(world.path), {}, TERMS, DATA, ABOUT, 0)
    assert not default_anchor(world.path).exists()


def test_what_a_damaged_anchor_knows_is_no_less_than_charged(world: World) -> None:
    """Its lines before the damage bound from below what a person may state."""
    restore(world.path, "early")
    anchor = default_anchor(world.path)
    anchor.write_bytes(anchor.read_bytes() + b"x\n")
    with pytest.raises(IntegrityError, match=r"has spent 0\.3"):
        adopted(world, 2 * EPSILON_NANO)
    adopted(world, 3 * EPSILON_NANO)
    agrees(world)


@pytest.mark.parametrize("lines", [0, 1, 2])
def test_an_adoption_that_was_cut_off_forgets_nothing(
    world: World, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the anchor holds by then, the next start is refused, and the way out charges."""
    lost(world)
    written = Anchor._append

    def cut(self: Anchor, *words: Any, last: AnchorLine | None = None) -> None:
        nonlocal lines
        if lines == 0:
            raise KeyboardInterrupt
        lines -= 1
        written(self, *words, last=last)
        if lines == 0:
            raise KeyboardInterrupt

    room = ((LOST, 3 * EPSILON_NANO),)
    with monkeypatch.context() as patch:
        patch.setattr(Anchor, "_append", cut)
        with pytest.raises(KeyboardInterrupt):
            adopted(world, 2 * EPSILON_NANO, room)
    with pytest.raises(IntegrityError):
        world.open()
    try:
        adopted(world, 2 * EPSILON_NANO, room)
    except IntegrityError:
        reconciled(world)
    agrees(world)
    world.open()
    assert spent(world) == 4 * EPSILON_NANO
