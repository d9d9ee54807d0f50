"""Arrow files: every encoding of a value counts as the value, and what is broken is said before."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import streamdp
from streamdp.backends.duckdb import arrow
from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.cli import cli
from streamdp.config import load
from streamdp.errors import ConfigurationError, SourceError
from streamdp.log import close
from streamdp.types import Batch, CellQuery, Grid, UnitBound
from tests.worlds import parts

BATCH = Batch("s", "b")
GRID = Grid(Fraction(1, 2), -(2**46), 2**46)
X = CellQuery("x", GRID)


def write(path: Path, columns: dict[str, Any], rows: int = 2, **options: Any) -> Path:
    """A file of record batches of so many rows."""
    table = pa.table(columns)
    chosen = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True, **options)
    with pa.ipc.new_file(path, table.schema, options=chosen) as writer:
        writer.write_table(table, max_chunksize=rows)
    return path


def counts(path: Path | str, query: CellQuery = X, time: str | None = None) -> dict[int, int]:
    backend = DuckDBBackend(str(path), "arrow", time)
    day = Batch("s", "b", 0, 86_400) if time else BATCH
    backend.check(query, day)
    found = backend.answer(query, day)
    return dict(zip(found.cells.tolist(), found.counts.tolist(), strict=True))


def ticks(values: Sequence[int | None], kind: Any) -> Any:
    return pa.array(values, pa.int64()).view(kind)


ENCODED = [
    (pa.array(np.array([1.5, np.inf, np.nan, -2.5, 1.5], np.float16)), {3: 2, -5: 1}),
    (pa.array([1.5, None, float("inf"), 1.5]).dictionary_encode(), {3: 2}),
    (pa.RunEndEncodedArray.from_arrays([3, 4], pa.array([7, None])), {14: 3}),
    (pa.array([Decimal("1.5"), None, Decimal(-1)], pa.decimal128(38, 37)), {3: 1, -2: 1}),
    (pa.array([Decimal("1.5"), None, Decimal(-1)], pa.decimal32(9, 2)), {3: 1, -2: 1}),
    (pa.array([Decimal("1.5"), None, Decimal(-1)], pa.decimal64(18, 17)), {3: 1, -2: 1}),
    (pa.array([2**63, None, 1], pa.uint64()), {2**46: 1, 2: 1}),
    (ticks([1, None, -1, 2**62], pa.timestamp("s")), {2: 1, -2: 1}),
    (ticks([1500, None, -500, -(2**63)], pa.timestamp("ms", "Asia/Kolkata")), {3: 1, -1: 1}),
    (ticks([1_500_000, None, 0], pa.timestamp("us", "UTC")), {3: 1, 0: 1}),
    (ticks([1_500_000_000, None, 0], pa.timestamp("ns", "UTC")), {3: 1, 0: 1}),
    (ticks([1, None, 2**62, -3], pa.duration("s")), {2: 1, -6: 1}),
    (ticks([1500, None, 2**62], pa.duration("ms")), {3: 1}),
    (ticks([1_500_000_000, None], pa.duration("ns")), {3: 1}),
]
"""Values, and records by cells of a half; what is no microsecond within 64 bits is no value."""


@pytest.mark.parametrize(("values", "wanted"), ENCODED, ids=[str(v.type) for v, _ in ENCODED])
def test_a_value_counts_whatever_its_encoding(
    tmp_path: Path, values: Any, wanted: dict[int, int]
) -> None:
    """A column that nobody asks for may be of any type."""
    beside = pa.array([[{"a": 1}]] * len(values))
    assert counts(write(tmp_path / "x.arrow", {"x": values, "beside": beside})) == wanted


def test_a_time_that_duckdb_fails_on_is_why_times_are_made_plain(tmp_path: Path) -> None:
    """Power: handed over as it is, one time in seconds ends the question."""
    table: Any = pa.table({"x": ticks([1, 2**62], pa.timestamp("s"))})
    with duckdb.connect() as connection, pytest.raises(duckdb.Error):
        connection.register("t", table).execute("SELECT epoch_us(x) FROM t").fetchall()
    assert counts(write(tmp_path / "x.arrow", {"x": table["x"]})) == {2: 1}


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view"])
@pytest.mark.parametrize("encoded", [False, True])
def test_text_that_is_no_utf_8_is_null(tmp_path: Path, kind: str, encoded: bool) -> None:
    """One such record would end this question and all later ones of its connection."""
    raw = {"string": "binary", "large_string": "large_binary", "string_view": "binary_view"}[kind]
    text: Any = pa.array([b"a", b"\xff\xfe", "\u00e4".encode(), None], getattr(pa, raw)())
    text = text.view(getattr(pa, kind)())
    if encoded:
        text = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3]), text)
    path = write(tmp_path / "x.arrow", {"x": [1, 2, 3, 4], "g": text})
    assert counts(path, CellQuery("x", GRID, where="lower(g) <> 'b'")) == {2: 1, 6: 1}
    assert counts(path, CellQuery("x", GRID, bound=UnitBound("g", 1))) == {2: 1, 6: 1}


def test_dictionaries_differ_from_batch_to_batch_and_from_file_to_file(tmp_path: Path) -> None:
    """Each file has a dictionary of its own, which grows within it; codes mean other texts."""
    groups: list[list[str | None]] = [["a", "b", "c", "a"], ["c", "c", "b", None]]
    for file, texts in enumerate(groups):
        chunks = [pa.array(texts[:2]).dictionary_encode(), pa.array(texts[2:]).dictionary_encode()]
        unit = pa.chunked_array(chunks).unify_dictionaries()
        columns = {"x": [1, 2, 3, 4], "g": unit, "u": pa.array(["p", "q", "p", "q"])}
        write(tmp_path / f"{file}.arrow", columns, rows=2)
    query = CellQuery("x", GRID, by=("g",), groups=(("a",), ("b",), ("c",)))
    backend = DuckDBBackend(str(tmp_path / "*.arrow"), "arrow")
    backend.check(query, BATCH)
    found = [each.cells.tolist() for each in parts(backend.answer(query, BATCH))]
    assert found == [[2, 8], [4, 6], [2, 4, 6]]
    bounded = CellQuery("x", GRID, bound=UnitBound("u", 1))
    assert sum(counts(tmp_path / "*.arrow", bounded).values()) == 2


def test_a_dictionary_that_grows_within_a_file_is_refused(tmp_path: Path) -> None:
    """Arrow ends at a growth that is no UTF-8, so it is refused whatever it holds."""
    for last in (b"c", b"\xff"):
        words: Any = [
            pa.array(each, pa.binary()).view(pa.string()) for each in ([b"a"], [b"a", last])
        ]
        batches = [
            pa.record_batch({"x": [1], "g": pa.DictionaryArray.from_arrays(pa.array([0]), each)})
            for each in words
        ]
        options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
        with pa.ipc.new_file(tmp_path / "x.arrow", batches[0].schema, options=options) as writer:
            for batch in batches:
                writer.write_batch(batch)
        with pytest.raises(SourceError, match="grows within the file"):
            counts(tmp_path / "x.arrow", CellQuery("x", GRID, where="g = 'a'"))
        assert counts(tmp_path / "x.arrow") == {2: 2}


@pytest.mark.parametrize("raw", [b"\0" * 15 + b"\x80", b"\xff" * 15 + b"\x7f"])
def test_a_decimal_of_more_digits_than_its_type_is_the_nearest(tmp_path: Path, raw: bytes) -> None:
    """DuckDB ends at the most negative bits there are."""
    kind = pa.decimal128(38, 20)
    odd = pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(raw)])
    x = pa.concat_arrays([pa.array([Decimal(1)], kind), odd])
    assert sum(counts(write(tmp_path / "x.arrow", {"x": x})).values()) == 2
    assert counts(write(tmp_path / "x.arrow", {"x": x.slice(0, 1)})) == {2: 1}


@pytest.mark.parametrize("raw", [b"\0\0\0\x80", b"\xff\xff\xff\x7f"])
@pytest.mark.parametrize("kind", [pa.decimal32(5, 2), pa.decimal64(7, 2)])
def test_a_decimal_of_few_bits_is_widened_first(tmp_path: Path, kind: Any, raw: bytes) -> None:
    """Arrow compares no decimals of 32 or 64 bits with others: each batch with a record failed."""
    full = raw[:1] * (kind.bit_width // 8 - 4) + raw
    odd = pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(full)])
    x = pa.concat_arrays([pa.array([Decimal(1)], kind), odd])
    found = counts(write(tmp_path / "x.arrow", {"x": x}))
    end = round(10 ** (kind.precision - 2)) * 2
    assert found == {2: 1, (-end if raw[-1] == 0x80 else end): 1}


@pytest.mark.parametrize("places", [pa.int8(), pa.int32(), pa.uint8()])
def test_a_place_at_which_a_dictionary_holds_nothing_is_null(tmp_path: Path, places: Any) -> None:
    """Such a place is in one record, and must not end a question about all."""
    odd = [0, 7, 1, None] if places == pa.uint8() else [0, 7, 1, -1]
    words = pa.DictionaryArray.from_arrays(pa.array(odd, places), pa.array(["a", "b"]), safe=False)
    path = write(tmp_path / "x.arrow", {"x": [1, 2, 3, 4], "g": words}, rows=4)
    assert counts(path, CellQuery("x", GRID, where="g IN ('a', 'b')")) == {2: 1, 6: 1}
    assert counts(path, CellQuery("x", GRID, where="g IS NULL")) == {4: 1, 8: 1}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_a_window_is_cut_by_the_instant(tmp_path: Path, unit: str, zone: str | None) -> None:
    """In any unit; a zone shows it otherwise and changes nothing, and without one it is UTC."""
    at = [datetime(1970, 1, day, hour, tzinfo=UTC) for day in (1, 2) for hour in (0, 23)]
    seconds = pa.array([int(each.timestamp()) for each in at]).cast(pa.timestamp("s"))
    times = seconds.cast(pa.timestamp(unit)).view(pa.timestamp(unit, zone))
    path = write(tmp_path / "x.arrow", {"x": [1, 2, 3, 4], "at": times})
    assert counts(path, time="at") == {2: 1, 4: 1}


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_files_may_be_compressed_within(tmp_path: Path, compression: str | None) -> None:
    """As pandas and others write them by default."""
    path = write(tmp_path / "x.feather", {"x": [1, 1, 2]}, compression=compression)
    assert counts(path) == {2: 2, 4: 1}


def test_filters_are_those_of_the_engine(tmp_path: Path) -> None:
    """A NaN is above all numbers, as in every other format; capitals make no other column."""
    path = write(tmp_path / "x.arrow", {"x": [1, 2, 3], "Y": [float("nan"), 1.0, None]})
    assert counts(path, CellQuery("x", GRID, where="y > 2")) == {2: 1}
    assert counts(path, CellQuery("z", GRID, expression="1 + 1")) == {4: 3}


def stream(path: Path, data: pa.Table) -> None:
    with pa.ipc.new_stream(path, data.schema) as writer:
        writer.write_table(data)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"y": [1]}, "no column 'x'"),
    ({"X": [1]}, "no column 'x'"),
    ({"x": pa.array([Decimal(1)], pa.decimal256(60, 2))}, "decimal256"),
    ({"x": [[1]]}, "list<"),
    ({"x": [{"a": 1}]}, "struct<"),
    ({"x": ["CANARY"]}, "wanted is a number"),
    ({"x": pa.array(["CANARY"], pa.string_view())}, "wanted is a number"),
    (
        {"x": pa.RunEndEncodedArray.from_arrays([1], pa.array(["CANARY"]).dictionary_encode())},
        "run",
    ),
    ({"x": pa.array([1], pa.time32("s"))}, "time32"),
    ({"x": pa.array([1], pa.date64())}, "date64"),
    ({"x": pa.array(["CANARY"]).dictionary_encode()}, "wanted is a number"),
]


@pytest.mark.parametrize(("columns", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_a_column_that_cannot_be_asked_is_refused_before(
    tmp_path: Path, columns: dict[str, Any], words: str
) -> None:
    """By name and type, which are in the file's schema."""
    with pytest.raises(SourceError, match=words) as caught:
        counts(write(tmp_path / "x.arrow", columns))
    assert "CANARY" not in str(caught.value)


def test_files_of_one_source_have_one_schema(tmp_path: Path) -> None:
    """What differs is told with its file; another way to encode the same type is none."""
    write(tmp_path / "a.arrow", {"x": pa.array([1.5]), "z": ["p"]})
    write(tmp_path / "b.arrow", {"z": ["p"], "x": pa.array([1.5]).dictionary_encode()})
    assert counts(tmp_path / "*.arrow") == {3: 2}
    write(tmp_path / "c.arrow", {"x": pa.array([1])})
    with pytest.raises(SourceError, match=r"c\.arrow: column 'x' .* int64, before it double"):
        counts(tmp_path / "*.arrow")
    write(tmp_path / "c.arrow", {"z": pa.array([1])})
    with pytest.raises(SourceError, match=r"c\.arrow: there is no column 'x'"):
        counts(tmp_path / "*.arrow")
    double = pa.table([pa.array([1.5]), pa.array([2.5])], names=["x", "x"])
    with pa.ipc.new_file(tmp_path / "c.arrow", double.schema) as writer:
        writer.write_table(double)
    with pytest.raises(SourceError, match="a column twice"):
        counts(tmp_path / "*.arrow")


@pytest.mark.parametrize("harm", ["cut", "text", "empty", "stream", "gone", "folder"])
def test_a_file_that_is_none_is_refused_before(tmp_path: Path, harm: str) -> None:
    """The schema is read when the source is checked, and the end of the file with it."""
    path = write(tmp_path / "x.arrow", {"x": list(range(1000))}, rows=100)
    whole = path.read_bytes()
    path.unlink()
    if harm == "stream":
        stream(path, pa.table({"x": [1]}))
    elif harm == "folder":
        path.mkdir()
    elif harm != "gone":
        made = {"cut": whole[: len(whole) // 2], "text": b"x\nCANARY\n", "empty": b""}[harm]
        path.write_bytes(made)
    with pytest.raises(SourceError, match=r"cannot be opened|there is no file") as caught:
        DuckDBBackend(str(path), "arrow").check(X, BATCH)
    assert "CANARY" not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_a_file_that_is_broken_inside_fails_without_a_word_of_it(tmp_path: Path) -> None:
    """Its schema is whole, so that only the count finds out; what Arrow says of it is dropped."""
    path = write(tmp_path / "x.arrow", {"x": [424242] * 5000}, rows=1000, compression="zstd")
    raw = bytearray(path.read_bytes())
    frame = raw.index(b"\x28\xb5\x2f\xfd")
    raw[frame : frame + 4] = b"\0\0\0\0"
    path.write_bytes(raw)
    backend = DuckDBBackend(str(path), "arrow")
    backend.check(X, BATCH)
    with pytest.raises(SourceError, match="could not be read") as caught:
        backend.answer(X, BATCH)
    assert caught.value.__suppress_context__
    assert "424242" not in str(caught.value)
    assert "zstd" not in str(caught.value).lower()
    path.write_bytes(write(tmp_path / "y.arrow", {"x": [1]}).read_bytes())
    assert backend.answer(X, BATCH).counts.tolist() == [1]


def test_a_file_is_streamed(tmp_path: Path) -> None:
    """Of a file of many batches one is in memory, and what is handed over is bounded too."""
    rows = 8 * arrow.ROWS
    columns = {"x": pa.array(range(rows)), "y": pa.array(range(rows))}
    schema = pa.schema([("x", pa.int64())])
    for name, size, most in (("many", arrow.ROWS, 3), ("one", rows, 17)):
        path = write(tmp_path / f"{name}.arrow", columns, rows=size)
        before = pa.total_allocated_bytes()
        reader = pa.RecordBatchReader.from_stream(arrow.ArrowStream((str(path),), schema))
        assert reader.read_next_batch().num_rows == arrow.ROWS
        assert 0 < pa.total_allocated_bytes() - before < most * 8 * arrow.ROWS
        del reader


CONFIGURATION = """\
store: {path: s.db}
privacy: {unit: u, caps: {batch: 1, lifetime: 9}}
sources: {s: {path: data/*.feather, batches: files, settle: 0s}}
releases:
  r: {kind: quantiles, source: s, column: x, quantiles: median, resolution: 1, bounds: [0, 9],
      epsilon: 0.5, sinks: [out]}
sinks: {out: {kind: jsonl, path: out.jsonl}}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "config.yaml").write_text(CONFIGURATION)
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_file_is_released(home: Path) -> None:
    """The format is told by the name of the file."""
    for name in ("one", "two"):
        write(home / "data" / f"{name}.feather", {"x": list(range(9))})
    result = CliRunner().invoke(cli, ["run", "--once"])
    close()
    assert result.exit_code == 0, result.output
    assert len((home / "out.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "batches: files, settle: 0s",
            "engine: {kind: spark}, batches: files",
            "spark reads Parquet",
        ),
        (
            "epsilon: 0.5,",
            "epsilon: 0.5, prior: {table: {path: t.arrow, key: k, columns: [a]}},",
            "not read from Arrow",
        ),
    ],
)
def test_where_arrow_is_not_read_it_is_refused(home: Path, old: str, new: str, words: str) -> None:
    """At its line."""
    path = home / "config.yaml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ConfigurationError, match=r"config\.yaml:\d+") as caught:
        load(path, {})
    assert words in str(caught.value)


@pytest.mark.long
def test_arrow_is_imported_where_it_is_used() -> None:
    """Lazily: whoever has no Arrow files, and no notebook, needs none of it."""
    users = set()
    for path in Path(streamdp.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text())
        named = {
            alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names
        }
        if "pyarrow" in {name.split(".")[0] for name in named}:
            users.add(path.name)
            at_once = [n for n in tree.body if isinstance(n, ast.Import)]
            assert "pyarrow" not in {alias.name for n in at_once for alias in n.names}, path
    assert users == {
        *("arrow.py", "delta.py", "iceberg.py", "lines.py", "records.py"),
        *("__init__.py", "lakes.py", "parquet.py", "storage.py", "table.py"),
    }
