"""The page as a process: beside a daemon, ended with it, under a user who may not write."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from streamdp.cli.web import kind_of
from streamdp.config import load
from streamdp.config.model import Web
from streamdp.errors import StreamdpError
from streamdp.web.app import application, listening
from streamdp.web.reader import Reader
from tests.children import in_child
from tests.crash.home import Home
from tests.ports import free_port
from tests.web.addresses import HOST

NOBODY = 65_534


def answers(address: str) -> bool:
    """Whether there is a page that is ready."""
    try:
        with urllib.request.urlopen(address, timeout=2) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def wait_until(address: str, there: bool) -> None:
    until = time.monotonic() + 600
    while answers(address) != there:
        assert time.monotonic() < until, f"{address} is {'not ' if there else ''}there"
        time.sleep(0.2)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_the_page_lives_and_ends_with_the_daemon(tmp_path: Path, end: signal.Signals) -> None:
    """It is ready while the daemon beats, and gone soon after, however the daemon ends."""
    home, port = Home.furnish(tmp_path / "home"), free_port()
    with (home.path / "config.yaml").open("a") as config:
        config.write(f"web: {{listen: 127.0.0.1:{port}}}\n")
    command = [sys.executable, "-m", "streamdp", "run"]
    daemon = subprocess.Popen(command, cwd=home.path, stderr=subprocess.DEVNULL)
    try:
        wait_until(f"http://127.0.0.1:{port}/readyz", there=True)
        daemon.send_signal(end)
        daemon.wait(timeout=600)
        wait_until(f"http://127.0.0.1:{port}/healthz", there=False)
    finally:
        daemon.kill()
        daemon.wait()


def test_answers_do_not_wait_for_those_before() -> None:
    """A connection that is taken up sends at once what is written to it."""
    (place,) = listening(Web(listen=f"127.0.0.1:{free_port()}"))
    with place, socket.create_connection(place.getsockname()), place.accept()[0] as taken:
        assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_an_address_that_cannot_be_served_on_is_told() -> None:
    """In use, another machine's, or of no name: one message, and no exit code of a cap."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for host, why in (("127.0.0.1", "in use"), ("192.0.2.1", "assign")):
            with pytest.raises(StreamdpError, match=why) as refused:
                listening(Web(listen=f"{host}:{port}", token=SecretStr("t" * 40)))
            assert refused.value.exit_code == 1
    found = listening(Web(listen=f"localhost:{port}"))
    with socket.create_connection(("localhost", port)):
        assert {each.getsockname()[1] for each in found} == {port}
    for each in found:
        each.close()


@pytest.fixture
def resting() -> Iterator[Path]:
    """A store that nobody has open, in a folder that all may read."""
    made = Path(tempfile.mkdtemp())
    home = Home.furnish(made / "home")
    home.live()
    for path in (made, *made.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    yield home.path
    shutil.rmtree(made)


def looked(home: Path, *, meanwhile: bool = False) -> int:
    """Status of the overview, as a user who may only read sees it."""
    reader = Reader(home / "config.yaml", load(home / "config.yaml"), kind_of)
    client = TestClient(application(reader, Web()), base_url=HOST)
    if meanwhile:
        known = reader.now
        reader.now = lambda: (home / "store.db-wal").touch() or known()  # type: ignore[func-returns-value]
    return client.get("/").status_code


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_user_who_may_not_write_can_look(resting: Path) -> None:
    """At a store that rests too, for which SQLite would have to write; nothing is left behind."""
    before = sorted(path.name for path in resting.iterdir())
    assert looked(resting) == 200
    for left in set(os.listdir(resting)) - set(before):
        (resting / left).unlink()

    def look() -> int:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        return looked(resting)

    assert in_child(look).require(0) == 200
    assert sorted(path.name for path in resting.iterdir()) == before


def test_a_store_that_is_taken_up_meanwhile_is_not_shown(
    resting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read of a file that may have changed is thrown away."""
    import streamdp.web.reader as module
    from streamdp.errors import StoreError

    def refuse(path: Path) -> None:
        raise StoreError("SQLite would have to write")

    monkeypatch.setattr(module, "connect_to_read", refuse)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert looked(resting) == 200
    assert looked(resting, meanwhile=True) == 503
