"""Measurements are kept with their releases: sealed, append-only, in every copy."""

from __future__ import annotations

import json
import sqlite3
from contextlib import ExitStack, closing
from fractions import Fraction
from pathlib import Path

import pytest

from streamdp import wiring
from streamdp.errors import IntegrityError
from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.sources.windows import DAY
from streamdp.store.backup import backup, put_back
from streamdp.store.database import require_sound, restrict
from streamdp.store.measurements import measured_in_turn, select_measurements
from streamdp.store.migrations import open_to_read
from streamdp.store.sqlite import SqliteStore
from streamdp.store.verified_open import verify
from streamdp.types import MeasuredRelease, Measurement, MeasurementTerms, NoiseLaw, ReleaseKind
from streamdp.types.names import NewNames
from tests.kinds.cases import configured
from tests.worlds import START, World, without

TRIGGERS = [
    f"{table}_{what}"
    for table in ("measurement", "measurement_terms")
    for what in ("keeps_rows", "keeps_values")
]

EDITS = (
    "UPDATE measurement SET numbers = replace(numbers, ',', '1,') WHERE reservation = 6",
    "UPDATE measurement SET cells = '[1]' WHERE reservation = 2",
    "UPDATE measurement SET given = NULL WHERE reservation = 2",
    "UPDATE measurement SET terms = 1 WHERE reservation = 6 AND number = 0",
    "UPDATE measurement_terms SET terms = replace(terms, '2000', '4000') WHERE id = 1",
    "DELETE FROM measurement WHERE reservation = 2",
    "INSERT INTO measurement SELECT reservation, 9, terms, cells, numbers, given FROM measurement"
    " WHERE reservation = 4 AND number = 0",
    "INSERT INTO measurement SELECT 99, 9, terms, cells, numbers, given FROM measurement LIMIT 1",
    "INSERT INTO measurement_terms VALUES (99, '{}')",
)


def counting(folder: Path) -> ReleaseKind:
    """Deciles of which a first batch is drawn and later ones are counted."""
    body = "column: x, quantiles: deciles, resolution: 1/2, bounds: [0, 1000]"
    return wiring.release_kind(configured(folder, "quantiles", body, "0.1"), "it")


@pytest.fixture
def world(tmp_path: Path) -> World:
    found = World(tmp_path)
    assert found.runner.round([found.job(kind=counting(tmp_path))]).released == 5
    return found


def measured(world: World) -> tuple[MeasuredRelease, ...]:
    return select_measurements(world.store.database, "job")


def test_each_release_has_what_was_drawn_of_it(world: World) -> None:
    """The first is drawn values with their tree, the others noisy counts between cuts."""
    first, *others = measured(world)
    (drawn,) = first.measurements
    assert drawn.terms.form == "values"
    assert drawn.terms.targets == tuple(Fraction(each, 10) for each in range(1, 10))
    assert drawn.terms.mechanism["epsilon"] == "1/10"
    event = json.loads(
        world.store.database.execute("SELECT event FROM ledger WHERE seq = 2").fetchone()[0]
    )
    assert event["prior"].startswith(drawn.given["prior"])
    published = world.sink.taken[0].rows
    assert [cell / 2 for cell in drawn.cells] == [row["value"] for row in published]
    for each in others:
        stages = each.measurements
        assert [one.terms.stage for one in stages] == list(range(len(stages)))
        assert sum(one.terms.share for one in stages) == 1
        for one in stages:
            assert one.terms.form == "counts"
            assert len(one.numbers) == len(one.cells) + 1
            assert one.terms.noise == NoiseLaw("epsilon", one.terms.share / 10)
            assert one.terms.question == {"column": "x", "grid": ["1/2", 0, 2000]}
    assert len({one.terms.digest for each in (first, *others) for one in each.measurements}) == 1


def test_releases_are_read_by_their_windows(world: World) -> None:
    """A stretch has the windows that lie in it whole."""
    database = world.store.database
    some = select_measurements(database, "job", START + DAY, START + 3 * DAY)
    assert [each.batch.key for each in some] == ["2023-11-16", "2023-11-17"]
    assert select_measurements(database, "other") == ()


@pytest.mark.parametrize("table", ["measurement", "measurement_terms"])
def test_nothing_is_changed_or_taken_away(world: World, table: str) -> None:
    """Whoever writes to the store by hand is refused by the store itself."""
    world.store.close()
    with closing(sqlite3.connect(world.path)) as raw:
        column = "numbers" if table == "measurement" else "terms"
        for verb in (f"DELETE FROM {table}", f"UPDATE {table} SET {column} = '[]'"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                raw.execute(verb)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("edit", EDITS)
def test_altered_measurements_are_refused(world: World, edit: str) -> None:
    """What is changed, removed or added behind the triggers refuses the store."""
    world.store.close()
    with closing(sqlite3.connect(world.path)) as raw:
        with ExitStack() as aside:
            for trigger in TRIGGERS:
                aside.enter_context(without(raw, trigger))
            raw.execute(edit)
        assert raw.total_changes
        raw.commit()
    with pytest.raises(IntegrityError, match="altered"):
        SqliteStore.open(world.path, 0)


def test_a_commit_that_fails_keeps_no_measurement(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written in the release's own transaction."""
    before = world.count("SELECT count(*) FROM measurement")
    world.source = type(world.source)("s", START, DAY, START + 6 * DAY)

    def broken(*arguments: object) -> None:
        raise ArithmeticError

    monkeypatch.setattr("streamdp.store.archive.seal_of", broken)
    outcomes = world.runner.round([world.job(kind=counting(world.path.parent))])
    assert (outcomes.released, len(outcomes.errors)) == (0, 1)
    assert world.count("SELECT count(*) FROM measurement") == before
    assert world.count("SELECT count(*) FROM release") == 5


def test_copies_carry_them(world: World, tmp_path: Path) -> None:
    """A copy has them all, and so has the store that it is put back to."""
    before = measured(world)
    copy = tmp_path / "copy.db"
    backup(world.path, copy, verify)
    world.store.close()
    put_back(copy, world.path, 0, require_sound)
    world.open()
    assert measured(world) == before


def test_a_reader_of_the_store_may_see_them(world: World) -> None:
    """They are published; the views say counts in the unit of the column."""
    database = open_to_read(world.path)
    restrict(database)
    assert select_measurements(database, "job") == measured(world)
    database.close()
    last = measured(world)[-1].measurements[0]
    with closing(sqlite3.connect(world.path)) as raw:
        raw.row_factory = sqlite3.Row
        found = raw.execute(
            "SELECT * FROM v_counts WHERE batch = '2023-11-19' AND stage = 0 ORDER BY bin"
        ).fetchall()
        rows = raw.execute("SELECT * FROM v_measurements").fetchall()
    assert [row["noisy_count"] for row in found] == list(last.numbers)
    assert [row["above"] for row in found] == [None, *(cell / 2 for cell in last.cells)]
    assert [row["up_to"] for row in found] == [*(cell / 2 for cell in last.cells), None]
    assert len(rows) == sum(len(each.measurements) for each in measured(world))
    assert {row["form"] for row in rows} == {"values", "counts"}


def test_they_are_read_in_the_names_of_now(tmp_path: Path) -> None:
    """A group, a column or a measure that has another name since is found by that."""
    question = {"column": "x", "where": "x > 1", "by": ["city"]}
    terms = MeasurementTerms("sums", question, part="m", group=("rome",), unit=("who", 2))
    names = NewNames(
        groups=((("rome",), ("roma",)),),
        columns=(("x", "z"), ("who", "person"), ("city", "town")),
        measures=(("m", "minutes"),),
    )
    renamed = terms.renamed(names)
    assert renamed.question == {"column": "z", "where": "z > 1", "by": ["town"]}
    assert (renamed.part, renamed.group, renamed.unit) == ("minutes", ("roma",), ("person", 2))
    assert renamed.digest != terms.digest
    world = World(tmp_path)
    world.runner.round([world.job()])
    new = NewNames(columns=(("x", "y"),))
    signature = new.of_signature(world.job().kind.signature())
    world.store.rename_within("job", new, signature, {"by": "me"}, 0)
    (first, *_) = measured(world)
    assert first.measurements[0].terms.question["column"] == "y"
    in_turn = tuple(measured_in_turn(world.store.database, "job"))
    assert in_turn == measured(world)


def test_numbers_of_any_size_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise may be larger than any integer of SQLite."""
    world = World(tmp_path)
    huge = (2**80 + 1, -(2**64), 0)
    measurement = Measurement(MeasurementTerms("sums", {"column": "x"}), (), huge)
    monkeypatch.setattr(Quantiles, "measured", lambda *arguments: (measurement,))
    world.runner.round([world.job()])
    assert measured(world)[0].measurements == (measurement,)
    verify(world.store.database)
