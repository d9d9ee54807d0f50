"""Many jobs in one daemon, and many files: memory, start, idle rounds, `plan` and `doctor`.

python -m tests.benchmarks.many_jobs [--json] [--quick]

Each part runs in processes of its own. `floor` is the least that the same machine needs in the same
minute: for a start an interpreter that imports the daemon, for a round a listing of the same files
with their sizes and times, for memory the import of the daemon with DuckDB.
"""

from __future__ import annotations

import glob
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.report import Row, main

COLUMNS = ("a", "b", "c", "d", "e")
EPSILONS = (0.1, 0.2, 0.3, 0.4)
DAYS = 1

HEAD = """
store: {path: store.db}
privacy: {unit: order, caps: {batch: 40, lifetime: 1000}}
log: {path: streamdp.log, stderr: "off"}
"""
IMPORTS = "import duckdb, streamdp.daemon.daemon, streamdp.wiring, streamdp.store.sqlite"


def rows(quick: bool) -> Iterator[Row]:
    """All parts, of more and more jobs; then many files."""
    for jobs, sources in ((20, 1), (100, 5)) if quick else ((20, 1), (100, 1), (1000, 50)):
        with tempfile.TemporaryDirectory() as folder:
            furnish_jobs(Path(folder), jobs, sources)
            yield from _part(Path(folder), f"{jobs} jobs, {sources} sources", jobs)
    for files in (300,) if quick else (10_000,):
        with tempfile.TemporaryDirectory() as folder:
            furnish_files(Path(folder), files)
            yield from _part(Path(folder), f"1 job, {files} files", 1)


def furnish_jobs(folder: Path, jobs: int, sources: int) -> None:
    """A configuration of jobs over Parquet files that are cut into windows."""
    import duckdb

    text = [HEAD, "sources:"]
    for number in range(sources):
        path = folder / f"orders-{number}.parquet"
        columns = ", ".join(f"random() * 1000 AS {name}" for name in COLUMNS)
        duckdb.execute(
            f"COPY (SELECT TIMESTAMP '2024-01-01' + range * INTERVAL 1 MINUTE AS at, {columns}"
            f" FROM range({DAYS * 1440})) TO '{path}' (FORMAT parquet)"
        )
        window = f"{{column: at, every: 1d, start: 2024-01-01, end: 2024-01-0{1 + DAYS}}}"
        text.append(f"  orders_{number}: {{path: {path.name}, batches: {window}}}")
    text.append("releases:")
    for number in range(jobs):
        column = COLUMNS[number // sources % len(COLUMNS)]
        epsilon = EPSILONS[number // sources // len(COLUMNS) % len(EPSILONS)]
        text.append(
            f"  job_{number}: {{kind: quantiles, source: orders_{number % sources},"
            f" column: {column}, quantiles: [0.25, 0.5, 0.75], resolution: 1, bounds: [0, 1000],"
            f" epsilon: {epsilon}, expected_rows: 1440, schedule: {{every: 1d}}}}"
        )
    (folder / "config.yaml").write_text("\n".join(text) + "\n")


def furnish_files(folder: Path, files: int) -> None:
    """A configuration of one job over files as batches, changed long ago."""
    (folder / "in").mkdir()
    for number in range(files):
        path = folder / "in" / f"{number:06}.csv"
        path.write_text("a\n1\n2\n")
        os.utime(path, (1_700_000_000, 1_700_000_000))
    text = (
        "sources:\n  orders: {path: in/*.csv, batches: files, types: {a: number}}\nreleases:\n"
        "  job: {kind: quantiles, source: orders, column: a, quantiles: [0.5], resolution: 1,"
        " bounds: [0, 1000], epsilon: 0.01, schedule: {every: 1d}}\n"
    )
    (folder / "config.yaml").write_text(HEAD + text)


def _part(folder: Path, what: str, jobs: int) -> Iterator[Row]:
    """What is measured of one folder: before anything, while all is released, and after it."""
    floors = [_ran([sys.executable, "-c", IMPORTS], folder) for _ in range(2)]
    floor, least = (min(each) for each in zip(*floors, strict=True))
    commands = {"plan": ["plan"], "doctor": ["doctor"]}
    if jobs > 1:
        commands["plan, one job simulated"] = ["plan", "job_0"]
    for name, words in commands.items():
        wall, processor = _ran([sys.executable, "-m", "streamdp", *words, "--json"], folder)
        yield _row(what, name, "s", wall, floor)
        yield _row(what, f"{name}, processor", "s", processor, least)
    work, idle = _alone(folder), _alone(folder)
    for name in ("start", "listing"):
        idle[name] = min(idle[name], work[name])
    assert idle["released"] == 0, "the second process found something due"
    yield _row(what, "releases", "count", work["released"])
    yield _row(what, "release, mean", "s", work["round"] / max(work["released"], 1))
    for state, found in (("after releases", work), ("nothing due", idle)):
        yield _row(what, f"memory, {state}", "MB", found["peak_mb"], found["imported_mb"])
    yield _row(what, "start", "s", idle["start"], floor)
    yield _row(what, "first round, nothing due", "s", idle["round"], idle["listing"])
    yield _row(what, "round, nothing due", "s", idle["idle"], idle["listing"])


def _row(of: str, what: str, unit: str, value: float, floor: float | None = None) -> Row:
    return {"of": of, "what": what, "unit": unit, "value": value, "floor": floor}


def _ran(command: list[str], folder: Path) -> tuple[float, float]:
    """Seconds of a command by the clock, and of the processor, which other work changes less."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, processor


def _alone(folder: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.benchmarks.many_jobs", "--alone", str(folder)]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    numbers: dict[str, float] = json.loads(found)
    return numbers


def work(folder: Path) -> dict[str, float]:
    """A process of a daemon: started, one round, and then rounds with nothing due."""
    exec(IMPORTS)  # noqa: S102
    imported, start = _memory("VmRSS"), time.perf_counter()
    from streamdp.config import load
    from streamdp.daemon.runtime import SystemClock, runtime
    from streamdp.privacy.draws import OperatingSystemEntropy

    arguments = (load(folder / "config.yaml"), OperatingSystemEntropy(), SystemClock(), _say)
    with runtime(*arguments) as running:
        tasks = list(running.jobs.values())
        started = time.perf_counter() - start
        outcomes = []
        with _timed() as first:
            outcomes.append(running.runner.round(tasks))
        assert not outcomes[0].errors, outcomes[0].errors[0]
        idle = []
        for _ in range(3):
            with _timed() as one:
                assert running.runner.round(tasks).released == 0
            idle += one
        with _timed() as listing:
            for path in glob.glob(str(folder / "**"), recursive=True):
                os.stat(path)
        return {
            "imported_mb": imported,
            "peak_mb": _memory("VmHWM"),
            "start": started,
            "released": outcomes[0].released,
            "round": first[0],
            "idle": min(idle),
            "listing": listing[0],
        }


@contextmanager
def _timed() -> Iterator[list[float]]:
    took: list[float] = []
    start = time.perf_counter()
    yield took
    took.append(time.perf_counter() - start)


def _say(event: str, /, **fields: str | int | None) -> None:
    """The log of this benchmark."""


def _memory(what: str) -> float:
    """Megabytes of this program alone, where `ru_maxrss` counts the one that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith(what))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--alone"]:
        print(json.dumps(work(Path(sys.argv[2]))))
    else:
        main("Many jobs in one daemon", rows)
