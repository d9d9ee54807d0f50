"""What a report takes of a processor: with one thread of linear algebra, and with one a core.

python -m tests.benchmarks.reports [--json] [--quick]

`cpu` is seconds of processor of `streamdp report` in a process of its own, the least of several;
`ratio` is that over the time with one thread.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from streamdp.cli import ONE_THREAD
from tests.benchmarks.report import Row, main

DEMO = Path(__file__).parents[2] / "config.yaml"


def rows(quick: bool) -> Iterator[Row]:
    """A month and a week of deciles, as each of the formats."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        end = "2013-02-11" if quick else "2014-01-01"
        text = DEMO.read_text().replace("end: 2014-01-01", f"end: {end}")
        (folder / "config.yaml").write_text(text)
        _run(folder, 1, "run", "--once")
        for period in ("week", "month"):
            for form in ("html", "md", "pdf"):
                words = ("report", "air_time", "--period", period, "-o", f"report.{form}")
                times = {
                    threads: min(_run(folder, threads, *words) for _ in range(1 if quick else 5))
                    for threads in (1, os.cpu_count() or 1)
                }
                for threads, cpu in times.items():
                    about = {"period": period, "form": form, "threads": threads}
                    yield {**about, "cpu": round(cpu, 2), "ratio": round(cpu / times[1], 2)}


def _run(folder: Path, threads: int, *words: str) -> float:
    """Seconds of processor of a command."""
    environment = os.environ | dict.fromkeys(ONE_THREAD, str(threads))
    command = [sys.executable, "-m", "streamdp", *words]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main("Processor time of a report", rows)
