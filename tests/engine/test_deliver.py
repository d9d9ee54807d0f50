"""The outbox: longer and longer waits, dead letters, and what each holds back."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from streamdp.engine.deliver import deliver
from streamdp.errors import RefusedError
from streamdp.store import archive, outbox
from streamdp.store.database import transaction
from streamdp.types import Release
from tests.worlds import ListSink, World


@dataclass
class GivingUp(ListSink):
    attempts: int = 3


def posted(folder: Path, sink: ListSink, count: int = 1) -> World:
    """A world whose outbox owes some notices to a sink."""
    world = World(folder)
    world.runner.sinks = {"list": sink}
    batches = list(world.source.batches(world.clock.now()))
    world.store.add_batches([(batch, None) for batch in batches], 0)
    for number, batch in enumerate(batches[:count]):
        notice = Release(
            f"n{number}", "job", "s", batch.key, batch.start, batch.end, "gate", 0, 7, ({"a": 1},)
        )
        with transaction(world.store.database):
            archive.add_notice(world.store.database, notice)
            outbox.post(world.store.database, notice.id, ["list"], world.clock.now())
    return world


def attempts(world: World, seconds: int) -> list[int]:
    """Seconds after the first at which a sink was tried, looking every second."""
    tried: list[int] = []
    begin = world.clock.seconds
    for second in range(seconds):
        world.clock.seconds = begin + second
        if deliver(world.store, world.runner.sinks, world.clock.now(), world.log)[1]:
            tried.append(second)
    return tried


def test_a_notice_is_delivered_in_the_form_of_a_release(tmp_path: Path) -> None:
    """It has the window of its batch, its own kind, and no price."""
    sink = ListSink()
    world = posted(tmp_path, sink)
    deliver(world.store, {"list": sink}, world.clock.now(), world.log)
    (notice,) = sink.taken
    assert (notice.id, notice.kind, notice.epsilon_nano) == ("n0", "gate", 0)
    assert notice.window_start == world.source.start
    assert notice.rows == ({"a": 1},)


def test_waits_double_on_a_public_schedule(tmp_path: Path) -> None:
    """2, 4, 8 ... seconds after each failure, at most an hour, without chance."""
    world = posted(tmp_path, ListSink(fails=True))
    assert attempts(world, 130) == [0, 2, 6, 14, 30, 62, 126]


def test_a_sink_that_fails_is_tried_once_a_look(tmp_path: Path) -> None:
    """One that hangs until its time is over does so once, however much it is owed."""

    class Counting(ListSink):
        tried = 0

        def deliver(self, release: Release) -> None:
            self.tried += 1
            super().deliver(release)

    sink = Counting(fails=True)
    world = posted(tmp_path, sink, count=3)
    for second in (0, 1, 2):
        deliver(world.store, {"list": sink}, world.clock.now() + second, world.log)
    assert sink.tried == 2


def test_a_sink_that_gives_up_leaves_a_dead_letter(tmp_path: Path) -> None:
    """After its last attempt the letter waits for a person, and the later one is tried."""
    sink = GivingUp(fails=True)
    world = posted(tmp_path, sink, count=2)
    tried = attempts(world, 100)
    assert tried == [0, 2, 6, 7, 9, 13]
    assert world.log.names().count("sink.gave-up") == 2
    assert world.count("SELECT count(*) FROM outbox WHERE dead_at NOT NULL") == 2
    sink.fails = False
    with transaction(world.store.database):
        assert outbox.retry(world.store.database, "n1", world.clock.now()) == 1
        assert outbox.retry(world.store.database, "n1", world.clock.now()) == 0
    deliver(world.store, {"list": sink}, world.clock.now(), world.log)
    assert [notice.id for notice in sink.taken] == ["n1"]


@pytest.mark.parametrize("error", [TypeError, NotADirectoryError, MemoryError, RecursionError])
def test_an_error_of_any_type_is_the_sinks_own(tmp_path: Path, error: type[Exception]) -> None:
    """It is counted, said with its reason, and the other sinks get what they are owed."""

    class Broken(ListSink):
        def deliver(self, release: Release) -> None:
            raise error("CANARY")

    world = World(tmp_path)
    world.runner.sinks = {"list": Broken(), "other": world.sink}
    job = replace(world.job(), sinks=("list", "other"))
    outcomes = world.runner.round([job])
    assert outcomes.released == len(world.sink.taken) == 5
    (reason,) = world.store.database.execute(
        "SELECT DISTINCT reason FROM outbox WHERE reason NOT NULL"
    ).fetchone()
    assert reason == f"sink list failed: {error.__name__}"
    told = [fields["reason"] for name, fields in world.log.events if name == "sink.failed"]
    assert set(told) == {reason}


def test_a_refusal_is_a_dead_letter_at_once(tmp_path: Path) -> None:
    """Another attempt would end alike: it waits for a person, with its reason."""

    class Refusing(ListSink):
        def deliver(self, release: Release) -> None:
            raise RefusedError("webhook list answered 404")

    world = posted(tmp_path, Refusing())
    assert attempts(world, 10) == [0]
    found = world.store.database.execute("SELECT reason, attempts FROM outbox WHERE dead_at > 0")
    assert found.fetchall() == [("webhook list answered 404", 1)]


def test_a_dead_letter_holds_nothing_back(tmp_path: Path) -> None:
    """A later release reaches a sink that gave up on an earlier one."""
    sink = GivingUp(fails=True, attempts=1)
    world = posted(tmp_path, sink)
    attempts(world, 2)
    sink.fails = False
    assert world.runner.round([world.job()]).released == 5
    assert len(sink.taken) == 5
