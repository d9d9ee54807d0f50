"""A learner that begins is taught by the measurements that are kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from streamdp import wiring
from streamdp.engine import release
from streamdp.engine.release import newest_measured, replayed
from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.sources.windows import DAY
from streamdp.types import Batch, Json, Measurement, ReleaseKind
from tests.benchmarks import measurements
from tests.kinds.cases import configured
from tests.worlds import START, World

BODY = "column: x, quantiles: {}, resolution: 1, bounds: [0, 100]"


def kind_of(folder: Path, quantiles: str = "deciles", more: str = "") -> ReleaseKind:
    body = BODY.format(quantiles) + more
    return wiring.release_kind(configured(folder, "quantiles", body, "0.1"), "it")


def days(world: World, count: int) -> None:
    """Let so many days have passed, each of twenty records near another value."""
    world.source = replace(world.source, end=START + count * DAY)
    for day, batch in enumerate(world.source.batches(world.clock.now())):
        world.backend.values = {**world.backend.values, batch.key: [40 + day % 7] * 20}


@pytest.fixture
def world(tmp_path: Path) -> World:
    found = World(tmp_path)
    days(found, 12)
    assert found.runner.round([found.job(kind=kind_of(tmp_path))]).released == 12
    return found


def state_of(world: World) -> Json:
    learned = world.store.learned("job")
    assert learned is not None
    return learned.state


def released(world: World, kind: ReleaseKind) -> int:
    return world.runner.round([world.job(kind=kind)]).released


def test_replaying_all_releases_gives_the_state_to_the_last_bit(
    world: World, tmp_path: Path
) -> None:
    """Whatever was drawn or counted: what is kept is all that the learner was told."""
    found = replayed(world.job(kind=kind_of(tmp_path)), world.store, world.clock.now())
    assert found.releases == 12
    assert found.state == state_of(world)


def test_a_learner_of_a_new_version_goes_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its state after an upgrade is that of one that saw all releases, and the log says so."""
    kind, before = kind_of(world.path.parent), state_of(world)
    described = Quantiles.signature
    monkeypatch.setattr(Quantiles, "signature", lambda self: described(self) | {"version": 99})
    asked = []
    plan = Quantiles.plan

    def spied(self: Quantiles, state: Json, batch: Batch) -> object:
        asked.append(state)
        return plan(self, state, batch)

    monkeypatch.setattr(Quantiles, "plan", spied)
    days(world, 13)
    assert released(world, kind) == 1
    assert asked == [before]
    assert ("learner.replayed", {"job": "job", "releases": 12}) in world.log.events
    assert "learner.restarted" not in world.log.names()
    days(world, 14)
    assert released(world, kind) == 1
    assert world.log.names().count("learner.replayed") == 1


@pytest.mark.long
@pytest.mark.parametrize(("quantiles", "origin"), [((0.05, 0.5), "inferred"), ((0.9,), "measured")])
def test_another_list_of_quantiles_begins_with_what_was_counted(
    world: World, quantiles: tuple[float, ...], origin: str
) -> None:
    """Its first release is counted, not drawn as that of a job without a past; one alone is not."""
    days(world, 13)
    assert released(world, kind_of(world.path.parent, str(list(quantiles)))) == 1
    rows = world.sink.taken[-1].rows
    assert [row["quantile"] for row in rows] == list(quantiles)
    assert {row["origin"] for row in rows} == {origin}
    assert ("learner.replayed", {"job": "job", "releases": 12}) in world.log.events


@pytest.mark.parametrize(
    ("quantiles", "change"),
    [("deciles", ", where: x > 3"), ("quartiles", ", prior: {learner: last-release}")],
)
def test_what_teaches_nothing_is_a_new_beginning(world: World, quantiles: str, change: str) -> None:
    """Counts of other records, or a learner that no count and no other quantile can teach."""
    days(world, 13)
    assert released(world, kind_of(world.path.parent, quantiles, change)) == 1
    assert "learner.replayed" not in world.log.names()
    assert [each for each in world.log.events if each[0] == "learner.restarted"] == [
        ("learner.restarted", {"job": "job", "code": "nothing-to-replay"})
    ]


def test_a_release_that_cannot_be_used_is_left_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others teach."""
    replay_one, tried = Quantiles.replayed, []

    def failing(
        self: Quantiles, state: Json, batch: Batch, measurements: tuple[Measurement, ...]
    ) -> Json:
        tried.append(batch.key)
        if len(tried) == 5:
            raise ArithmeticError
        return replay_one(self, state, batch, measurements)

    monkeypatch.setattr(Quantiles, "replayed", failing)
    found = replayed(world.job(kind=kind_of(world.path.parent)), world.store, world.clock.now())
    assert (found.releases, len(tried)) == (11, 12)
    json.dumps(found.state, allow_nan=False)


def test_the_newest_releases_are_replayed_of_many(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work of an upgrade has an end."""
    monkeypatch.setattr(release, "MOST_MEASUREMENTS", 5)
    kept = newest_measured(world.store, "job")
    assert 0 < sum(len(each.measurements) for each in kept) <= 5
    assert kept[-1].batch.key == "2023-11-26"


@pytest.mark.long
@pytest.mark.parametrize("job", measurements.JOBS)
def test_a_year_of_each_kind_is_replayed_to_the_last_bit(job: str, tmp_path: Path) -> None:
    """Of the flights of 2013, as the benchmark of measurements releases them."""
    found = measurements.measured(tmp_path, measurements.JOBS[job], measurements.LAST)
    assert found["replayed"] == found["releases"] == 365
    assert found["same state"]
