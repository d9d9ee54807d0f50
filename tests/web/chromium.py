"""A real page in a real Chromium: a server on a free port, and a browser that talks to it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_port

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def serving(home: Path, port: int = 0) -> Iterator[str]:
    """`streamdp web` over an installation, for as long as the block lasts; its address."""
    port = port or free_port()
    config = home / f"config.{port}.yaml"
    text = (home / "config.yaml").read_text()
    config.write_text(f"{text}\nweb: {{listen: 127.0.0.1:{port}, requests_per_second: 100000}}\n")
    command = ["nice", sys.executable, "-m", "streamdp", "web", "-c", str(config)]
    server = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        address = f"http://127.0.0.1:{port}"
        _wait_for(f"{address}/healthz", server)
        yield address
    finally:
        server.terminate()
        server.communicate(timeout=600)


def _wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 600
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):  # noqa: S310
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError("the page did not come up")
