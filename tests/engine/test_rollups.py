"""Rollups: once a period and revision, with all deliveries or not at all, and free."""

from __future__ import annotations

import dataclasses
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from streamdp.answers.closed import RollupTerms
from streamdp.engine.job import EngineContext, Job
from streamdp.engine.runner import Runner
from streamdp.errors import StoreError
from streamdp.store import outbox
from streamdp.store.rollups import select
from streamdp.store.sqlite import SqliteStore
from streamdp.types import Release, ReleaseKind, Row
from tests.store.test_measurements import counting
from tests.worlds import World

LATE = "2023-11-22"


@pytest.fixture(scope="module")
def kind(tmp_path_factory: pytest.TempPathFactory) -> ReleaseKind:
    return counting(tmp_path_factory.mktemp("kind"))


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Nineteen days: the weeks 47 and 48 of 2023, and some days before and behind."""
    found = World(tmp_path, days=19)
    for key in list(found.backend.values):
        found.backend.values[key] = list(range(100, 500))  # type: ignore[index]
    return found


def job_of(
    world: World, kind: ReleaseKind, *steps: str, partial: bool = False, name: str = "job"
) -> Job:
    terms = RollupTerms(steps, "UTC", partial, ("list",))
    return dataclasses.replace(world.job(name, kind), rollups=terms)


def number(row: Row, name: str) -> float:
    return float(row[name] or 0)


def rollups(world: World) -> list[Release]:
    return [each for each in world.sink.taken if each.kind == "rollup"]


def made(world: World) -> list[tuple[str, str, int]]:
    rows = world.store.database.execute(
        "SELECT step, period, revision FROM rollup ORDER BY since, until, revision"
    )
    return list(rows)


def restarted(world: World) -> None:
    """The process ends, and another one opens the store."""
    world.store.close()
    world.store = SqliteStore.open(world.path, world.clock.now())
    around = EngineContext(world.store, world.entropy, world.clock, world.log)
    world.runner = Runner(around, {"list": world.sink})


def test_closed_weeks_are_rolled_up_once_and_for_nothing(world: World, kind: ReleaseKind) -> None:
    """The ledger is that of a job without rollups; another round or process makes none again."""
    world.runner.round([world.job("alone", kind)])
    alone = world.count("SELECT sum(epsilon_nano) FROM ledger")
    rows = world.count("SELECT count(*) FROM ledger")
    job = job_of(world, kind, "week", "rolling 10d")
    world.runner.round([job])
    assert world.count("SELECT sum(epsilon_nano) FROM ledger") == 2 * alone
    assert world.count("SELECT count(*) FROM ledger") == 2 * rows - 1  # caps are there once
    weeks = [period for step, period, _ in made(world) if step == "week"]
    assert weeks == ["2023-W47", "2023-W48"]
    ten = [period for step, period, _ in made(world) if step == "rolling 10d"]
    assert (ten[0], ten[-1], len(ten)) == ("2023-11-16..2023-11-25", "2023-11-24..2023-12-03", 9)
    taken = len(rollups(world))
    assert taken == len(made(world))
    earliest = select(world.store.database, "job", "rolling 10d")[0]
    before = (earliest.window_start or 0) + 1
    assert select(world.store.database, "job", "rolling 10d", 2, None, before) == (earliest,)
    assert select(world.store.database, "job", "rolling 10d", 20, before)[0] != earliest
    world.runner.round([job])
    restarted(world)
    world.runner.round([job])
    assert len(rollups(world)) == taken
    (first,) = (each for each in rollups(world) if each.batch == "2023-W47")
    assert (first.epsilon_nano, len(first.rows)) == (0, 9)
    ends = [[number(row, each) for each in ("lower", "value", "upper")] for row in first.rows]
    assert all(sorted(each) == each for each in ends)
    assert abs(ends[4][1] - 150) < 15


def test_a_failed_commit_leaves_neither_rollup_nor_delivery(
    world: World, kind: ReleaseKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies between the two: the next one makes both, once."""
    post = outbox.post

    def dies(database: Any, release_id: str, sinks: Any, now: int) -> None:
        if database.execute("SELECT 1 FROM rollup WHERE id = ?", [release_id]).fetchone():
            raise sqlite3.OperationalError("disk I/O error")
        post(database, release_id, sinks, now)

    job = job_of(world, kind, "week")
    monkeypatch.setattr(outbox, "post", dies)
    with pytest.raises(StoreError):
        world.runner.round([job])
    assert made(world) == []
    monkeypatch.setattr(outbox, "post", post)
    restarted(world)
    world.runner.round([job])
    world.runner.round([job])
    assert [period for _, period, _ in made(world)] == ["2023-W47", "2023-W48"]
    assert sorted(each.batch for each in rollups(world)) == ["2023-W47", "2023-W48"]


def test_a_period_waits_for_all_of_its_batches(world: World, kind: ReleaseKind) -> None:
    """Without `partial` the week with a missing day comes when that day does."""
    job = job_of(world, kind, "week")
    world.runner.round([job], only=lambda batch: batch.key != LATE)
    assert [period for _, period, _ in made(world)] == ["2023-W48"]
    world.runner.round([job])
    assert made(world) == [("week", "2023-W47", 1), ("week", "2023-W48", 1)]


def test_a_late_batch_makes_a_revision(world: World, kind: ReleaseKind) -> None:
    """With `partial` a closed week is there without a day, and again with it."""
    job = job_of(world, kind, "week", partial=True)
    world.runner.round([job], only=lambda batch: batch.key != LATE)
    before = {each.batch: each for each in rollups(world)}
    assert (before["2023-W47"].rows[0]["batches"], before["2023-W47"].rows[0]["missing"]) == (6, 1)
    assert "2023-W49" not in before
    world.runner.round([job])
    assert made(world)[-3:-1] == [("week", "2023-W47", 1), ("week", "2023-W47", 2)]
    after = rollups(world)[-1]
    assert (after.batch, after.rows[0]["revision"], after.rows[0]["missing"]) == ("2023-W47", 2, 0)
    assert after.id != before["2023-W47"].id
    newest = select(world.store.database, "job", "week")
    assert [(each.batch, each.rows[0]["revision"]) for each in newest][-2:] == [
        ("2023-W47", 2),
        ("2023-W48", 1),
    ]


def test_drawn_values_are_no_part_of_a_period(world: World) -> None:
    """A learner that only draws counts nothing: there is nothing to roll up, and no error."""
    world.runner.round(
        [dataclasses.replace(world.job(), rollups=RollupTerms(("week",), "UTC", False, ()))]
    )
    assert made(world) == []
    assert world.count("SELECT count(*) FROM release") == 19


def test_weeks_are_those_of_the_zone(world: World, kind: ReleaseKind) -> None:
    """Days of UTC fill no week of another zone."""
    terms = RollupTerms(("week",), "America/New_York", False, ())
    world.runner.round([dataclasses.replace(world.job(kind=kind), rollups=terms)])
    assert made(world) == []
