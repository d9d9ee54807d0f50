"""Restart loops: what kills a process is told from what fails in one job, and nobody starves."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from streamdp.engine.job import Job
from streamdp.privacy.filters import Caps
from streamdp.types.releases import LONGEST_AFTER_DEATHS, rest_after_deaths
from tests.worlds import EPSILON_NANO, World

WIDE = Caps(99 * EPSILON_NANO, 1000 * EPSILON_NANO)


def die(world: World, *jobs: Job) -> None:
    """Reserve for the first due batch of each, and die; the next process recovers."""
    for job in jobs:
        batch = next(iter(job.source.batches(world.clock.now())))
        known = world.store.known_batches("s")
        if batch.key not in known:
            world.store.add_batches([(batch, None)], world.clock.now())
        charge = job.charging.charge(job.kind.plan(job.kind.init(), batch))
        world.store.reserve("s", job.name, batch, charge, world.clock.now())
    world.store.close()
    world.clock.seconds += 5
    world.open()
    world.store.recover(world.clock.now())


def test_a_restart_loop_ends_with_all_jobs_released(tmp_path: Path) -> None:
    """Six kills, three in each of two jobs: it was neither of them, and neither rests."""
    world = World(tmp_path, caps=WIDE)
    a, b = world.job("a"), world.job("b")
    for _ in range(3):
        die(world, a)
        die(world, b)
    outcomes = world.runner.round([a, b])
    assert outcomes.resting == []
    assert outcomes.released == 10


def rests(world: World, job: Job) -> bool:
    deaths, same, last = world.store.deaths_in_a_row("s", job.name)
    return world.clock.now() - last < rest_after_deaths(deaths, same)


@pytest.mark.parametrize("also", [False, True], ids=["alone", "beside kills of another cause"])
def test_a_batch_that_kills_burns_few_charges_a_day(tmp_path: Path, also: bool) -> None:
    """Four a day from the second on, and a dozen on the first, though a supervisor restarts every
    thirty seconds, and though other jobs die of other causes in between."""
    world = World(tmp_path, caps=WIDE)
    a, b = world.job("a"), world.job("b")
    burnt, began = [], world.clock.seconds
    for day in range(3):
        before = world.count("SELECT count(*) FROM ledger WHERE purpose = 'burn' AND job = 'a'")
        for minute in range(0, 24 * 60, 10):
            if not rests(world, a):
                die(world, a)
            if also and minute % 240 == 0:
                die(world, b)
            world.clock.seconds = began + day * 86_400 + (minute + 10) * 60
        after = world.count("SELECT count(*) FROM ledger WHERE purpose = 'burn' AND job = 'a'")
        burnt.append(after - before)
    assert burnt[0] <= 13
    assert max(burnt[1:]) <= 4
    assert min(burnt[1:]) >= 3, "it is tried again"


def test_kills_by_chance_starve_nobody(tmp_path: Path) -> None:
    """Every second turn of a job is killed: each batch is released within minutes all the same."""
    world = World(tmp_path, caps=WIDE)
    a = world.job("a")
    chance = random.Random(30)
    began = world.clock.seconds
    released = 0
    while released < 5 and world.clock.seconds < began + 3600:
        if not rests(world, a):
            if chance.random() < 0.5:
                die(world, a)
            else:
                released += world.runner.round([a]).released
        world.clock.seconds += 30
    assert released == 5


def test_a_job_that_is_there_at_every_death_rests_and_others_do_not(tmp_path: Path) -> None:
    """Its batch may be what kills: it burns no lifetime in an hour, and is tried again."""
    world = World(tmp_path, caps=WIDE)
    a, b = world.job("a"), world.job("b")
    for number in range(6):
        die(world, a, b) if number == 0 else die(world, a)
    outcomes = world.runner.round([a, b])
    assert outcomes.resting == ["a"]
    assert outcomes.released == 5
    world.clock.seconds += LONGEST_AFTER_DEATHS
    assert world.runner.round([a]).released == 5


def test_questions_that_fail_rest_as_ever(tmp_path: Path) -> None:
    """Deaths do not shorten the rest after failures of the job's own question."""
    world = World(tmp_path, caps=WIDE)
    a, b = world.job("a"), world.job("b")
    world.backend.fails = True
    world.runner.round([a])
    world.runner.round([a])
    die(world, b)
    world.backend.fails = False
    assert world.runner.round([a]).resting == ["a"]
