"""Delta tables: each record is counted once and paid from one budget, whatever is rewritten."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.backends.duckdb.lakes import LakeBackend
from streamdp.errors import SourceError
from streamdp.lakes.delta import files_of, identity
from streamdp.types import Batch, CellQuery, Grid
from tests.sources.test_one_budget import configured, ran, released, require_refused
from tests.sources.test_spellings import tried

pytest.importorskip("deltalake", reason="pip install 'streamdp[delta]'")

WINDOWS = "batches: {column: t, every: 1d, start: 2024-01-01, end: 2024-01-04}"
TABLE = f"path: table, format: delta, {WINDOWS}"
QUERY = CellQuery("x", Grid(Fraction(1), 0, 99))


def append(folder: Path, day: int, values: list[int], by: str | None = None) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    at = datetime(2024, 1, day, 5, tzinfo=UTC)
    rows: dict[str, Any] = {
        "t": pa.array([at + timedelta(seconds=n) for n, _ in enumerate(values)], TIMES),
        "x": pa.array(values, pa.int64()),
        "city": pa.array([f"c {value % 2}%/é" for value in values]),
    }
    partitions = None if by is None else [by]
    write_deltalake(str(folder), pa.table(rows), mode="append", partition_by=partitions)


def _times() -> Any:
    import pyarrow as pa

    return pa.timestamp("us", "UTC")


TIMES = _times()


def table(folder: Path) -> Any:
    from deltalake import DeltaTable

    return DeltaTable(str(folder))


def vacuum(folder: Path) -> None:
    table(folder).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


def compacted(folder: Path) -> None:
    """No file is left that was there."""
    table(folder).optimize.compact()
    vacuum(folder)


def counted(folder: Path) -> list[tuple[int, int]]:
    """Cells and counts, as the engine reads them."""
    backend = LakeBackend(str(folder), "parquet")
    batch = Batch("s", "b", files=files_of(str(folder)))
    backend.check(QUERY, batch)
    found = backend.answer(QUERY, batch)
    return list(zip(found.cells.tolist(), found.counts.tolist(), strict=True))


def kept(folder: Path) -> list[tuple[int, int]]:
    """The same, as the table's own library reads them."""
    column = table(folder).to_pyarrow_table().column("x").to_pylist()
    return [(value, column.count(value)) for value in sorted(set(column))]


STEPS: dict[str, Callable[[Path, int], object]] = {
    "append": lambda folder, n: append(folder, 1 + n % 3, [n % 90, (n * 7) % 90]),
    "compact": lambda folder, _: table(folder).optimize.compact(),
    "sort": lambda folder, _: table(folder).optimize.z_order(["x"]),
    "delete": lambda folder, n: table(folder).delete(f"x % 5 = {n % 5}"),
    "update": lambda folder, n: table(folder).update(
        predicate=f"x % 3 = {n % 3}", updates={"x": "x + 1"}
    ),
    "vacuum": lambda folder, _: vacuum(folder),
    "checkpoint": lambda folder, _: table(folder).create_checkpoint(),
}


@settings(max_examples=12, deadline=None)
@given(steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=2, max_size=6))
def test_each_record_of_the_newest_version_is_counted_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    """Whatever was done to the table; its folder has older files all the while."""
    folder = tmp_path_factory.mktemp("delta") / "a table"
    append(folder, 1, [50, 50, 91])
    for number, step in enumerate(steps):
        STEPS[step](folder, number)
        assert counted(folder) == kept(folder), steps[: number + 1]


def test_a_table_without_a_record_is_released_like_others(tmp_path: Path) -> None:
    """It has no file, which one record decides: the release and the log tell nothing of it."""
    for name in ("empty", "one"):
        home = tmp_path / name
        append(home / "table", 1, [50], by="city")
        if name == "empty":
            table(home / "table").delete()
            assert files_of(str(home / "table")) == ()
        configured(home, s=TABLE)
        ran(home)
    assert len(released(tmp_path / "empty")) == 3
    assert released(tmp_path / "empty") == released(tmp_path / "one")


def test_partitioned_tables_are_read(tmp_path: Path) -> None:
    """With values that are encoded in the names of folders."""
    append(tmp_path / "table", 1, [1, 2, 3, 4], by="city")
    assert counted(tmp_path / "table") == [(1, 1), (2, 1), (3, 1), (4, 1)]


def test_windows_of_a_rewritten_table_are_released_once(tmp_path: Path) -> None:
    """Compaction, vacuum and new versions make no batch again; new records are in new windows."""
    folder = tmp_path / "table"
    for day in (1, 2):
        append(folder, day, [50] * 10)
    configured(tmp_path, s=TABLE)
    ran(tmp_path)
    first = released(tmp_path)
    assert [key for _, key in first] == ["2024-01-01", "2024-01-02", "2024-01-03"]
    table(folder).optimize.compact()
    vacuum(folder)
    append(folder, 1, [60])
    ran(tmp_path)
    assert released(tmp_path) == first
    assert "can be read" in ran(tmp_path, "doctor")


PLACES = (
    *("path: table, format: delta", "path: ./table/, format: delta", "path: link, format: delta"),
    *("path: 'q/../table', format: delta", "path: '{HOME}/table', format: delta"),
    *("path: moved, format: delta", "path: 'table/*.parquet'", "path: 'link/*.parquet'"),
    *("path: 'tabl?/*.parquet'", "path: '**/*.parquet'", "path: 'table/**/*.parquet'"),
    *("path: '{HOME}/link/part*.parquet'", "path: 'moved/*.parquet'", "path: 'table/{FILE}'"),
    "path: 'link/{FILE}'",
)
REWRITES: dict[str, Callable[[Path], object]] = {
    "as it was": lambda folder: None,
    "compacted": lambda folder: table(folder).optimize.compact(),
    "compacted, older files gone": compacted,
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("rewrite", REWRITES)
def test_a_table_is_paid_from_one_budget_however_it_is_spelt(tmp_path: Path, rewrite: str) -> None:
    """By its folder, a link, its files; also when other files hold the records by then."""
    wrong = []
    for number, place in enumerate(PLACES):
        home = tmp_path / str(number)
        (home / "q").mkdir(parents=True)
        for day in (1, 2):
            append(home / "table", day, [50])
        os.symlink("table", home / "link")
        first = f"path: table, format: delta, {WINDOWS}"
        assert tried(home, {"first": first}).charged == {"first"}
        REWRITES[rewrite](home / "table")
        if "moved" in place:
            os.rename(home / "table", home / "moved")
        newest = files_of(str(home / ("moved" if "moved" in place else "table")))
        named = place.replace("{HOME}", str(home)).replace(
            "{FILE}", os.path.basename(newest[0].path)
        )
        second = f"{named}, {WINDOWS}"
        ways = ({"first": first, "second": second}, {"second": second})
        wrong += [place for way in ways if tried(home, way).charged != {"first"}]
    assert wrong == []


def test_partitions_are_those_of_the_log_however_many_there_are(tmp_path: Path) -> None:
    """One record makes a second partition, or the first: neither changes what others say."""
    folder = tmp_path / "table"
    by = CellQuery(
        "x", QUERY.grid, where="city <> 'z'", by=("city",), groups=(("c 0%/é",), ("c 1%/é",))
    )

    def answered() -> list[list[int]]:
        backend = LakeBackend(str(folder), "parquet", "t")
        files = files_of(str(folder))
        batch = Batch("s", "b", 1_704_067_200, 1_704_067_200 + 86_400, files=files)
        backend.check(by, batch)
        return [each.cells.tolist() for each in backend.answer(by, batch)]

    append(folder, 1, [50], by="city")
    assert answered() == [[50], []]
    append(folder, 1, [51], by="city")
    assert answered() == [[50], [51]]
    table(folder).delete()
    assert answered() == [[], []]


def test_a_folder_and_a_file_do_not_speak_for_the_log(tmp_path: Path) -> None:
    """A writer may call folders as it likes, and leave the column in the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path / "table"
    append(folder, 1, [50, 51], by="city")
    for file in files_of(str(folder)):
        inside = pq.read_table(file.path, partitioning=None)
        pq.write_table(inside.append_column("city", pa.array(["other"])), file.path)
    query = CellQuery("x", QUERY.grid, where="city = 'c 1%/é'")
    backend = LakeBackend(str(folder), "parquet", "t")
    files = files_of(str(folder))
    batch = Batch("s", "b", 1_704_067_200, 1_704_067_200 + 86_400, files=files)
    backend.check(query, batch)
    assert backend.answer(query, batch).cells.tolist() == [51]


def newest(folder: Path) -> Path:
    return max((folder / "_delta_log").glob("*.json"))


def edit(folder: Path, change: Callable[[dict[str, Any]], list[dict[str, Any]]]) -> None:
    """Put other actions in the place of each of the newest commit."""
    log = newest(folder)
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    lines = [json.dumps(made) for action in actions for made in change(action)]
    log.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("spelling", ["./{}", "{}/../{}", "%70{rest}", "another name"])
def test_a_file_that_the_log_names_twice_is_refused(tmp_path: Path, spelling: str) -> None:
    """Its records would count twice, at the price of once."""
    folder = tmp_path / "table"
    append(folder, 1, [50])
    (file,) = folder.glob("*.parquet")

    def again(action: dict[str, Any]) -> list[dict[str, Any]]:
        if "add" not in action:
            return [action]
        path = action["add"]["path"]
        other = spelling.format(path, path, rest=path[1:])
        return [action, {"add": action["add"] | {"path": other}}]

    if spelling == "another name":
        os.link(file, folder / spelling)
    edit(folder, again)
    with pytest.raises(SourceError, match="by two names"):
        counted(folder)


@pytest.mark.parametrize("linked", [True, False])
def test_a_file_of_another_folder_is_refused(tmp_path: Path, linked: bool) -> None:
    """Its records may be those of another table, which pays from another budget."""
    append(tmp_path / "table", 1, [50])
    append(tmp_path / "other", 1, [50])
    (mine,), (other,) = (list((tmp_path / each).glob("*.parquet")) for each in ("table", "other"))
    mine.unlink()
    if linked:
        mine.symlink_to(other)
    else:
        to = f"../other/{other.name}"
        edit(
            tmp_path / "table",
            lambda action: [{"add": action["add"] | {"path": to}} if "add" in action else action],
        )
    with pytest.raises(SourceError, match="not in its folder"):
        counted(tmp_path / "table")


STATISTICS: dict[str, str] = {
    "fewer records": '{"numRecords": 0, "minValues": {"x": 99}, "maxValues": {"x": 99}}',
    "another day": '{"numRecords": 2, "minValues": {"t": "1970-01-01T00:00:00Z"},'
    ' "maxValues": {"t": "1970-01-01T00:00:00Z"}}',
    "no day": '{"numRecords": 2, "minValues": {"t": "+300000-01-01T00:00:00Z"}}',
    "beyond the type": '{"numRecords": 2, "minValues": {"x": 1e999, "city": 7}}',
    "not a number": '{"numRecords": 2, "minValues": {"x": NaN}}',
    "no JSON": "{{{",
    "half a letter": '{"numRecords": 2, "minValues": {"city": "\\ud800"}}',
}
"""What a writer may note of a file: values of single records are in it."""


@pytest.mark.parametrize("statistics", STATISTICS)
@pytest.mark.parametrize("checkpoint", [False, True])
def test_statistics_of_the_log_neither_choose_records_nor_refuse_them(
    tmp_path: Path, statistics: str, checkpoint: bool
) -> None:
    """They may lie, and one record may make them what nobody can read."""
    folder = tmp_path / "table"
    append(folder, 1, [50, 60])

    def noted(action: dict[str, Any]) -> list[dict[str, Any]]:
        if "add" in action:
            action["add"]["stats"] = STATISTICS[statistics]
        return [action]

    edit(folder, noted)
    if checkpoint:
        table(folder).create_checkpoint()
    (file,) = files_of(str(folder))
    first = 1_704_067_200
    backend = LakeBackend(str(folder), "parquet", "t")
    batch = Batch("s", "b", first, first + 86_400, files=(file,))
    backend.check(QUERY, batch)
    assert backend.answer(QUERY, batch).cells.tolist() == [50, 60]


def test_checkpoints_and_logs_that_race_are_read_right_or_refused(tmp_path: Path) -> None:
    """Commits that a checkpoint has, a last checkpoint that is none, a hole, a commit cut short."""
    folder = tmp_path / "table"
    append(folder, 1, [50])
    append(folder, 2, [60])
    table(folder).create_checkpoint()
    append(folder, 3, [70])
    every = [(50, 1), (60, 1), (70, 1)]
    log = folder / "_delta_log"
    for commit in sorted(log.glob("*.json"))[:2]:
        commit.unlink()
    assert counted(folder) == every
    last = log / "_last_checkpoint"
    said = last.read_text()
    last.write_text("{")
    assert counted(folder) == every
    last.write_text(said.replace('"version":1', '"version":7'))
    with pytest.raises(SourceError, match="cannot be read"):
        counted(folder)
    last.unlink()
    (log / "00000000000000000003.json.tmp").write_text("{")
    assert counted(folder) == every
    cut = newest(folder).read_text()
    newest(folder).write_text(cut[:-9])
    with pytest.raises(SourceError, match="cannot be read"):
        counted(folder)
    newest(folder).write_text(cut)
    for checkpoint in log.glob("*.checkpoint.parquet"):
        checkpoint.unlink()
    with pytest.raises(SourceError, match="cannot be read"):
        counted(folder)


def test_a_table_that_is_rewritten_and_vacuumed_before_its_question_is_refused(
    tmp_path: Path,
) -> None:
    """The window stays at the files that were checked, and other files are not read instead."""
    folder = tmp_path / "table"
    append(folder, 1, [50])
    backend, batch = (
        LakeBackend(str(folder), "parquet"),
        Batch("s", "b", files=files_of(str(folder))),
    )
    backend.check(QUERY, batch)
    table(folder).update(updates={"x": "x + 1"})
    assert backend.answer(QUERY, batch).cells.tolist() == [50]
    vacuum(folder)
    with pytest.raises(SourceError, match="is gone"):
        backend.answer(QUERY, batch)


@pytest.mark.parametrize("feature", ["deletionVectors", "columnMapping", "typeWidening"])
def test_tables_whose_files_do_not_tell_their_records_are_refused(
    tmp_path: Path, feature: str
) -> None:
    """Records deleted by vectors are still in the files."""
    append(tmp_path / "table", 1, [1])
    log = next((tmp_path / "table" / "_delta_log").glob("*0.json"))
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": [feature],
        "writerFeatures": [feature],
    }
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    lines = [{"protocol": protocol} if "protocol" in each else each for each in actions]
    log.write_text("\n".join(json.dumps(each) for each in lines) + "\n")
    for ask in (files_of, identity):
        with pytest.raises(SourceError, match=f"{feature}|cannot be read"):
            ask(str(tmp_path / "table"))


INLINE = {"storageType": "i", "pathOrInlineDv": "", "sizeInBytes": 34, "cardinality": 1}
"""Record 3 of a file is deleted: a bitmap of one number, in the log itself."""

GONE = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 4,
    "sizeInBytes": 40,
    "cardinality": 6,
}
"""Six are, by a file that is not there."""


def _z85(content: bytes) -> str:
    """Text of a binary, four bytes to five letters."""
    letters = (
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    )
    found = ""
    for start in range(0, len(content), 4):
        number = int.from_bytes(content[start : start + 4], "big")
        found += "".join(letters[number // 85**place % 85] for place in range(4, -1, -1))
    return found


_NUMBERS = struct.pack("<IQIIIHHIHxx", 1681511377, 1, 0, 12346, 1, 0, 0, 16, 3)


@pytest.mark.parametrize("vector", [INLINE | {"pathOrInlineDv": _z85(_NUMBERS)}, GONE])
@pytest.mark.parametrize("checkpoint", [False, True])
def test_records_are_not_read_that_a_vector_deletes(
    tmp_path: Path, vector: dict[str, Any], checkpoint: bool
) -> None:
    """Even where the protocol of the table does not name the feature; once they are gone, it is."""
    folder = tmp_path / "table"
    append(folder, 1, list(range(10)))
    assert sum(count for _, count in counted(folder)) == 10

    def deleted(action: dict[str, Any]) -> list[dict[str, Any]]:
        if "add" in action:
            action["add"]["deletionVector"] = vector
        return [action]

    edit(folder, deleted)
    if checkpoint:
        append(folder, 2, [50])
        table(folder).create_checkpoint()
        min((folder / "_delta_log").glob("*.json")).unlink()
    with pytest.raises(SourceError, match="deletionVectors"):
        files_of(str(folder))
    table(folder).delete("true")
    append(folder, 3, [7])
    assert counted(folder) == [(7, 1)]


def test_a_table_that_is_gone_costs_nothing(tmp_path: Path) -> None:
    """No table, a file that was taken away, a log that is cut."""
    append(tmp_path / "table", 1, [1])
    configured(tmp_path, s=TABLE)
    (file,) = files_of(str(tmp_path / "table"))
    os.rename(file.path, tmp_path / "away")
    assert "not in its folder" in ran(tmp_path)
    os.rename(tmp_path / "away", file.path)
    os.rename(tmp_path / "table", tmp_path / "elsewhere")
    assert "there is no Delta table" in ran(tmp_path)
    os.rename(tmp_path / "elsewhere", tmp_path / "table")
    ran(tmp_path)
    assert len(released(tmp_path)) == 3


def test_configurations_of_tables_that_cannot_be_are_refused(tmp_path: Path) -> None:
    wrong = {
        "path: table, format: delta, batches: files": "cut by time",
        f"path: 's3://lake/table', format: delta, {WINDOWS}": "folder of this machine",
        f"path: 'tab*', format: delta, {WINDOWS}": "folder of this machine",
        f"path: table, format: delta, engine: {{kind: spark}}, {WINDOWS}": "of its catalog",
        f"path: table, format: delta, types: {{x: number}}, {WINDOWS}": "stand in delta files",
    }
    require_refused(tmp_path, wrong)
