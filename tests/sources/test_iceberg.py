"""Iceberg tables: each record is counted once and paid from one budget, whatever is rewritten."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.backends.duckdb.lakes import LakeBackend
from streamdp.errors import SourceError
from streamdp.lakes import iceberg
from streamdp.lakes.iceberg import files_of, identity
from streamdp.types import Batch, CellQuery, Grid
from tests.sources.test_one_budget import configured, ran, released, require_refused
from tests.sources.test_spellings import tried

pytest.importorskip("pyiceberg", reason="pip install 'streamdp[iceberg]'")
pytest.importorskip("sqlalchemy", reason="the catalog that writes tables: pip install sqlalchemy")
pytestmark = pytest.mark.filterwarnings("ignore:Delete operation did not match any records")

WINDOWS = "batches: {column: t, every: 1d, start: 2024-01-01, end: 2024-01-04}"
TABLE = f"path: lake/n/table, format: iceberg, {WINDOWS}"
QUERY = CellQuery("x", Grid(Fraction(1), 0, 99))
SCHEMA = pa.schema(
    {"t": pa.timestamp("us", "UTC"), "x": pa.int64(), "city": pa.string()},
)


def rows(day: int, values: list[int]) -> pa.Table:
    at = datetime(2024, 1, day, 5, tzinfo=UTC)
    columns = {
        "t": [at + timedelta(seconds=n) for n, _ in enumerate(values)],
        "x": values,
        "city": [f"c {value % 2}%/é" for value in values],
    }
    return pa.table(columns, schema=SCHEMA)


def made(home: Path, *days: tuple[int, list[int]], by: str | None = None) -> Any:
    """A table in the folder `lake/n/table`, with records of days."""
    from pyiceberg.catalog.sql import SqlCatalog
    from sqlalchemy import NullPool, create_engine

    home.mkdir(parents=True, exist_ok=True)
    place = {"uri": f"sqlite:///{home}/catalog.db", "warehouse": f"file://{home}/lake"}
    catalog = SqlCatalog("c", **place)
    catalog.engine.dispose()
    catalog.engine = create_engine(place["uri"], poolclass=NullPool)  # leaves nothing open
    catalog.create_namespace("n")
    table = catalog.create_table("n.table", SCHEMA)
    if by is not None:
        with table.update_spec() as change:
            change.add_identity(by)
    for day, values in days:
        table.append(rows(day, values))
    return table


def folder_of(table: Any) -> Path:
    return Path(table.location().removeprefix("file://"))


def backend(folder: Path) -> LakeBackend:
    return LakeBackend(str(folder), "parquet", lake=iceberg)


def counted(table: Any, query: CellQuery = QUERY) -> list[tuple[int, int]]:
    """Cells and counts, as the engine reads them."""
    engine, batch = backend(folder_of(table)), Batch("s", "b")
    engine.check(query, batch)
    found = engine.answer(query, batch)
    return list(zip(found.cells.tolist(), found.counts.tolist(), strict=True))


def kept(table: Any) -> list[tuple[int, int]]:
    """The same, as the table's own library reads them."""
    column = table.scan().to_arrow().column("x").to_pylist()
    return [(value, column.count(value)) for value in sorted(set(column))]


def newest(folder: Path) -> Path:
    return max(folder.glob("metadata/*.metadata.json"))


def compacted(table: Any) -> None:
    """No file is left that was there, and the older ones are gone from the folder."""
    before = {file.path for file in files_of(str(folder_of(table)))}
    table.overwrite(table.scan().to_arrow())
    for path in before:
        os.remove(path)


STEPS: dict[str, Callable[[Any, int], object]] = {
    "append": lambda table, n: table.append(rows(1 + n % 3, [n % 90, (n * 7) % 90])),
    "compact": lambda table, _: table.overwrite(table.scan().to_arrow()),
    "delete": lambda table, n: table.delete(f"x >= {10 * n % 60} and x < {10 * n % 60 + 30}"),
    "replace": lambda table, n: table.overwrite(rows(2, [3, n % 90]), "x < 50"),
    "roll back": lambda table, n: (
        table.manage_snapshots().set_current_snapshot(table.history()[0].snapshot_id).commit()
    ),
}


@settings(max_examples=10, deadline=None)
@given(steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=2, max_size=5))
def test_each_record_of_the_newest_version_is_counted_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    """Whatever was done to the table; its folder has older files all the while."""
    table = made(tmp_path_factory.mktemp("ice berg"), (1, [50, 50, 91]))
    for number, step in enumerate(steps):
        STEPS[step](table, number)
        assert counted(table) == kept(table), steps[: number + 1]


def test_a_table_without_a_record_is_released_like_others(tmp_path: Path) -> None:
    """It has no file, which one record decides: the release and the log tell nothing of it."""
    for name in ("empty", "one", "never"):
        table = made(tmp_path / name, *([(1, [50])] if name != "never" else []), by="city")
        if name == "empty":
            table.delete()
        assert (files_of(str(folder_of(table))) == ()) == (name != "one")
        configured(tmp_path / name, s=TABLE)
        ran(tmp_path / name)
        assert len(released(tmp_path / name)) == 3
        assert released(tmp_path / name) == released(tmp_path / "empty")


def test_columns_have_the_same_types_without_a_record(tmp_path: Path) -> None:
    """Else one record would decide whether the configuration is refused."""
    from decimal import Decimal

    table = made(tmp_path, (1, [50]))
    values: dict[str, pa.Array] = {
        "int": pa.array([1], pa.int32()),
        "float": pa.array([1], pa.float32()),
        "double": pa.array([1], pa.float64()),
        "boolean": pa.array([True]),
        "decimal": pa.array([Decimal("1.50")], pa.decimal128(12, 2)),
        "date": pa.array([19_000], pa.date32()),
        "local": pa.array([1], pa.timestamp("us")),
        "clock": pa.array([1], pa.time64("us")),
        "bytes": pa.array([b"a"]),
        "fixed": pa.array([b"abcd"], pa.binary(4)),
        "list": pa.array([[1, 2]]),
        "struct": pa.array([{"a": 1, "b": "c"}]),
        "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    }
    whole = rows(1, [50])
    for name, value in values.items():
        whole = whole.append_column(name, value)
    with table.update_schema() as change:
        change.union_by_name(whole.schema)
    table.overwrite(whole)
    unread = {"clock", "list", "struct", "map"}
    every = (*sorted(values.keys() - unread), "t", "city")
    named = CellQuery("x", QUERY.grid, by=every, groups=(every,))
    kinds = []
    for _ in range(2):
        engine = backend(folder_of(table))
        with engine.session():
            kinds.append(engine.describe(f"SELECT * FROM {engine.table(named, Batch('s', 'b'))}"))
            for name in unread:
                with pytest.raises(SourceError, match="not read"):
                    engine.table(CellQuery(name, QUERY.grid), Batch("s", "b"))
        table.delete()
    assert kinds[0] == kinds[1]
    assert len(kinds[0]) == len(values) + 3 - len(unread)


def test_values_of_partitions_are_those_in_the_files(tmp_path: Path) -> None:
    """Folders spell them otherwise: `c 1` stands as `c+1`."""
    table = made(tmp_path, (1, [1, 2, 3, 4]), by="city")
    wanted = CellQuery("x", Grid(Fraction(1), 0, 99), where="city = 'c 1%/é'")
    assert counted(table, wanted) == [(1, 1), (3, 1)]


def test_windows_of_a_rewritten_table_are_released_once(tmp_path: Path) -> None:
    """New versions make no batch again; records that are new are in new windows."""
    table = made(tmp_path, (1, [50] * 10), (2, [50] * 10))
    configured(tmp_path, s=TABLE)
    ran(tmp_path)
    first = released(tmp_path)
    assert [key for _, key in first] == ["2024-01-01", "2024-01-02", "2024-01-03"]
    compacted(table)
    table.append(rows(1, [60]))
    ran(tmp_path)
    assert released(tmp_path) == first
    assert "can be read" in ran(tmp_path, "doctor")


@pytest.mark.parametrize("there", [[], [50]])
def test_a_window_is_read_from_the_version_that_was_checked(
    tmp_path: Path, there: list[int]
) -> None:
    """An empty table too: what came after the check was checked by nobody."""
    table = made(tmp_path, *([(1, there)] if there else []))
    engine = backend(folder_of(table))
    batch = Batch("s", "b", 0, 2_000_000_000, files=files_of(str(folder_of(table))))
    engine.check(QUERY, batch)
    table.append(rows(1, [60]))
    table.update_schema().rename_column("x", "y").commit()
    assert engine.answer(QUERY, batch).cells.tolist() == there


PLACES = (
    *("path: lake/n/table, format: iceberg", "path: ./lake/n/table/, format: iceberg"),
    *("path: link, format: iceberg", "path: 'q/../lake/n/table', format: iceberg"),
    *("path: '{HOME}/lake/n/table', format: iceberg", "path: moved, format: iceberg"),
    *("path: 'lake/n/table/data/*.parquet'", "path: 'link/data/*.parquet'"),
    *("path: 'lake/n/tabl?/data/*.parquet'", "path: '**/*.parquet'"),
    *("path: 'moved/data/*.parquet'", "path: 'link/data/{FILE}'"),
    "path: lake/n/table, format: delta",
)
REWRITES: dict[str, Callable[[Any], object]] = {"as it was": lambda _: None, "compacted": compacted}


@pytest.mark.thinned(2)
@pytest.mark.parametrize("rewrite", REWRITES)
def test_a_table_is_paid_from_one_budget_however_it_is_spelt(tmp_path: Path, rewrite: str) -> None:
    """By its folder, a link, its files; also when other files hold the records by then."""
    wrong = []
    for number, place in enumerate(PLACES):
        home = tmp_path / str(number)
        table = made(home, (1, [50]), (2, [50]))
        (home / "q").mkdir()
        os.symlink("lake/n/table", home / "link")
        assert tried(home, {"first": TABLE}).charged == {"first"}
        REWRITES[rewrite](table)
        file = os.path.basename(files_of(str(folder_of(table)))[0].path)
        if "moved" in place:
            os.rename(folder_of(table), home / "moved")
        second = place.replace("{HOME}", str(home)).replace("{FILE}", file) + f", {WINDOWS}"
        ways = ({"first": TABLE, "second": second}, {"second": second})
        wrong += [place for way in ways if tried(home, way).charged != {"first"}]
    assert wrong == []


def test_a_registered_copy_of_the_metadata_is_the_same_table(tmp_path: Path) -> None:
    """Its UUID is read, and one that is not there is never made up."""
    table = made(tmp_path, (1, [50]))
    folder = folder_of(table)
    assert identity(str(folder)) == f"iceberg:{table.metadata.table_uuid}"
    said = json.loads(newest(folder).read_text())
    del said["table-uuid"]
    newest(folder).write_text(json.dumps(said))
    with pytest.raises(SourceError, match="no UUID"):
        identity(str(folder))


CHANGES: dict[str, Callable[[Any], object]] = {
    "renamed": lambda change: change.rename_column("x", "y"),
    "swapped": lambda change: change.rename_column("x", "y").rename_column("city", "x"),
    "dropped": lambda change: change.delete_column("city"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_files_whose_columns_have_other_names_by_now_are_refused(
    tmp_path: Path, change: str
) -> None:
    """The engine goes by names; once the files are written anew they are read."""
    table = made(tmp_path, (1, [50]))
    with table.update_schema() as schema:
        CHANGES[change](schema)
    with pytest.raises(SourceError, match=r"no column of the table today|no column 'x'"):
        counted(table)
    if change == "swapped":
        return
    table.overwrite(table.scan().to_arrow())
    column = "y" if change == "renamed" else "x"
    assert counted(table, CellQuery(column, QUERY.grid)) == [(50, 1)]


def test_a_column_that_comes_again_is_another(tmp_path: Path) -> None:
    """Files of before hold the dropped one under its name."""
    table = made(tmp_path, (1, [50]))
    from pyiceberg.types import LongType

    table.update_schema().delete_column("x").commit()
    table.update_schema().add_column("x", LongType()).commit()
    assert table.scan().to_arrow().column("x").to_pylist() == [None]
    with pytest.raises(SourceError, match="'x' of this file is no column of the table today"):
        counted(table)


def test_a_wider_type_and_a_further_column_are_read(tmp_path: Path) -> None:
    """A file without the further column is refused only where it is asked for."""
    from pyiceberg.types import LongType

    table = made(tmp_path, (1, [50]))
    table.update_schema().add_column("z", LongType()).commit()
    table.append(rows(2, [60]).append_column("z", pa.array([7], pa.int64())))
    assert counted(table) == kept(table)
    with pytest.raises(SourceError, match="has no column 'z'"):
        counted(table, CellQuery("z", QUERY.grid))


def third(table: Any, change: Callable[[dict[str, Any]], object]) -> None:
    """Make a table one of format version 3, and change its metadata."""
    path = newest(folder_of(table))
    said = json.loads(path.read_text())
    said |= {"format-version": 3, "next-row-id": 2}
    for snapshot in said["snapshots"]:
        snapshot |= {"first-row-id": 0, "added-rows": 2}
    change(said)
    path.write_text(json.dumps(said))


def test_values_that_no_file_has_are_not_read_as_nulls(tmp_path: Path) -> None:
    """Defaults of version 3, and partitions whose column the files leave out: refused if named."""
    table = made(tmp_path, (1, [50, 60]))
    further = {"id": 9, "name": "z", "required": False, "type": "long", "initial-default": 7}

    def default(said: dict[str, Any]) -> None:
        said["last-column-id"] = 9
        for schema in said["schemas"]:
            schema["fields"].append(further)

    third(table, default)
    assert counted(table) == [(50, 1), (60, 1)]
    for query in (CellQuery("z", QUERY.grid), CellQuery("x", QUERY.grid, where="z IS NULL")):
        with pytest.raises(SourceError, match="no column 'z'"):
            counted(table, query)


def test_a_column_that_only_partitions_have_is_refused_if_named(tmp_path: Path) -> None:
    """Tables that were taken over from Hive have such files; their values are in the metadata."""
    import pyarrow.parquet as pq

    table = made(tmp_path, (1, [50, 60]), by="city")
    for file in files_of(str(folder_of(table))):
        inside = pq.ParquetFile(file.path).read()
        pq.write_table(inside.drop_columns("city"), file.path)
    assert counted(table) == [(50, 1), (60, 1)]
    with pytest.raises(SourceError, match="no column 'city'"):
        counted(table, CellQuery("x", QUERY.grid, where="city IS NULL"))


@pytest.mark.parametrize(
    "transform", ["bucket[4]", "truncate[10]", "void", "identity", "hour", "unheard of", "several"]
)
def test_transforms_of_partitions_neither_choose_nor_change_records(
    tmp_path: Path, transform: str
) -> None:
    """Values are those in the files, whatever they are divided by; else the table is refused."""
    table = made(tmp_path, (1, [50, 60]))
    field = {"source-id": 2, "field-id": 1000, "name": "p", "transform": transform}
    if transform == "several":
        field = {**field, "source-ids": [2, 3], "transform": "bucket[4]"}
        del field["source-id"]

    def divided(said: dict[str, Any]) -> None:
        said["partition-specs"].append({"spec-id": 1, "fields": [field]})
        said |= {"default-spec-id": 1, "last-partition-id": 1000}

    third(table, divided)
    if transform == "several":
        with pytest.raises(SourceError, match="cannot be read"):
            counted(table)
    else:
        assert counted(table) == [(50, 1), (60, 1)]


def test_tables_with_delete_files_are_refused(tmp_path: Path) -> None:
    """Deleted records are still in the data files."""
    from pyiceberg.manifest import (
        DataFile,
        DataFileContent,
        ManifestContent,
        ManifestEntry,
        ManifestEntryStatus,
        ManifestWriterV2,
        write_manifest_list,
    )

    table = made(tmp_path, (1, [1, 2]))
    folder, snapshot = folder_of(table), table.current_snapshot()
    (data,) = snapshot.manifests(table.io)
    (entry,) = data.fetch_manifest_entry(table.io)

    class Deletes(ManifestWriterV2):
        def content(self) -> ManifestContent:
            return ManifestContent.DELETES

    file = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"{table.location()}/data/deleted.parquet",
        file_format=entry.data_file.file_format,
        partition=entry.data_file.partition,
        record_count=1,
        file_size_in_bytes=100,
    )
    added = ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED, snapshot_id=snapshot.snapshot_id, data_file=file
    )
    place = table.io.new_output(f"{table.location()}/metadata/deletes.avro")
    with Deletes(table.spec(), table.schema(), place, snapshot.snapshot_id, "null") as writer:
        writer.add_entry(added)
    deletes = writer.to_manifest_file()
    listed = table.io.new_output(f"{table.location()}/metadata/list.avro")
    with write_manifest_list(2, listed, snapshot.snapshot_id, None, 1, "null") as both:
        both.add_manifests([data, deletes])
    said = json.loads(newest(folder).read_text())
    said["snapshots"][-1]["manifest-list"] = f"{table.location()}/metadata/list.avro"
    newest(folder).write_text(json.dumps(said))
    with pytest.raises(SourceError, match="delete files"):
        files_of(str(folder))


def test_a_table_that_is_gone_costs_nothing(tmp_path: Path) -> None:
    """No table, a file that was taken away, manifests and metadata that are cut."""
    table = made(tmp_path, (1, [1]))
    configured(tmp_path, s=TABLE)
    folder = folder_of(table)
    (file,) = files_of(str(folder))
    cuts = {
        Path(file.path): "not in its folder",
        next(folder.glob("metadata/snap-*.avro")): "cannot be read",
        next(folder.glob("metadata/*-m0.avro")): "cannot be read",
    }
    for path, said in cuts.items():
        os.rename(path, tmp_path / "away")
        assert said in ran(tmp_path), path
        os.rename(tmp_path / "away", path)
    whole = newest(folder).read_text()
    newest(folder).write_text(whole[:100])
    assert "cannot be read" in ran(tmp_path)
    newest(folder).write_text(whole)
    os.rename(folder, tmp_path / "elsewhere")
    assert "there is no Iceberg table" in ran(tmp_path)
    os.rename(tmp_path / "elsewhere", folder)
    assert released(tmp_path) == []
    ran(tmp_path)
    assert len(released(tmp_path)) == 3


def test_columns_that_differ_in_capitals_only_are_refused(tmp_path: Path) -> None:
    """The engine takes one for the other."""
    from pyiceberg.types import LongType

    table = made(tmp_path)
    table.update_schema().add_column("X", LongType()).commit()
    for values in ([], [60]):
        if values:
            table.append(rows(1, values).append_column("X", pa.array([7], pa.int64())))
        with pytest.raises(SourceError, match="differ in capitals only"):
            counted(table)


@pytest.fixture(scope="module")
def whole_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(made(tmp_path_factory.mktemp("whole"), (1, [50])))


@settings(max_examples=60, deadline=None)
@given(where=st.floats(0, 1), byte=st.integers(0, 255), number=st.integers(0, 3))
def test_broken_metadata_is_refused_in_words(
    whole_table: Path, where: float, byte: int, number: int
) -> None:
    """A byte that is another, or the end of the file: nothing but the refusal comes out."""
    files = [newest(whole_table), *sorted(whole_table.glob("metadata/*.avro"))]
    path = files[number % len(files)]
    whole = path.read_bytes()
    at = int(where * (len(whole) - 1))
    changed = whole[:at] + (bytes([byte]) + whole[at + 1 :] if number % 2 else b"")
    path.write_bytes(changed)
    try:
        for ask in (files_of, identity, iceberg.schema_of):
            with contextlib.suppress(SourceError):
                ask(str(whole_table))
    finally:
        path.write_bytes(whole)


def test_the_newest_metadata_is_told_by_number_or_not_at_all(tmp_path: Path) -> None:
    """Without a catalog the names are v9 and v10; of two with one number neither is the newest."""
    table = made(tmp_path, (1, [50]), (2, [60]))
    folder = folder_of(table)
    named = sorted(folder.glob("metadata/*.metadata.json"))
    twin = named[-1].with_name(named[-1].name[:6] + "0-twin.metadata.json")
    shutil.copy(named[0], twin)
    with pytest.raises(SourceError, match="do not tell which is the newest"):
        files_of(str(folder))
    twin.unlink()
    for number, path in enumerate(named, start=11 - len(named)):
        path.rename(path.with_name(f"v{number}.metadata.json"))
    (folder / "metadata" / "version-hint.text").write_text("9")
    assert counted(table) == kept(table)
    (folder / "metadata" / "00011-other.metadata.json").write_text("{}")
    with pytest.raises(SourceError, match="do not tell which is the newest"):
        files_of(str(folder))


def test_configurations_of_tables_that_cannot_be_are_refused(tmp_path: Path) -> None:
    made(tmp_path, (1, [1]))
    wrong = {
        "path: lake/n/table, format: iceberg, batches: files": "cut by time",
        f"path: 's3://lake/table', format: iceberg, {WINDOWS}": "folder of this machine",
        f"path: 'lake/n/tab*', format: iceberg, {WINDOWS}": "folder of this machine",
        f"path: t, format: iceberg, engine: {{kind: spark}}, {WINDOWS}": "Iceberg tables of its",
        f"path: t, format: iceberg, types: {{x: number}}, {WINDOWS}": "stand in iceberg files",
        f"path: 'lake/n/table/data/*.parquet', {WINDOWS}": "of an Iceberg table",
    }
    require_refused(tmp_path, wrong)
