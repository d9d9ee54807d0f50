"""Views for people: readable times and amounts, and no word of what is hidden."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from pydantic import ValidationError

from streamdp.database import Database
from streamdp.sinks.table import TableSinkSection
from streamdp.store import migrations
from streamdp.store.database import restrict
from streamdp.store.migrations import open_to_read
from streamdp.store.release_rows import form_id, packed
from tests.engine.test_gate import CAPS, Scripted, gate_of
from tests.store.test_measurements import counting
from tests.worlds import World

VIEWS = ("v_releases", "v_budget", "v_gates", "v_runs")


def test_a_reader_that_trusts_no_schema_may_use_every_view(tmp_path: Path) -> None:
    """As connections of readers are; SQLite 3.40 refuses the operator `->>` in views there."""
    world = World(tmp_path)
    world.runner.round([world.job(kind=counting(tmp_path))])
    database = open_to_read(world.path)
    restrict(database)
    names = database.execute("SELECT name FROM sqlite_schema WHERE type = 'view'").fetchall()
    assert len(names) == 7
    for (name,) in names:
        database.execute(f"SELECT * FROM {name}").fetchall()
    first = "SELECT above, up_to FROM v_counts WHERE bin = 0"
    assert {above for above, _ in database.execute(first)} == {None}
    database.close()


def test_the_views_say_what_a_person_asks(tmp_path: Path) -> None:
    """Times end in Z, epsilon is a number, and each release is current once."""
    world = World(tmp_path, caps=CAPS)
    world.runner.round([gate_of(world, Scripted(yes=(2,)), (world.job(),))])
    with closing(sqlite3.connect(world.path)) as database:
        database.row_factory = sqlite3.Row
        found = {
            view: [dict(row) for row in database.execute(f"SELECT * FROM {view}")] for view in VIEWS
        }
    release = found["v_releases"][0]
    assert release["window_start"].endswith("T00:00:00Z")
    assert (release["epsilon"], release["current"], release["row"]) == (0.1, 1, 0)
    assert isinstance(release["value"], float | int)
    assert len(found["v_releases"]) == 3 * world.count("SELECT count(*) FROM release")
    (budget,) = found["v_budget"]
    spent = world.count("SELECT sum(epsilon_nano) FROM ledger") / 1e9
    assert budget["spent"] == pytest.approx(spent)
    assert budget["left"] == pytest.approx(budget["lifetime_cap"] - spent)
    assert {gate["answer"] for gate in found["v_gates"]} == {"yes", "no"}
    assert {gate["answered_at"][-1] for gate in found["v_gates"]} == {"Z"}
    assert {run["state"] for run in found["v_runs"]} == {"accepted"}
    hidden = {"hidden", "tests", "asked", "terms"}
    assert not hidden & {name for rows in found.values() for row in rows for name in row}
    for view in VIEWS:
        with pytest.raises(ValidationError):
            TableSinkSection(kind="table", table=view)


@contextmanager
def holding(releases: list[tuple[str, str, str]], rows: int) -> Iterator[Database]:
    """A store with releases of so many rows, each of a job, a source and a batch."""
    found = packed(
        json.dumps([{"value": at + 0.5, "rows": at, "label": "noisy"} for at in range(rows)])
    )
    assert found is not None
    with Database(memory=True, execute_plugins=False) as made:
        made.execute(migrations.VERSIONS)
        for statements in migrations.STEPS:
            migrations.apply(made, statements)
        form = form_id(made, found[0])
        for seq, (job, source, batch) in enumerate(releases, start=1):
            made.execute(
                "INSERT OR IGNORE INTO batch (source, key, arrived_at) VALUES (?, ?, 0)",
                [source, batch],
            )
            made.execute(
                "INSERT INTO ledger VALUES (?, 0, 'reserve', ?, ?, ?, NULL, 0, 0, '', NULL,"
                " 0, 0, 0, CAST(? AS BLOB), 0, 0, 0)",
                [seq, source, job, batch, str(seq)],
            )
            made.execute(
                "INSERT INTO release VALUES (?, ?, ?, ?, ?, 'kind', 0, 0, '', ?, ?)",
                [seq, f"r{seq}", job, source, batch, form, found[1]],
            )
        yield made


def steps(database: Database, sql: str) -> int:
    """Steps of SQLite that a question takes, in thousands."""
    taken = []
    database.conn.set_progress_handler(lambda: taken.append(1), 1000)
    database.execute(sql).fetchall()
    database.conn.set_progress_handler(None, 0)
    return len(taken)


def test_a_release_of_twice_the_rows_takes_twice_the_work() -> None:
    """Each value is looked at a fixed number of times, however many stand beside it."""
    few, many = 200, 800
    with holding([("j", "s", "1")], few) as small, holding([("j", "s", "1")], many) as large:
        one, other = (steps(each, "SELECT * FROM v_releases") for each in (small, large))
        assert len(large.execute("SELECT * FROM v_releases").fetchall()) == many
    assert 2 * one < other < 5 * one


def test_one_release_is_looked_at_without_all_others() -> None:
    """By its id, or by job and source and batch: others of the same job are not gone through."""
    few = [("j", source, str(n)) for n in range(4) for source in "st"]
    many = [("j", source, str(n)) for n in range(120) for source in "st"]
    for where in ("release_id = 'r5'", "job = 'j' AND source = 's' AND batch = '2'"):
        with holding(few, 30) as small, holding(many, 30) as large:
            sql = f"SELECT * FROM v_releases WHERE {where}"
            assert len(large.execute(sql).fetchall()) == 30
            assert steps(large, sql) <= steps(small, sql) + 1


def test_the_current_release_of_a_batch_is_the_newest_of_all_sources() -> None:
    """Also where a job has read three sources, in any order."""
    dice = random.Random(7)
    made = list({(dice.choice("jk"), dice.choice("stu"), dice.choice("1234")) for _ in range(40)})
    with holding(made, 1) as database:
        seen = database.execute("SELECT release_id, current FROM v_releases").fetchall()
    newest = {(job, batch): f"r{seq}" for seq, (job, _, batch) in enumerate(made, start=1)}
    assert len(seen) == len(made) > len(newest)
    assert {release for release, current in seen if current} == set(newest.values())
