"""Views for people: readable times and amounts, and no word of what is hidden."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import ValidationError

from streamdp.sinks.table import TableSinkSection
from streamdp.store.reading.read_only import restrict
from streamdp.store.schema.schema import open_to_read
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
