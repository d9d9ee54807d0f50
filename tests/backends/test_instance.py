"""One DuckDB for many backends: their records stay apart, and none is left without one."""

from __future__ import annotations

import gc
import multiprocessing
import weakref
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.backends.duckdb.instance import Instance, kept
from streamdp.backends.duckdb.records import backend_of_records
from streamdp.config import load
from streamdp.errors import SourceError
from streamdp.types import Batch, CellQuery, Grid
from streamdp.wiring import tasks

WHOLE = Batch("s", "b")
QUERY = CellQuery("a", Grid(Fraction(1), 0, 100))

CONFIG = """
store: {path: store.db}
privacy: {unit: order, caps: {batch: 9, lifetime: 9}}
sources:
  one: {path: one.parquet, batches: files}
  other: {path: other.parquet, batches: files}
  slim: {path: slim.parquet, batches: files, engine: {kind: duckdb, memory: 100 MB}}
releases:
  first: {kind: quantiles, source: one, column: a, quantiles: [0.5], resolution: 1,
          bounds: [0, 9], epsilon: 1, schedule: {every: 1d}}
  second: {kind: quantiles, source: one, column: b, quantiles: [0.5], resolution: 1,
           bounds: [0, 9], epsilon: 1, schedule: {every: 1d}}
  third: {kind: quantiles, source: other, column: a, quantiles: [0.5], resolution: 1,
          bounds: [0, 9], epsilon: 1, schedule: {every: 1d}}
  fourth: {kind: quantiles, source: slim, column: a, quantiles: [0.5], resolution: 1,
           bounds: [0, 9], epsilon: 1, schedule: {every: 1d}}
"""


def _file(folder: Path, value: int) -> str:
    path = str(folder / f"{value}.parquet")
    duckdb.execute(f"COPY (SELECT {value} AS a FROM range({value})) TO '{path}' (FORMAT parquet)")
    return path


def _count(backend: DuckDBBackend) -> int:
    backend.check(QUERY, WHOLE)
    return int(backend.answer(QUERY, WHOLE).counts.sum())


def test_each_backend_reads_its_own_records(tmp_path: Path) -> None:
    """Questions in turns never see the view of another."""
    shared = Instance()
    few, many = (
        DuckDBBackend(_file(tmp_path, size), "parquet", instance=shared) for size in (3, 7)
    )
    assert [_count(few), _count(many), _count(few)] == [3, 7, 3]


def test_two_databases_are_read_in_turns(tmp_path: Path) -> None:
    """Both are attached under one name, each for its question."""
    from streamdp.backends.sql.relation import Relation

    shared, found = Instance(), []
    for size in (2, 5):
        path = str(tmp_path / f"{size}.duckdb")
        with duckdb.connect(path) as made:
            made.execute(f"CREATE TABLE t AS SELECT 1 AS a FROM range({size})")
        found.append(DuckDBBackend(path, "duckdb", relation=Relation("t"), instance=shared))
    assert [_count(each) for each in found + found] == [2, 5, 2, 5]


def test_a_dead_instance_is_replaced(tmp_path: Path) -> None:
    """After an internal error an instance refuses all; after the failure all find a new one."""
    shared = Instance()
    first, second = (
        DuckDBBackend(_file(tmp_path, size), "parquet", instance=shared) for size in (3, 7)
    )
    assert (_count(first), _count(second)) == (3, 7)
    for connection in (shared._first, first._connection, second._connection):
        assert connection is not None
        connection.close()
    with pytest.raises(SourceError):
        first.answer(QUERY, WHOLE)
    assert (_count(second), _count(first), _count(second)) == (7, 3, 7)


def test_what_is_closed_is_started_anew(tmp_path: Path) -> None:
    """Closing ends connection and instance at once; a later question finds new ones."""
    shared = Instance()
    first, second = (
        DuckDBBackend(_file(tmp_path, size), "parquet", instance=shared) for size in (3, 7)
    )
    assert (_count(first), _count(second)) == (3, 7)
    for each in (first, second):
        each.close()
    assert shared._first is None
    assert first._connection is second._connection is None
    assert (_count(first), _count(second)) == (3, 7)


def test_jobs_share_what_reads_their_source(tmp_path: Path) -> None:
    """One backend a source; sources of the same limits have one instance, others their own."""
    (tmp_path / "config.yaml").write_text(CONFIG)
    found = {name: task.backend for name, task in tasks(load(tmp_path / "config.yaml")).items()}
    assert found["first"] is found["second"]
    assert found["first"] is not found["third"]
    assert isinstance(found["first"], DuckDBBackend)
    assert isinstance(found["third"], DuckDBBackend)
    assert isinstance(found["fourth"], DuckDBBackend)
    assert found["first"].instance is found["third"].instance is not None
    assert found["fourth"].instance is not found["third"].instance


def _counted(size: int) -> int:
    backend = backend_of_records(np.ones(size), "a")
    backend.check(QUERY, WHOLE)
    return int(backend.answer(QUERY, WHOLE).counts.sum())


def test_records_in_memory_are_read_by_one_instance_a_thread_and_process() -> None:
    """In turns and side by side each sees its own; a forked process starts an instance anew."""
    assert [_counted(3), _counted(7), _counted(3)] == [3, 7, 3]
    few, many = backend_of_records(np.ones(3), "a"), backend_of_records(np.ones(7), "a")
    for each in (few, many):
        each.check(QUERY, WHOLE)
    assert [int(each.answer(QUERY, WHOLE).counts.sum()) for each in (many, few)] == [7, 3]
    assert kept() is kept()
    with ThreadPoolExecutor(1) as other:
        assert other.submit(kept).result() is not kept()
        assert other.submit(_counted, 5).result() == 5
    here = id(kept())
    child = multiprocessing.get_context("fork").Process(target=_forked, args=(here,))
    child.start()
    child.join(600)
    assert child.exitcode == 0


def _forked(before: int) -> None:
    assert id(kept()) != before
    assert _counted(4) == 4


def test_records_are_gone_with_their_backend() -> None:
    """The instance stays, but holds none of them."""
    values = pa.table({"a": np.ones(9)})
    seen = weakref.ref(values)
    backend = backend_of_records(values, "a")
    backend.check(QUERY, WHOLE)
    assert backend.answer(QUERY, WHOLE).counts.sum() == 9
    del backend, values
    gc.collect()
    assert seen() is None
