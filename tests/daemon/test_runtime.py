"""A shift: signs of life, the lock, and a store that fails for a while."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from streamdp.config import Configuration, load
from streamdp.daemon.lock import is_locked, store_lock
from streamdp.daemon.rounds import AGAIN, Rounds
from streamdp.daemon.runtime import HEARTBEAT, Runtime, runtime
from streamdp.engine.attempts import Outcomes
from streamdp.engine.runner import Runner
from streamdp.errors import IntegrityError, LockedError, StoreError
from streamdp.store.database import connect_to_read
from streamdp.store.reading.reports import Heart, heart
from tests.daemon.test_daemon import wait_until
from tests.worlds import EventLog, HandClock, ReplayedEntropy

DEMO = Path(__file__).parents[2] / "config.yaml"


@dataclass
class Hurrying(HandClock):
    """A clock on which every look takes as long as a heartbeat."""

    seconds: int = 1_800_000_000

    def now(self) -> int:
        self.seconds += HEARTBEAT
        return self.seconds


@pytest.fixture
def configuration(tmp_path: Path) -> Iterator[Configuration]:
    text = DEMO.read_text().replace("end: 2014-01-01", "end: 2013-01-06")
    (tmp_path / "config.yaml").write_text(text)
    mask = os.umask(0o022)
    yield load(tmp_path / "config.yaml")
    os.umask(mask)


def pulse(configuration: Configuration) -> Heart:
    return heart(connect_to_read(configuration.store.path))


def test_a_catch_up_gives_signs_of_life(configuration: Configuration) -> None:
    """A round that lasts for hours is not taken for a daemon that hangs."""
    clock, beats = Hurrying(), []
    with runtime(
        configuration,
        ReplayedEntropy(),
        clock,
        EventLog(),
        progress=lambda job, done, total: beats.append(pulse(configuration).heartbeat_at),
        pid=os.getpid(),
    ) as running:
        assert pulse(configuration).pid == os.getpid()
        running.runner.round(running.jobs.values())
    assert len(set(beats)) == len(beats) == 6


def test_progress_within_a_heartbeat_writes_none(
    configuration: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five releases within a second: the store is written to for them, not for signs of life."""
    beats: list[None] = []
    beat = Runtime.beat
    monkeypatch.setattr(Runtime, "beat", lambda *given: beats.append(beat(*given)))
    clock, entropy = HandClock(1_800_000_000), ReplayedEntropy("still")
    with runtime(configuration, entropy, clock, EventLog()) as running:
        assert running.runner.round(running.jobs.values()).released == 5
    assert len(beats) == 1
    assert pulse(configuration).pid is None


def test_who_dies_of_an_error_has_not_stopped(configuration: Configuration) -> None:
    """`status` tells a death from an end that was wanted."""

    def die() -> None:
        with runtime(configuration, ReplayedEntropy(), Hurrying(), EventLog(), pid=os.getpid()):
            raise RuntimeError

    with pytest.raises(RuntimeError):
        die()
    assert pulse(configuration).pid == os.getpid()
    assert not is_locked(configuration.store.path)


def test_asking_for_the_lock_keeps_nobody_out(tmp_path: Path) -> None:
    """Who asks holds the lock for an instant; a daemon that starts then waits for it."""
    store = tmp_path / "s.db"
    file = os.open(tmp_path / "s.db.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(file, fcntl.LOCK_EX)
    threading.Timer(0.07, os.close, [file]).start()
    with store_lock(store):
        assert is_locked(store)


def test_a_link_to_a_store_has_its_lock(tmp_path: Path) -> None:
    """Two names of one file are one store."""
    store, link = tmp_path / "s.db", tmp_path / "link.db"
    store.touch()
    link.symlink_to(store)
    with store_lock(store), pytest.raises(LockedError), store_lock(link):
        pass


@pytest.mark.parametrize(("error", "lives"), [(StoreError, True), (IntegrityError, False)])
def test_a_full_disk_is_waited_for(
    configuration: Configuration,
    error: type[StoreError],
    lives: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A store that is full or busy is tried again with the same jobs; a damaged one is the end.

    It is tried after a while, and told once however often it fails.
    """
    log, fails = EventLog(), [True, True]
    real = Runner.round

    def round_(runner: Runner, *given: Any) -> Outcomes:
        if fails.pop() if fails else False:
            raise error("the disk is full")
        return real(runner, *given)

    monkeypatch.setattr(Runner, "round", round_)
    clock, entropy = Hurrying(), ReplayedEntropy()
    with runtime(configuration, entropy, clock, log, pid=os.getpid()) as running:
        rounds = Rounds(running.store, entropy, clock, lambda: False, lambda: None, lambda: None)
        rounds.adopt(running.jobs)
        rounds.wake(running.jobs.values(), ["air_time"], log)
        wait_until(lambda: not rounds.busy())
        if not lives:
            with pytest.raises(error):
                rounds.left()
            return
        assert rounds.failure == "the disk is full"
        assert rounds.left() == set(), "it is not tried again at once"
        clock.timed += AGAIN
        assert rounds.left() == {"air_time"}
        assert log.names().count("store.failed") == 1
        rounds.wake(running.jobs.values(), ["air_time"], log)
        wait_until(lambda: not rounds.busy())
        assert log.names().count("store.failed") == 1
        rounds.wake(running.jobs.values(), ["air_time"], log)
        wait_until(lambda: not rounds.busy())
        clock.timed += AGAIN
        assert rounds.failure == ""
