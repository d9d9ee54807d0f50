"""Copies of the store in a real object storage: whole, pruned, and put back without forgetting."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from streamdp.cli import cli
from streamdp.config import Configuration, load
from streamdp.daemon.copies import Objects
from streamdp.daemon.runtime import Runtime
from streamdp.errors import ConfigurationError, IntegrityError, SourceError, StoreError
from streamdp.log import close
from streamdp.objects import listed, parsed
from streamdp.store.reconcile import reconcile
from tests.crash.home import CONFIG, Home
from tests.daemon.test_copies import HOUR, WHO, live, spent, watch
from tests.objects import conftest as objects
from tests.objects.servers import SECRET, Storage
from tests.worlds import EventLog

storage, lake = objects.storage, objects.lake
COPIED = f"{CONFIG}backup: {{path: 's3://lake/copies/one', every: 1h, keep: 3}}\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.furnish(tmp_path / "home", COPIED)


def names() -> list[str]:
    return [file.path for file in listed(parsed("s3://lake/copies/one/*"))]


def ran(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli, words)
    close()
    assert result.exit_code == code, f"{result.output} {result.exception}"
    return result.output


def test_every_copy_can_be_put_back_and_none_forgets(home: Home, lake: Storage) -> None:
    """A drill: the machine is lost but for its anchor, a copy is fetched, what was spent stays so.

    The oldest copies are removed, and others' objects are left alone.
    """
    foreign = lake.put("copies/one/notes.db", b"mine")

    def work(running: Runtime, of: Configuration) -> None:
        for key in ("2023-11-15", "2023-11-16", "2023-11-17", "a.csv"):
            running.runner.round(running.jobs.values(), lambda batch, key=key: batch.key == key)  # type: ignore[misc]
            home.clock.seconds += HOUR
            watch(running, of, home, EventLog())
        running.runner.round(running.jobs.values())

    live(home, work, EventLog())
    truth = spent(home.store)
    made = names()
    assert made.pop(0) == foreign
    assert len(made) == 3
    assert not list(home.path.glob(".store.*"))
    kept = home.path.rename(home.path.with_name("kept"))
    for missing, address in zip((3, 2, 1), made, strict=True):
        shutil.rmtree(home.path, ignore_errors=True)
        shutil.copytree(kept, home.path)
        for part in home.path.glob("store.db*"):
            part.unlink()
        ran("restore", address, "--yes", "-c", str(home.path / "config.yaml"))
        assert spent(home.store) == truth * (5 - missing) // 5
        with pytest.raises(IntegrityError):
            live(home, lambda running, of: None, EventLog())
        of = home.configuration()
        store, anchor = of.store.paths()
        reconcile(store, anchor, of.terms(), of.data(), WHO, home.clock.now())
        assert spent(store) == truth
        assert not list(home.path.glob(".store.*"))


@pytest.mark.usefixtures("lake")
def test_a_storage_that_refuses_costs_no_release(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told once, without credentials; when it answers again a copy is made."""
    log, url = EventLog(), os.environ["AWS_ENDPOINT_URL"]

    def work(running: Runtime, of: Configuration) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        watch(running, of, home, log)
        watch(running, of, home, log)
        assert running.runner.round(running.jobs.values()).released == 5
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        watch(running, of, home, log)

    live(home, work, log)
    assert log.names().count("backup.failed") == 1
    assert len(names()) == 1
    assert SECRET not in str(log.events)
    for file in home.path.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes()


@pytest.mark.usefixtures("lake")
def test_it_is_made_now_by_a_command(home: Home) -> None:
    """`streamdp backup` says where; an address with no copy or many of them puts nothing back."""
    live(home, lambda running, of: None, EventLog())
    config = str(home.path / "config.yaml")
    said = ran("backup", "-c", config)
    (made,) = names()
    assert said == f"{made}: copied and verified\n"
    before = home.store.read_bytes()
    for wrong in ("s3://lake/copies/one/nothing.db", "s3://lake/copies/two/*.db"):
        result = CliRunner().invoke(cli, ["restore", wrong, "--yes", "-c", config])
        close()
        assert isinstance(result.exception, SourceError)
    assert home.store.read_bytes() == before


@pytest.mark.usefixtures("lake")
def test_what_is_cut_off_on_its_way_removes_no_older_copy(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A storage that holds fewer bytes than were sent is no place of a copy."""
    live(home, lambda running, of: None, EventLog())
    place = Objects("s3://lake/copies/one", home.store)
    place.add(1, home.clock.now())
    before = names()

    def cut(address: object, content: object) -> None:
        from io import BytesIO

        from streamdp import objects as storage

        storage.write(address, BytesIO(content.read(100)))  # type: ignore[arg-type, attr-defined]

    monkeypatch.setattr("streamdp.daemon.copies.write", cut)
    with pytest.raises(StoreError, match="as it was written"):
        place.add(1, home.clock.now() + HOUR)
    assert names() == before


@pytest.mark.parametrize("address", ["s3://lake/*/x", "gs://lake/x", "s3://lake/../x"])
def test_what_is_no_place_is_refused(home: Home, address: str) -> None:
    """At its line."""
    path = home.path / "config.yaml"
    path.write_text(COPIED.replace("s3://lake/copies/one", address))
    with pytest.raises(ConfigurationError, match=r"backup"):
        load(path)
