"""The page over a large store, beside a working daemon, and what the extra costs.

python -m tests.benchmarks.web [--json] [--quick]

`median` and `worst` are milliseconds of whole answers over HTTP, on a connection that is kept.
`first` is the first answer of a fresh process, `cpu` what one answer takes of a processor, whoever
else uses the machine. Beside a daemon, `ratio` is the time that a run took
while 200 clients looked, each at a page every ten seconds, over the time that it took alone: the
least of several each, in turn.
"""

from __future__ import annotations

import http.client
import importlib.metadata
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from tests.benchmarks.large_store import furnish
from tests.benchmarks.report import Row, main
from tests.web.chromium import serving

PAGES = (
    *("/", "/jobs/air_time", "/jobs/air_time?last=all", "/budget", "/statement", "/metrics"),
    *("/api/v1/status", "/api/v1/ledger", "/api/v1/jobs/air_time/releases"),
)
CLIENTS, PAUSE = 200, 10.0
EXTRA = ("starlette", "uvicorn", "jinja2", "prometheus_client", "markupsafe", "anyio", "h11")
ROOT = Path(__file__).parents[2]


def rows(quick: bool) -> Iterator[Row]:
    """Answers over a large store; a daemon that is looked at; size and start-up."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _large(Path(folder), 10_000 if quick else 100_000)
    with tempfile.TemporaryDirectory() as folder:
        yield from _looked_at(Path(folder), 1 if quick else 5)
    yield from _extra(3 if quick else 9)


def _large(folder: Path, releases: int) -> Iterator[Row]:
    furnish(folder, releases)
    with serving(folder) as address:
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=120)
        yield _row(f"{releases} releases, memory before", megabytes=_memory(address))
        for page in PAGES:
            first = _seconds(connection, page)
            before = _worked(address)
            times = sorted(_seconds(connection, page) for _ in range(20))
            cpu = (_worked(address) - before) / len(times)
            yield _row(
                f"{releases} releases, {page}",
                first=first,
                cpu=cpu,
                median=median(times),
                worst=times[-1],
            )
        yield _row(f"{releases} releases, memory after", megabytes=_memory(address))


def _looked_at(folder: Path, rounds: int) -> Iterator[Row]:
    """Runs alone and looked at, in turn, each on a copy of one store."""
    first = folder / "first"
    first.mkdir()
    text = (ROOT / "config.yaml").read_text()
    (first / "config.yaml").write_text(text.replace("end: 2014-01-01", "end: 2013-01-11"))
    _run(first)
    (first / "config.yaml").write_text(text.replace("end: 2014-01-01", "end: 2013-05-01"))
    alone, beside, answered, failed = [], [], 0, 0
    for number in range(rounds):
        place = shutil.copytree(first, folder / f"alone{number}")
        alone.append(_run(place))
        place = shutil.copytree(first, folder / f"beside{number}")
        with serving(place) as address, _clients(address) as counts:
            beside.append(_run(place))
            released = (place / "streamdp.log").read_text()
        answered, failed = answered + counts[0], failed + counts[1]
        assert "store.failed" not in released
    yield _row("110 releases alone, seconds", median=median(alone), worst=max(alone))
    yield _row(f"the same, {CLIENTS} clients looking", median=median(beside), worst=max(beside))
    yield _row("the same, ratio of the least", ratio=min(beside) / min(alone))
    yield _row("answers meanwhile, and failed ones", answers=answered, failed=failed)


@contextmanager
def _clients(address: str) -> Iterator[Any]:
    """So many who look, from another process that yields; counts of answers and of failures."""
    counts, stop = multiprocessing.Array("i", 2), multiprocessing.Event()
    looking = multiprocessing.Process(target=_look_all, args=(address, counts, stop))
    looking.start()
    try:
        yield counts
    finally:
        stop.set()
        looking.join()


def _look_all(address: str, counts: Any, stop: Any) -> None:
    os.nice(19)
    looks = [(address, number, counts, stop) for number in range(CLIENTS)]
    threads = [threading.Thread(target=_look, args=each) for each in looks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _look(address: str, number: int, counts: Any, stop: Any) -> None:
    """Look at a page, wait, and look again."""
    pages = ("/", "/jobs/air_time", "/budget", "/log", "/api/v1/status")
    stop.wait(PAUSE * number / CLIENTS)
    while not stop.is_set():
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
        try:
            connection.request("GET", pages[number % len(pages)])
            answer = connection.getresponse()
            answer.read()
            failed = answer.status != 200
        except OSError:
            failed = True
        finally:
            connection.close()
        with counts.get_lock():
            counts[failed] += 1
        stop.wait(PAUSE)


def _run(folder: Path) -> float:
    start = time.perf_counter()
    command = [sys.executable, "-m", "streamdp", "run", "--once"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - start


def _extra(rounds: int) -> Iterator[Row]:
    sizes = {name: _size(name) for name in EXTRA}
    about = ", ".join(f"{name} {size:.1f}" for name, size in sizes.items())
    yield _row(f"installed, megabytes: {about}", megabytes=sum(sizes.values()))
    page = ROOT / "streamdp" / "web"
    own = sum(file.stat().st_size for file in page.rglob("*") if file.suffix != ".pyc")
    yield _row("the page in the package", megabytes=own / 1e6)
    for what, code in (
        ("import streamdp", "import streamdp"),
        ("streamdp --help", "from streamdp.cli import cli; cli(['--help'], standalone_mode=False)"),
        ("the page, imported", "import streamdp.web.app"),
    ):
        times = sorted(_started(code) for _ in range(rounds))
        yield _row(f"{what}, milliseconds", first=times[0], median=median(times), worst=times[-1])
    loaded = (
        "import sys, streamdp.cli; sys.exit(any(n in sys.modules for n in ('starlette', 'jinja2')))"
    )
    unchanged = subprocess.run([sys.executable, "-c", loaded]).returncode == 0
    yield _row("commands load nothing of the extra", failed=int(not unchanged))


def _started(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    return (time.perf_counter() - start) * 1000


def _seconds(connection: http.client.HTTPConnection, page: str) -> float:
    start = time.perf_counter()
    connection.request("GET", page)
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 200, page
    return (time.perf_counter() - start) * 1000


def _memory(address: str) -> float:
    """Megabytes that the process behind an address has in memory."""
    status = (_process(address) / "status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1000


def _worked(address: str) -> float:
    """Milliseconds of a processor that it has had."""
    fields = (_process(address) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def _process(address: str) -> Path:
    config = f"config.{urlsplit(address).port}.yaml".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if config in (process / "cmdline").read_bytes():
                return process
        except OSError:
            continue
    raise RuntimeError(f"nobody serves {address}")


def _size(name: str) -> float:
    files = importlib.metadata.files(name) or []
    there = [file for file in files if "__pycache__" not in str(file)]
    return sum(os.path.getsize(file.locate()) for file in there) / 1e6


def _row(what: str, **figures: float) -> Row:
    names = ("first", "cpu", "median", "worst", "ratio", "megabytes", "answers", "failed")
    return {"what": what, **{name: _short(figures.get(name)) for name in names}}


def _short(figure: float | None) -> float | None:
    return None if figure is None else round(figure, 2)


if __name__ == "__main__":
    main("The page: speed over a large store, beside a daemon, and size", rows)
