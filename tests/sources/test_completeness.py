"""When a batch is complete: markers, partitions, late records; and files of every kind."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from streamdp import wiring
from streamdp.config import load
from streamdp.engine.job import EngineContext, Job
from streamdp.engine.runner import Runner
from streamdp.errors import ConfigurationError, SourceError
from streamdp.sources.files import PartitionSource
from streamdp.sources.windows import DAY, WindowSource
from streamdp.store.sqlite import SqliteStore
from tests.worlds import EventLog, HandClock, ListSink, ReplayedEntropy

CONFIGURATION = """\
store: {path: s.db}
privacy: {unit: trip, caps: {batch: 1, lifetime: 100}}
sources:
  trips: {PLACE}
releases:
  minutes:
    {kind: quantiles, source: trips, column: x, quantiles: median, resolution: 1,
     bounds: [0, 100], epsilon: 0.5, sinks: [kept]}
sinks:
  kept: {kind: stdout}
"""
DAYS = "batches: {column: t, every: 1d, start: 2024-01-01, end: 2024-01-04, lateness: 1h}"
TYPES = "types: {t: timestamp, x: number}"
PARTS = "batches: {partition: day, marker: 'done-{key}'}"
CHANCE = ReplayedEntropy()
AFTER = HandClock(1_704_067_200 + 40 * DAY)


def job_of(folder: Path, place: str) -> Job:
    (folder / "config.yaml").write_text(CONFIGURATION.replace("{PLACE}", "{" + place + "}"))
    return wiring.jobs(load(folder / "config.yaml"))["minutes"]


def worked(folder: Path, job: Job) -> tuple[list[str], list[str]]:
    """Keys released by one round, and what it complained of."""
    store, sink = SqliteStore.open(folder / "s.db", AFTER.now()), ListSink("kept")
    wiring.declare(load(folder / "config.yaml"), store, AFTER.now(), EventLog())
    runner = Runner(EngineContext(store, CHANCE, AFTER, EventLog()), {"kept": sink})
    outcomes = runner.round([job])
    store.close()
    return [each.batch for each in sink.taken], [error.what for error in outcomes.errors]


def part(path: Path, values: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    duckdb.execute(f"COPY (SELECT unnest({values}) AS x) TO '{path}' (FORMAT parquet)")


def test_a_partition_is_a_batch_when_its_marker_is_there(tmp_path: Path) -> None:
    """Parts are read together; a folder without a marker waits; one that grew is refused."""
    for name, values in (("1/a", "[1, 2]"), ("1/b", "[3]"), ("2/a", "[4]")):
        part(tmp_path / f"data/day={name}.parquet", values)
    job = job_of(tmp_path, f"path: data/day=*/*.parquet, {PARTS}")
    assert worked(tmp_path, job) == ([], [])
    (tmp_path / "done-1").touch()
    assert worked(tmp_path, job) == (["1"], [])
    (batch,) = job.source.batches(0)
    counts = job.backend.answer(job.kind.plan(job.kind.init(), batch).query, batch)
    assert counts.counts.tolist() == [1, 1, 1]
    (tmp_path / "done-2").touch()
    assert worked(tmp_path, job) == (["2"], [])
    part(tmp_path / "data/day=3/a.parquet", "[5]")
    part(tmp_path / "data/day=3/sub/late.parquet", "[5]")
    (tmp_path / "done-3").touch()
    assert worked(tmp_path, job) == (["3"], [])


def test_a_partition_that_changed_between_arrival_and_release_is_refused(tmp_path: Path) -> None:
    """One part more under a sealed key is another batch under an old name."""
    source = PartitionSource("s", f"{tmp_path}/day=*/*.parquet", "day", f"{tmp_path}/done-{{key}}")
    part(tmp_path / "day=1/a.parquet", "[1]")
    (tmp_path / "done-1").touch()
    (batch,) = source.batches(0)
    before = source.content_digest(batch)
    assert source.content_digest(batch) == before
    part(tmp_path / "day=1/b.parquet", "[1]")
    (grown,) = source.batches(0)
    assert source.content_digest(grown) != before


def test_an_empty_partition_is_told_by_its_key(tmp_path: Path) -> None:
    """A marker before its files: an error that names the batch."""
    source = PartitionSource("s", f"{tmp_path}/day=*/*.parquet", "day", f"{tmp_path}/done-{{key}}")
    (tmp_path / "day=1").mkdir()
    (tmp_path / "done-1").touch()
    (batch,) = source.batches(0)
    with pytest.raises(SourceError, match="1: a part of source s"):
        source.content_digest(batch)


def test_windows_wait_for_their_markers(tmp_path: Path) -> None:
    """A window that ended is no batch before the file is there that says it is complete."""
    source = WindowSource("s", 0, DAY, None, 0, f"{tmp_path}/done-{{key}}")
    assert list(source.batches(5 * DAY)) == []
    (tmp_path / "done-1970-01-02").touch()
    (tmp_path / "done-1970-01-05").mkdir()
    assert [batch.key for batch in source.batches(5 * DAY)] == ["1970-01-02"]


def test_late_records_are_in_no_batch_and_future_ones_in_theirs(tmp_path: Path) -> None:
    """A record that comes after its window was released changes nothing, and is not told of."""
    file = tmp_path / "trips.csv"
    file.write_text("t,x\n2024-01-01T05:00:00Z,7\n")
    job = job_of(tmp_path, f"path: trips.csv, {TYPES}, {DAYS}")
    first = worked(tmp_path, job)
    assert first == (["2024-01-01", "2024-01-02", "2024-01-03"], [])
    file.write_text(file.read_text() + "2024-01-01T06:00:00Z,9\n2999-01-01T00:00:00Z,9\n")
    assert worked(tmp_path, job) == ([], [])


WRITERS = {
    "parquet": "(FORMAT parquet)",
    "csv": "(FORMAT csv, HEADER)",
    "csv.gz": "(FORMAT csv, HEADER, COMPRESSION gzip)",
    "csv.zst": "(FORMAT csv, HEADER, COMPRESSION zstd)",
    "jsonl": "(FORMAT json)",
    "jsonl.gz": "(FORMAT json, COMPRESSION gzip)",
    "ndjson.zst": "(FORMAT json, COMPRESSION zstd)",
}


@pytest.mark.parametrize("ending", WRITERS)
def test_every_kind_of_file_counts_the_same(tmp_path: Path, ending: str) -> None:
    """Parquet, CSV and JSON lines, packed or not: the same cells, by window."""
    rows = "VALUES (TIMESTAMP '2024-01-01 05:00', 3), ('2024-01-01 07:00', 3), ('2024-01-02', 50)"
    path = tmp_path / f"trips.{ending}"
    duckdb.execute(f"COPY (SELECT * FROM ({rows}) r(t, x)) TO '{path}' {WRITERS[ending]}")
    types = "" if ending == "parquet" else f"{TYPES}, "
    job = job_of(tmp_path, f"path: trips.{ending}, {types}{DAYS}")
    found = []
    for batch in job.source.batches(AFTER.now()):
        query = job.kind.plan(job.kind.init(), batch).query
        job.backend.check(query, batch)
        counts = job.backend.answer(query, batch)
        found.append(dict(zip(counts.cells.tolist(), counts.counts.tolist(), strict=True)))
    assert found == [{3: 2}, {50: 1}, {}]


REFUSED = {
    f"path: 'data/*.parquet', {PARTS}": "the path needs /day=*/",
    f"path: '*/day=*/a.parquet', {PARTS}": "no wildcard",
    "path: day=*/a.csv, batches: {partition: day, marker: done}": "{key}",
    "path: day=*/a.csv, batches: {partition: day}": "marker",
}


@pytest.mark.parametrize("place", REFUSED)
def test_what_cannot_be_cut_is_refused_at_its_line(tmp_path: Path, place: str) -> None:
    """Line of the source, and what to do."""
    with pytest.raises(ConfigurationError) as caught:
        job_of(tmp_path, place)
    assert str(caught.value).startswith("config.yaml:4:")
    assert REFUSED[place] in str(caught.value)
