"""What other forms of a source cost: Arrow files against Parquet, a query against its table.

python -m tests.benchmarks.sources [--json] [--quick]

The same records in a Parquet file, in Arrow files (batches of 65,536 rows, packed or not, and one
batch that is the file), in a table of a DuckDB database, and as a query of that table that renames,
derives and filters. Each form is counted in a process of its own in turns with Parquet or with the
table under the same condition; `ratio` is to that, `peak_mb` the growth of the largest resident
size over the first count of the process (Linux). `unskipped` is Parquet under a condition on a
floating number as it is read, against the same read by the statistics of the file.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from unittest import mock

import duckdb

from streamdp.backends.duckdb.dialect import DuckDBDialect
from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.backends.sql.relation import Relation
from streamdp.sections.expressions import expression
from streamdp.sources.query import table_query
from streamdp.types import Batch, CellQuery, Grid
from tests.benchmarks.engines import in_turns
from tests.benchmarks.report import Row, main

DAY = Batch("s", "b", 1_704_067_200, 1_704_067_200 + 86_400)
GRID = Grid(Fraction(1), 0, 1000)
PLAIN = CellQuery("x", GRID)
HALF = CellQuery("y", GRID, expression=expression("x * 2"), where=expression("u % 2 = 0"))
RECORDS = (
    "SELECT random() * 1000 AS x, CAST(random() * 1e6 AS BIGINT) AS u, 'k' || (range % 5) AS g,"
    " TIMESTAMP '2024-01-01' + range * INTERVAL 1 MILLISECOND AS at, random() AS v, random() AS w"
    " FROM range({})"
)
SELECTED = "SELECT x * 2 AS y, at AS seen FROM t WHERE u % 2 = 0"
ARROW = {"arrow": (65_536, None), "arrow, zstd": (65_536, "zstd"), "arrow, one batch": (None, None)}
FLOATING = CellQuery("x", GRID, where=expression("v < 0.01"))
FORMS = ("parquet", *ARROW, "table", "query", "unskipped")


def rows(quick: bool) -> Iterator[Row]:
    """All forms of one set of records."""
    size = 10**6 if quick else 10**7
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder), size)
        for form in FORMS:
            command = [sys.executable, "-m", "tests.benchmarks.sources", "--alone", folder, form]
            shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            yield {"form": form, "rows": size, **json.loads(shown)}


def _write(folder: Path, size: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with duckdb.connect(str(folder / "table.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t AS {RECORDS.format(size)}")
        connection.execute(f"COPY t TO '{folder / 'parquet'}' (FORMAT parquet)")
    table = pq.read_table(folder / "parquet").combine_chunks()
    for form, (batch, packed) in ARROW.items():
        options = pa.ipc.IpcWriteOptions(compression=packed)
        with pa.ipc.new_file(folder / form, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=batch)


def _alone(folder: Path, form: str) -> Row:
    """One form, in this process, against what it is compared with."""
    if form == "unskipped":
        return _unskipped(folder)
    of = "table" if form in ("table", "query") else "parquet"
    first, question = _backend(folder, form), HALF if form == "table" else PLAIN
    question = CellQuery("y", GRID) if form == "query" else question
    first.check(question, DAY)
    before = _peak()
    first.answer(question, DAY)
    peak = _peak() - before
    other, asked = _backend(folder, of), HALF if of == "table" else PLAIN
    took = in_turns(
        {
            form: lambda: first.answer(question, DAY),
            f"{of} ": lambda: other.answer(asked, DAY),
        }
    )
    ratio = took[form] / took[f"{of} "]
    return {"seconds": round(took[form], 3), "ratio": round(ratio, 2), "of": of, "peak_mb": peak}


def _unskipped(folder: Path) -> Row:
    """Floating numbers read by an expression, against what statistics may skip."""
    backend = _backend(folder, "parquet")
    backend.check(FLOATING, DAY)

    def skipping() -> None:
        with mock.patch.object(DuckDBDialect, "unskipped", lambda self, name: name):
            backend.answer(FLOATING, DAY)

    took = in_turns({"one by one": lambda: backend.answer(FLOATING, DAY), "skipping": skipping})
    ratio = took["one by one"] / took["skipping"]
    return {"seconds": round(took["one by one"], 3), "ratio": round(ratio, 2), "of": "statistics"}


def _backend(folder: Path, form: str) -> DuckDBBackend:
    if form == "table":
        relation = Relation("t")
        return DuckDBBackend(str(folder / "table.duckdb"), "duckdb", "at", relation=relation)
    if form == "query":
        found = table_query(SELECTED)
        relation = Relation("t", columns=found.columns, where=found.where, named=found.named)
        return DuckDBBackend(str(folder / "table.duckdb"), "duckdb", "seen", relation=relation)
    return DuckDBBackend(str(folder / form), "arrow" if form in ARROW else "parquet", "at")


def _peak() -> int:
    """Megabytes; of this program alone, where `ru_maxrss` counts the one that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1000 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--alone"]:
        print(json.dumps(_alone(Path(sys.argv[2]), sys.argv[3])))
    else:
        main("What other forms of a source cost", rows)
