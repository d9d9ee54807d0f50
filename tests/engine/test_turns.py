"""Many tasks in one round: turns, what wakes meanwhile, and sources that are looked at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from streamdp.engine.job import Job
from streamdp.engine.runner import TURN
from streamdp.privacy.filters import Caps
from streamdp.sources.windows import DAY
from streamdp.types import Batch, Source
from tests.worlds import EPSILON_NANO, START, World

WIDE = Caps(9 * EPSILON_NANO, 1000 * EPSILON_NANO)


@dataclass(frozen=True)
class Counted:
    """A source that tells how often it was listed."""

    of: Source
    listed: list[int]

    @property
    def name(self) -> str:
        return self.of.name

    @property
    def growing(self) -> bool:
        return self.of.growing

    def batches(self, now: int) -> Iterator[Batch]:
        self.listed.append(now)
        return iter(self.of.batches(now))


def _order(world: World) -> list[str]:
    found = world.store.database.execute("SELECT job FROM release ORDER BY reservation").fetchall()
    return [job for (job,) in found]


def _named(world: World, name: str) -> Job:
    return replace(world.job(), name=name)


def test_a_long_catch_up_takes_turns(tmp_path: Path) -> None:
    """Each job releases at most a turn before the others had theirs; in the end all is released."""
    world = World(tmp_path, days=2 * TURN + 3, caps=WIDE)
    assert world.runner.round([_named(world, "a"), _named(world, "b")]).released == 4 * TURN + 6
    turns = ["a"] * TURN + ["b"] * TURN
    assert _order(world) == turns + turns + ["a"] * 3 + ["b"] * 3


def test_what_wakes_meanwhile_has_its_turn(tmp_path: Path) -> None:
    """A job that wakes during the catch-up of another does not wait for its end."""
    world = World(tmp_path, days=2 * TURN, caps=WIDE)
    late = [_named(world, "late")]
    world.runner.woken = lambda: [late.pop()] if late else []
    world.runner.round([_named(world, "long")])
    assert _order(world)[: 2 * TURN] == ["long"] * TURN + ["late"] * TURN
    assert len(_order(world)) == 4 * TURN


def test_a_task_that_wakes_in_its_own_catch_up_finds_what_has_come_since(tmp_path: Path) -> None:
    """Its batches are looked for anew at its end, and none is released twice."""
    world = World(tmp_path, days=TURN + 2, caps=WIDE)
    world.clock.seconds = START + (TURN + 1) * DAY
    job, wakes = _named(world, "a"), [1]

    def woken() -> list[Job]:
        world.clock.seconds = START + (TURN + 2) * DAY
        return [job] if wakes and wakes.pop() else []

    world.runner.woken = woken
    assert world.runner.round([job]).released == TURN + 2


def test_a_source_is_listed_once_a_round(tmp_path: Path) -> None:
    """Jobs of one source share the listing; the next round looks anew."""
    world, listed = World(tmp_path), list[int]()
    source = Counted(world.job().source, listed)
    jobs = [replace(world.job(), name=name, source=source) for name in "abc"]
    assert world.runner.round(jobs).released == 15
    assert len(listed) == 1
    assert world.runner.round(jobs).released == 0
    assert len(listed) == 2
