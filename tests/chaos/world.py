"""Twenty jobs over five sources, three receivers and real servers, with a daemon to torment."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

from streamdp.store.database import connect_to_read
from streamdp.store.pulse import Pulse, read_pulse
from tests.chaos.shifted import SHIFT

COMMAND = [sys.executable, str(Path(__file__).with_name("shifted.py"))]
EVERY = 5
"""Seconds of the schedule of every job."""

WINDOW = 60
"""Seconds of a window, and between two records."""

PAST = 6000
"""Windows that are there from the start: nobody is ever done with them."""

JOBS = 4
"""Of each source."""

HEAD = """
store: {{path: {store}/s.db, anchor: {anchor}/s.anchor}}
privacy: {{unit: ride, caps: {{batch: 40, lifetime: 100000}}}}
log: {{path: streamdp.log, stderr: "off"}}
alerts: {{sink: pager, on: [unreadable, late, store, burnt, clock]}}
sinks:
  pager: {{kind: webhook, url: "http://127.0.0.1:{pager}/", secret: {{file: key}}}}
  drip: {{kind: webhook, url: "http://127.0.0.1:{drip}/", secret: {{file: key}}}}
  goon: {{kind: webhook, url: "http://127.0.0.1:{goon}/", secret: {{file: key}}}}
  mute: {{kind: webhook, url: "http://127.0.0.1:{mute}/", secret: {{file: key}}}}
  file: {{kind: jsonl, path: releases.jsonl}}
sources:
"""
WINDOWS = "batches: {{column: at, every: 1m, start: {start}}}"
SERVER = "  {name}: {{table: {table}, engine: {{kind: {kind}, connection: '{at}', timeout: 20s}}, "
FILES = "  {name}: {{path: {path}, "
JOB = (
    "  {name}: {{kind: statistics, source: {source}, measures: {{n: count}},"
    " epsilon: 0.01, expected_rows: 5, schedule: {{every: {every}s}}, sinks: [file, {sink}]}}\n"
)


@dataclass
class Pager:
    """A receiver that takes alerts, each with the moment of its arrival."""

    taken: list[tuple[float, dict[str, Any]]] = field(default_factory=list)

    def of(self, event: str, since: float) -> list[tuple[float, dict[str, Any]]]:
        return [each for each in self.taken if each[0] >= since and each[1]["event"] == event]


@contextmanager
def pager(found: Pager) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = json.loads(self.rfile.read(int(self.headers["content-length"])))
            found.taken += [(time.time(), row) for row in content["data"]["rows"]]
            self.send_response(204)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@contextmanager
def receiver(says: bytes, pause: float) -> Iterator[int]:
    """Takes connections and says the same again and again: a byte, a 100-continue, or nothing."""
    ended = threading.Event()

    def talk(other: socket.socket) -> None:
        with suppress(OSError), other:
            while not ended.wait(pause):
                other.sendall(says)

    def listen() -> None:
        with suppress(OSError):
            while not ended.is_set():
                threading.Thread(target=talk, args=[server.accept()[0]], daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=listen, daemon=True).start()
        yield server.getsockname()[1]
        ended.set()


@dataclass
class World:
    """A folder with a configuration, and the daemon that works in it.

    Args:
        home: The folder.
        pager: Takes its alerts.
        sources: Names, in order.
    """

    home: Path
    pager: Pager
    sources: tuple[str, ...]
    daemon: subprocess.Popen[bytes] | None = None

    @property
    def store(self) -> Path:
        return self.home / "store" / "s.db"

    @property
    def anchor(self) -> Path:
        return self.home / "anchor" / "s.anchor"

    def shift(self, seconds: int) -> None:
        """Let the daemon's clock be ahead by so much from now on; negative: behind."""
        (self.home / SHIFT).write_text(str(seconds))

    def start(self) -> None:
        """Start the daemon."""
        # PGDATABASE and the like of who runs this are none of the daemon's business.
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        kept["PYTHONPATH"] = str(Path(__file__).parents[2])
        with (self.home / "stderr.txt").open("ab") as said:
            self.daemon = subprocess.Popen([*COMMAND, "run"], cwd=self.home, stderr=said, env=kept)

    def stop(self, number: int = signal.SIGTERM) -> float:
        """Tell the daemon to stop; return the seconds that it took."""
        assert self.daemon is not None
        began = time.monotonic()
        self.daemon.send_signal(number)
        try:
            self.daemon.wait(120)
        except subprocess.TimeoutExpired:
            self.daemon.kill()
            self.daemon.wait()
        return time.monotonic() - began

    def pulse(self) -> Pulse | None:
        return read_pulse(self.store)

    def released(self) -> dict[str, list[int]]:
        """Moments of the releases of each job."""
        found: dict[str, list[int]] = {}
        for job, at in connect_to_read(self.store).execute("SELECT job, released_at FROM release"):
            found.setdefault(job, []).append(at)
        return found

    def longest_gap(self, jobs: set[str], since: float, until: float) -> tuple[float, str]:
        """Longest time in which one of these jobs released nothing, and which."""
        longest = 0.0, ""
        for job, at in self.released().items():
            if job in jobs:
                marks = [since, *sorted(each for each in at if since < each < until), until]
                gaps = [later - earlier for earlier, later in pairwise(marks)]
                longest = max(longest, (max(gaps), job))
        return longest

    def jobs_of(self, *sources: str) -> set[str]:
        return {f"{source}_{number}" for source in sources for number in range(JOBS)}


def configuration(home: Path, ports: dict[str, int], servers: dict[str, tuple[str, str]]) -> None:
    """Write the configuration, and files of records for the sources that have no server."""
    import duckdb

    start = first_window()
    begin = datetime.fromtimestamp(start, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    text = HEAD.format(store=home / "store", anchor=home / "anchor", **ports)
    windows = WINDOWS.format(start=begin) + "}\n"
    for name, (kind, at) in servers.items():
        text += SERVER.format(name=name, table=name, kind=kind, at=at) + windows
    for name in ("files_a", "files_b"):
        path = home / f"{name}.parquet"
        duckdb.execute(
            f"COPY (SELECT to_timestamp({start} + 60 * range)::TIMESTAMP AS at FROM range({PAST}))"
            f" TO '{path}' (FORMAT parquet)"
        )
        text += FILES.format(name=name, path=path) + windows
    text += "releases:\n"
    sinks = ("drip", "goon", "mute", "file")
    for name in (*servers, "files_a", "files_b"):
        for number in range(JOBS):
            job = JOB.format(
                name=f"{name}_{number}", source=name, every=EVERY, sink=sinks[number % 4]
            )
            text += job.replace("[file, file]", "[file]")
    (home / "config.yaml").write_text(text)
    (home / "key").write_text("a key that is long enough for it")
    for folder in ("store", "anchor"):
        (home / folder).mkdir(exist_ok=True)


def first_window() -> int:
    """When the first window begins, the same all day."""
    return int(time.time()) // 86_400 * 86_400 - PAST * WINDOW


def rows() -> Iterator[str]:
    """A record in each window."""
    for number in range(PAST):
        moment = datetime.fromtimestamp(first_window() + WINDOW * number, UTC)
        yield moment.strftime("%Y-%m-%d %H:%M:%S")
