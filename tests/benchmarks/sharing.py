"""What one scan for several jobs, and several workers, would bring.

python -m tests.benchmarks.sharing [--json] [--quick]

`five columns`: one query that groups by five columns, as a ratio to five queries of one column.
`two at once`: two questions in two threads, as a ratio to the same two in turn. `question`: the
share of a round's processor time that is spent in the engine, which is all that workers could do
at the same time as the one writer of the ledger; the rest is drawing, learning and the store.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.config import load
from streamdp.daemon.runtime import SystemClock, runtime
from streamdp.privacy.draws import OperatingSystemEntropy
from streamdp.types import Batch, CellQuery, Grid
from tests.benchmarks.engines import in_turns
from tests.benchmarks.many_jobs import COLUMNS, furnish_jobs
from tests.benchmarks.report import Row, main
from tests.contract.servers import postgres

VALUES = ", ".join(f"random() * 1000 AS {column}" for column in COLUMNS)
JOBS = 20
BATCH = Batch("s", "b")
GRID = Grid(Fraction(1), 0, 1000)


def rows(quick: bool) -> Iterator[Row]:
    """All parts."""
    with tempfile.TemporaryDirectory() as name:
        folder, size = Path(name), 10**6 if quick else 5 * 10**6
        path = folder / "five.parquet"
        _copied(f"SELECT {VALUES} FROM range({size})", path)
        with duckdb.connect() as connection:
            ask = partial(_all_of, connection)
            yield _row("duckdb, five columns", size, *_grouped(ask, f"'{path}'"))
        yield _row("duckdb, two at once", size, *_at_once(path))
        yield from _postgres(size // 10)
        for of_batch in (1440, 10**5) if quick else (1440, 10**5, 10**6):
            yield _row("duckdb, question", of_batch, *_round(folder / str(of_batch), of_batch))


def _copied(query: str, path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")


def _all_of(connection: Any, query: str) -> object:
    return connection.execute(query).fetchall()


def _grouped(ask: Callable[[str], object], table: str) -> tuple[float, float]:
    """Seconds of one query over all columns, and of one query a column."""
    cells = [
        f"CAST(floor(least(greatest({column}, 0), 1000) + 0.5) AS BIGINT)" for column in COLUMNS
    ]
    sets = ", ".join(f"({number})" for number in range(1, len(cells) + 1))
    one = f"SELECT {', '.join(cells)}, count(*) FROM {table} GROUP BY GROUPING SETS ({sets})"
    each = [f"SELECT {cell}, count(*) FROM {table} GROUP BY 1" for cell in cells]
    took = in_turns({"one": partial(ask, one), "each": lambda: [ask(query) for query in each]})
    return took["one"], took["each"]


def _at_once(path: Path) -> tuple[float, float]:
    """Seconds of two questions in two threads, and one after the other."""
    asked = []
    for column in COLUMNS[:2]:
        backend, query = DuckDBBackend(str(path), "parquet"), CellQuery(column, GRID)
        backend.check(query, BATCH)
        asked.append(partial(backend.answer, query, BATCH))

    def together() -> None:
        threads = [threading.Thread(target=ask) for ask in asked]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    took = in_turns({"together": together, "in turn": lambda: [ask() for ask in asked]})
    return took["together"], took["in turn"]


def _postgres(size: int) -> Iterator[Row]:
    with postgres() as conninfo:
        if conninfo is None:
            return
        import psycopg

        with psycopg.connect(conninfo, autocommit=True) as connection:
            connection.execute(
                f"CREATE TABLE t AS SELECT {VALUES} FROM generate_series(1, {size})".encode()
            )
            connection.execute("VACUUM ANALYZE t")
            ask = partial(_all_of, connection)
            yield _row("postgres, five columns", size, *_grouped(ask, "t"))


def _round(folder: Path, size: int) -> tuple[float, float]:
    """Processor seconds in the engine, and of the whole round of jobs on one source."""
    folder.mkdir()
    furnish_jobs(folder, JOBS, 1)
    at = f"make_timestamp(1704067200000000 + CAST(range * 86400000000 / {size} AS BIGINT))"
    _copied(f'SELECT {at} AS "at", {VALUES} FROM range({size})', folder / "orders-0.parquet")
    spent, answer = [0.0], DuckDBBackend.answer

    def timed(self: DuckDBBackend, *of: Any) -> Any:
        start = time.process_time()
        try:
            return answer(self, *of)
        finally:
            spent[0] += time.process_time() - start

    arguments = load(folder / "config.yaml"), OperatingSystemEntropy(), SystemClock(), _say
    with mock.patch.object(DuckDBBackend, "answer", timed), runtime(*arguments) as running:
        start = time.process_time()
        outcomes = running.runner.round(list(running.jobs.values()))
        whole = time.process_time() - start
    assert outcomes.released == JOBS
    return spent[0], whole


def _say(event: str, /, **fields: str | int | None) -> None:
    """The log of this benchmark."""


def _row(what: str, size: int, seconds: float, of: float) -> Row:
    return {"what": what, "rows": size, "seconds": seconds, "of": of, "ratio": seconds / of}


if __name__ == "__main__":
    main("One scan for several jobs, and several workers", rows)
