"""The daemon on a year of flights: time, memory, start-up, kill -9, and rank errors.

python -m tests.benchmarks.daemon [--json] [--quick]
"""

from __future__ import annotations

import os
import random
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from streamdp import wiring
from streamdp.config import load
from streamdp.engine.job import Job
from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.kinds.quantiles.section import QuantilesSection
from streamdp.learning.learner import Fixed
from streamdp.mechanisms.quantile_tree.planning.simulation import rank_errors
from streamdp.priors.shapes import Cauchy
from streamdp.privacy.draws import OperatingSystemEntropy
from tests.benchmarks.report import Row, main
from tests.invariants import violations

CONFIG = Path(__file__).parents[2] / "config.yaml"
COMMAND = [sys.executable, "-m", "streamdp"]

LONGEST_LIFE = 0.06
"""Seconds a process works before it is killed: a few releases, so that a year has many deaths."""


def rows(quick: bool) -> Iterator[Row]:
    """Rows of all parts."""
    yield from start_up(3 if quick else 15)
    yield from year()
    yield from kills(10 if quick else 100)
    yield from accuracy(1 if quick else 5)


def start_up(repeats: int) -> Iterator[Row]:
    """Median wall time of fresh processes, and the floor: an interpreter that does nothing."""
    for what, command in (
        ("python -c pass", [sys.executable, "-c", "pass"]),
        ("import streamdp", [sys.executable, "-c", "import streamdp"]),
        ("streamdp --help", [*COMMAND, "--help"]),
        ("streamdp version", [*COMMAND, "version"]),
    ):
        seconds = []
        for _ in range(repeats):
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds.append(time.perf_counter() - start)
        yield {"what": what, "unit": "s", "value": float(np.median(seconds))}


def year() -> Iterator[Row]:
    """365 releases by `run --once` in a fresh folder, and the time between them in one process."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "config.yaml").write_text(CONFIG.read_text())
        start = time.perf_counter()
        subprocess.run([*COMMAND, "run", "--once"], cwd=home, check=True, capture_output=True)
        wall = time.perf_counter() - start
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        with closing(sqlite3.connect(home / "streamdp.db")) as store:
            (count,) = store.execute("SELECT count(*) FROM release").fetchone()
        yield {"what": "releases of run --once", "unit": "count", "value": count}
        yield {"what": "wall time of run --once", "unit": "s", "value": wall}
        yield {"what": "peak memory of run --once", "unit": "MB", "value": usage.ru_maxrss / 1000}
        broken = violations(home / "streamdp.db", sinks=2)
        yield {"what": "broken invariants", "unit": "count", "value": len(broken)}
    times = np.array(list(_release_times())) * 1000
    yield {"what": "release, median", "unit": "ms", "value": float(np.median(times))}
    slow = float(np.quantile(times, 0.95))
    yield {"what": "release, 95th percentile", "unit": "ms", "value": slow}


def _release_times() -> Iterator[float]:
    """Seconds between the ends of releases of one catch-up in this process."""
    from streamdp.daemon.runtime import SystemClock, runtime

    moments: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(CONFIG.read_text())
        mask = os.umask(0o077)
        with runtime(
            load(path),
            OperatingSystemEntropy(),
            SystemClock(),
            _say_nothing,
            progress=lambda job, done, total: moments.append(time.perf_counter()),
        ) as running:
            running.runner.round(running.jobs.values())
        os.umask(mask)
    yield from np.diff(moments)


def _say_nothing(event: str, /, **fields: str | int | None) -> None:
    """The log of this benchmark."""


def kills(times: int) -> Iterator[Row]:
    """SIGKILL at random moments of a catch-up, restarted each time, and the invariants after."""
    chance = random.Random(2013)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        text = re.sub(r"batch: [\d.]+", "batch: 100", CONFIG.read_text())
        (home / "config.yaml").write_text(re.sub(r"lifetime: \d+", "lifetime: 1000", text))
        store, landed = home / "streamdp.db", 0
        for _ in range(times):
            process = subprocess.Popen(
                [*COMMAND, "run", "--once"], cwd=home, stderr=subprocess.DEVNULL
            )
            _wait_for_work(process, home / "streamdp.log")
            time.sleep(chance.uniform(0, LONGEST_LIFE))
            process.send_signal(signal.SIGKILL)
            landed += process.wait() == -signal.SIGKILL
        subprocess.run([*COMMAND, "run", "--once"], cwd=home, check=True, capture_output=True)
        broken = violations(store, sinks=2)
        lines = (home / "releases.jsonl").read_text().splitlines()
        ids = {line.split('"release_id": "')[1].split('"')[0] for line in lines}
        yield {"what": "kill -9: sent while it worked", "unit": "count", "value": landed}
        released = _count(store, "release")
        yield {"what": "kill -9: releases after all", "unit": "count", "value": released}
        burnt = _count(store, "ledger WHERE purpose = 'burn'")
        yield {"what": "kill -9: charges burnt", "unit": "count", "value": burnt}
        yield {"what": "kill -9: broken invariants", "unit": "count", "value": len(broken)}
        doubled = len(lines) - len(ids) + abs(365 - len(ids))
        yield {"what": "kill -9: lines doubled or missing", "unit": "count", "value": doubled}


def _wait_for_work(process: subprocess.Popen[bytes], log: Path) -> None:
    """Until the log grows: a process says when it commits its first release."""
    size = log.stat().st_size if log.exists() else 0
    while process.poll() is None and (log.stat().st_size if log.exists() else 0) == size:
        time.sleep(0.001)


def _count(store: Path, table: str) -> int:
    if not store.exists():
        return 0
    database = sqlite3.connect(store)
    try:
        (count,) = database.execute(f"SELECT count(*) FROM {table}").fetchone()
    except sqlite3.OperationalError:
        return 0
    finally:
        database.close()
    return int(count)


def accuracy(repeats: int) -> Iterator[Row]:
    """Rank error of the demonstration's releases, learning and not, against the truth."""
    job = wiring.jobs(load(CONFIG))["air_time"]
    kind = job.kind
    assert isinstance(kind, Quantiles)
    section = load(CONFIG).releases["air_time"]
    assert isinstance(section, QuantilesSection)
    robust = Cauchy(section.guess.location, section.guess.scale) if section.guess else Cauchy(0, 1)
    static = replace(kind, learner=Fixed((robust,) * len(kind.quantiles)))
    for who, each in (("configured learner", kind), ("static Cauchy", static)):
        errors = np.array([error for _ in range(repeats) for error in release_errors(job, each)])
        for what, value in (
            ("average over quantiles", errors.mean()),
            ("largest of the quantiles", errors.max(axis=1).mean()),
        ):
            name = f"rank error, {what}: {who}"
            yield {"what": name, "unit": f"epsilon {float(kind.epsilon):g}", "value": float(value)}


def release_errors(job: Job, kind: Quantiles) -> Iterable[np.ndarray]:
    state = kind.init()
    for batch in job.source.batches(2**40):
        plan = kind.plan(state, batch)
        counts = job.backend.answer(plan.query, batch)
        outcome = kind.draw(plan, counts, OperatingSystemEntropy())
        state = kind.learn(state, plan, outcome)
        values = [Fraction(float(row["value"] or 0)) for row in outcome.rows]
        cells = np.array([round(value / kind.grid.resolution) for value in values])
        yield rank_errors(counts, kind.quantiles, cells)


if __name__ == "__main__":
    main("The daemon on a year of flights", rows)
