"""What durability costs: reserve and commit of a release, next to bare durable transactions.

python -m tests.benchmarks.ledger [--json] [--quick]

Every release is followed by its floors, on the same disk and in the same second: two transactions
of SQLite that each wait for the disk, and the same with the two waits of an append to a file that
the anchor needs. Ratios are of medians.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from streamdp.privacy.filters import Caps
from streamdp.store.database import connect, transaction
from streamdp.store.sqlite import SqliteStore
from streamdp.types import Batch, Charge, Learned, Release
from tests.benchmarks.report import Row, main
from tests.store.kept import terms
from tests.worlds import World

NANO = 100_000_000
CHARGE = Charge({"type": "bounded-range", "epsilon": "1/10"}, NANO, NANO // 80)
STATE = {"quantiles": [0.1 * number for number in range(40)]}
"""About what a learner of nine quantiles keeps."""


def rows(quick: bool) -> Iterator[Row]:
    """Times of one release, floors and ratios; then what grows with the store."""
    count = 100 if quick else 2000
    with tempfile.TemporaryDirectory() as folder:
        yield from _releases(Path(folder), count)
    with tempfile.TemporaryDirectory() as folder:
        yield from _whole(Path(folder), min(count, 300))


def _releases(folder: Path, count: int) -> Iterator[Row]:
    store, bare = _store(folder), _Bare(folder)
    reserve, commit, floor, anchored = (np.empty(count) for _ in range(4))
    for number in range(count):
        batch = Batch("s", f"{number:06d}", number, number + 1)
        store.add_batches([(batch, None)], 0)
        start = time.perf_counter()
        reservation = store.reserve("s", "j", batch, CHARGE, number)
        reserve[number] = time.perf_counter() - start
        release = _release(number, batch)
        learned = Learned(number + 1, {}, STATE)
        commit[number] = _seconds(lambda: store.commit(reservation, release, learned, ["file"]))  # noqa: B023
        floor[number] = _seconds(bare.transactions)
        anchored[number] = floor[number] + _seconds(bare.appends)
    both = reserve + commit
    for what, times in (
        ("reserve", reserve),
        ("commit", commit),
        ("reserve and commit", both),
        ("floor: two durable transactions", floor),
        ("floor: the same and two durable appends", anchored),
    ):
        yield {"what": what, "unit": "ms", "value": float(np.median(times)) * 1000}
    slow = float(np.quantile(both, 0.95)) * 1000
    yield {"what": "reserve and commit, 95th percentile", "unit": "ms", "value": slow}
    for what, against in (("transactions", floor), ("transactions and appends", anchored)):
        ratio = float(np.median(both) / np.median(against))
        yield {"what": f"reserve and commit over bare {what}", "unit": "ratio", "value": ratio}
    tenth = count // 10
    grown = float(np.median((both / anchored)[-tenth:]) / np.median((both / anchored)[:tenth]))
    what = f"last tenth of {count} releases over the first, each over its floor"
    yield {"what": what, "unit": "ratio", "value": grown}
    store.close()
    opened = _seconds(lambda: SqliteStore.open(folder / "store.db", count).close())
    yield {"what": f"start on {count} releases, all verified", "unit": "ms", "value": opened * 1000}


def _whole(folder: Path, count: int) -> Iterator[Row]:
    """Releases of tiny batches in one process: plan, reserve, draw, learn, commit, deliver."""
    world = World(folder, days=count, caps=Caps(NANO, count * NANO))
    world.clock.seconds += count * 86_400
    seconds = _seconds(lambda: world.runner.round([world.job()]))
    released = len(world.sink.taken)
    yield {"what": "whole releases on one store", "unit": "1/s", "value": released / seconds}


class _Bare:
    """The least that the same durability takes: no ledger, no checks."""

    def __init__(self, folder: Path) -> None:
        self._database = connect(folder / "bare.db")
        self._database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")
        self._file = os.open(folder / "bare.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def transactions(self) -> None:
        """Two, of a row each."""
        for _ in range(2):
            with transaction(self._database):
                self._database.execute("INSERT INTO t (text) VALUES (?)", ["x" * 400])

    def appends(self) -> None:
        """Two, of a line each."""
        for _ in range(2):
            os.write(self._file, b"x" * 100)
            os.fsync(self._file)


def _store(folder: Path) -> SqliteStore:
    store = SqliteStore.open(folder / "store.db", 0)
    store.declare(terms(Caps(NANO, 10**6 * NANO)), 0)
    return store


def _release(number: int, batch: Batch) -> Release:
    values = tuple({"quantile": 0.1 * level, "value": float(level)} for level in range(1, 10))
    return Release(
        id=f"{number:024x}",
        job="j",
        source="s",
        batch=batch.key,
        window_start=batch.start,
        window_end=batch.end,
        kind="quantiles",
        epsilon_nano=NANO,
        released_at=number,
        rows=values,
    )


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main("What durability costs", rows)
