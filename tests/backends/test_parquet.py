"""Parquet files: which reader reads which is public, and what readers differ about is refused."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.backends.duckdb.parquet import LONGEST, Parquet
from streamdp.backends.limits import Limits
from streamdp.backends.sql.relation import Relation
from streamdp.errors import SourceError
from streamdp.sections.expressions import expression
from streamdp.types import Batch, CellQuery, Grid, UnitBound
from tests.worlds import parts

BATCH = Batch("s", "b")
GRID = Grid(Fraction(1), -(2**40), 2**40)
X = CellQuery("x", GRID)


def texts(*raw: bytes) -> Any:
    """Texts by their bytes: no Python string stands for some of these."""
    return pa.array(raw, pa.binary()).view(pa.string())


def write(path: Path, **columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def counts(pattern: Path, query: CellQuery = X) -> list[int]:
    """Records of each group of a question that was found to be askable."""
    backend = DuckDBBackend(str(pattern), "parquet")
    backend.check(query, BATCH)
    return [int(part.counts.sum()) for part in parts(backend.answer(query, BATCH))]


def refused(pattern: Path, words: str, query: CellQuery = X) -> None:
    with pytest.raises(SourceError, match=words):
        DuckDBBackend(str(pattern), "parquet").check(query, BATCH)


def formerly(self: Parquet, connection: Any) -> tuple[str, list[str]]:
    """DuckDB's reader, left to itself: it types folders and casts columns by all files."""
    paths = ", ".join(f"'{path}'" for path in self.files)
    return f"FROM read_parquet([{paths}], union_by_name = true)", []


def test_a_folder_is_a_text_whatever_the_others_are_called(tmp_path: Path) -> None:
    """DuckDB's types of folders follow from all of them: one more changes what the others say."""
    by = CellQuery("x", GRID, by=("g",), groups=(("2024-1-2",), ("-0",), (" 5",)))
    for folder in ("2024-1-2", "-0", "%205"):
        write(tmp_path / f"g={folder}" / "a.parquet", x=[1, 2])
        write(tmp_path / "one" / f"g={folder}" / "a.parquet", x=[1, 2])
    before = counts(tmp_path / "g=*" / "*.parquet", by)
    assert before == [2, 2, 2]
    only = CellQuery("x", GRID, by=("g",), groups=(("2024-1-2",),))
    alone = tmp_path / "g=2024-1-2" / "*.parquet"
    with mock.patch.object(Parquet, "select", formerly):
        assert counts(alone, only) == [0], "one folder alone is read as a date"
    assert counts(alone, only) == [2]
    write(tmp_path / "g=x" / "a.parquet", x=[1])
    write(tmp_path / "g=__HIVE_DEFAULT_PARTITION__" / "a.parquet", x=[1])
    assert counts(tmp_path / "g=*" / "*.parquet", by) == before


def test_a_column_that_a_folder_and_a_file_name_is_refused(tmp_path: Path) -> None:
    """Either may be meant. Where nobody names it, nothing is."""
    write(tmp_path / "g=a" / "a.parquet", x=[1, 2], g=["a", "b"])
    by = CellQuery("x", GRID, by=("g",), groups=(("a",),))
    refused(tmp_path / "g=*" / "*.parquet", "holds column 'g' itself", by)
    assert counts(tmp_path / "g=*" / "*.parquet") == [2]
    write(tmp_path / "h=a" / "a.parquet", x=[1, 2])
    write(tmp_path / "b.parquet", x=[1, 2])
    by = CellQuery("x", GRID, by=("h",), groups=(("a",),))
    refused(tmp_path / "**" / "*.parquet", "is in no folder h=", by)


MICRO, NANO = pa.array([1], pa.timestamp("us")), pa.array([1], pa.timestamp("ns"))
DIFFERENT: list[tuple[Any, Any]] = [
    (MICRO, NANO),
    (pa.array([1], pa.date32()), MICRO),
    (pa.array([1]), pa.array([1]).cast(pa.decimal128(38, 18))),
    (texts(b"a"), pa.array([b"a"])),
    (pa.array([True]), pa.array([1])),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=lambda each: str(each.type))
def test_files_whose_types_differ_are_refused(tmp_path: Path, one: Any, other: Any) -> None:
    """The reader would cast them after the charge, and one record could fail the cast."""
    write(tmp_path / "a.parquet", x=[1], v=one)
    write(tmp_path / "b.parquet", x=[1], v=other)
    where = CellQuery("x", GRID, where="v IS NOT NULL")
    refused(tmp_path / "*.parquet", r"b\.parquet: column 'v' .* in .*a\.parquet", where)
    assert counts(tmp_path / "*.parquet") == [2]


def test_numbers_of_different_widths_are_one_type_but_as_units(tmp_path: Path) -> None:
    """No number fails to become a wider one; two units may become one."""
    write(tmp_path / "a.parquet", x=pa.array([1], pa.int8()))
    write(tmp_path / "b.parquet", x=pa.array([1.5, 2.5]))
    write(tmp_path / "c.parquet", x=pa.nulls(3))
    write(tmp_path / "d.parquet", x=pa.array([2**40 - 1, 2**63], pa.uint64()))
    assert counts(tmp_path / "*.parquet") == [5]
    unit = CellQuery("x", GRID, bound=UnitBound("x", 1))
    refused(tmp_path / "*.parquet", r"column 'x' of this file is", unit)


def test_a_file_without_a_column_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", x=[1], v=[1])
    write(tmp_path / "b.parquet", v=[1])
    refused(tmp_path / "*.parquet", r"b\.parquet: this file has no column 'x'")


UNREAD: dict[str, Any] = {
    "list": pa.array([[1]]),
    "struct": pa.array([{"a": 1}]),
    "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    "time of day": pa.array([1], pa.time64("us")),
    "digits": pa.array([1]).cast(pa.decimal256(60, 2)),
}


@pytest.mark.parametrize("kind", UNREAD)
def test_types_that_no_reader_reads_totally_cost_nothing_unless_named(
    tmp_path: Path, kind: str
) -> None:
    write(tmp_path / "a.parquet", x=[1], v=UNREAD[kind], g=texts(b"\xff"))
    assert counts(tmp_path / "*.parquet") == [1]
    bounded = CellQuery("x", GRID, bound=UnitBound("g", 1), where="g IS NULL")
    assert counts(tmp_path / "*.parquet", bounded) == [0]
    refused(tmp_path / "*.parquet", "'v' .* not read", CellQuery("x", GRID, where="v IS NOT NULL"))


def test_texts_that_are_no_utf_8_make_no_unit_of_two(tmp_path: Path) -> None:
    """DuckDB reads both as one text, and a bound would keep records of one or of the other."""
    units = [b"a?"] * 2 + [b"a\xff"] * 2 + [b"a\xfe"] * 2 + [b"u" * (LONGEST + 1)] * 2
    write(tmp_path / "a.parquet", x=list(range(8)), u=texts(*units))
    bounded = CellQuery("x", GRID, bound=UnitBound("u", 1))
    assert counts(tmp_path / "*.parquet", bounded) == [1]


@pytest.mark.parametrize("beside", ["duration", "uuid", "json", "decimal", "integer"])
def test_a_text_that_is_no_utf_8_changes_no_record_beside_it(tmp_path: Path, beside: str) -> None:
    """A reader that stands in where another fails reads some types otherwise, or not at all."""
    storage = pa.array([b"0123456789abcdef"] * 50, pa.binary(16))
    columns: dict[str, Any] = {
        "duration": pa.array(range(50), pa.int64()).view(pa.duration("us")),
        "uuid": pa.ExtensionArray.from_storage(pa.uuid(), storage),
        "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}"] * 50)),
        "decimal": pa.array(range(50)).cast(pa.decimal128(38, 10)),
        "integer": pa.array(range(50)),
    }
    value = columns[beside]
    numeric = beside not in ("uuid", "json")
    query = CellQuery("v", GRID, where="g <> 'z'") if numeric else X
    if not numeric:
        query = CellQuery("x", GRID, where="g <> 'z' AND v IS NOT NULL")
    answered = []
    for last in (b"a", b"\xff"):
        path = tmp_path / "a.parquet"
        write(path, x=list(range(50)), v=value, g=texts(*[b"a"] * 49, last))
        answered.append(counts(path, query))
    assert answered[0] == [50]
    assert answered[1][0] in (49, 50)
    with mock.patch.object(Parquet, "select", formerly), pytest.raises(SourceError):
        counts(path, query)


JULIAN = 2_440_588
"""The day of 1970-01-01 in a time of 96 bits."""


def write_int96(path: Path, times: Sequence[tuple[int, int]]) -> None:
    """A file of times of 96 bits, each its nanoseconds of a day and its day, as Spark writes them.

    They are written over zeros: PyArrow writes no time that is none.
    """
    rows = len(times)
    x, u = pa.array(range(rows)), pa.array([f"u{row}" for row in range(rows)])
    t = pa.array([0] * rows).view(pa.timestamp("us"))
    plain: dict[str, Any] = {"use_dictionary": False, "write_statistics": False}
    plain |= {"compression": "none", "use_deprecated_int96_timestamps": True}
    pq.write_table(pa.table({"x": x, "u": u, "t": t}), path, **plain)
    stored = b"".join(
        nanoseconds.to_bytes(8, "little") + day.to_bytes(4, "little") for nanoseconds, day in times
    )
    zeros = (bytes(8) + JULIAN.to_bytes(4, "little")) * rows
    written = path.read_bytes()
    assert written.count(zeros) == 1
    path.write_bytes(written.replace(zeros, stored))


NOON = 43_200 * 10**9
DAY = Batch("s", "b", 19_723 * 86_400, 19_724 * 86_400)
"""The first of January 2024."""


@pytest.mark.parametrize("bound", [None, UnitBound("u", 1)])
@pytest.mark.parametrize(
    "odd", [(0, 2**31 - 1), (0, 2**32 - 1), (1, JULIAN + 106_751_992), (2**64 - 1, 0), (0, 0)]
)
def test_a_time_of_96_bits_is_its_own_record_s(
    tmp_path: Path, bound: UnitBound | None, odd: tuple[int, int]
) -> None:
    """DuckDB ended a question at one out of range; beside a unit of text all were read as 1970."""
    query, path = CellQuery("x", GRID, bound=bound), tmp_path / "x.parquet"
    plain = [(NOON, JULIAN + 19_723)] * 3 + [(NOON, JULIAN + 19_724)]
    for times, wanted in ((plain, [0, 1, 2]), ([*plain, odd], [0, 1, 2])):
        write_int96(path, times)
        backend = DuckDBBackend(str(path), "parquet", "t")
        backend.check(query, DAY)
        assert backend.answer(query, DAY).cells.tolist() == wanted


def test_a_time_of_96_bits_is_in_one_window_whatever_is_asked(tmp_path: Path) -> None:
    """A record in two windows would be paid for twice: one has more nanoseconds than its day."""
    path = tmp_path / "x.parquet"
    write_int96(path, [(86_400 * 10**9, JULIAN + 19_722), (NOON, JULIAN + 19_723)])
    for bound in (None, UnitBound("u", 1)):
        backend = DuckDBBackend(str(path), "parquet", "t")
        query = CellQuery("x", GRID, bound=bound)
        backend.check(query, DAY)
        assert backend.answer(query, DAY).cells.tolist() == [0, 1]


def form_of_nanoseconds(path: Path, form: str, zone: str | None) -> DuckDBBackend:
    """Three times of nanoseconds, and the last there is, in a file or a table."""
    ticks = [0, -1, 1_704_067_200_123_456_789, 2**63 - 2]
    t = pa.array(ticks).view(pa.timestamp("ns", zone))
    table: Any = pa.table({"x": pa.array(range(4)), "t": t})
    if form == "parquet":
        pq.write_table(table, path)
        return DuckDBBackend(str(path), "parquet", "t")
    if form == "arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
        return DuckDBBackend(str(path), "arrow", "t")
    with duckdb.connect(str(path)) as connection:
        connection.register("arrow", table)
        connection.execute("CREATE TABLE r AS FROM arrow")
    return DuckDBBackend(str(path), "duckdb", "t", relation=Relation("r"))


NANOSECONDS = [
    *[(form, zone) for form in ("parquet", "arrow") for zone in (None, "UTC", "Europe/Berlin")],
    ("duckdb", None),
]


@pytest.mark.parametrize(("form", "zone"), NANOSECONDS)
@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("t < DATE '9999-12-31'", [0, 1, 2, 3]),
        ("t > '1600-01-01' AND t < TIMESTAMP '1970-01-01'", [1]),
        ("t + INTERVAL 1000 YEAR > TIMESTAMP '3000-01-01'", [2, 3]),
    ],
)
def test_times_of_nanoseconds_are_compared_with_all_others(
    tmp_path: Path, form: str, zone: str | None, where: str, wanted: list[int]
) -> None:
    """DuckDB casts the other to nanoseconds, which it may not have: no record counted."""
    backend = form_of_nanoseconds(tmp_path / "x", form, zone)
    query = CellQuery("x", GRID, where=expression(where))
    backend.check(query, BATCH)
    assert backend.answer(query, BATCH).cells.tolist() == wanted


@pytest.mark.parametrize(("form", "zone"), NANOSECONDS)
def test_windows_that_have_no_nanoseconds_end_no_question(
    tmp_path: Path, form: str, zone: str | None
) -> None:
    """Any record ended the question of a window before 1677, after its charge."""
    backend = form_of_nanoseconds(tmp_path / "x", form, zone)
    year = 366 * 86_400
    for start, end, wanted in (
        (-400 * year, -300 * year, []),
        (-400 * year, 0, [1]),
        (0, 400 * year, [0, 2]),
    ):
        batch = Batch("s", "b", start, end)
        backend.check(X, batch)
        assert backend.answer(X, batch).cells.tolist() == wanted


def test_a_unit_beside_every_type_is_read_by_one_reader(tmp_path: Path) -> None:
    """Types are the same whichever reader a file has."""
    storage = pa.array([b"0123456789abcdef"], pa.binary(16))
    columns: dict[str, Any] = {
        "i": pa.array([1], pa.int16()),
        "h": pa.array([1.0], pa.float16()),
        "b": pa.array([True]),
        "d": pa.array([1]).cast(pa.decimal128(30, 2)),
        "day": pa.array([1], pa.date32()),
        "us": MICRO,
        "zoned": pa.array([1], pa.timestamp("us", "UTC")),
        "ns": NANO,
        "duration": pa.array([1], pa.duration("s")),
        "uuid": pa.ExtensionArray.from_storage(pa.uuid(), storage),
        "bytes": pa.array([b"a"]),
        "dictionary": pa.array(["a"]).dictionary_encode(),
    }
    path = tmp_path / "a.parquet"
    write(path, x=[1], u=["a"], **columns)
    kinds = []
    for bound in (None, UnitBound("u", 1)):
        backend = DuckDBBackend(str(path), "parquet")
        where = " AND ".join(f"{name} IS NOT NULL" for name in columns)
        query = CellQuery("x", GRID, bound=bound, where=where)
        backend.check(query, BATCH)
        with backend.session():
            described = backend.describe(f"SELECT * FROM {backend.table(query, BATCH)}")
        kinds.append({name: described[name] for name in columns})
        assert int(parts(backend.answer(query, BATCH))[0].counts.sum()) == 1
    assert kinds[0] == kinds[1]


def damaged(whole: bytes, bit: int, step: int) -> list[bytes]:
    """The file with one bit of its footer turned, at each so many bytes."""
    start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    made = []
    for at in range(start, len(whole), step):
        each = bytearray(whole)
        each[at] ^= 1 << bit
        made.append(bytes(each))
    return made


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    "step", [23, pytest.param(1, marks=pytest.mark.long)], ids=["short", "long"]
)
@pytest.mark.parametrize("ask", [X, CellQuery("x", GRID, bound=UnitBound("u", 1))])
def test_a_footer_with_a_bit_turned_is_refused_before_a_charge_or_read(
    tmp_path: Path, ask: CellQuery, step: int
) -> None:
    """What it says is compared with the file, and one record is read."""
    path = tmp_path / "a.parquet"
    write(path, x=list(range(100)), u=[f"u{row}" for row in range(100)], at=[1] * 100)
    burnt, read = [], 0
    for bit in (0,) if step > 1 else (0, 3, 6):
        for number, each in enumerate(damaged(path.read_bytes(), bit, step)):
            broken = tmp_path / "broken.parquet"
            broken.write_bytes(each)
            backend = DuckDBBackend(str(broken), "parquet")
            try:
                backend.check(ask, BATCH)
            except SourceError:
                continue
            try:
                backend.answer(ask, BATCH)
                read += 1
            except SourceError:
                burnt.append((bit, number))
    assert len(burnt) <= (0 if step > 1 else 3), burnt
    assert read > 20 // step**0.5


def test_a_column_that_unpacks_to_more_than_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the footer, before anything of it is unpacked."""
    from streamdp.backends.duckdb import parquet

    monkeypatch.setattr(parquet, "LARGEST_CHUNK", 2**20)
    path = tmp_path / "a.parquet"
    write(path, x=list(range(100)), u=texts(*[b"a" * 2**20] * 2, *[b"b"] * 98))
    assert path.stat().st_size < 200_000
    assert counts(path) == [100]
    bounded = CellQuery("x", GRID, bound=UnitBound("u", 1))
    refused(path, "bytes in one row group", bounded)


HUGE: dict[str, tuple[CellQuery, int]] = {
    "value": (CellQuery("e", GRID, "length(u)"), 99),
    "unit": (CellQuery("x", GRID, bound=UnitBound("u", 1)), 99),
    "group": (CellQuery("x", GRID, by=("u",), groups=(("7",), ("8",))), 2),
    "condition": (CellQuery("x", GRID, where="u <> '7'"), 98),
}
"""Questions that name a text, and records that they count of 99 ordinary ones."""


def _counted(path: Path, size: int, query: CellQuery, memory: int) -> int | str:
    """Records that are counted beside one text of a size, or why the check refuses."""
    others = [b"%d" % number for number in range(99)]
    write(path, x=list(range(100)), u=texts(b"a" * size, *others))
    assert path.stat().st_size < size // 15
    backend = DuckDBBackend(str(path), "parquet", limits=Limits(memory=memory))
    try:
        backend.check(query, BATCH)
    except SourceError as error:
        return str(error)
    found = backend.answer(query, BATCH)
    each = found if isinstance(found, tuple) else (found,)
    return sum(int(one.counts.sum()) for one in each)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("role", HUGE)
def test_a_text_that_may_exhaust_memory_is_refused_and_a_smaller_one_costs_its_record(
    tmp_path: Path, role: str
) -> None:
    """A few kilobytes of a file may be more than the engine has; the footer says so."""
    path, (query, others) = tmp_path / "a.parquet", HUGE[role]
    memory = 400_000_000
    for size in (10_000_000, 45_000_000):
        assert _counted(path, size, query, memory) in (others, others + 1)
    assert "bytes in one row group" in str(_counted(path, 60_000_000, query, memory))


@pytest.mark.long
@pytest.mark.parametrize("role", HUGE)
def test_a_text_of_600_mb_costs_its_own_record_or_is_refused(tmp_path: Path, role: str) -> None:
    """Read with five gigabytes, refused with one, where a group by it burnt its charge."""
    path, (query, others) = tmp_path / "a.parquet", HUGE[role]
    assert _counted(path, 600_000_000, query, 5 * 10**9) in (others, others + 1)
    assert "bytes in one row group" in str(_counted(path, 600_000_000, query, 10**9))
