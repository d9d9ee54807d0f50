"""The image is built and run as `deploy/container` says, where there is a container engine.

CONTAINER_ENGINE names its command with any options, by default `docker`. With STREAMDP_IMAGE that
image is taken, and none is built.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ENGINE = shlex.split(os.environ.get("CONTAINER_ENGINE", "docker"))
BUILD = ["build", "-f", "deploy/container/Dockerfile", "-t", "streamdp:test", "."]
HARDENED = [
    *("--read-only", "--tmpfs=/tmp", "--cap-drop=all", "--security-opt=no-new-privileges"),
    *("--network=none", *shlex.split(os.environ.get("CONTAINER_RUN", ""))),
]

pytestmark = pytest.mark.long


def _typed(*words: str, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ENGINE, *words], cwd=ROOT, capture_output=True, text=True, timeout=timeout
    )


@pytest.fixture(scope="module")
def image() -> str:
    """The image of this checkout."""
    if shutil.which(ENGINE[0]) is None or _typed("ps").returncode:
        pytest.skip(f"no container engine answers to {ENGINE[0]!r}")
    if "STREAMDP_IMAGE" in os.environ:
        return os.environ["STREAMDP_IMAGE"]
    built = _typed(*BUILD, timeout=1800)
    assert built.returncode == 0, built.stderr
    return "streamdp:test"


class Place:
    """Two volumes, the configuration of `deploy/container`, and what runs over them.

    Args:
        image: What is run.
        folder: For configuration and secret.
    """

    def __init__(self, image: str, folder: Path) -> None:
        self.image, self.name = image, f"streamdp-test-{uuid.uuid4().hex[:8]}"
        token = folder / "token"
        token.write_text("0123456789abcdef0123456789abcdef")
        mounts = {
            f"{self.name}-store": "/var/lib/streamdp",
            f"{self.name}-anchor": "/var/lib/streamdp-anchor",
            f"{ROOT / 'deploy/container/config.yaml'}": "/etc/streamdp/config.yaml:ro",
            f"{token}": "/run/secrets/streamdp_token:ro",
        }
        self.mounts = [f"--volume={source}:{inside}" for source, inside in mounts.items()]

    def once(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run one command in a container of its own."""
        return _typed("run", "--rm", *HARDENED, *self.mounts, self.image, *words)

    def start(self) -> None:
        """Start the daemon, and wait until its health check is content."""
        started = _typed(
            "run", "--detach", f"--name={self.name}", *HARDENED, *self.mounts, self.image
        )
        assert started.returncode == 0, started.stderr
        for _ in range(120):
            if self.health() == 0:
                return
            time.sleep(1)
        raise AssertionError(_typed("logs", self.name).stderr)

    def health(self) -> int:
        """Exit code of the image's health check, run in the container."""
        return _typed("exec", self.name, "streamdp", "status", "--json").returncode

    def end(self) -> int:
        """Exit code of the daemon; its container is removed."""
        code = _typed("wait", self.name).stdout.strip()
        _typed("rm", "--force", self.name)
        return int(code)

    def remove(self) -> None:
        """Leave nothing."""
        _typed("rm", "--force", self.name)
        _typed("volume", "rm", "--force", f"{self.name}-store", f"{self.name}-anchor")


@pytest.fixture
def place(image: str, tmp_path: Path) -> Iterator[Place]:
    made = Place(image, tmp_path)
    yield made
    made.remove()


def test_a_container_works_stops_and_is_taken_over(place: Place) -> None:
    """Not root, on a read-only root, without capabilities: it releases, ends on SIGTERM with 0,
    admits no second container on its volumes, and after SIGKILL the next one goes on."""
    place.start()
    assert _typed("exec", place.name, "id", "-u").stdout.strip() == "10001"
    assert _typed("exec", place.name, "touch", "/usr/here").returncode != 0
    second = place.once("run", "--once")
    assert second.returncode == 5, second.stderr
    stopped = time.monotonic()
    _typed("stop", "-t", "60", place.name)
    print(f"SIGTERM to the end: {time.monotonic() - stopped:.1f} s")
    assert place.end() == 0

    place.start()
    _typed("kill", "--signal=KILL", place.name)
    assert place.end() == 137
    whole = place.once("run", "--once")
    assert whole.returncode == 0, whole.stderr
    assert place.once("verify").returncode == 0
    released = place.once("releases", "--json").stdout.splitlines()
    assert len({line.split('"batch"')[1][:16] for line in released}) == 365


def test_a_store_without_its_anchor_is_refused(place: Place) -> None:
    """The volume of the store, put back alone, beside an anchor that knows more."""
    assert place.once("run", "--once").returncode == 0
    script = "import pathlib; [path.unlink() for path in pathlib.Path('.').glob('streamdp.db*')]"
    lost = _typed(
        "run",
        "--rm",
        "--entrypoint=python",
        *HARDENED,
        *place.mounts,
        place.image,
        "-c",
        script,
    )
    assert lost.returncode == 0, lost.stderr
    refused = place.once("run", "--once")
    assert refused.returncode == 6, refused.stderr
