"""Releases as objects of a real storage: each once, whole, and owed while the storage is away."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from streamdp.backends.duckdb.objects import taken
from streamdp.config import load
from streamdp.errors import SinkError, StreamdpError
from streamdp.objects import _connected, listed, parsed
from streamdp.sinks.files import FilesSink, Form, ObjectsSink
from tests.objects.servers import SECRET, Storage
from tests.sinks.targets import release
from tests.sources.test_one_budget import FILES, configured, part, ran, released

ADDRESS = "s3://lake/out"


def kept() -> dict[str, bytes]:
    """Keys and contents of all objects."""
    objects = listed(parsed(f"{ADDRESS}/**"))
    if not objects:
        return {}
    copies = taken(objects)
    found = {
        of.path: Path(file.path).read_bytes()
        for of, file in zip(objects, copies.files, strict=True)
    }
    copies.let_go()
    return found


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_release_is_one_object_that_is_the_file(
    tmp_path: Path, lake: Storage, form: Form
) -> None:
    """However often it is delivered, with the bytes that a folder has."""
    files = FilesSink("f", tmp_path, form)
    for _ in range(2):
        for number in (1, 2):
            files.deliver(release(number))
            ObjectsSink("o", ADDRESS, form).deliver(release(number))
    wanted = {
        f"{ADDRESS}/{path.relative_to(tmp_path)}": path.read_bytes()
        for path in tmp_path.rglob(f"*.{form}")
    }
    assert len(wanted) == 2
    assert kept() == wanted


def test_a_release_is_owed_while_the_storage_is_away(
    tmp_path: Path, lake: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is released and paid once, and delivered when the storage is back."""
    part(tmp_path / "in" / "d1.parquet")
    configured(tmp_path, s=f"path: 'in/*.parquet', {FILES}")
    text = (tmp_path / "config.yaml").read_text()
    sink = f"kept: {{kind: objects, address: '{ADDRESS}', form: csv}}"
    (tmp_path / "config.yaml").write_text(text.split("sinks:\n")[0] + f"sinks:\n  {sink}\n")
    with monkeypatch.context() as patched:
        patched.setenv("AWS_SECRET_ACCESS_KEY", "sesame-stay-closed")
        _connected.cache_clear()
        with pytest.raises(SinkError, match="refuses this user") as refused:
            ObjectsSink("o", ADDRESS, "csv").deliver(release(1))
        assert "stay-closed" not in str(refused.value)
        ran(tmp_path)
    _connected.cache_clear()
    assert kept() == {}
    assert released(tmp_path) == [("of_s", "d1.parquet")]
    for _ in range(600):
        ran(tmp_path)
        if kept():
            break
        time.sleep(0.5)
    assert [content.count(b"d1.parquet") for content in kept().values()] == [1]
    assert len(released(tmp_path)) == 1
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes()


def test_places_that_are_no_files_are_refused(tmp_path: Path) -> None:
    """An address where a file is written, and a sink that writes what a source reads."""
    base = configured(tmp_path, s=f"path: 's3://lake/in/**', format: csv, {FILES}").read_text()
    wrong = {
        base.replace("path: s.db", "path: 's3://lake/s.db'"): "file of this machine",
        base.replace("path: out.jsonl", "path: s3://lake/out.jsonl"): "file of this machine",
        base.replace(
            "kind: jsonl, path: out.jsonl", "kind: objects, address: 's3://lake/in', form: csv"
        ): "reads this file",
        base.replace(
            "kind: jsonl, path: out.jsonl", "kind: objects, address: 's3://lake/*'"
        ): "no wildcards",
    }
    for text, said in wrong.items():
        (tmp_path / "config.yaml").write_text(text)
        with pytest.raises(StreamdpError, match=said):
            load(tmp_path / "config.yaml")
