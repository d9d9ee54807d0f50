"""A record is a line: the reader of CSV and JSON lines beside a plain one, byte by byte."""

from __future__ import annotations

import csv
import gzip
import io
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from streamdp.backends.duckdb import lines
from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.backends.duckdb.lines import BYTE_ORDER_MARK, LineStream
from streamdp.backends.limits import Limits
from streamdp.errors import SourceError
from streamdp.types import Batch, CellQuery, Grid, UnitBound

PIECES = (
    *(b'"', b",", b"\n", b"\r", b"\r\n", b"a", b"bc", b"\xc3\xa9", b"\xff", b"\0", b'""', b'","'),
    *(b'"\n"', b"longer than twelve", b"x" * 9),
)

BATCH = Batch("s", "f")
_FOUND = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}

QUERY = CellQuery("x", Grid(Fraction(1), 0, 100))


def cut(record: bytes) -> list[bytes]:
    """The fields of one line, one byte after the other, as the docstring of `lines` says."""
    found, field, state = [], b"", "start"
    for byte in (record[place : place + 1] for place in range(len(record))):
        if state == "quote" and byte == b'"':
            field, state = field + byte, "quoted"
        elif state == "quoted":
            state = "quote" if byte == b'"' else state
            field += b"" if byte == b'"' else byte
        elif byte == b",":
            found.append(field)
            field, state = b"", "start"
        elif state == "start" and byte == b'"':
            state = "quoted"
        else:
            field, state = field + byte, "plain"
    return [*found, field]


def records(data: bytes, *, header: bool) -> list[str]:
    """The lines of a file that are records."""
    data = data.removeprefix(BYTE_ORDER_MARK)
    found = []
    for line in data.split(b"\n")[header:]:
        kept = line.removesuffix(b"\r")
        if 0 < len(kept) <= lines.LONGEST and not _broken(kept):
            found.append(kept.decode())
    return found


def _broken(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return True
    return False


def read(
    path: Path, delimiter: str | None, places: Sequence[int], *, quoted: bool = False
) -> list[tuple[str | None, ...]]:
    """What DuckDB finds in the stream of one file."""
    connection = _connection()
    connection.register("s", LineStream((str(path),), delimiter, tuple(places), quoted))
    return connection.execute("FROM s").fetchall()


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 2})


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(4))
def test_blocks_and_quotes_reach_beyond_no_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Random bytes in blocks of any size give the records and fields of a plain reader."""
    chance, path = random.Random(seed), tmp_path / "r.csv"
    for _ in range(100):
        weights = [chance.random() for _ in PIECES]
        data = b"".join(chance.choices(PIECES, weights, k=chance.randrange(60)))
        path.write_bytes(BYTE_ORDER_MARK * (chance.random() < 0.1) + data)
        monkeypatch.setattr(lines, "BLOCK", chance.choice((1, 2, 3, 7, 16, 64, 2**20)))
        monkeypatch.setattr(lines, "LONGEST", chance.choice((3, 10, 40, 2**20)))
        places = sorted(chance.sample(range(5), chance.randrange(1, 4)))
        wanted = []
        for record in records(path.read_bytes(), header=True):
            found = [each.decode() or None for each in cut(record.encode())]
            wanted.append(tuple((found + [None] * 5)[place] for place in places))
        assert read(path, ",", places) == wanted, data
        whole = [(record,) for record in records(path.read_bytes(), header=False)]
        assert read(path, None, ()) == whole, data


@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", range(4))
def test_line_ends_in_quotes_are_text_where_they_are_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """What Python's own writer has quoted is read back, in blocks of any size."""
    chance, path = random.Random(seed), tmp_path / "r.csv"
    texts = ("a", 'say "x"', "two\nlines", "\r\n", ",", '"', "longer than twelve\n", "é", '""\n')
    for _ in range(100):
        rows = [chance.choices(texts, k=3) for _ in range(chance.randrange(8))]
        with path.open("w", newline="") as file:
            end = chance.choice(("\n", "\r\n"))
            csv.writer(file, lineterminator=end).writerows([["x", "y", "z"], *rows])
        monkeypatch.setattr(lines, "BLOCK", chance.choice((1, 2, 3, 7, 16, 64, 2**20)))
        lines.require_well_formed(str(path), ",")
        assert read(path, ",", (0, 1, 2), quoted=True) == [tuple(row) for row in rows]


@pytest.mark.parametrize(
    "torn", ['1,"a', '1,a"b', '1,"a"b', '1,a" b"', '"1,"a', '1,"a\n2,b\n', '1,""a', '1,a\r\n2,"b']
)
def test_a_file_that_is_not_well_formed_is_refused_before_the_charge(
    tmp_path: Path, torn: str
) -> None:
    """A quote amid a field, and one without its end; read line by line, it is served."""
    path = tmp_path / "r.csv"
    path.write_text(f"x,y\n7,b\n{torn}")
    types = {"x": "number"}
    backend = DuckDBBackend(str(path), "csv", types=types, quoted_newlines=True)
    with pytest.raises(SourceError, match="a quote in this file"):
        backend.check(QUERY, BATCH)
    by_line = DuckDBBackend(str(path), "csv", types=types)
    by_line.check(QUERY, BATCH)
    assert 7 in by_line.answer(QUERY, BATCH).cells


def packed(data: bytes, ending: str) -> bytes:
    """The bytes as an archive."""
    if ending == "gz":
        return gzip.compress(data)
    return bytes(pa.compress(data, "zstd", asbytes=True))


@pytest.mark.parametrize("ending", ["gz", "zst"])
@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_an_archive_is_read_to_its_end_or_refused(tmp_path: Path, ending: str, format: str) -> None:
    """All members count, wherever lines are cut between them; one that is cut off is refused."""
    path = tmp_path / f"r.{format}.{ending}"
    line = b"7,b\n" if format == "csv" else b'{"x": 7}\n'
    data = (b"x,y\n" if format == "csv" else b"") + line * 1000
    whole = packed(data[:2002], ending) + packed(data[2002:], ending)
    backend = DuckDBBackend(str(path), format, types={"x": "number"})  # type: ignore[arg-type]
    path.write_bytes(whole)
    backend.check(QUERY, BATCH)
    assert backend.answer(QUERY, BATCH).counts.tolist() == [1000]
    for torn in (whole[:-5], whole[: len(whole) - 30], whole[:-20] + b"\0" * 20):
        path.write_bytes(torn)
        with pytest.raises(SourceError, match=r"unpacked|opened"):
            backend.check(QUERY, BATCH)


def test_a_file_whose_lines_end_otherwise_is_refused(tmp_path: Path) -> None:
    """Carriage returns alone are no line ends: the records would be the header."""
    path = tmp_path / "r.csv"
    path.write_bytes(b"x,y\r1,2\rsecret,4\r")
    with pytest.raises(SourceError, match="carriage return") as caught:
        DuckDBBackend(str(path), "csv", types={"x": "number"}).check(QUERY, BATCH)
    assert "secret" not in str(caught.value)


def test_columns_that_are_not_named_are_not_cut(tmp_path: Path) -> None:
    """A question that names a column in other capitals finds it; one that is not there is told."""
    path = tmp_path / "r.csv"
    path.write_text("X,y\n7,b\n8\n9,c,d\n\n")
    backend = DuckDBBackend(str(path), "csv", types={"X": "number"})
    query = CellQuery("X", QUERY.grid, where="x < 9 OR Y = 'c'")
    backend.check(query, BATCH)
    assert backend.answer(query, BATCH).cells.tolist() == [7, 8, 9]
    with pytest.raises(SourceError) as caught:
        backend.check(CellQuery("X", QUERY.grid, where="z = 1"), BATCH)
    assert "X, y" in str(caught.value.hint)


def test_a_plain_reader_agrees_with_python(tmp_path: Path) -> None:
    """The reference of these tests cuts lines as Python's own reader does."""
    for text in ('1,"a ""b"" c",2', '"a"b,c', "a,,", 'a"b,"c', '"",x', '"a,b'):
        assert [each.decode() for each in cut(text.encode())] == next(csv.reader(io.StringIO(text)))


def test_long_lines_of_json_do_not_add_up(tmp_path: Path) -> None:
    """Each takes 32 MB while it is read; before a question in conditions they were gathered."""
    path, deep = tmp_path / "r.jsonl", (lines.LONGEST - 40) // 2
    path.write_text(f'{{"x": 7, "u": "a", "y": {"[" * deep}{"]" * deep}}}\n' * 12)
    types, limits = {"x": "number", "u": "text"}, Limits(memory=lines.LINE_MEMORY, threads=1)
    for bound, where in ((UnitBound("u", 3), None), (None, "u = 'a' AND x < 9")):
        backend = DuckDBBackend(str(path), "jsonl", limits=limits, types=types)
        query = CellQuery("x", QUERY.grid, where=where, bound=bound)
        backend.check(query, BATCH)
        assert backend.answer(query, BATCH).counts.tolist() == [12 if bound is None else 3]
        assert backend.notices(BATCH) == []


def test_an_engine_with_less_memory_than_lines_may_take_is_told(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"x": 7}\n')
    limits = Limits(memory=100 * 10**6, threads=2)
    (notice,) = DuckDBBackend(str(path), "jsonl", limits=limits).notices(BATCH)
    assert notice.startswith("lines of JSON may take 134 MB in 2 threads, and the engine has ")


@pytest.mark.long
@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_a_text_of_600_mb_costs_its_own_record_only(tmp_path: Path, ending: str) -> None:
    """It is no record, and is never held as a whole."""
    path, program = tmp_path / f"r.csv{ending}", tmp_path / "read.py"
    with pa.output_stream(str(path), {"": None, ".gz": "gzip", ".zst": "zstd"}[ending]) as file:
        file.write(b"x,y\n7,a\n7,")
        for _ in range(600):
            file.write(b"y" * 10**6)
        file.write(b"\n7,b\n")
    program.write_text(
        "import resource, sys\n"
        "from tests.backends.test_lines import BATCH, QUERY, DuckDBBackend\n"
        "backend = DuckDBBackend(sys.argv[1], 'csv', types={'x': 'number'})\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "backend.check(QUERY, BATCH)\n"
        "counted = backend.answer(QUERY, BATCH).counts.tolist()\n"
        "print(counted, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    command = [sys.executable, str(program), str(path)]
    found = subprocess.run(command, check=True, capture_output=True, text=True, env=_FOUND)
    counted, _, kilobytes = found.stdout.rpartition(" ")
    assert counted == "[2]"
    assert int(kilobytes) < 100_000
