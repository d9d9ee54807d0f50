"""Schemas of Parquet files are read as Arrow reads them, of several writers, and without Arrow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamdp.backends.duckdb.parquet import NO_FOOTER, read_footer

TYPES = {
    **{str(each): each for each in (pa.int8(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64())},
    **{str(each): each for each in (pa.uint64(), pa.float16(), pa.float32(), pa.float64())},
    **{str(each): each for each in (pa.string(), pa.binary(), pa.binary(5), pa.date32())},
    **{f"moment {unit}": pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")},
    **{f"moment {unit} of UTC": pa.timestamp(unit, "UTC") for unit in ("ms", "us")},
    "time ms": pa.time32("ms"),
    "time us": pa.time64("us"),
    "9, 2": pa.decimal128(9, 2),
    "38, 3": pa.decimal128(38, 3),
    "60, 3": pa.decimal256(60, 3),
    "null": pa.null(),
    "bool": pa.bool_(),
    "uuid": pa.uuid(),
    "json": pa.json_(),
    "list": pa.list_(pa.int32()),
    "map": pa.map_(pa.string(), pa.int32()),
    "group": pa.struct([("a", pa.int32()), ("b.c", pa.struct([("z", pa.string())]))]),
    "a.b": pa.int32(),
    "naïve": pa.string(),
}
DUCKDB = (
    *("TINYINT", "USMALLINT", "INTEGER", "UBIGINT", "HUGEINT", "FLOAT", "DOUBLE", "VARCHAR"),
    *("BLOB", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ"),
    *("DECIMAL(4, 1)", "DECIMAL(18, 3)", "DECIMAL(38, 2)", "UUID", "BOOLEAN", "INTEGER[]", "JSON"),
)
BATCHES = """
import sys
from pathlib import Path
from streamdp.config import load
from streamdp.daemon.runtime import SystemClock
from streamdp.daemon.runtime import runtime
from streamdp.privacy.draws import OperatingSystemEntropy

done = []
with runtime(
    load(Path("config.yaml")), OperatingSystemEntropy(), SystemClock(), lambda event, **_: None,
    progress=lambda *_: done.append(1),
) as running:
    running.runner.round(running.jobs.values())
print(len(done) > 3, sorted({name.split(".")[0] for name in sys.modules} & {"pyarrow", "scipy"}))
"""


def of_arrow(path: Path) -> tuple[list[str], dict[str, tuple[Any, ...]]]:
    schema = pq.read_metadata(path).schema
    columns = [schema.column(place) for place in range(len(schema))]
    tops = [each for each in columns if each.path == each.name and not each.max_repetition_level]
    leaves: dict[str, tuple[Any, ...]] = {}
    for each in tops:
        logical = each.logical_type.type
        digits = (each.precision, each.scale) if logical == "DECIMAL" else (0, 0)
        said = str(each.logical_type).partition(", is_from")[0].strip("()")
        words = said if logical in ("INT", "TIME", "TIMESTAMP") else ""
        length = each.length if each.physical_type == "FIXED_LEN_BYTE_ARRAY" else 0
        leaves[each.name] = (each.physical_type, logical, words, *digits, length)
    names = (each.path if each in tops else each.path.split(".")[0] for each in columns)
    return list(dict.fromkeys(names)), leaves


def of_streamdp(path: Path) -> tuple[list[str], dict[str, tuple[Any, ...]]]:
    with path.open("rb") as file:
        schema = read_footer(file, str(path))
    leaves = {}
    for name, each in schema.leaves.items():
        words = each.described.strip("()") if each.logical in ("INT", "TIME", "TIMESTAMP") else ""
        digits = (each.precision, each.scale)
        leaves[name] = (each.physical, each.logical, words, *digits, each.length)
    return list(schema.names), leaves


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("version", ["1.0", "2.4", "2.6"])
def test_a_schema_is_what_arrow_reads(version: Any, old: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({name: pa.array([None, None], each) for name, each in TYPES.items()})
    pq.write_table(
        table,
        path,
        version=version,
        use_deprecated_int96_timestamps=old,
        store_decimal_as_integer=old,
    )
    assert len(of_arrow(path)[1]) == len(TYPES) - 3
    assert of_streamdp(path) == of_arrow(path)


@pytest.mark.parametrize("version", ["V1", "V2"])
def test_files_of_duckdb_have_the_schema_that_arrow_reads(version: str, tmp_path: Path) -> None:
    """It writes the old names of types, and new ones beside few."""
    path = tmp_path / "a.parquet"
    columns = ", ".join(f"CAST(NULL AS {each}) AS c{at}" for at, each in enumerate(DUCKDB))
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT {columns}) TO '{path}' (FORMAT parquet, PARQUET_VERSION {version})"
        )
    assert of_streamdp(path) == of_arrow(path)


def test_a_file_that_is_cut_anywhere_has_no_schema(tmp_path: Path) -> None:
    path, cut = tmp_path / "a.parquet", tmp_path / "cut.parquet"
    pq.write_table(pa.table({"x": [1]}), path)
    whole = path.read_bytes()
    length = int.from_bytes(whole[-8:-4], "little")
    for kept in range(20):
        footer = whole[-8 - length : -8][:kept]
        cut.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
        with pytest.raises(NO_FOOTER):
            of_streamdp(cut)
    for end in (0, 7, 11, len(whole) - 1):
        cut.write_bytes(whole[:end])
        with pytest.raises(NO_FOOTER):
            of_streamdp(cut)


def test_quantiles_of_parquet_files_are_released_without_arrow_and_scipy(tmp_path: Path) -> None:
    """They would take 50 MB of the 140 MB of a daemon."""
    text = (Path(__file__).parents[2] / "config.yaml").read_text()
    (tmp_path / "config.yaml").write_text(text.replace("end: 2014-01-01", "end: 2013-01-06"))
    ran = subprocess.run(
        [sys.executable, "-c", BATCHES], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert ran.stdout.split("\n")[-2] == "True []"
