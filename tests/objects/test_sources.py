"""Objects of a real storage: released once, paid from one budget, read as files are."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from streamdp import wiring
from streamdp.config import load
from streamdp.engine.job import EngineContext
from streamdp.engine.runner import Runner
from streamdp.errors import StreamdpError
from streamdp.store.database import connect_to_read
from streamdp.store.sqlite import SqliteStore
from tests.objects.servers import SECRET, USER, Storage
from tests.sources.test_one_budget import configured, part, ran, reasons, released, require_refused
from tests.sources.test_spellings import tried
from tests.worlds import EventLog, HandClock, ListSink, ReplayedEntropy

FILES = "batches: files, settle: 0s"
PARTS = "batches: {partition: day, marker: 's3://lake/in/day={key}/_SUCCESS'}"
OBJECTS = f"path: 's3://lake/in/*.parquet', {FILES}"
DAYS = f"path: 's3://lake/in/day=*/*.parquet', {PARTS}"


def test_each_object_is_released_once(tmp_path: Path, lake: Storage) -> None:
    """What comes later is released later; a second run finds nothing to do."""
    lake.put("in/d1.parquet", part(tmp_path / "p"))
    lake.put("in/readme.txt", b"nothing")
    lake.put("in/deeper/d0.parquet", part(tmp_path / "p"))
    configured(tmp_path, s=OBJECTS)
    for _ in range(2):
        ran(tmp_path)
        assert released(tmp_path) == [("of_s", "d1.parquet")]
    lake.put("in/d2.parquet", part(tmp_path / "p"))
    ran(tmp_path)
    assert released(tmp_path) == [("of_s", "d1.parquet"), ("of_s", "d2.parquet")]
    assert not reasons(tmp_path)
    assert "can be read" in ran(tmp_path, "doctor")


def test_an_object_that_is_changed_is_altered_and_pays_nothing_more(
    tmp_path: Path, lake: Storage
) -> None:
    """The same content written anew is the same; another one is told, and put back is forgotten."""
    before = part(tmp_path / "a")
    lake.put("in/d1.parquet", before)
    configured(tmp_path, s=OBJECTS)
    ran(tmp_path)
    lake.put("in/d1.parquet", before)
    ran(tmp_path)
    assert not reasons(tmp_path)
    lake.put("in/d1.parquet", part(tmp_path / "b", 51))
    ran(tmp_path)
    assert reasons(tmp_path) == ["batch-altered"]
    assert (tmp_path / "log.jsonl").read_text().count("batch.altered") == 1
    lake.put("in/d1.parquet", before)
    ran(tmp_path)
    assert not reasons(tmp_path)
    assert len(released(tmp_path)) == 1


def test_an_altered_object_is_not_released_to_a_job_that_comes_later(
    tmp_path: Path, lake: Storage
) -> None:
    lake.put("in/d1.parquet", part(tmp_path / "a"))
    configured(tmp_path, s=OBJECTS)
    ran(tmp_path)
    lake.put("in/d1.parquet", part(tmp_path / "b", 51))
    text = (tmp_path / "config.yaml").read_text()
    (tmp_path / "config.yaml").write_text(text.replace("of_s:", "later:"))
    ran(tmp_path)
    assert released(tmp_path) == [("of_s", "d1.parquet")]


def test_a_partition_waits_for_its_marker_and_says_what_comes_late(
    tmp_path: Path, lake: Storage
) -> None:
    """All its objects together; one that is added later is in no release, and is told."""
    for day in (1, 2):
        for name in ("a", "b"):
            lake.put(f"in/day={day}/{name}.parquet", part(tmp_path / "p"))
    lake.put("in/day=1/_SUCCESS", b"")
    configured(tmp_path, s=DAYS)
    ran(tmp_path)
    assert released(tmp_path) == [("of_s", "1")]
    lake.put("in/day=2/_SUCCESS", b"")
    lake.put("in/day=1/late.parquet", part(tmp_path / "p"))
    ran(tmp_path)
    assert released(tmp_path) == [("of_s", "1"), ("of_s", "2")]
    assert reasons(tmp_path) == ["batch-altered"]
    assert "day=1" in ran(tmp_path, "status") or "batch 1" in ran(tmp_path, "status")


def test_a_partition_that_is_completed_while_it_is_listed_is_whole_or_waits(
    tmp_path: Path, lake: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last object and its marker come between the two listings."""
    from streamdp.objects import Address, listed, parsed
    from streamdp.sources import files as objects
    from streamdp.types import File

    lake.put("in/day=1/a.parquet", part(tmp_path / "p"))
    looked: list[Address] = []
    real = listed

    def interrupted(address: Address) -> tuple[File, ...]:
        found = real(address)
        if not looked:
            lake.put("in/day=1/b.parquet", part(tmp_path / "p"))
            lake.put("in/day=1/_SUCCESS", b"")
        looked.append(address)
        return found

    monkeypatch.setattr(objects, "listed", interrupted)
    address = parsed("s3://lake/in/day=*/*.parquet")
    source = objects.ObjectPartitionSource("s", address, "day", "s3://lake/in/day={key}/_SUCCESS")
    assert list(source.batches(0)) == []
    (batch,) = source.batches(0)
    assert [file.path[-9:] for file in batch.files] == ["a.parquet", "b.parquet"]


def test_one_object_is_one_batch_of_one_source(tmp_path: Path, lake: Storage) -> None:
    """Two sources whose patterns meet: the object stays with the one that saw it first."""
    lake.put("in/day=1/a.parquet", part(tmp_path / "p"))
    lake.put("in/day=1/_SUCCESS", b"")
    configured(tmp_path, s=DAYS, t=f"path: 's3://lake/**/a.parquet', {FILES}")
    said = ran(tmp_path)
    assert released(tmp_path) == [("of_s", "1")]
    assert "whose budget is that of s" in said + ran(tmp_path, "status")


@pytest.mark.thinned(2)
@pytest.mark.parametrize("ending", ["parquet", "csv", "csv.gz", "jsonl", "jsonl.gz", "arrow"])
def test_every_format_is_read_as_it_is_from_files(
    tmp_path: Path, lake: Storage, ending: str
) -> None:
    """The same records are counted, the same noise is drawn."""
    folder = tmp_path / "in"
    folder.mkdir()
    content = {
        "csv": b"t,x\n2024-01-01,7\n2024-01-01,a lot\n,60\n",
        "jsonl": b'{"x": 7}\n{"x": "a lot"}\nno object\n{"x": 60}\n',
    }
    path = folder / f"d1.{ending}"
    if ending == "parquet":
        part(path)
    elif ending == "arrow":
        import pyarrow as pa

        table = pa.table({"x": pa.array([7, None, 60])})
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    else:
        text = content[ending.split(".")[0]]
        path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
    lake.put(f"in/d1.{ending}", path)
    typed = ", types: {x: number}" if "csv" in ending or "json" in ending else ""
    found: list[list[object]] = []
    for place in (f"{folder}/*", "s3://lake/in/*"):
        home = tmp_path / str(len(found))
        home.mkdir()
        source = f"path: '{place}', format: {ending.split('.')[0]}, {FILES}{typed}"
        found.append(_rows(configured(home, s=source)))
    assert found[0]
    assert found[0] == found[1]


def _rows(path: Path) -> list[object]:
    """Released rows, drawn with the same entropy."""
    configuration, clock, log = load(path), HandClock(2_000_000_000), EventLog()
    store, sink = SqliteStore.open(path.parent / "s.db", clock.now()), ListSink("kept")
    wiring.declare(configuration, store, clock.now(), log)
    jobs = wiring.jobs(configuration)
    around = EngineContext(store, ReplayedEntropy(), clock, log)
    outcomes = Runner(around, {"kept": sink}).round(jobs.values())
    store.close()
    assert not outcomes.errors
    return [release.rows for release in sink.taken]


SPELLINGS = (
    *("s3://lake/in/rides.parquet", "S3://lake/in/rides.parquet", "s3a://lake/in/rides.parquet"),
    *("s3n://lake/in/rides.parquet", "s3://lake//in/rides.parquet", "s3://lake/in//rides.parquet"),
    *(
        "s3://lake/./in/rides.parquet",
        "s3://lake/in/./rides.parquet",
        "s3://lake/in/rides.parquet/",
    ),
    *("s3://lake/in/../in/rides.parquet", "s3://lake/x/../in/rides.parquet", "s3:/lake/in/*"),
    *("s3:lake/in/rides.parquet", "s3://LAKE/in/rides.parquet", "s3://Lake/in/rides.parquet"),
    *("s3://lake/IN/rides.parquet", "s3://lake/in/Rides.parquet", "s3://lake/in/RIDES.PARQUET"),
    *(
        "s3://lake/in/%72ides.parquet",
        "s3://lake/%69n/rides.parquet",
        "s3://lake/in%2Frides.parquet",
    ),
    *(
        "s3://lake%2Fin/rides.parquet",
        "s3://lake/in/rides%2Eparquet",
        "s3://lake/in/rides.parquet%00",
    ),
    *("s3://lake/in/*.parquet", "s3://lake/in/*", "s3://lake/*/*.parquet", "s3://lake/*/*"),
    *("s3://lake/**", "s3://lake/**/*.parquet", "s3://lake/**/rides.parquet", "s3://lake/in/**"),
    *("s3://lake/in/[r]ides.parquet", "s3://lake/in/ride?.parquet", "s3://lake/i?/r*.parquet"),
    *(
        "s3://lake/in/[!q]ides.parquet",
        "s3://lake/[i]n/**/rides.parquet",
        "s3://lake/in/{rides}.parquet",
    ),
    *("s3://lake/in/rides.parquet?versionId=null", "s3://lake/in/rides.parquet?", "s3://lake/in"),
    *("s3://lake/in/", "s3://lake/in/rides.parquet#", "s3://lake/in/rides.parquet ", "s3://lake"),
    *(
        " s3://lake/in/rides.parquet",
        "s3://lake/in\\\\rides.parquet",
        "s3://lake/in/rides\\\\.parquet",
    ),
    *("s3://{USER}:{SECRET}@lake/in/rides.parquet", "s3://lake:{PORT}/in/rides.parquet"),
    *(
        "s3://127.0.0.1:{PORT}/lake/in/rides.parquet",
        "http://127.0.0.1:{PORT}/lake/in/rides.parquet",
    ),
    *("s3://127.0.0.1/lake/in/rides.parquet", "s3://lake.storage.localhost/in/rides.parquet"),
    *("s3://localhost/lake/in/rides.parquet", "s3://lake-s3alias/in/rides.parquet"),
    *(
        "s3://in/rides.parquet",
        "s3://arn:aws:s3:::lake/in/rides.parquet",
        "gs://lake/in/rides.parquet",
    ),
    *(
        "gcs://lake/in/rides.parquet",
        "az://lake/in/rides.parquet",
        "file://s3://lake/in/rides.parquet",
    ),
)
"""Addresses that name the object, in somebody's opinion."""

ENDPOINTS = (
    *("http://127.0.0.1:{PORT}", "http://127.0.0.1:{PORT}/", "HTTP://127.0.0.1:{PORT}"),
    *("http://localhost:{PORT}", "http://LOCALHOST:{PORT}/", "http://127.1:{PORT}"),
    *("http://0x7f000001:{PORT}", "http://lake.storage.localhost:{PORT}"),
    *("http://storage.localhost:{PORT}", "http://127.0.0.1:{PORT}/lake", "127.0.0.1:{PORT}"),
    *("http://{USER}:{SECRET}@127.0.0.1:{PORT}", "http://127.0.0.1:{PORT}?x=y", "s3://127.0.0.1"),
)
"""Names of the server, by path style and by host style."""


def _spelt(text: str, lake: Storage) -> str:
    known = {"{USER}": USER, "{SECRET}": SECRET, "{PORT}": str(lake.port)}
    for word, value in known.items():
        text = text.replace(word, value)
    return text


def _home(tmp_path: Path, number: int) -> Path:
    folder = tmp_path / str(number)
    folder.mkdir()
    return folder


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.long)])
def test_one_object_is_paid_from_one_budget_however_it_is_spelt(
    tmp_path: Path, lake: Storage, step: int
) -> None:
    """Each spelling beside the first source, in its place, and with it from the start."""
    lake.put("in/rides.parquet", part(tmp_path / "p"))
    first, folder = f"path: s3://lake/in/rides.parquet, {FILES}", _home(tmp_path, 0)
    assert tried(folder, {"first": first}).charged == {"first"}
    again, wrong = 0, []
    for number, spelling in enumerate(SPELLINGS[::step], start=1):
        second = f'path: "{_spelt(spelling, lake)}", format: parquet, {FILES}'
        ways = ({"first": first, "second": second}, {"second": second})
        wrong += [spelling for way in ways if tried(folder, way).charged != {"first"}]
        alone = _home(tmp_path, number)
        outcome = tried(alone, {"second": second}, count=True)
        again += outcome.charged == {"second"}
        if [count for count in outcome.counts if count != 1]:
            wrong.append(f"{spelling}: {outcome.counts}")
        if len(tried(alone, {"second": second, "first": first}).charged) > 1:
            wrong.append(f"{spelling} first: two budgets")
    assert len(SPELLINGS) > 60
    assert again > 15 / step
    assert wrong == []


@pytest.mark.long
def test_one_object_is_paid_from_one_budget_whatever_the_server_is_called(
    tmp_path: Path, lake: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By address, name, path style and host style, with keys as each style spells them."""
    lake.put("in/rides.parquet", part(tmp_path / "p"))
    first, folder = f"path: s3://lake/in/rides.parquet, {FILES}", _home(tmp_path, 0)
    assert tried(folder, {"first": first}).charged == {"first"}
    reached = 0
    for number, endpoint in enumerate(ENDPOINTS, start=1):
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", _spelt(endpoint, lake))
        reached += tried(_home(tmp_path, number), {"first": first}).charged == {"first"}
        for place in ("s3://lake/in/rides.parquet", "s3://lake/**", "s3://in/rides.parquet"):
            second = f"path: '{place}', format: parquet, {FILES}"
            assert tried(folder, {"second": second}).charged == {"first"}, (endpoint, place)
    assert reached >= 4


def test_a_storage_that_is_away_costs_nothing(
    tmp_path: Path, lake: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is charged, the reason is told once and without a secret, the next run goes on."""
    lake.put("in/d1.parquet", part(tmp_path / "p"))
    configured(tmp_path, s=OBJECTS)
    wrong = {
        "AWS_ENDPOINT_URL": ("http://127.0.0.1:9", "cannot be reached"),
        "AWS_SECRET_ACCESS_KEY": ("sesame-stay-closed", "refuses this user"),
        "AWS_ENDPOINT_URL_S3": (f"http://{USER}:{SECRET}@h/lake", "no server's address"),
    }
    for name, (value, said) in wrong.items():
        with monkeypatch.context() as patched:
            patched.setenv(name, value)
            _forget()
            assert said in ran(tmp_path), name
    assert _charges(tmp_path) == 0
    _forget()
    ran(tmp_path)
    assert released(tmp_path) == [("of_s", "d1.parquet")]
    for file in tmp_path.rglob("*"):
        content = file.read_bytes() if file.is_file() else b""
        assert SECRET.encode() not in content, file
        assert USER.encode() not in content, file
        assert b"stay-closed" not in content, file


def _forget() -> None:
    """File systems are kept with the credentials they were made with."""
    from streamdp import objects

    objects._connected.cache_clear()


def _charges(folder: Path) -> int:
    rows = connect_to_read(folder / "s.db").execute(
        "SELECT count(*) FROM ledger WHERE purpose = 'reserve'"
    )
    return int(rows.fetchone()[0])


def test_a_bucket_that_is_not_there_is_told(tmp_path: Path, lake: Storage) -> None:
    configured(tmp_path, s=f"path: 's3://ocean/in/*.parquet', {FILES}")
    assert "no such bucket" in ran(tmp_path)


def test_configurations_of_objects_that_cannot_be_are_refused(tmp_path: Path) -> None:
    """Each with its key and what to write."""
    marker = "batches: {partition: day, marker: 'done-{key}'}"
    windows = "batches: {column: t, every: 1d, start: 2024-01-01}"
    wrong = {
        f"path: 's3://lake/*.parquet', {windows}": "not cut by time",
        f"path: 's3://lake/day=*/*.parquet', {marker}": "marker of objects is an object",
        f"path: 's3://lake/*.parquet', engine: {{kind: spark}}, {FILES}": "embedded engine",
        f"path: 's3://lake/w.duckdb', table: rides, {windows}": "a table is in a database",
        f"path: 's3://Lake/*.parquet', {FILES}": "no name of a bucket",
        f"path: 's3://lake//*.parquet', {FILES}": "no empty part",
    }
    require_refused(tmp_path, wrong)


def test_formats_are_told_by_the_ending(tmp_path: Path) -> None:
    configured(tmp_path, s=f"path: 's3://lake/in/data', {FILES}")
    with pytest.raises(StreamdpError, match="format"):
        load(tmp_path / "config.yaml")
