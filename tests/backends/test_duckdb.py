"""DuckDB: the same cells as plain arithmetic, whatever the file holds."""

import json
import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.backends.duckdb.lines import typed
from streamdp.backends.sql.cells import cells_of
from streamdp.backends.sql.relation import Relation
from streamdp.errors import SourceError
from streamdp.types import Batch, CellQuery, Grid

START = int(datetime(2024, 3, 1, tzinfo=UTC).timestamp())
DAY = 86_400
WINDOW = Batch("s", "2024-03-01", START, START + DAY)
TYPES = {"seen": "timestamp", "x": "number"}
ODD = [math.nan, math.inf, -math.inf, -0.0, 0.0, 1e308, -1e308, 5e-324, 0.5, 1.5, -0.5, 2.5]


def expected(values: list[float | None], grid: Grid) -> dict[int, int]:
    """Cells by the rule of `backends.sql.cells`."""
    counts: dict[int, int] = {}
    for value in values:
        if value is None or not math.isfinite(value):
            continue
        (cell,) = cells_of(np.array([value]), grid).tolist()
        counts[cell] = counts.get(cell, 0) + 1
    return counts


def counted(backend: DuckDBBackend, query: CellQuery, batch: Batch) -> dict[int, int]:
    backend.check(query, batch)
    found = backend.answer(query, batch)
    assert (np.diff(found.cells) > 0).all()
    return dict(zip(found.cells.tolist(), found.counts.tolist(), strict=True))


def write_parquet(path: Path, values: list[Any], column_type: str = "DOUBLE") -> None:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t (seen TIMESTAMP, x {column_type}, note VARCHAR)")
    moment = datetime(2024, 3, 1, 12)  # noqa: DTZ001
    connection.executemany("INSERT INTO t VALUES (?, ?, '')", [[moment, value] for value in values])
    connection.execute(f"COPY t TO '{path}' (FORMAT parquet)")


@settings(max_examples=25, deadline=None)
@given(
    values=st.lists(st.none() | st.floats() | st.sampled_from(ODD), min_size=1, max_size=30),
    resolution=st.sampled_from([Fraction(1), Fraction(1, 10), Fraction(5), Fraction(1, 3)]),
)
def test_parquet_counts_are_those_of_the_rule(
    tmp_path_factory: pytest.TempPathFactory, values: list[float | None], resolution: Fraction
) -> None:
    """Nulls, NaN and infinities are dropped; all else falls in the cell of the public rule."""
    path = tmp_path_factory.mktemp("parquet") / "batch.parquet"
    write_parquet(path, values)
    grid = Grid(resolution, -1000, 1000)
    found = counted(DuckDBBackend(str(path), "parquet", "seen"), CellQuery("x", grid), WINDOW)
    assert found == expected(values, grid)


@pytest.mark.parametrize("column_type", ["SMALLINT", "BIGINT", "FLOAT", "DECIMAL(9,2)"])
def test_column_types(tmp_path: Path, column_type: str) -> None:
    """Integers, floats and decimals count alike."""
    path = tmp_path / "batch.parquet"
    write_parquet(path, [1, 2, 2, None, 7], column_type)
    query = CellQuery("x", Grid(Fraction(1), 0, 5))
    found = counted(DuckDBBackend(str(path), "parquet", "seen"), query, WINDOW)
    assert found == {1: 1, 2: 2, 5: 1}


def test_windows_are_half_open(tmp_path: Path) -> None:
    """A record at the border belongs to the later window, and to no other."""
    path = tmp_path / "all.parquet"
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (seen TIMESTAMP, x INTEGER)")
    base = datetime(2024, 3, 1)  # noqa: DTZ001
    rows = [[base - timedelta(seconds=1), 1], [base, 2], [base + timedelta(days=1), 3]]
    connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
    connection.execute(f"COPY t TO '{path}' (FORMAT parquet)")
    backend = DuckDBBackend(str(path), "parquet", "seen")
    query = CellQuery("x", Grid(Fraction(1), 0, 9))
    following = Batch("s", "2024-03-02", START + DAY, START + 2 * DAY)
    assert counted(backend, query, WINDOW) == {2: 1}
    assert counted(backend, query, following) == {3: 1}


@pytest.mark.parametrize(
    ("column_type", "value", "found"),
    [("DATE", "2024-03-01", {4: 1}), ("TIMESTAMPTZ", "2024-03-01 23:30:00-02", {})],
)
def test_dates_and_zoned_timestamps(
    tmp_path: Path, column_type: str, value: str, found: dict[int, int]
) -> None:
    """A date is its midnight in UTC; a zoned timestamp is its instant, here on the next day."""
    path = tmp_path / "batch.parquet"
    connection = duckdb.connect()
    connection.execute("SET TimeZone='UTC'")
    connection.execute(f"CREATE TABLE t AS SELECT '{value}'::{column_type} AS seen, 4 AS x")
    connection.execute(f"COPY t TO '{path}' (FORMAT parquet)")
    backend = DuckDBBackend(str(path), "parquet", "seen")
    assert counted(backend, CellQuery("x", Grid(Fraction(1), 0, 9)), WINDOW) == found


def text_file(path: Path, rows: list[tuple[str, str]]) -> None:
    if path.suffix == ".csv":
        lines = ["seen,x", *(f"{at},{x}" for at, x in rows)]
    else:
        lines = [json.dumps({"seen": at, "x": x}) for at, x in rows]
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_text_that_is_no_number_is_dropped_as_a_null_is(tmp_path: Path, ending: str) -> None:
    """One record of another type changes its own count, never how the others are read."""
    path = tmp_path / f"batch.{ending}"
    numbers = [("2024-03-01T10:00:00", "1"), ("2024-03-01T11:00:00", "2.4")]
    query = CellQuery("x", Grid(Fraction(1), 0, 9))
    backend = DuckDBBackend(str(path), ending, "seen", types=TYPES)  # type: ignore[arg-type]
    text_file(path, numbers)
    assert counted(backend, query, WINDOW) == {1: 1, 2: 1}
    text_file(path, [("2024-03-01T09:00:00", "SECRET"), ("never", "3"), *numbers])
    assert counted(backend, query, WINDOW) == {1: 1, 2: 1}


def test_rows_do_not_decide_the_dialect(tmp_path: Path) -> None:
    """Delimiter and columns follow from the header: a record full of commas changes nothing."""
    path = tmp_path / "batch.csv"
    plain = "seen;note;x\n2024-03-01T10:00:00;a;1\n2024-03-01T11:00:00;b;2\n"
    path.write_text(plain)
    backend = DuckDBBackend(str(path), "csv", "seen", types=TYPES)
    query = CellQuery("x", Grid(Fraction(1), 0, 9))
    assert counted(backend, query, WINDOW) == {1: 1, 2: 1}
    path.write_text(plain + '2024-03-01T12:00:00;"a,b,c,d,e,f,,,;";3\n' * 30)
    assert counted(backend, query, WINDOW) == {1: 1, 2: 1, 3: 30}


def test_files_of_one_source_have_one_header(tmp_path: Path) -> None:
    """Columns in another order would be read as each other: refused."""
    (tmp_path / "a.csv").write_text("seen,x\n2024-03-01T10:00:00,1\n")
    (tmp_path / "b.csv").write_text("x,seen\n1,2024-03-01T10:00:00\n")
    backend = DuckDBBackend(str(tmp_path / "*.csv"), "csv", "seen", types=TYPES)
    with pytest.raises(SourceError, match="one header"):
        backend.check(CellQuery("x", Grid(Fraction(1), 0, 9)), WINDOW)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_torn_lines_do_not_raise(tmp_path: Path, ending: str) -> None:
    """A line that cannot be parsed is dropped by rule."""
    path = tmp_path / f"batch.{ending}"
    text_file(path, [("2024-03-01T10:00:00", "1")])
    torn = '{"seen": "2024-03-01T10:00:00", "x": \n' if ending == "jsonl" else "2024,1,2,3\n"
    with path.open("a") as file:
        file.write(torn)
    backend = DuckDBBackend(str(path), ending, "seen", types=TYPES)  # type: ignore[arg-type]
    assert counted(backend, CellQuery("x", Grid(Fraction(1), 0, 9)), WINDOW) == {1: 1}


def test_an_empty_window_has_no_cells(tmp_path: Path) -> None:
    """No rows in the window: empty arrays, no error."""
    path = tmp_path / "batch.parquet"
    write_parquet(path, [1.0])
    empty = Batch("s", "2024-04-01", START + 31 * DAY, START + 32 * DAY)
    backend = DuckDBBackend(str(path), "parquet", "seen")
    assert counted(backend, CellQuery("x", Grid(Fraction(1), 0, 9)), empty) == {}


@pytest.mark.parametrize(
    ("column", "time_column"), [("y", "seen"), ("x", "when"), ("x", "x"), ("note", "seen")]
)
def test_a_wrong_column_is_refused_by_name(tmp_path: Path, column: str, time_column: str) -> None:
    """Missing columns and wrong types are found in the schema, and no value is shown."""
    path = tmp_path / "batch.parquet"
    write_parquet(path, [123456.0])
    backend = DuckDBBackend(str(path), "parquet", time_column)
    with pytest.raises(SourceError) as caught:
        backend.check(CellQuery(column, Grid(Fraction(1), 0, 9)), WINDOW)
    assert "123456" not in str(caught.value)


def test_errors_show_no_values(tmp_path: Path) -> None:
    """The engine's own text, which quotes rows, is dropped on every path, causes included."""
    path = tmp_path / "batch.parquet"
    path.write_text("SECRET-CANARY is no parquet file")
    backend = DuckDBBackend(str(path), "parquet", "seen")
    query = CellQuery("x", Grid(Fraction(1), 0, 9))
    for ask in (backend.check, backend.answer):
        with pytest.raises(SourceError) as caught:
            ask(query, WINDOW)
        assert "CANARY" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__


@pytest.mark.parametrize("name", ["d[1].csv", "d?.csv", "d*.csv"])
def test_a_file_is_itself_whatever_its_name(tmp_path: Path, name: str) -> None:
    """A batch whose name looks like a pattern is read from its own file and no other."""
    (tmp_path / "d1.csv").write_text("seen,x\n2024-03-01,1\n")
    (tmp_path / name).write_text("seen,x\n2024-03-01,2\n")
    batch = Batch("s", name, path=str(tmp_path / name))
    backend = DuckDBBackend("", "csv", types=TYPES)
    found = counted(backend, CellQuery("x", Grid(Fraction(1), 0, 9)), batch)
    assert found == {2: 1}


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(b"2024-03-01,\xff\xfe\n", id="no UTF-8"),
        pytest.param(b"2024-03-01," + b"9" * 3_000_000 + b"\n", id="a very long line"),
        pytest.param(b"2024-03-01,77\r\n", id="another end of line"),
        pytest.param(b"2024-03-01,a\rb\n", id="half an end of line"),
    ],
)
def test_one_odd_record_never_raises(tmp_path: Path, odd: bytes) -> None:
    """It changes its own count at most: an error would tell that it is there, and burn."""
    path = tmp_path / "batch.csv"
    path.write_bytes(b"seen,x\n2024-03-01,1\n" + odd + b"2024-03-01,2\n")
    backend = DuckDBBackend(str(path), "csv", "seen", types=TYPES)
    found = counted(backend, CellQuery("x", Grid(Fraction(1), 0, 9)), WINDOW)
    assert (found[1], found[2]) == (1, 1)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_text_with_an_offset_is_its_instant(tmp_path: Path, ending: str) -> None:
    """23:30 at -02:00 is the next day, 00:30 at +02:00 the day before; Z and none are UTC."""
    path = tmp_path / f"batch.{ending}"
    inside = ["2024-03-01T23:30:00Z", "2024-03-01 23:30:00", "2024-03-02T00:30:00+02:00"]
    outside = ["2024-03-01T23:30:00-02:00", "2024-03-01T00:30:00+02:00"]
    text_file(path, [*((at, "1") for at in inside), *((at, "2") for at in outside)])
    backend = DuckDBBackend(str(path), ending, "seen", types=TYPES)  # type: ignore[arg-type]
    assert counted(backend, CellQuery("x", Grid(Fraction(1), 0, 9)), WINDOW) == {1: 3}


def test_a_rewritten_file_is_read_by_its_new_header(tmp_path: Path) -> None:
    """A daemon lives for months: columns in a new order are not read as each other."""
    path = tmp_path / "batch.csv"
    backend = DuckDBBackend(str(path), "csv", types=TYPES)
    query = CellQuery("x", Grid(Fraction(1), 0, 9))
    path.write_text("y,x\n1,2\n")
    assert counted(backend, query, Batch("s", "b", path=str(path))) == {2: 1}
    path.write_text("x,y\n1,2\n1,2\n")
    assert counted(backend, query, Batch("s", "b", path=str(path))) == {1: 2}


def test_a_header_that_is_none_is_refused(tmp_path: Path) -> None:
    """A first line of 200,000 characters is an error with a hint, not the end of the process."""
    path = tmp_path / "batch.csv"
    path.write_text("x" * 200_000 + "\n1\n")
    backend = DuckDBBackend(str(path), "csv", "seen", types=TYPES)
    with pytest.raises(SourceError):
        backend.check(CellQuery("x", Grid(Fraction(1), 0, 9)), WINDOW)


@pytest.mark.parametrize("names", ["ab", "ba"])
@pytest.mark.parametrize("select", ["1 AS y", "'CANARY' AS x"])
def test_every_file_of_a_pattern_is_checked(tmp_path: Path, names: str, select: str) -> None:
    """A later file without the column, or with text in it, is found before a charge is spent."""
    for name, what in zip(names, ("1 AS x", select), strict=True):
        duckdb.execute(
            f"COPY (SELECT TIMESTAMP '2024-03-01' AS seen, {what})"
            f" TO '{tmp_path}/{name}.parquet' (FORMAT parquet)"
        )
    backend = DuckDBBackend(str(tmp_path / "*.parquet"), "parquet", "seen")
    with pytest.raises(SourceError, match="column 'x'"):
        backend.check(CellQuery("x", Grid(Fraction(1), 0, 9)), WINDOW)


def test_the_type_of_the_first_file_does_not_round_the_others(tmp_path: Path) -> None:
    """Whole numbers in one file, fractions in the next: each value keeps its cell."""
    for name, what in (("a", "1"), ("b", "2.25::DOUBLE")):
        duckdb.execute(
            f"COPY (SELECT TIMESTAMP '2024-03-01' AS seen, {what} AS x)"
            f" TO '{tmp_path}/{name}.parquet' (FORMAT parquet)"
        )
    backend = DuckDBBackend(str(tmp_path / "*.parquet"), "parquet", "seen")
    assert counted(backend, CellQuery("x", Grid(Fraction(1, 4), 0, 99)), WINDOW) == {4: 1, 9: 1}


@pytest.mark.parametrize(
    ("start", "said"),
    [
        pytest.param(b"2024-03-01,CANARY\n", "none of the configured", id="no header"),
        pytest.param("seen,größe,x\n".encode("latin-1"), "is no UTF-8", id="Latin-1"),
        pytest.param("seen,x\n".encode("utf-16"), "is no UTF-8", id="UTF-16"),
        pytest.param(b"\x1f\x8b\x08\x00\xc3\n", "is no UTF-8", id="compressed"),
        pytest.param(b"\nseen,x\n", "is empty", id="an empty line first"),
        pytest.param(b"seen,x,X\n", "names a column twice", id="a name twice"),
        pytest.param(b'seen,"x\n', "a quote that does not end", id="a quote"),
        pytest.param(b"x" * 200_000 + b"\n", "is too long", id="a long line"),
    ],
)
def test_a_record_is_never_taken_for_the_header(tmp_path: Path, start: bytes, said: str) -> None:
    """The error that lists the columns of a file would show the record."""
    path = tmp_path / "batch.csv"
    path.write_bytes(start + b"2024-03-01T10:00:00,CANARY,1\n")
    backend = DuckDBBackend(str(path), "csv", "seen", types=TYPES)
    with pytest.raises(SourceError, match=said) as caught:
        backend.check(CellQuery("x", Grid(Fraction(1), 0, 9)), WINDOW)
    assert "CANARY" not in str(caught.value)


def test_a_header_with_one_configured_column_is_listed(tmp_path: Path) -> None:
    """It is a header: its names help, also where they differ in blanks and capitals alone."""
    path = tmp_path / "batch.csv"
    backend = DuckDBBackend(str(path), "csv", "seen", types=TYPES)
    for header, listed in (("seen,y", "seen, y"), ("Seen, X", "' X', Seen")):
        path.write_text(header + "\n2024-03-01T10:00:00,1\n")
        with pytest.raises(SourceError, match=f"it has: {listed}$"):
            backend.check(CellQuery("x", Grid(Fraction(1), 0, 9)), WINDOW)


def test_a_column_without_a_name_is_named_by_its_place(tmp_path: Path) -> None:
    """Exports number their rows in a first column that has none; an odd line changes nothing."""
    path = tmp_path / "batch.csv"
    path.write_text("\ufeff,seen,x,\n0,2024-03-01T10:00:00,1,\n1,2024-03-01T11:00:00,2,\n")
    backend = DuckDBBackend(str(path), "csv", "seen", types=TYPES)
    assert counted(backend, CellQuery("x", Grid(Fraction(1), 0, 9)), WINDOW) == {1: 1, 2: 1}


@pytest.mark.parametrize("name", ["d[1].arrow", "d?.arrow"])
def test_an_arrow_file_is_itself_whatever_its_name(tmp_path: Path, name: str) -> None:
    """Only an engine that takes patterns is handed an escaped name."""
    table = pa.table({"seen": [datetime(2024, 3, 1, 10, tzinfo=UTC)], "x": [2.0]})
    with pa.OSFile(str(tmp_path / name), "wb") as file, pa.ipc.new_file(file, table.schema) as out:
        out.write_table(table)
    backend = DuckDBBackend("", "arrow", "seen")
    batch = replace(WINDOW, path=str(tmp_path / name))
    assert counted(backend, CellQuery("x", Grid(Fraction(1), 0, 9)), batch) == {2: 1}


@pytest.mark.parametrize(
    ("types", "hint"),
    [({}, "s.types: {x: number}"), ({"x": "number"}, "s.types: {seen: timestamp}")],
)
def test_a_type_that_is_not_declared_is_asked_for_by_name(
    tmp_path: Path, types: dict[str, str], hint: str
) -> None:
    """A line to copy into the configuration."""
    path = tmp_path / "batch.csv"
    path.write_text("seen,x\n2024-03-01T10:00:00,1\n")
    backend = DuckDBBackend(str(path), "csv", "seen", types=types)
    with pytest.raises(SourceError) as caught:
        backend.check(CellQuery("x", Grid(Fraction(1), 0, 9)), WINDOW)
    assert caught.value.hint.endswith(hint)


def test_a_file_of_sqlite_is_told(tmp_path: Path) -> None:
    """With what to do; its engine would look for an extension."""
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE t (x INTEGER, seen TEXT)")
    backend = DuckDBBackend(str(path), "duckdb", "seen", relation=Relation("t"))
    with pytest.raises(SourceError, match="it is an SQLite file"):
        backend.check(CellQuery("x", Grid(Fraction(1), 0, 9)), WINDOW)


def test_a_table_that_a_database_lacks_is_named(tmp_path: Path) -> None:
    """The file was opened, so it is not asked whether it is there."""
    path = tmp_path / "w.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE TABLE sales (x INTEGER, seen TIMESTAMP)")
    backend = DuckDBBackend(str(path), "duckdb", "seen", relation=Relation("sale"))
    with pytest.raises(SourceError, match="is there a table or view 'sale' in it"):
        backend.check(CellQuery("x", Grid(Fraction(1), 0, 9)), WINDOW)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.zst"])
def test_a_packed_file_is_read_as_its_ending_says(tmp_path: Path, ending: str) -> None:
    """Its header too; one that is not packed so is refused."""
    path = tmp_path / f"batch.{ending}"
    text = b"seen,x\n2024-03-01T10:00:00,1\n"
    with pa.output_stream(str(path)) as packed:
        packed.write(text)
    backend = DuckDBBackend(str(path), "csv", "seen", types=TYPES)
    query = CellQuery("x", Grid(Fraction(1), 0, 9))
    assert counted(backend, query, WINDOW) == {1: 1}
    if ending != "csv":
        path.write_bytes(text)
        with pytest.raises(SourceError, match="cannot be opened"):
            backend.check(query, WINDOW)


@pytest.mark.parametrize(
    ("declared", "text", "value"),
    [
        ("decimal-comma", "1,5", "1.5"),
        ("decimal-comma", " -1.234,50 ", "-1234.5"),
        ("decimal-comma", "1.500", "1500.0"),
        ("decimal-comma", "12.5", None),
        ("decimal-comma", "1,2,3", None),
        ("decimal-comma", "1.23,4", None),
        ("decimal-comma", "NaN", None),
        ("%d.%m.%Y", "1.2.2026", "2026-02-01"),
        ("%d.%m.%Y", "31.02.2026", None),
        ("%d.%m.%Y", "2026-02-01", None),
        ("%d.%m.%Y %H:%M", "01.02.2026 23:59", "2026-02-01 23:59:00+00"),
        ("%m/%d/%Y %I:%M %p", "02/01/2026 03:04 PM", "2026-02-01 15:04:00+00"),
        ("%Y%m%dT%H%M%S%z", "20260201T010000+0200", "2026-01-31 23:00:00+00"),
        ("%d.%m.%Y %H:%M", "01.02.99999 00:00", None),
        ("%d.%m.%Y %H:%M", "\0", None),
    ],
)
def test_a_text_is_read_as_its_column_is_declared(
    declared: str, text: str, value: str | None
) -> None:
    """What is none of it is null, and never an error."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone='UTC'")
    sql = f"SELECT CAST({typed('t', declared)} AS VARCHAR) FROM (SELECT ?::VARCHAR AS t)"
    assert connection.execute(sql, [text]).fetchall() == [(value,)]


def test_a_csv_file_as_a_german_spreadsheet_writes_it(tmp_path: Path) -> None:
    """With semicolons, commas in numbers, and days before months."""
    path = tmp_path / "batch.csv"
    path.write_text("seen;x\n01.03.2024 10:00;1,4\n01.03.2024 11:00;2\n03.01.2024 10:00;3\n")
    types = {"seen": "%d.%m.%Y %H:%M", "x": "decimal-comma"}
    backend = DuckDBBackend(str(path), "csv", "seen", types=types)
    query = CellQuery("x", Grid(Fraction(1, 5), 0, 90))
    assert counted(backend, query, WINDOW) == {7: 1, 10: 1}


@pytest.mark.parametrize("name", ['a"b', "a\\b", 'a"/~', "$.a"])
def test_a_name_with_quotes_is_read_from_json_lines(tmp_path: Path, name: str) -> None:
    """Quotes, slashes and tildes are part of the name, none of a path into the record."""
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps({name: 7}) + "\n")
    backend = DuckDBBackend(str(path), "jsonl", types={name: "number"})
    query = CellQuery(name, Grid(Fraction(1), 0, 10))
    assert counted(backend, query, Batch("s", "r")) == {7: 1}
