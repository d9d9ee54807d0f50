"""What packages would do in place of lines of our own: time, statements, memory.

    python -m tests.benchmarks.packages [--json] [--quick]

`ours` and `theirs` are processor time in microseconds, or what the row says; `ratio` is theirs over
ours. Imports are timed in processes of their own, in which NumPy is loaded.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import structlog
from scipy.special import ndtr

from streamdp.database import Database
from streamdp.learning.mixture import posterior
from streamdp.log import EVENTS, refused
from tests.benchmarks.report import Row, main

STORE = Path(posterior.__file__).parents[2] / "store"

IMPORT = """
import numpy, resource, time
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 2**20
before, start = resident(), time.process_time()
import {module}
print(time.process_time() - start, resident() - before)
"""


def rows(quick: bool) -> Iterator[Row]:
    """One row a package and what it would replace."""
    repeats = 200 if quick else 5_000
    yield from _inserts(repeats)
    yield from _normal(max(repeats // 50, 4))
    yield _events(repeats)
    for module in ("scipy.special", "scipy.stats", "sqlite_utils", "structlog"):
        command = [sys.executable, "-c", IMPORT.format(module=module)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        seconds, megabytes = map(float, said)
        yield _row(f"import {module}: seconds, MB beside NumPy", seconds, megabytes, compared=False)
    lines = [line for path in STORE.rglob("*.py") for line in path.read_text().splitlines()]
    calls = sum(".execute(" in line for line in lines)
    theirs = sum(any(each in line for each in (".query(", ".insert", ".upsert")) for line in lines)
    yield _row("lines in store/: execute, and of sqlite-utils", calls, theirs, compared=False)


def _row(what: str, ours: float, theirs: float, *, compared: bool = True) -> Row:
    ratio = round(theirs / ours, 2) if compared else None
    return {"what": what, "ours": round(ours, 3), "theirs": round(theirs, 3), "ratio": ratio}


def _spent(work: Callable[[], object], repeats: int) -> float:
    """Microseconds of the processor for one call."""
    start = time.process_time()
    for _ in range(repeats):
        work()
    return (time.process_time() - start) / repeats * 1e6


def _inserts(repeats: int) -> Iterator[Row]:
    """A row written by a statement, and by sqlite-utils."""
    database = Database(memory=True)
    database.execute("CREATE TABLE kept (job TEXT, batch TEXT, at INTEGER, rows TEXT) STRICT")
    row = {"job": "air_time", "batch": "2013-01-01", "at": 1_356_998_400, "rows": "[]"}
    statement = "INSERT INTO kept (job, batch, at, rows) VALUES (?, ?, ?, ?)"

    def ours() -> None:
        database.execute(statement, list(row.values()))

    def theirs() -> None:
        database.table("kept").insert(row)

    counts = []
    for work in (ours, theirs):
        said: list[str] = []
        database.conn.set_trace_callback(said.append)
        database.execute("BEGIN")
        work()
        database.execute("COMMIT")
        counts.append(len(said) - 2)
    database.conn.set_trace_callback(None)
    database.execute("BEGIN")
    yield _row(
        "a row of the store: execute, sqlite-utils", _spent(ours, repeats), _spent(theirs, repeats)
    )
    database.execute("COMMIT")
    yield _row("statements for it", *counts)


def _normal(repeats: int) -> Iterator[Row]:
    """The normal distribution function of an interval's mixture: our table, and SciPy's."""
    values = np.random.default_rng(1).normal(0.0, 2.0, (300, 180))
    ours = _spent(lambda: posterior._normal(values), repeats)
    yield _row(
        "normal law, 54,000 values: table, SciPy", ours, _spent(lambda: ndtr(values), repeats)
    )
    off = float(np.abs(posterior._normal(values) - ndtr(values)).max())
    yield _row("its largest error", off, 0.0, compared=False)


def _events(repeats: int) -> Row:
    """An event said through `logging` after the closed list, and by a logger of structlog's."""
    logger = logging.getLogger("benchmark")
    logger.handlers, logger.propagate = [logging.NullHandler()], False
    bound = structlog.wrap_logger(
        logger,
        processors=[structlog.stdlib.add_log_level, structlog.stdlib.render_to_log_kwargs],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    event = next(name for name in EVENTS if name == "gate.accepted")
    fields = {"gate": "g", "batch": "2013-01-01"}

    def ours() -> None:
        if not refused(event, fields):
            logger.warning({"event": event, **fields})

    def theirs() -> None:
        if not refused(event, fields):
            bound.warning(event, **fields)

    return _row(
        "an event: logging, structlog's logger", _spent(ours, repeats), _spent(theirs, repeats)
    )


if __name__ == "__main__":
    main("Packages in place of our own lines", rows)
