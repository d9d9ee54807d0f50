"""The daemon as a process: signals, the lock, reload, and what it leaves behind."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streamdp.store.database import connect_to_read
from streamdp.store.reading.reports import heart
from tests.invariants import violations

DEMO = Path(__file__).parents[2] / "config.yaml"
COMMAND = [sys.executable, "-m", "streamdp"]
PATIENCE = 600
"""Seconds: what takes two may take a loaded machine many times as long."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    text = DEMO.read_text().replace("end: 2014-01-01", "end: 2013-01-21")
    (tmp_path / "config.yaml").write_text(re.sub(r"batch: [\d.]+", "batch: 50", text))
    return tmp_path


@pytest.fixture
def start(home: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts commands in the folder, and kills those that a test leaves alive."""
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*COMMAND, *arguments], cwd=home, stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def wait_for(home: Path, event: str, count: int = 1) -> None:
    """Wait until the log has an event so many times."""
    wait_until(lambda: events(home).count(event) >= count)


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until, f"it did not come in {PATIENCE} s"
        time.sleep(0.05)


def events(home: Path) -> list[str]:
    """Events of whole lines of the log: another process may be writing one."""
    path = home / "streamdp.log"
    *lines, _ = path.read_text().split("\n") if path.exists() else [""]
    return [json.loads(line)["event"] for line in lines]


Start = Callable[..., subprocess.Popen[str]]


def test_it_catches_up_and_stops_within_a_release(home: Path, start: Start) -> None:
    """SIGTERM in a catch-up: the running release ends, nothing is burnt, the exit is clean."""
    daemon = start("run")
    wait_for(home, "release.committed", 3)
    daemon.send_signal(signal.SIGTERM)
    assert daemon.wait(timeout=PATIENCE) == 0
    assert events(home)[-1] == "daemon.stopped"
    assert violations(home / "streamdp.db", sinks=2) == []
    assert "release.burnt" not in events(home)
    assert heart(connect_to_read(home / "streamdp.db")).pid is None


def test_a_single_run_that_is_stopped_says_so(home: Path, start: Start) -> None:
    """SIGTERM ends `run --once` after the running release, and what is left is no success."""
    text = (home / "config.yaml").read_text().replace("2013-01-21", "2014-01-01")
    (home / "config.yaml").write_text(text)
    once = start("run", "--once")
    wait_for(home, "release.committed", 3)
    once.send_signal(signal.SIGTERM)
    _, told = once.communicate(timeout=PATIENCE)
    assert once.returncode == 1
    assert "stopped by a signal" in told
    assert violations(home / "streamdp.db", sinks=2) == []


def test_a_second_daemon_is_refused(home: Path, start: Start) -> None:
    """It exits with its own code and changes nothing."""
    start("run")
    wait_for(home, "release.committed", 20)
    before = connect_to_read(home / "streamdp.db").execute("SELECT max(seq) FROM ledger").fetchone()
    second = start("run", "--once")
    assert second.wait(timeout=PATIENCE) == 5
    after = connect_to_read(home / "streamdp.db").execute("SELECT max(seq) FROM ledger").fetchone()
    assert after == before


def test_reload(home: Path, start: Start) -> None:
    """SIGHUP takes a good configuration over, and refuses a bad one and a greedy one."""
    daemon = start("run")
    wait_for(home, "release.committed", 20)
    path = home / "config.yaml"
    good = path.read_text()
    for text, refusals in ((good + "nonsense: 1\n", 1), (good.replace("me: 60", "me: 61"), 2)):
        path.write_text(text)
        daemon.send_signal(signal.SIGHUP)
        wait_for(home, "daemon.reload-refused", refusals)
    path.write_text(good.replace("2013-01-21", "2013-01-31"))
    daemon.send_signal(signal.SIGHUP)
    wait_for(home, "daemon.reloaded")
    wait_for(home, "release.committed", 30)
    path.write_text(path.read_text().replace("streamdp.log", "other.log"))
    daemon.send_signal(signal.SIGHUP)
    wait_until((home / "other.log").exists)
    assert daemon.poll() is None


def test_a_reload_wires_everything_before_it_lets_go(home: Path, start: Start) -> None:
    """A secret's file that is missing: refused, and what ran goes on; there, it is taken over."""
    daemon = start("run")
    wait_for(home, "release.committed", 20)
    path = home / "config.yaml"
    hook = "  hook: {kind: webhook, url: 'http://127.0.0.1:1/', secret: {file: key}}\n"
    path.write_text(path.read_text().replace("\nsinks:\n", f"\nsinks:\n{hook}"))
    daemon.send_signal(signal.SIGHUP)
    wait_for(home, "daemon.reload-refused")
    (home / "key").write_text("a key that is long enough")
    daemon.send_signal(signal.SIGHUP)
    wait_for(home, "daemon.reloaded")
    assert daemon.poll() is None
    assert events(home).count("daemon.started") == 1


def test_status_tells_a_dead_daemon_from_a_stopped_one(home: Path, start: Start) -> None:
    """After SIGKILL status says dead and exits with 1; while it works, running."""
    daemon = start("run")
    wait_for(home, "release.committed", 1)
    alive = subprocess.run([*COMMAND, "status", "--json"], cwd=home, capture_output=True, text=True)
    assert json.loads(alive.stdout.splitlines()[0])["daemon"] == "running"
    daemon.kill()
    daemon.wait()
    dead = subprocess.run([*COMMAND, "status", "--json"], cwd=home, capture_output=True, text=True)
    assert json.loads(dead.stdout.splitlines()[0])["daemon"] == "dead"
    assert dead.returncode == 1


@pytest.mark.parametrize("deaths", [2, pytest.param(60, marks=pytest.mark.long)])
def test_killed_at_random_moments(home: Path, deaths: int) -> None:
    """SIGKILL whenever: after a last full run every invariant holds and each day has one line."""
    chance = random.Random(deaths)
    text = (home / "config.yaml").read_text().replace("2013-01-21", "2013-03-01")
    (home / "config.yaml").write_text(text)
    for _ in range(deaths):
        process = subprocess.Popen([*COMMAND, "run", "--once"], cwd=home, stderr=subprocess.DEVNULL)
        known = events(home).count("release.committed")
        while process.poll() is None and events(home).count("release.committed") == known:
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.05))
        process.kill()
        process.wait()
    subprocess.run([*COMMAND, "run", "--once"], cwd=home, check=True, capture_output=True)
    assert violations(home / "streamdp.db", sinks=2) == []
    lines = (home / "releases.jsonl").read_text().splitlines()
    assert len({json.loads(line)["batch"] for line in lines}) == len(lines) == 59


MARKED = "marked.csv\n    types: {date: date, air_time: number}"


COMMON = "77712345678901"


def test_traces_hold_no_private_word(home: Path) -> None:
    """A column of marked values is read, and its marks are in no file that was written.

    What they have in common has so many digits that no number with noise holds it by chance: of a
    million digits that are written, once in 10^8 runs.
    """
    marked = [f"{COMMON}{last}.25" for last in (1, 2, 3)]
    rows = "\n".join(f"2013-01-{day:02d},{value}" for day in range(1, 21) for value in marked)
    (home / "marked.csv").write_text("date,air_time\n" + rows + "\n2013-01-02,CANARY-CANARY\n")
    text = (home / "config.yaml").read_text().replace("demo:flights.parquet", MARKED)
    (home / "config.yaml").write_text(text.replace("level: info", "level: debug"))
    ran = subprocess.run([*COMMAND, "run", "--once"], cwd=home, capture_output=True, check=True)
    written = b"".join(
        file.read_bytes() for file in home.iterdir() if file.name not in ("marked.csv",)
    )
    for mark in (*marked, COMMON, "CANARY"):
        assert mark.encode() not in written + ran.stdout + ran.stderr
