"""Signs of life, slow and hung questions, late jobs, and a store that cannot be written."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest

from streamdp.backends.limits import Limits
from streamdp.config import load
from streamdp.daemon.alerts import conditions, late_alerts
from streamdp.daemon.daemon import Daemon, late_jobs, notify, told_as_failing
from streamdp.daemon.rounds import asking_of
from streamdp.daemon.runtime import Runtime
from streamdp.errors import SinkError, SourceLockedError, StoreError
from streamdp.reports.state import daemon_state, job_view, signs_of_life
from streamdp.store.database import connect_to_read
from streamdp.store.problems import BatchProblem
from streamdp.store.pulse import SIZE, Asking, Pulse, PulseFile, path_of, read_pulse
from streamdp.types import Release
from tests.daemon.test_daemon import COMMAND, Start, events, home, start, wait_until
from tests.daemon.test_isolation import rounds_of, two_sources
from tests.worlds import EventLog, ListSink, ReplayedEntropy, World

__all__ = ["home", "start"]

PAGER = "  pager: {kind: jsonl, path: pages.jsonl}\n"


def test_a_pulse_is_written_in_place(tmp_path: Path) -> None:
    """The file has its whole size from the start, and is its user's alone."""
    store = tmp_path / "s.db"
    assert read_pulse(store) is None
    file = PulseFile(store)
    for pulse in (Pulse(7, 1, store="x" * 1000), Pulse(8, None, late={"a": 60})):
        file.write(pulse)
        assert read_pulse(store) == pulse
        assert path_of(store).stat().st_size == SIZE
    file.close()
    assert path_of(store).stat().st_mode & 0o077 == 0


def test_a_slow_question_is_told_from_one_that_hangs(tmp_path: Path) -> None:
    """Slow for as long as it may take; hung once its time is over. Its job is late, no other."""
    with two_sources(tmp_path) as (world, hung, free, backend):
        object.__setattr__(backend, "limits", Limits(seconds=600))
        rounds = rounds_of(world, Event())
        rounds.adopt({"hung": hung, "free": free})
        rounds.wake([hung], ["hung"], world.log)
        assert backend.asking.wait(600)
        assert asking_of(rounds, world.clock) == ()
        world.clock.timed += 90
        (asking,) = asking_of(rounds, world.clock)
        assert (asking.source, asking.job, asking.state) == ("s", "hung", "slow")
        assert asking.since % 60 == 0
        world.clock.timed += 1300
        assert [each.state for each in asking_of(rounds, world.clock)] == ["hung"]
        rounds.wake([free], ["free"], world.log)
        wait_until(lambda: rounds.unserved().keys() == {"hung"})


def test_a_job_is_late_against_its_own_schedule(home: Path) -> None:
    """Of every five seconds within a minute, of every day after a day."""
    text = (home / "config.yaml").read_text()
    woke = 1_800_000_000 - 1_800_000_000 % 86_400
    for every, after in (("5s", 55), ("1d", 86_400)):
        changed = text.replace('{cron: "0 7 * * *"}', f"{{every: {every}}}")
        assert changed != text
        (home / "config.yaml").write_text(changed)
        configuration = load(home / "config.yaml")
        assert late_jobs(configuration, {"air_time": woke}, woke + after - 2) == {}
        late = late_jobs(configuration, {"air_time": woke}, woke + after)
        assert late == {"air_time": woke}
        (alert,) = late_alerts(configuration, Pulse(woke, 1, late=late))
        assert (alert.event, alert.about) == ("late", "air_time")
    source, told = configuration.source_of_task("air_time"), [alert]
    for state, again in (("slow", False), ("hung", True)):
        asking = (Asking(source, "air_time", woke, state),)  # type: ignore[arg-type]
        (found,) = late_alerts(configuration, Pulse(woke, 1, late=late, asking=asking), told)
        assert (found != alert) == again, "a question that hangs is told all the same"
        (first,) = late_alerts(configuration, Pulse(woke, 1, late=late, asking=asking))
        assert ("restart" in first.reason, "look at its server" in first.reason) == (
            state == "slow",
            state == "hung",
        )


def test_who_waits_behind_failures_that_are_told_is_not_told_as_late_in_turns(home: Path) -> None:
    """A locked table is told once a job; a slow question, or a column that is gone, is another."""
    text = (home / "config.yaml").read_text()
    first, second = text.index("  air_time:\n"), text.index("\nsinks:\n")
    beside = text[first:second].replace("air_time:", "beside:", 1)
    (home / "config.yaml").write_text(text[:second] + "\n" + beside + text[second:])
    configuration = load(home / "config.yaml")
    source = configuration.source_of_task("beside")
    late = {"air_time": 60, "beside": 60}

    def told(code: str, batch: str = "", *asking: Asking) -> set[str]:
        found = BatchProblem("air_time", batch, code, "why", 60)
        return told_as_failing(configuration, late, asking, [found])

    for code in ("source-locked", "timeout", "unreachable"):
        assert told(code) == {"air_time", "beside"}
        assert told(code, "", Asking("another", "x", 0, "hung")) == {"air_time", "beside"}
        assert told(code, "", Asking(source, "beside", 0, "slow")) == set()
        assert told(code, "a.parquet") == set()
    assert told("missing-column") == set()


def test_the_pulse_has_no_late_job_whose_source_is_told_as_locked(
    home: Path, tmp_path: Path
) -> None:
    """Nor one that waits for a store that is full; without either it is late for its own reason."""
    configuration = load(home / "config.yaml")
    daemon = Daemon(
        home / "config.yaml", configuration, ReplayedEntropy(), Real(), lambda _: EventLog()
    )
    (tmp_path / "world").mkdir()
    world = World(tmp_path / "world")
    woke = int(time.time()) - 2 * 86_400
    rounds = SimpleNamespace(
        busy=list, unserved=lambda: {"air_time": woke}, failure="", finished_at=None
    )
    running = SimpleNamespace(store=world.store, copying=None)
    assert daemon._pulse_of(running, rounds).late.keys() == {"air_time"}  # type: ignore[arg-type]
    rounds.failure = "the store is full"
    assert daemon._pulse_of(running, rounds).late == {}, "it is told as the store's"  # type: ignore[arg-type]
    rounds.failure = ""
    world.store.report_problem("air_time", "", SourceLockedError("it is locked"), woke)
    assert daemon._pulse_of(running, rounds).late == {}  # type: ignore[arg-type]


def test_jobs_that_are_told_otherwise_take_no_place_among_the_late(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more late jobs than a pulse has room for, those behind a locked server go first."""
    configuration = load(home / "config.yaml")
    daemon = Daemon(
        home / "config.yaml", configuration, ReplayedEntropy(), Real(), lambda _: EventLog()
    )
    (tmp_path / "world").mkdir()
    running = SimpleNamespace(store=World(tmp_path / "world").store, copying=None)
    rounds = SimpleNamespace(busy=list, unserved=dict, failure="", finished_at=None)
    monkeypatch.setattr("streamdp.daemon.daemon.MOST", 2)
    monkeypatch.setattr(
        "streamdp.daemon.daemon.late_jobs", lambda *_: {"locked": 1, "a": 2, "b": 3, "c": 4}
    )
    monkeypatch.setattr("streamdp.daemon.daemon.told_as_failing", lambda *_: {"locked"})
    assert daemon._pulse_of(running, rounds).late == {"a": 2, "b": 3}  # type: ignore[arg-type]


def test_a_full_volume_is_told_past_the_outbox(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The heart still beats; each reason goes to the sink once, and the pulse says why."""
    text = (home / "config.yaml").read_text().replace("\nsinks:\n", f"\nsinks:\n{PAGER}")
    (home / "config.yaml").write_text(text + "\nalerts: {sink: pager}\n")
    configuration, log = load(home / "config.yaml"), EventLog()
    daemon = Daemon(home / "config.yaml", configuration, ReplayedEntropy(), Real(), lambda _: log)
    monkeypatch.setattr(daemon, "_listen", lambda: None)
    pager, beats = ListSink("pager"), list[int]()
    real = Runtime.beat

    def beat(running: Runtime, *given: object) -> None:
        beats.append(1)
        running.runner.sinks = {"pager": pager}
        if len(beats) > 4:
            raise StoreError("the anchor cannot be written")
        if len(beats) > 1:
            raise StoreError(f"the store cannot be used: database or disk is full, at {len(beats)}")
        real(running, *given)  # type: ignore[arg-type]

    def look() -> bool:
        pulse = read_pulse(configuration.store.path)
        found = pulse is not None and bool(pulse.store) and (len(pager.taken) > 1 or len(beats) > 8)
        if found:
            life, _ = signs_of_life(
                connect_to_read(configuration.store.path), configuration.store.path
            )
            database, now = connect_to_read(configuration.store.path), int(time.time())
            state = daemon_state(life, now)
            job = job_view(configuration, database, "air_time", now, state, pulse)
            states.extend((state, job.state))
        return found

    states: list[str] = []
    monkeypatch.setattr(Runtime, "beat", beat)
    monkeypatch.setattr("streamdp.daemon.daemon.HEARTBEAT", 2)
    monkeypatch.setattr(daemon, "_sleep", lambda seconds: stop_once(daemon, look, seconds))
    mask = os.umask(0o022)
    daemon.run()
    os.umask(mask)
    assert states == ["running", "failing"]
    assert [release.rows[0]["event"] for release in pager.taken] == ["store", "store"]
    full, unwritten = (str(release.rows[0]["reason"]) for release in pager.taken)
    assert "disk is full" in full
    assert "the anchor" in unwritten, "another reason is told though the first is not over"
    assert log.names().count("store.failed") == 2


def test_the_alert_of_a_full_store_is_tried_until_it_is_taken_or_over(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outbox cannot keep it, and does not send it again once the store can be written."""
    text = (home / "config.yaml").read_text().replace("\nsinks:\n", f"\nsinks:\n{PAGER}")
    (home / "config.yaml").write_text(text + "\nalerts: {sink: pager}\n")
    configuration = load(home / "config.yaml")
    daemon = Daemon(
        home / "config.yaml", configuration, ReplayedEntropy(), Real(), lambda _: EventLog()
    )
    monkeypatch.setattr("streamdp.daemon.daemon.CRY_AGAIN", 0.01)
    tried: list[str] = []

    class Flaky(ListSink):
        def deliver(self, release: Release) -> None:
            reason = str(release.rows[0]["reason"])
            tried.append(reason)
            if reason == "over" and len(tried) > 5:
                daemon._cried = {}
            if reason == "anew" and len(tried) > 8:
                daemon._cried = {reason: object()}  # it failed for this again: told by that alert
            if reason != "full" or len(tried) < 3:
                raise SinkError("down")
            super().deliver(release)

    pager = Flaky("pager")
    running = SimpleNamespace(runner=SimpleNamespace(sinks={"pager": pager}))
    for reason in ("full", "over", "anew"):
        daemon._cried = {reason: object()}
        daemon._cry(running, reason)  # type: ignore[arg-type]
        wait_until(lambda: not any(each.name == "alert" for each in threading.enumerate()))
    assert tried == ["full"] * 3 + ["over"] * 3 + ["anew"] * 3
    assert len(pager.taken) == 1
    assert configuration.alerts is not None
    world = World(home)
    full = Pulse(world.clock.now(), 1, store="full")
    found = conditions(
        configuration, world.store.database, world.clock.now(), configuration.alerts, full
    )
    assert not [each for each in found if each.event == "store"]


class Real:
    """The clock of the system."""

    def now(self) -> int:
        return int(time.time())

    def timer(self) -> float:
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


def stop_once(daemon: Daemon, holds: object, seconds: float) -> None:
    time.sleep(min(seconds, 0.2))
    if not daemon._stopping and callable(holds) and holds():
        daemon._stopping = True


def test_systemd_hears_that_it_is_ready_and_that_the_heart_beats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As its protocol says, and nothing where nobody asked."""
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify("READY=1")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "n"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "n"))
        notify("WATCHDOG=1")
        assert systemd.recv(100) == b"WATCHDOG=1"


def test_status_says_what_the_heart_says(home: Path, start: Start) -> None:
    """Running while it works, and after SIGTERM stopped, in the pulse as in the store."""
    daemon = start("run")
    wait_until(lambda: read_pulse(home / "streamdp.db") is not None)
    assert "daemon.started" in events(home)
    daemon.send_signal(signal.SIGTERM)
    assert daemon.wait(timeout=600) == 0
    pulse = read_pulse(home / "streamdp.db")
    assert pulse is not None
    assert pulse.pid is None
    said = subprocess.run([*COMMAND, "status", "--json"], cwd=home, capture_output=True, text=True)
    assert json.loads(said.stdout.splitlines()[0])["daemon"] == "stopped"
