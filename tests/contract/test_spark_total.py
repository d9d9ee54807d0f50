"""Reading is total in Spark too: hostile values of a type at once, in each part of a question."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from streamdp.backends.spark import SparkBackend
from streamdp.backends.sql.relation import Relation
from streamdp.errors import SourceError
from streamdp.types import CellQuery
from tests.contract.test_total import (
    APART,
    CASES,
    FILE,
    GRID,
    ROLES,
    WHERE,
    WINDOW,
    asked,
    pa,
    parquet,
    pq,
    total,
)

pytestmark = [
    pytest.mark.usefixtures("spark_session"),
    pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning"),
]
COLUMNS = {"value": "x", "unit": "u", "where": "u", "group": "g", "time": "t"}


def files(folder: Path) -> Iterator[tuple[str, str, str, int]]:
    """Role, type, file and number of hostile records beside four ordinary ones."""
    kinds: dict[Any, list[str]] = {}
    for name, (plain, _) in CASES.items():
        kinds.setdefault(plain.type, []).append(name)
    for kind, names in kinds.items():
        plain = CASES[names[0]][0]
        hostile = pa.concat_arrays([CASES[name][1] for name in names])
        for role in ROLES:
            place = folder / f"{len(list(folder.iterdir()))}"
            place.mkdir()
            try:
                yield role, str(kind), parquet(place, _table(plain, hostile, role)), len(hostile)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                continue


def _table(plain: Any, hostile: Any, role: str) -> Any:
    rows = 4 + len(hostile)
    noon = datetime(2024, 1, 1, 12)  # noqa: DTZ001
    columns = {"x": pa.array([7] * rows), "u": pa.array(["U"] * rows), "g": pa.array(["A"] * rows)}
    columns["t"] = pa.array([noon] * rows, pa.timestamp("us"))
    columns[COLUMNS[role]] = pa.concat_arrays([plain] * 4 + [hostile])
    return pa.table(columns)


@pytest.mark.long
def test_no_value_fails_a_question_of_spark_after_its_check(tmp_path: Path) -> None:
    """Every hostile value that Parquet holds, in every part of a question."""
    answered, failed = 0, []
    for role, kind, path, hostile in files(tmp_path):
        time = "t" if role == "time" else None
        backend = SparkBackend("local[2]", Relation(), time, pattern=path)
        query = asked(role, "text" if "string" in kind else kind, quote="`")
        batch = WINDOW if role == "time" else FILE
        try:
            backend.check(query, batch)
        except SourceError:
            continue
        try:
            count = total(backend.answer(query, batch))
        except SourceError as error:
            failed.append(f"{kind} as {role}: {error}")
            continue
        answered += 1
        if not count <= 4 + hostile:
            failed.append(f"{kind} as {role}: {count} of {4 + hostile}")
    assert failed == []
    assert answered > 30


def test_no_record_decides_whether_another_counts_in_spark(tmp_path: Path) -> None:
    """NaN stands outside the statistics of a Parquet file, by which Spark skips records."""
    path = str(tmp_path / "r.parquet")
    backend = SparkBackend("local[2]", Relation(), pattern=path)

    def counted(values: list[float | None], where: str | None) -> int:
        pq.write_table(pa.table({"x": pa.array(values, pa.float64(), from_pandas=False)}), path)
        return total(backend.answer(CellQuery("x", GRID, where=where), FILE))

    for where in (WHERE[0], None):
        one = counted([*APART[0], 7.0], where)
        assert counted([*APART[0], 9.0, 7.0], where) == one + 1


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Callable[[str, bytes | Any], SparkBackend]]:
    """Makes a table of the catalog over one file."""
    from pyspark.sql import SparkSession

    def made(form: str, content: bytes | Any) -> SparkBackend:
        file = tmp_path / f"a.{form}"
        if isinstance(content, bytes):
            file.write_bytes(content)
        else:
            pq.write_table(content, file)
        columns = "" if form == "parquet" else "(x INT, g STRING)"
        session = SparkSession.active()
        session.sql(f"CREATE TABLE kept {columns} USING {form} LOCATION '{tmp_path}'")
        return SparkBackend("local[2]", Relation("kept"))

    yield made
    SparkSession.active().sql("DROP TABLE IF EXISTS kept")


LINES = {
    "csv": b"7,a\n8,b\n" + b"," * 20_480 + b"\n",
    "json": b'{"x": 7}\n[{"x": 7}, {"x": 8}]\n',
}
"""A line of more fields than Spark takes by default; a line that Spark makes two records of."""


@pytest.mark.parametrize("form", LINES)
def test_a_table_of_text_is_refused_whatever_its_lines(
    stored: Callable[[str, bytes | Any], SparkBackend], form: str
) -> None:
    """One of them would end a question about all, or count twice."""
    backend = stored(form, LINES[form])
    with pytest.raises(SourceError, match=f"stored as {form.upper()}"):
        backend.check(CellQuery("x", GRID), FILE)


@pytest.mark.parametrize(("unit", "refused"), [("ms", True), ("us", False)])
def test_a_table_with_times_in_milliseconds_is_refused(
    stored: Callable[[str, bytes | Any], SparkBackend], unit: str, refused: bool
) -> None:
    """One that has no microseconds would end a question about all."""
    times = pa.array([0, 2**62]).view(pa.timestamp(unit))
    backend = stored("parquet", pa.table({"x": pa.array([7, 8]), "t": times}))
    query = CellQuery("t", GRID)
    if refused:
        with pytest.raises(SourceError, match="milliseconds"):
            backend.check(query, FILE)
    else:
        backend.check(query, FILE)
        assert total(backend.answer(query, FILE)) == 2
