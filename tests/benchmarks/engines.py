"""What the one question costs where the records are, against what the engine does anyway.

python -m tests.benchmarks.engines [--json] [--quick]

DuckDB on Parquet: cell counts, with a bound of records per unit and without, and the whole release,
as ratios to its own `quantile_cont` of nine deciles and to a plain scan (`sum`) of the column, by
size, and the slope of time over size. PostgreSQL and Spark: the same against their own exact
percentiles; Spark's counts against its own plain scan by size too, with the peak of its JVM.
`units, floor` is a bare GROUP BY of the units, in the same turns. `relational layer`:
ibis over DuckDB against native SQL, where it is installed. Each `ratio` is to the row of the same
engine and size that `of` names, taken in turns in one run; `peak_mb` is the largest resident size
of the process that asks, `bytes_moved` what comes back.
"""

from __future__ import annotations

import importlib.util
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.backends.postgres import PostgresBackend
from streamdp.backends.spark import SparkBackend
from streamdp.backends.sql.relation import Relation
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.shapes import Cauchy
from streamdp.privacy.draws import OperatingSystemEntropy
from streamdp.types import Backend, Batch, CellCounts, CellQuery, Grid, UnitBound
from tests.benchmarks.report import Row, main
from tests.contract.servers import java, postgres

BATCH = Batch("s", "b")
GRID = Grid(Fraction(1, 1000), -10_000, 10_000)
PLAIN = CellQuery("x", GRID)
BOUNDS = {
    "counts, 20 of a unit": UnitBound("unit", 20),
    "counts, 1 of a unit": UnitBound("unit", 1),
    "counts, 20 of a unit (text)": UnitBound("name", 20),
}
DECILES = [index / 10 for index in range(1, 10)]
BYTES_A_CELL = 16
TURNS = 3
LARGEST_BOUNDED = 10**7

FLOOR = "units, floor"

Work = Callable[[], object]
Floors = Mapping[str, Work]


def rows(quick: bool) -> Iterator[Row]:
    """All parts."""
    with tempfile.TemporaryDirectory() as folder:
        sizes = (10**5, 10**6) if quick else (10**5, 10**6, 10**7, 10**8)
        yield from _duckdb_by_size(Path(folder), sizes)
        few = 10**5 if quick else 10**6
        path = _parquet(Path(folder), few)
        yield from _postgres(path, few)
        yield from _spark(path, few)
        yield from _relational_layer(path, few)
        yield from _spark_by_size(Path(folder), sizes)


def _parquet(folder: Path, size: int) -> Path:
    """Normal values; units with ten records on average, and some with many.

    Sizes that are asked without a bound have no names, which would be most of the file.
    """
    path = folder / f"{size}.parquet"
    name = "'user-' || unit" if size <= LARGEST_BOUNDED else "NULL"
    if not path.exists():
        with duckdb.connect() as connection:
            connection.execute("SELECT setseed(0.5)")
            connection.execute(
                f"COPY (SELECT x, unit, {name} AS name FROM (SELECT"
                " sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()) AS x,"
                f" CAST({size // 10} * random() * random() AS BIGINT) AS unit"
                f" FROM range({size}))) TO '{path}' (FORMAT parquet)"
            )
    return path


def _duckdb_by_size(folder: Path, sizes: tuple[int, ...]) -> Iterator[Row]:
    seconds: dict[int, float] = {}
    for size in sizes:
        path = _parquet(folder, size)
        for row in _alone("duckdb", str(path), size):
            if row["what"] == "counts":
                seconds[size] = row["seconds"]
            yield row
        path.unlink()
    slope = np.polyfit(np.log(sizes), np.log([seconds[size] for size in sizes]), 1)[0]
    before, last = sizes[-2:]
    largest = math.log(seconds[last] / seconds[before]) / math.log(last / before)
    for what, value in (("slope of counts", slope), ("slope of counts, last step", largest)):
        yield _row("duckdb", sizes[-1], what, math.nan) | {"ratio": float(value), "of": "log rows"}


def _alone(engine: str, path: str, size: int) -> list[dict[str, Any]]:
    """In a process of its own, so that its peak memory is its own."""
    import json

    command = [sys.executable, "-m", "tests.benchmarks.engines", "--alone", path, str(size)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in shown.splitlines()]


def _duckdb(path: str, size: int) -> Iterator[Row]:
    """One size, in this process."""
    backend = DuckDBBackend(path, "parquet")
    connection = duckdb.connect()
    scan = f"SELECT sum(x) FROM '{path}'"
    own = f"SELECT quantile_cont(x, {DECILES}) FROM '{path}'"
    works: dict[str, Work] = {"counts": lambda: backend.answer(PLAIN, BATCH)}
    moved = _moved(backend)
    peak = _peak()  # before the peers run, which hold whole columns
    plain = in_turns(
        works
        | {
            "release": lambda: _release(backend.answer(PLAIN, BATCH)),
            "scan": lambda: connection.execute(scan).fetchall(),
            "quantile_cont": lambda: connection.execute(own).fetchall(),
        }
    )
    for what, of in (("counts", "quantile_cont"), ("counts", "scan"), ("release", "quantile_cont")):
        yield _row("duckdb", size, what, plain[what], plain[of], of, peak, moved)
    which = tuple(BOUNDS) if size <= LARGEST_BOUNDED else ()
    floors = _floors(lambda grouped: connection.execute(grouped).fetchall(), f"'{path}'")
    yield from _bounded("duckdb", backend, size, works, which, floors)


def _floors(run: Callable[[str], object], table: str) -> Floors:
    """A bare GROUP BY of each unit column: what no bound of a unit can do without."""
    grouped = f"SELECT max(n) FROM (SELECT count(*) AS n FROM {table} GROUP BY {{}}) AS units"
    return {column: partial(run, grouped.format(column)) for column in ("unit", "name")}


def _bounded(
    engine: str,
    backend: Backend,
    size: int,
    works: dict[str, Work],
    which: tuple[str, ...],
    floors: Floors,
) -> Iterator[Row]:
    for what in which:
        bound = BOUNDS[what]
        floor = f"{FLOOR} (text)" if bound.column == "name" else FLOOR
        counted = partial(backend.answer, CellQuery("x", GRID, bound=bound), BATCH)
        took = in_turns(works | {what: counted, floor: floors[bound.column]})
        for of in ("counts", floor):
            yield _row(engine, size, what, took[what], took[of], of, _peak())
        yield _row(engine, size, floor, took[floor], took["counts"], "counts")


def _postgres(path: Path, size: int) -> Iterator[Row]:
    with postgres() as conninfo:
        if conninfo is None:
            return
        import psycopg

        with psycopg.connect(conninfo, autocommit=True) as connection:
            connection.execute("CREATE TABLE t (x double precision, unit bigint, name text)")
            found = duckdb.execute(f"SELECT x, unit, name FROM '{path}'")
            with connection.cursor().copy("COPY t FROM STDIN") as copy:
                while part := found.fetchmany(100_000):
                    copy.write("".join(f"{x!r}\t{unit}\t{name}\n" for x, unit, name in part))
            connection.execute("VACUUM ANALYZE t")
            own = f"SELECT percentile_cont(ARRAY{DECILES}) WITHIN GROUP (ORDER BY x) FROM t"
            backend = PostgresBackend(conninfo, Relation("t"))
            yield from _against_own(
                "postgres",
                backend,
                size,
                lambda: connection.execute(own).fetchall(),
                _floors(lambda grouped: connection.execute(grouped).fetchall(), "t"),
            )
            backend.close()


def _spark(path: Path, size: int) -> Iterator[Row]:
    if not java():
        return
    backend = SparkBackend("local[*]", Relation(query=f"SELECT * FROM parquet.`{path}`"))
    start = time.perf_counter()
    backend.check(PLAIN, BATCH)
    yield _row("spark", 0, "start", time.perf_counter() - start)
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    own = f"SELECT percentile(x, array({', '.join(map(str, DECILES))})) FROM parquet.`{path}`"
    floors = _floors(lambda grouped: session.sql(grouped).collect(), f"parquet.`{path}`")
    yield from _against_own("spark", backend, size, lambda: session.sql(own).collect(), floors)
    session.stop()


def _spark_by_size(folder: Path, sizes: tuple[int, ...]) -> Iterator[Row]:
    """Counts against a sum of the column: what a release over more rows will take."""
    if not java():
        return
    from pyspark.sql import SparkSession

    seconds = []
    for size in sizes[-2:]:
        path = _parquet(folder, size)
        backend = SparkBackend("local[*]", Relation(query=f"SELECT * FROM parquet.`{path}`"))
        backend.check(PLAIN, BATCH)
        session = SparkSession.builder.getOrCreate()
        scan = partial(_collected, session, f"SELECT sum(x) FROM parquet.`{path}`")
        took = in_turns({"counts": partial(backend.answer, PLAIN, BATCH), "scan": scan})
        seconds.append(took["counts"])
        peak, moved = _peak_of_jvm(session), _moved(backend)
        yield _row("spark", size, "counts", took["counts"], took["scan"], "scan", peak, moved)
        path.unlink()
        session.stop()
    slope = math.log(seconds[1] / seconds[0]) / math.log(sizes[-1] / sizes[-2])
    about = {"ratio": slope, "of": "log rows"}
    yield _row("spark", sizes[-1], "slope of counts, last step", math.nan) | about


def _collected(session: Any, query: str) -> object:
    return session.sql(query).collect()


def _peak_of_jvm(session: Any) -> float:
    status = Path(f"/proc/{session.sparkContext._gateway.proc.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1000


def _against_own(
    engine: str, backend: Backend, size: int, own: Work, floors: Floors
) -> Iterator[Row]:
    works: dict[str, Work] = {"counts": lambda: backend.answer(PLAIN, BATCH)}
    took = in_turns(works | {"own": own, "release": lambda: _release(backend.answer(PLAIN, BATCH))})
    moved = _moved(backend)
    for what in ("counts", "release"):
        yield _row(
            engine, size, what, took[what], took["own"], "own exact percentiles", None, moved
        )
    which = tuple(BOUNDS)[: 3 if size >= 10**6 else 1]
    yield from _bounded(engine, backend, size, works, which, floors)


def _relational_layer(path: Path, size: int) -> Iterator[Row]:
    """The same counts through ibis, which compiles them for other engines too."""
    if importlib.util.find_spec("ibis") is None:
        return
    start = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    took = {}
    for name in ("duckdb", "ibis.backends.duckdb"):
        shown = subprocess.run(
            [sys.executable, "-c", start.format(name)], check=True, capture_output=True, text=True
        )
        took[name] = float(shown.stdout)
    layer = took["ibis.backends.duckdb"]
    yield _row("ibis", 0, "import", layer, took["duckdb"], "import duckdb")
    import ibis

    connection = ibis.duckdb.connect()
    x = connection.read_parquet(path).x
    cell = ((x.clip(-10.001, 10.001) * 1000.0 + 0.5) / 1.0).floor().clip(-10_000, 10_000)
    table = x.as_table().filter(x.between(-1.7976931348623157e308, 1.7976931348623157e308))
    counts = table.group_by(cell=cell.cast("int64")).aggregate(records=lambda t: t.count())
    native = DuckDBBackend(str(path), "parquet")
    both = in_turns({"counts": counts.to_pandas, "native": lambda: native.answer(PLAIN, BATCH)})
    yield _row("ibis", size, "counts", both["counts"], both["native"], "native counts")
    yield _row("ibis", 0, "install", math.nan) | {"bytes_moved": _installed("ibis")}


def _installed(*names: str) -> int:
    """Bytes on disk of what ibis brings beside DuckDB."""
    site = Path(str(importlib.util.find_spec("ibis").origin)).parents[1]  # type: ignore[union-attr]
    names = (*names, "sqlglot", "pyarrow", "pandas")
    return sum(file.stat().st_size for name in names for file in (site / name).rglob("*.*"))


def _release(counts: CellCounts) -> tuple[int, ...]:
    """What production does with the counts of a batch."""
    tree = QuantileTree(tuple(Fraction(i, 10) for i in range(1, 10)), Fraction(1, 10), GRID)
    return tree.draw(counts, (Cauchy(0.0, 1.0),) * 9, OperatingSystemEntropy())


def in_turns(works: dict[str, Work]) -> dict[str, float]:
    """Least wall seconds of each, after one run that warms up."""
    least = dict.fromkeys(works, math.inf)
    for turn in range(TURNS + 1):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            if turn:
                least[name] = min(least[name], time.perf_counter() - start)
    return least


def _moved(backend: Backend) -> int:
    return BYTES_A_CELL * len(backend.answer(PLAIN, BATCH).cells)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def _row(
    engine: str,
    size: int,
    what: str,
    seconds: float,
    other: float | None = None,
    of: str = "",
    peak: float | None = None,
    moved: int | None = None,
) -> dict[str, Any]:
    return {
        "engine": engine,
        "rows": size,
        "what": what,
        "seconds": None if math.isnan(seconds) else round(seconds, 4),
        "ratio": None if other is None else round(seconds / other, 3),
        "of": of,
        "peak_mb": None if peak is None else round(peak),
        "bytes_moved": moved,
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["--alone"]:
        import json

        for row in _duckdb(sys.argv[2], int(sys.argv[3])):
            print(json.dumps(row))
    else:
        main("The one question, engine by engine", rows)
