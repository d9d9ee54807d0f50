"""What it costs that one record changes one record: reading by lines over DuckDB's own readers.

python -m tests.benchmarks.reading [--json] [--quick] [--large]

One question (a column of numbers, counted by cell) about a file of 80 MB, with `--large` of 1 GB,
in a process of its own. It is answered in turns with the production reader and with DuckDB's own in
its place: `ratio` is of wall time, `cpu_ratio` of processor time of all threads. `peak_mb` is the
growth of the largest resident size over the first answer, before DuckDB's reader was used (Linux).
Of Parquet the peer is a plain scan of the column.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.backends.duckdb.lines import TextFiles
from streamdp.types import Batch, CellQuery, File, Format, Grid
from tests.benchmarks.report import Row, main
from tests.privacy.reading.mutants import duckdb_reads_csv

BATCH = Batch("s", "b")
QUESTION = CellQuery("minutes", Grid(Fraction(1), 0, 1000))
TURNS = 3
PARSER = argparse.ArgumentParser(add_help=False)
PARSER.add_argument("--large", action="store_true", help="files of 1 GB")

ROWS: dict[str, str] = {
    "csv": "{0},words of a comment {1}\n",
    "csv, last column": "words of a comment {1},{0}\n",
    "csv, five numbers": "{0},{1},{1},{0},{1}\n",
    "csv, quoted": '{0},"words, and a comment {1}"\n',
    "csv, doubled quotes": '{0},"words ""and"" a comment {1}"\n',
    "csv, quoted_newlines": '{0},"words\nand a comment {1}"\n',
    "csv.gz": "{0},words of a comment {1}\n",
    "csv.zst": "{0},words of a comment {1}\n",
    "jsonl": '{{"minutes": {0}, "comment": "words of a comment {1}"}}\n',
    "parquet": "",
}
HEADERS = {"csv, last column": "comment,minutes\n", "csv, five numbers": "minutes,a,b,c,d\n"}


def rows(quick: bool) -> Iterator[Row]:
    """Each form of file."""
    large = PARSER.parse_known_args()[0].large
    megabytes = 8 if quick else 1000 if large else 80
    for form in ROWS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"data.{form.split(',')[0]}"
            _write(path, form, megabytes * 10**6)
            command = [sys.executable, "-m", "tests.benchmarks.reading", "--alone", str(path), form]
            shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            yield {"form": form, "megabytes": megabytes, **json.loads(shown)}


def _write(path: Path, form: str, size: int) -> None:
    """A file that holds so many bytes when it is unpacked."""
    if form == "parquet":
        minutes = pa.array([each * 7919 % 1000 for each in range(size // 40)])
        text = pa.array([f"words of a comment {each}" for each in range(size // 40)])
        pq.write_table(pa.table({"minutes": minutes, "comment": text}), path)
        return
    line = ROWS[form]
    part = "".join(line.format(each * 7919 % 1000, each) for each in range(50_000)).encode()
    header = HEADERS.get(form, "" if form == "jsonl" else "minutes,comment\n").encode()
    parts = itertools.chain((header,), itertools.repeat(part, size // len(part) + 1))
    if path.suffix == ".gz":
        with gzip.open(path, "wb", compresslevel=6) as packed:
            packed.writelines(parts)
    elif path.suffix == ".zst":
        with pa.CompressedOutputStream(str(path), "zstd") as packed:
            for each in parts:
                packed.write(each)
    else:
        with path.open("wb") as file:
            file.writelines(parts)


def _alone(path: str, form: str) -> Row:
    """One form, in this process."""
    kind: Format = "parquet" if form == "parquet" else "jsonl" if form == "jsonl" else "csv"
    types = {} if kind == "parquet" else {"minutes": "number"}
    quoted = form.endswith("quoted_newlines")
    backend = DuckDBBackend(path, kind, types=types, quoted_newlines=quoted)
    backend.check(QUESTION, BATCH)
    before = _peak()
    counted = backend.answer(QUESTION, BATCH)
    peak = _peak() - before
    other = DuckDBBackend(path, kind, types=types)
    with _reader(kind):
        other.check(QUESTION, BATCH)
        if kind != "parquet":
            found = other.answer(QUESTION, BATCH)
            assert (counted.cells.tolist(), counted.counts.tolist()) == (
                found.cells.tolist(),
                found.counts.tolist(),
            )

    def peer() -> None:
        if kind == "parquet":
            duckdb.execute(f"SELECT minutes, count(*) FROM '{path}' GROUP BY ALL").fetchnumpy()
            return
        with _reader(kind):
            other.answer(QUESTION, BATCH)

    ours, theirs = _in_turns(lambda: backend.answer(QUESTION, BATCH), peer)
    return {
        "seconds": round(ours[0], 3),
        "peer_seconds": round(theirs[0], 3),
        "ratio": round(ours[0] / theirs[0], 2),
        "cpu_ratio": round(ours[1] / theirs[1], 2),
        "peak_mb": peak,
    }


def _reader(kind: Format) -> AbstractContextManager[object]:
    """DuckDB's own reader in the place of ours."""
    if kind == "jsonl":
        return patch.object(TextFiles, "select", _own_json)
    return duckdb_reads_csv() if kind == "csv" else nullcontext()


def _own_json(
    self: TextFiles,
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[File],
    named: Sequence[str],
    **_: bool,
) -> str:
    """The named columns as text, cut by DuckDB."""
    texts = ", ".join(f"'{name}': 'VARCHAR'" for name in named)
    columns = ", ".join(self._typed(f'"{name}"', name) for name in named)
    return f"SELECT {columns} FROM read_ndjson('{files[0].path}', columns = {{{texts}}})"


def _in_turns(*works: Callable[[], object]) -> list[tuple[float, float]]:
    """Least wall and processor seconds of each, after one run that warms up."""
    least = [(float("inf"), float("inf"))] * len(works)
    for turn in range(TURNS + 1):
        for place, work in enumerate(works):
            wall, used = time.perf_counter(), time.process_time()
            work()
            took = time.perf_counter() - wall, time.process_time() - used
            if turn:
                least[place] = min(least[place][0], took[0]), min(least[place][1], took[1])
    return least


def _peak() -> int:
    """Megabytes; of this program alone, where `ru_maxrss` counts the one that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1000 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--alone"]:
        print(json.dumps(_alone(*sys.argv[2:4])))
    else:
        main("Time to read by lines, over DuckDB's own readers", rows, parser=PARSER)
