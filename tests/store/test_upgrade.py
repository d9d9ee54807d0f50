"""Stores that earlier versions wrote: brought up to date, kept as they were, nothing forgotten.

A fixture is the SQL of a store with three releases and one burnt charge, as the code of its time
wrote it, and its anchor if it had one. When the schema changes, the present one becomes a fixture.
Schemas 3 and 12 were never written: their steps came together with the next ones.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from streamdp.errors import IntegrityError, StoreError
from streamdp.store import archive, migrations
from streamdp.store.anchor import Anchor, Spending, default_anchor, require_agreement
from streamdp.store.backup import put_back
from streamdp.store.database import connect_to_read, require_sound
from streamdp.store.ledger.dry_run import copy_of, try_release
from streamdp.store.reconcile import reconcile
from streamdp.store.release_rows import whole_rows
from streamdp.store.sqlite import SqliteStore
from streamdp.store.verified_open import verify
from streamdp.types import Batch, Charge
from tests.store.kept import batch_spent
from tests.worlds import EPSILON_NANO, World

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.sql"))


def written(fixture: Path, folder: Path) -> Path:
    """The store that a fixture describes."""
    path = folder / "store.db"
    raw = sqlite3.connect(path)
    raw.executescript(fixture.read_text())
    raw.close()
    anchor = fixture.with_name(fixture.stem + ".anchor.txt")
    if anchor.exists():
        default_anchor(path).write_bytes(anchor.read_bytes())
    return path


def rows(path: Path, table: str) -> list[tuple[object, ...]]:
    raw = sqlite3.connect(path)
    found = raw.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
    raw.close()
    return found


MOVED = {"previous", "state", "release_id"}
"""Columns that later schemas took away or put elsewhere.

Schema 20: a hash that the row before has, states in their own table. Schema 21: the release that a
state follows, which is known by its charge.
"""

ORDER = {"ledger": "seq", "release": "reservation", "learner": "version", "batch": "key"}


def named(path: Path, table: str) -> list[dict[str, object]]:
    """Rows of a table by the names of its columns: rows whole, hashes and digests in digits."""
    raw = sqlite3.connect(path)
    raw.row_factory = sqlite3.Row
    found = [dict(row) for row in raw.execute(f"SELECT * FROM {table} ORDER BY {ORDER[table]}")]
    for row in found:
        if row.get("form"):
            (parts,) = raw.execute(
                "SELECT parts FROM release_form WHERE id = ?", [row["form"]]
            ).fetchone()
            row["rows"] = whole_rows(row["rows"], parts)
        row |= {key: row[key].hex() for key in ("hash", "digest") if _is_bytes(row, key, table)}
    raw.close()
    return found


def learned(rows: list[dict[str, object]]) -> list[tuple[object, ...]]:
    """Releases and states, of stores that had both in one table."""
    return [(row["release_id"], row["state"]) for row in rows if row["state"]]


def _is_bytes(row: dict[str, object], key: str, table: str) -> bool:
    return table != "batch" and isinstance(row.get(key), bytes)


def schema_of(path: Path) -> int:
    return len(rows(path, "migration"))


@pytest.mark.thinned(2)
@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.stem)
def test_a_store_of_every_schema_is_brought_up_to_date(fixture: Path, tmp_path: Path) -> None:
    """Ledger, releases and states are what they were, work goes on, and a copy is kept."""
    path = written(fixture, tmp_path)
    old = schema_of(path)
    assert old == int(re.findall(r"\d+", fixture.stem)[0])
    tables = ("ledger", "release", "learner", "batch")
    before = {table: rows(path, table) for table in tables}
    said = {table: named(path, table) for table in tables}
    states = rows(path, "learned_state") if old >= 20 else learned(said["learner"])
    world = World(tmp_path, days=4)
    assert schema_of(path) == len(migrations.STEPS)
    charged = {each["id"]: each["reservation"] for each in said["release"]}
    charged |= {seq: seq for seq in charged.values()}
    assert rows(path, "learned_state") == sorted((charged[made], text) for made, text in states)
    assert [each["reservation"] for each in named(path, "learner")] == [
        charged[each.get("release_id", each.get("reservation"))] for each in said["learner"]
    ]
    assert all(each["form"] for each in named(path, "release"))
    for table in tables:
        kept = named(path, table)
        assert len(kept) == len(said[table])
        for now, then in zip(kept, said[table], strict=True):
            assert then.keys() - now.keys() <= MOVED
            assert {name: now[name] for name in then.keys() & now.keys()} == {
                name: then[name] for name in then.keys() & now.keys()
            }
    assert batch_spent(world.store.database, "2023-11-15") == 2 * EPSILON_NANO
    assert len(rows(path, "outbox")) == 3
    assert len(archive.select_releases(world.store.database)) == 3
    assert world.runner.round([world.job()]).released == 1
    verify(world.store.database)
    require_agreement(connect_to_read(path), default_anchor(path))
    copies = list(tmp_path.glob(f"store.db.schema-{old}.*"))
    assert len(copies) == (old < len(migrations.STEPS))
    for copy in copies:
        assert copy.stat().st_mode & 0o777 == 0o600
        assert schema_of(copy) == old
        assert {table: rows(copy, table) for table in tables} == before


@pytest.mark.parametrize("altered", ["[{", '{"value":23.0}', "[23.0]", "23", "[]"])
def test_rows_that_were_altered_are_refused_after_an_upgrade_as_before(
    altered: str, tmp_path: Path
) -> None:
    """They are moved as they are, and their seal says so; nothing ends in another error."""
    path = written(next(each for each in FIXTURES if each.stem.endswith("20")), tmp_path)
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE release SET rows = ? WHERE batch = '2023-11-15'", [altered])
    raw.close()
    with pytest.raises(IntegrityError, match="was altered"):
        World(tmp_path, days=4)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.stem)
def test_going_back_forgets_nothing_that_was_spent(fixture: Path, tmp_path: Path) -> None:
    """The copy that was kept, put back after a release, is charged for that release."""
    path = written(fixture, tmp_path)
    if schema_of(path) == len(migrations.STEPS):
        pytest.skip("nothing to go back from")
    world = World(tmp_path, days=4)
    assert world.runner.round([world.job()]).released == 1
    spent = world.count("SELECT sum(epsilon_nano) FROM ledger")
    world.store.close()
    (kept,) = tmp_path.glob("store.db.schema-*")
    put_back(kept, path, 0, require_sound)
    anchor = default_anchor(path)
    assert len(reconcile(path, anchor, {}, {}, {"operator": "me"}, 0).missing) == 1
    world.open()
    assert world.count("SELECT sum(epsilon_nano) FROM ledger") == spent
    verify(world.store.database)
    require_agreement(connect_to_read(path), anchor)


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda each: each.stem)
def test_charges_are_tried_on_a_copy_before_a_store_is_brought_up_to_date(
    fixture: Path, tmp_path: Path
) -> None:
    """A run asks whether its caps admit what is due before it changes a store of any schema."""
    path = written(fixture, tmp_path)
    with closing(connect_to_read(path)) as old:
        copy = copy_of(old)
        (spent,) = old.execute("SELECT count(*), sum(epsilon_nano) FROM ledger")
    assert copy.execute("SELECT count(*), sum(epsilon_nano) FROM ledger").fetchone() == spent
    ((scope,),) = copy.execute("SELECT DISTINCT scope FROM ledger WHERE job IS NOT NULL").fetchall()
    charge = Charge({"type": "pure", "epsilon": "1/1000000"}, 1000, 1000)
    try_release(copy, "job", Batch(scope, "next", 10**9, 10**9 + 1), charge, 0)


def test_an_older_version_reads_the_charges_that_have_no_delta() -> None:
    """It knows seven words of a charge, and calls a line with more of them altered.

    The upgrade guide says from which charges on there is no way back.
    """
    plain = Spending("orders", "1", 100, 5, start=0, end=86_400)
    assert len(plain.words) == 7
    assert len(plain._replace(delta_atto=1).words) > 7


def test_the_upgrade_guide_names_every_schema() -> None:
    """Its last row is the present one."""
    guide = Path(__file__).parents[2] / "deploy" / "docs" / "how-to" / "upgrade.md"
    rows = re.findall(r"^\| (\d+)(?:–(\d+))? \|", guide.read_text(), re.MULTILINE)
    named = [n for first, last in rows for n in range(int(first), int(last or first) + 1)]
    assert named == list(range(1, len(migrations.STEPS) + 1))


def test_an_anchor_begun_by_halves_is_begun_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a crash cuts the first lines of an upgraded store's anchor, it starts by itself."""
    path = written(FIXTURES[0], tmp_path)
    before, anchor = path.read_bytes(), default_anchor(path)

    class Killed(BaseException):
        pass

    def die(*arguments: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Anchor, "intend", die)
        with pytest.raises(Killed):
            SqliteStore.open(path, 0)
    lines = anchor.read_bytes().splitlines(keepends=True)
    assert len(lines) == 7
    for kept in range(len(lines) + 1):
        for torn in (b"", b'[1,1,3,"ab'):
            for file in tmp_path.glob("store.db*"):
                file.unlink()
            path.write_bytes(before)
            anchor.write_bytes(b"".join(lines[:kept]) + torn)
            SqliteStore.open(path, 0).close()
            require_agreement(connect_to_read(path), anchor)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("failing", range(1, len(migrations.STEPS)))
def test_a_migration_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """Whichever step fails, the store has its old schema, and the next try succeeds."""
    path = written(FIXTURES[0], tmp_path)
    broken = (*migrations.STEPS[:failing], ("NO SQL",), *migrations.STEPS[failing + 1 :])
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "STEPS", broken)
        with pytest.raises(StoreError):
            SqliteStore.open(path, 0)
    assert schema_of(path) == 1
    SqliteStore.open(path, 1).close()
    assert schema_of(path) == len(migrations.STEPS)
