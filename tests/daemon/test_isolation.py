"""A source that hangs, a sink that never answers: neither delays what does not need it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

import pytest

from streamdp.daemon.rounds import Rounds
from streamdp.engine.job import Job
from streamdp.errors import SourceError
from streamdp.sources.windows import DAY, WindowSource
from streamdp.types import Batch, CellCounts, Query
from tests.daemon.test_daemon import Start, events, home, start, wait_for, wait_until
from tests.store.kept import terms
from tests.worlds import START, MemoryBackend, World

__all__ = ["home", "start"]


@dataclass
class Hanging(MemoryBackend):
    """A question that does not end until it is let go, or interrupted where it listens."""

    asking: Event = field(default_factory=Event)
    released: Event = field(default_factory=Event)
    listens: bool = True
    interrupted: bool = False

    def answer(self, query: Query, batch: Batch) -> CellCounts:
        self.asking.set()
        assert self.released.wait(600)
        if self.interrupted:
            raise SourceError("it was cancelled")
        return MemoryBackend.answer(self, query, batch)

    def interrupt(self) -> None:
        if self.listens:
            self.interrupted = True
            self.released.set()


def rounds_of(world: World, stopping: Event) -> Rounds:
    return Rounds(
        world.store, world.entropy, world.clock, stopping.is_set, lambda: None, lambda: None
    )


def released(world: World, job: str) -> int:
    return world.count(f"SELECT count(*) FROM release WHERE job = '{job}'")


@contextmanager
def two_sources(folder: Path) -> Iterator[tuple[World, Job, Job, Hanging]]:
    """A job whose question hangs and one over another source, in one store."""
    world = World(folder)
    budget = terms(world.caps)["s"]
    world.store.declare({"s": budget, "t": budget}, world.clock.now())
    backend = Hanging(world.backend.values)
    hung = replace(world.job("hung"), backend=backend)
    source = WindowSource("t", START, DAY, START + 5 * DAY)
    free = replace(world.job("free"), source=source, scope="t", sinks=())
    yield world, hung, free, backend
    backend.released.set()


def test_a_source_that_hangs_stops_its_own_jobs_only(tmp_path: Path) -> None:
    """The other one is released whole while the first is asked, and no charge is burnt by it."""
    stopping = Event()
    with two_sources(tmp_path) as (world, hung, free, backend):
        rounds = rounds_of(world, stopping)
        rounds.adopt({"hung": hung, "free": free})
        rounds.wake([hung], ["hung"], world.log)
        assert backend.asking.wait(600)
        rounds.wake([free], ["free"], world.log)
        wait_until(lambda: released(world, "free") == 5)
        assert [each.source for each in rounds.busy()] == ["s"]
        assert world.count("SELECT count(*) FROM ledger WHERE purpose = 'burn'") == 0
        assert rounds.unserved().keys() == {"hung"}
        backend.released.set()
        wait_until(lambda: not rounds.busy())
        assert released(world, "hung") == 5
        assert rounds.unserved() == {}


def test_what_wakes_in_the_round_of_its_source_has_its_turn_in_it(tmp_path: Path) -> None:
    """And nothing is asked twice at a time of one source."""
    with two_sources(tmp_path) as (world, hung, _, backend):
        beside = replace(world.job("beside"), backend=backend, sinks=())
        rounds = rounds_of(world, Event())
        rounds.adopt({"hung": hung, "beside": beside})
        rounds.wake([hung], ["hung"], world.log)
        assert backend.asking.wait(600)
        rounds.wake([beside], ["beside"], world.log)
        assert len(rounds.busy()) == 1
        backend.released.set()
        wait_until(lambda: released(world, "beside") == 5)


def test_a_cancelled_question_is_burnt_and_no_problem_of_its_source(tmp_path: Path) -> None:
    """Who stops cancels; the next start finds a source without a problem."""
    stopping = Event()
    with two_sources(tmp_path) as (world, hung, _, backend):
        rounds = rounds_of(world, stopping)
        rounds.adopt({"hung": hung})
        rounds.wake([hung], ["hung"], world.log)
        assert backend.asking.wait(600)
        stopping.set()
        rounds.interrupt()
        wait_until(lambda: not rounds.busy())
        assert world.count("SELECT count(*) FROM ledger WHERE purpose = 'burn'") == 1
        assert world.count("SELECT count(*) FROM problem") == 0


def test_a_question_that_cannot_be_cancelled_commits_nothing_once_it_is_left(
    tmp_path: Path,
) -> None:
    """Its charge is burnt at once, and what it brings later is refused."""
    with two_sources(tmp_path) as (world, hung, _, backend):
        backend.listens = False
        rounds = rounds_of(world, Event())
        rounds.adopt({"hung": hung})
        rounds.wake([hung], ["hung"], world.log)
        assert backend.asking.wait(600)
        assert [each.job for each in world.store.abandon(world.clock.now())] == ["hung"]
        backend.released.set()
        wait_until(lambda: not rounds.busy())
        assert released(world, "hung") == 0
        assert world.count("SELECT count(*) FROM ledger WHERE purpose = 'burn'") == 1


def test_a_charge_in_flight_is_not_taken_for_one_that_a_dead_process_left(tmp_path: Path) -> None:
    """Another round recovers while it is open, and burns nothing."""
    with two_sources(tmp_path) as (world, hung, _, backend):
        rounds = rounds_of(world, Event())
        rounds.adopt({"hung": hung})
        rounds.wake([hung], ["hung"], world.log)
        assert backend.asking.wait(600)
        assert world.store.recover(world.clock.now()) == ()
        world.store.close()
        world.open()  # as after a kill
        assert [each.job for each in world.store.recover(world.clock.now())] == ["hung"]


@pytest.mark.long
def test_a_webhook_that_answers_nothing_delays_no_release(home: Path, start: Start) -> None:
    """It takes the connection and is silent; all twenty days are in the other sink long before."""
    with silent() as port:
        text = (home / "config.yaml").read_text()
        hook = (
            f"  hook: {{kind: webhook, url: 'http://127.0.0.1:{port}/', timeout: 5m,"
            " secret: {file: key}}\n"
        )
        text = text.replace("\nsinks:\n", f"\nsinks:\n{hook}").replace("sinks: [", "sinks: [hook, ")
        (home / "config.yaml").write_text(text)
        (home / "key").write_text("a key that is long enough")
        start("run")
        wait_for(home, "release.committed", 20)
        wait_until((home / "releases.jsonl").exists)
        wait_until(lambda: len((home / "releases.jsonl").read_text().splitlines()) == 20)
        assert "sink.failed" not in events(home)


@contextmanager
def silent() -> Iterator[int]:
    """A server that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]
