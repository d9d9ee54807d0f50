"""Reading is total: no value of any record makes a question fail once it was found to be askable.

Each hostile value stands beside ordinary records, in each column that a question may name, in every
format and engine. After `check` the question is answered, and the ordinary records count as if the
hostile one were not there. `CASES` and the roles are the sweep; Spark is in `test_spark_total.py`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.backends.sql.relation import Relation
from streamdp.types import Backend, Batch, CellCounts, CellQuery, Grid, UnitBound

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

START = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp())
WINDOW = Batch("s", "2024-01-01", START, START + 86_400)
FILE = Batch("s", "f")
GRID = Grid(Fraction(1), -100, 100)
NAN = float("nan")
FAR = (2**62, -(2**62), 2**63 - 1, -(2**63) + 1, -(2**63), 253402300800, 2**53)
BYTES = (b"\xff\xfe", b"\xed\xa0\x80", b"a\xc3", b"\x00", b"", b"\xf4\x90\x80\x80", b"x" * 100_000)

Column = tuple[str, Any, Any]
"""A name, the ordinary value, the hostile one: arrays of one value each."""


def instants(unit: str, zone: str | None = None) -> Iterator[Column]:
    kind = pa.timestamp(unit, zone)
    plain = pa.array([datetime(2024, 1, 1, 12)], pa.timestamp("us")).cast(pa.timestamp(unit))  # noqa: DTZ001
    for ticks in FAR:
        yield f"{kind} {ticks}", plain.view(pa.int64()).view(kind), of(ticks, kind)


def of(ticks: int, kind: Any) -> Any:
    """A value by its bits: no Python object stands for most of these."""
    return pa.array([ticks], pa.int64()).view(kind)


def hostile() -> Iterator[Column]:
    """Values that some reader, cast or comparison has ended a question at, or might."""
    for unit in ("s", "ms", "us", "ns"):
        yield from instants(unit)
        yield from instants(unit, "UTC")
    for days in (2**31 - 1, -(2**31), 2**31 - 2, 2**30, -(2**30), 3_000_000):
        date = pa.array([days], pa.int32()).view(pa.date32())
        yield f"date {days}", pa.array([19_723], pa.int32()).view(pa.date32()), date
    for raw in BYTES:
        for kind, name in ((pa.string(), "text"), (pa.large_string(), "long text")):
            width = pa.binary() if kind == pa.string() else pa.large_binary()
            bad = pa.array([raw], width).view(kind)
            yield f"{name} {raw[:8]!r}", pa.array(["A"], kind), bad
    doubles = (NAN, float("inf"), float("-inf"), 1e308, -1e308, 5e-324)
    for double in doubles:
        yield f"double {double}", pa.array([7.0]), pa.array([double])
        single = struct.unpack("f", struct.pack("f", min(max(double, -3e38), 3e38)))[0]
        yield f"float {single}", pa.array([7.0], pa.float32()), pa.array([single], pa.float32())
    for whole, kind in ((2**63 - 1, pa.int64()), (-(2**63), pa.int64()), (2**64 - 1, pa.uint64())):
        yield f"{kind} {whole}", pa.array([7], kind), pa.array([whole], kind)
    yield "no type", pa.nulls(1), pa.nulls(1)
    yield "all null", pa.nulls(1, pa.float64()), pa.nulls(1, pa.float64())


CASES = {name: (plain, bad) for name, plain, bad in hostile()}
ROLES = ("value", "unit", "group", "where", "time")


def table(plain: Any, bad: Any, role: str, *, with_bad: bool) -> Any:
    """Four ordinary records, and the hostile one: value x, unit u, group g, time t, other o."""
    rows = 5 if with_bad else 4
    kind = plain.type

    def column(own: bool, other: Any) -> Any:
        if not own:
            return pa.array([other] * rows)
        return pa.concat_arrays([plain] * 4 + [bad] * (rows - 4)).cast(kind)

    noon = datetime(2024, 1, 1, 12)  # noqa: DTZ001
    times = pa.array([noon] * rows, pa.timestamp("us"))
    return pa.table(
        {
            "x": column(role == "value", 7),
            "u": column(role in ("unit", "where"), "U"),
            "g": column(role == "group", "A"),
            "t": column(True, None) if role == "time" else times,
        }
    )


def asked(role: str, kind: str, quote: str = '"') -> CellQuery:
    query = CellQuery("x", GRID)
    if role == "unit":
        return replace(query, bound=UnitBound("u", 1))
    if role == "group":
        return replace(query, by=("g",), groups=(("A",), ("a",)))
    if role == "where":
        unit = f"{quote}u{quote}"
        return replace(
            query, where=f"{unit} IS NOT NULL" + f" AND {unit} <> 'Z'" * ("text" in kind)
        )
    return query


def total(counts: CellCounts | tuple[CellCounts, ...]) -> int:
    each = counts if isinstance(counts, tuple) else (counts,)
    return sum(int(part.counts.sum()) for part in each)


def parquet(folder: Path, records: Any) -> str:
    path = folder / "r.parquet"
    pq.write_table(records, path, version="2.6", coerce_timestamps=None, store_schema=True)
    return str(path)


def feather(folder: Path, records: Any) -> str:
    path = folder / "r.arrow"
    with pa.ipc.new_file(str(path), records.schema) as writer:
        writer.write_table(records)
    return str(path)


WRITERS: dict[str, Callable[[Path, Any], str]] = {"parquet": parquet, "arrow": feather}


def answers(backends: Sequence[Backend], query: CellQuery, batch: Batch) -> list[int] | None:
    """Counts of each backend; None where the question is refused, before anything is spent."""
    from streamdp.errors import SourceError

    found = []
    for backend in backends:
        try:
            backend.check(query, batch)
        except SourceError:
            return None
        found.append(total(backend.answer(query, batch)))
    return found


@pytest.mark.thinned(2)
@pytest.mark.parametrize("format", WRITERS)
@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.long)])
def test_no_value_of_a_file_fails_a_question_after_its_check(
    tmp_path: Path, format: str, step: int
) -> None:
    """Every hostile value in every part of a question, in Parquet and Arrow files."""
    answered, failed = 0, []
    for name, (plain, bad) in list(CASES.items())[::step]:
        for role in ROLES:
            made = []
            for with_bad in (False, True):
                place = tmp_path / f"{with_bad}"
                place.mkdir(exist_ok=True)
                try:
                    path = WRITERS[format](place, table(plain, bad, role, with_bad=with_bad))
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                    break
                time = "t" if role == "time" else None
                made.append(DuckDBBackend(path, format, time))  # type: ignore[arg-type]
            if len(made) < 2:
                continue
            batch = WINDOW if role == "time" else FILE
            try:
                counts = answers(made, asked(role, name), batch)
            except Exception as error:  # noqa: BLE001
                failed.append(f"{name} as {role}: {error}")
                continue
            if counts is not None:
                answered += 1
                if not 0 <= counts[1] - counts[0] <= 1:
                    failed.append(f"{name} as {role}: {counts}")
    assert failed == []
    assert answered > 150 // step


LONG = (70_000_000, 20_000_000, 2_000_000, 2**24, 2**24 + 1)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("format", ["csv", "jsonl"])
@pytest.mark.parametrize("length", LONG)
def test_a_long_line_is_no_record(tmp_path: Path, format: str, length: int) -> None:
    """Whatever its length: those beside it count as they did."""
    path = tmp_path / f"r.{format}"
    plain = {"csv": "1,a\n2,b\n", "jsonl": '{"x": 1, "y": "a"}\n{"x": 2, "y": "b"}\n'}[format]
    head = "x,y\n" if format == "csv" else ""
    long = {"csv": f"5,{'b' * length}\n", "jsonl": f'{{"x": 5, "y": "{"b" * length}"}}\n'}[format]
    path.write_text(head + plain + long + plain)
    types = {"x": "number", "y": "text"}
    backend = DuckDBBackend(str(path), format, types=types)  # type: ignore[arg-type]
    query = CellQuery("x", GRID)
    backend.check(query, FILE)
    counts = backend.answer(query, FILE)
    assert (counts.cells.tolist(), counts.counts.tolist()) == ([1, 2], [2, 2])


def test_the_longest_record_is_told_by_itself_alone(tmp_path: Path) -> None:
    """At the limit it counts or not by its own length, wherever it stands in the file."""
    from streamdp.backends.duckdb.lines import LONGEST

    path = tmp_path / "r.jsonl"
    around = '{"x": %d, "y": "%s"}\n'
    for before in (0, 1, 4093, 1_999_990):
        for length in range(LONGEST - 1, LONGEST + 2):
            empty = len(around % (5, "")) - 1
            line = around % (5, "b" * (length - empty))
            path.write_text(around % (1, "c" * before) + line + around % (2, ""))
            backend = DuckDBBackend(str(path), "jsonl", types={"x": "number"})
            found = backend.answer(CellQuery("x", GRID), FILE)
            assert (5 in found.cells.tolist()) == (length <= LONGEST)


TEXTS: list[tuple[bytes, ...]] = [
    (text,) for text in (b"\xff", b"\xed\xa0\x80", b"\x00", b'"', b"'", b"\\", b"\r")
]
TEXTS += [(b"1e999", b"-", b"infinity", b"nan", b"9" * 400, b"{}", b"[1]", b"null")]
TEXTS += [(b"294247-01-10", b"-infinity", b"2024-13-45")]
"""Each alone that may take others with it; those that are no value of a type, together."""


@pytest.mark.thinned(5)
@pytest.mark.parametrize("format", ["csv", "jsonl"])
@pytest.mark.parametrize("texts", TEXTS)
def test_no_text_fails_a_question(tmp_path: Path, format: str, texts: tuple[bytes, ...]) -> None:
    """In each column, of each declared type; an unterminated quote may swallow what follows it."""
    path = tmp_path / f"r.{format}"
    types = {"x": "number", "t": "timestamp", "d": "date", "b": "boolean", "g": "text"}
    plain = {"x": b"7", "t": b"2024-01-01", "d": b"2024-01-01", "b": b"true", "g": b"A"}

    def line(values: dict[str, bytes]) -> bytes:
        if format == "csv":
            return b",".join(values.values()) + b"\n"
        pairs = (b'"' + name.encode() + b'":"' + each + b'"' for name, each in values.items())
        return b"{" + b",".join(pairs) + b"}\n"

    head = b",".join(name.encode() for name in types) + b"\n" if format == "csv" else b""
    for column in types:
        hostile = (line(plain) * 3 + line({**plain, column: text}) for text in texts)
        path.write_bytes(head + b"".join(hostile))
        backend = DuckDBBackend(str(path), format, "t", types=types)  # type: ignore[arg-type]
        for query in (CellQuery("x", GRID), CellQuery("d", GRID), asked("group", "text")):
            bounded = replace(query, bound=UnitBound(column, 4), where="b AND g <> 'Z'")
            for each, plain_ones in ((query, 3 * len(texts)), (bounded, min(4, 3 * len(texts)))):
                backend.check(each, WINDOW)
                answered = total(backend.answer(each, WINDOW))
                assert plain_ones <= answered <= plain_ones + len(texts)


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet", "arrow"])
def test_a_file_without_records_is_an_empty_batch(tmp_path: Path, format: str) -> None:
    """No bytes, a header alone, a column without a type: drawn and charged like any other."""
    query = CellQuery("x", GRID)
    if format in ("csv", "jsonl"):
        for content in ("", "x\n" if format == "csv" else "\n"):
            path = tmp_path / f"r.{format}"
            path.write_text(content)
            backend = DuckDBBackend(str(path), format, types={"x": "number"})  # type: ignore[arg-type]
            backend.check(query, FILE)
            assert total(backend.answer(query, FILE)) == 0
        return
    for column in (pa.nulls(0), pa.nulls(3), pa.nulls(3, pa.float64()), pa.array([], pa.int64())):
        path = WRITERS[format](tmp_path, pa.table({"x": column}))  # type: ignore[assignment]
        backend = DuckDBBackend(str(path), format)  # type: ignore[arg-type]
        backend.check(query, FILE)
        assert total(backend.answer(query, FILE)) == 0


@pytest.mark.parametrize("format", WRITERS)
def test_a_file_that_is_cut_in_half_is_refused_before(tmp_path: Path, format: str) -> None:
    """At every tenth of its length: found by the check, or read whole."""
    from streamdp.errors import SourceError

    records = pa.table({"x": list(range(1000))})
    whole = Path(WRITERS[format](tmp_path, records)).read_bytes()
    for tenth in range(10):
        path = tmp_path / f"cut.{format}"
        path.write_bytes(whole[: len(whole) * tenth // 10])
        with pytest.raises(SourceError):
            DuckDBBackend(str(path), format).check(CellQuery("x", GRID), FILE)  # type: ignore[arg-type]


def test_groups_of_a_collation_are_disjoint(tmp_path: Path) -> None:
    """DuckDB's NOCASE: groups, units and conditions go by bytes."""
    path = tmp_path / "w.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE r (g VARCHAR COLLATE NOCASE, u VARCHAR COLLATE NOACCENT, x INT)"
        )
        connection.execute("INSERT INTO r VALUES ('JFK', 'é', 1), ('jfk', 'e', 2), ('jfk', 'e', 3)")
    backend = DuckDBBackend(str(path), "duckdb", relation=Relation("r"))
    query = CellQuery("x", GRID, by=("g",), groups=(("JFK",), ("jfk",)))
    backend.check(query, FILE)
    assert [each.cells.tolist() for each in backend.answer(query, FILE)] == [[1], [2, 3]]
    where = CellQuery("x", GRID, where="g = 'JFK'")
    assert backend.answer(where, FILE).cells.tolist() == [1]
    assert total(backend.answer(CellQuery("x", GRID, bound=UnitBound("u", 1)), FILE)) == 2


def test_json_lines_have_the_columns_that_are_declared(tmp_path: Path) -> None:
    """Names with quotes, dots and slashes too; a misspelt one is refused."""
    from streamdp.errors import SourceError

    names = ["a.b", 'q"t', "s/l", "t~d", "$", "sp ace", "ä"]
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps({name: place for place, name in enumerate(names)}) + "\n")
    backend = DuckDBBackend(str(path), "jsonl", types=dict.fromkeys(names, "number"))
    for place, name in enumerate(names):
        query = CellQuery(name, GRID)
        backend.check(query, FILE)
        assert backend.answer(query, FILE).cells.tolist() == [place]
    with pytest.raises(SourceError, match="no column"):
        backend.check(CellQuery("misspelt", GRID), FILE)


def test_groups_of_a_collation_of_postgresql_are_disjoint(postgres_server: str) -> None:
    """Of one that calls different texts equal; skipped where the server is built without ICU."""
    import psycopg

    from streamdp.backends.postgres import PostgresBackend

    with psycopg.connect(postgres_server, autocommit=True) as server:
        server.execute("DROP TABLE IF EXISTS collated")
        try:
            server.execute(
                "CREATE COLLATION IF NOT EXISTS anycase"
                " (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
            )
        except psycopg.Error:
            pytest.skip("this server has no ICU")
        server.execute("CREATE TABLE collated (g TEXT COLLATE anycase, x INT)")
        server.execute("INSERT INTO collated VALUES ('JFK', 1), ('jfk', 2), ('jfk', 3)")
    backend = PostgresBackend(postgres_server, Relation("collated"))
    query = CellQuery("x", GRID, by=("g",), groups=(("JFK",), ("jfk",)))
    backend.check(query, FILE)
    assert [each.cells.tolist() for each in backend.answer(query, FILE)] == [[1], [2, 3]]
    where = CellQuery("x", GRID, where="g = 'JFK'")
    assert backend.answer(where, FILE).cells.tolist() == [1]
    assert total(backend.answer(CellQuery("x", GRID, bound=UnitBound("g", 1)), FILE)) == 2
    backend.close()


WHERE = ("x > 8", "NOT x > 8", "x <> 7", "x = 0", None)
APART = ([7.0, NAN, NAN], [None, NAN], [-0.0, NAN, 0.0])


@pytest.mark.parametrize(("kind", "rows"), [("double", 2), ("double", 9), ("float", 9)])
def test_no_record_decides_whether_another_counts(tmp_path: Path, kind: str, rows: int) -> None:
    """NaN stands outside the statistics of a Parquet file, by which an engine skips records."""
    backend = DuckDBBackend(str(tmp_path / "r.parquet"), "parquet")
    kinds = {"double": pa.float64(), "float": pa.float32()}

    @cache
    def counted(values: tuple[float | None, ...], where: str | None) -> int:
        column = pa.array(values, kinds[kind], from_pandas=False)
        pq.write_table(pa.table({"x": column}), tmp_path / "r.parquet", row_group_size=rows)
        return total(backend.answer(CellQuery("x", GRID, where=where), FILE))

    for values in APART:
        for where in WHERE:
            alone = sum(counted((value,), where) for value in values)
            for one_more in (float("inf"), 9.0):
                together = counted((*values, one_more), where)
                assert together == alone + counted((one_more,), where), (values, where)
