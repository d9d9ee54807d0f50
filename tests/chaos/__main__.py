"""Chaos: servers stopped, slow, locked, closed; deaf receivers; full volumes; kills; clocks.

python -m tests.chaos [--json] [--short] [--only TEXT]

Twenty jobs of five seconds over five sources: two PostgreSQL servers, a MariaDB server, two files.
Each fault is provoked while all of them work; then it is mended, and the next one follows. A part
whose means are not to be had (a server, the right to mount) is left out, and says so.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamdp.store.database import connect_to_read
from tests.chaos.world import EVERY, Pager, World, configuration, pager, receiver, rows
from tests.contract.servers import asked, mariadb, postgres, ready

YEAR = 365 * 86_400

ALERT_WITHIN = 60
"""Seconds from a fault to its alert, at most, with schedules shorter than that."""


@dataclass(frozen=True)
class Figure:
    """One fault, as it went."""

    fault: str
    alert: str
    seconds_to_alert: float | None
    longest_gap_of_others: float
    longest_gap_of_its_own: float
    note: str = ""

    @property
    def is_silent(self) -> bool:
        """Whether its jobs waited for longer than two schedules, and nobody was told."""
        return self.seconds_to_alert is None and self.longest_gap_of_its_own > 2 * EVERY


def main() -> None:
    """Provoke everything and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--short", action="store_true", help="a lock and the end, within a minute")
    parser.add_argument("--only", default="", help="of the further faults those with this in them")
    given = parser.parse_args()
    found = run(short=given.short, only=given.only)
    if given.json:
        print(json.dumps(found, indent=1))
    else:
        for name, value in found.items():
            print(f"{name}: {value}")
    sys.exit(0 if is_good(found) else 1)


def is_good(found: dict[str, Any]) -> bool:
    """Whether all figures are within what is promised."""
    return bool(
        found["silent faults"] == 0
        and found["lost"] == found["doubled"] == found["forgotten"] == 0
        and found["longest stop, s"] <= 10
        and found["longest gap of unaffected jobs, schedules"] <= 2
        and (found["longest time to alert, s"] or 0) <= ALERT_WITHIN
    )


def run(*, short: bool = False, only: str = "") -> dict[str, Any]:
    """Provoke everything; return the figures by name."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos-")))
        first, second = stack.enter_context(postgres()), None
        maria = None
        if not short:
            second, maria = stack.enter_context(postgres()), stack.enter_context(mariadb())
        taken = Pager()
        ports = {
            "pager": stack.enter_context(pager(taken)),
            "drip": stack.enter_context(receiver(b"H", 1.0)),
            "goon": stack.enter_context(receiver(b"HTTP/1.1 100 Continue\r\n\r\n", 0.2)),
            "mute": stack.enter_context(receiver(b"", 60.0)),
        }
        servers = {}
        for name, conninfo in (("pg_a", first), ("pg_b", second)):
            if conninfo is not None:
                servers[name] = ("postgres", furnish_postgres(conninfo, name))
        if maria is not None:
            servers["maria"] = ("mariadb", furnish_mariadb(maria))
        volumes = () if short else (home / "store", home / "anchor")
        mounted = bool(volumes) and all(stack.enter_context(volume(each)) for each in volumes)
        configuration(home, ports, servers)
        world = World(home, taken, (*servers, "files_a", "files_b"))
        return torment(
            world, servers, first, second, maria, mounted=mounted, short=short, only=only
        )


def torment(
    world: World,
    servers: dict[str, tuple[str, str]],
    first: str | None,
    second: str | None,
    maria: str | None,
    *,
    mounted: bool,
    short: bool,
    only: str,
) -> dict[str, Any]:
    """Start the daemon, provoke one fault after the other, and end it."""
    figures: list[Figure] = []
    stops: list[float] = []
    world.start()
    others = ("files_a", "files_b")
    began = time.time()
    try:
        wait(lambda: world.store.exists() and len(world.released()) == 4 * len(world.sources), 90)
        start_up = time.time() - began
        if first is not None and "pg_a" in servers:
            figures.append(
                fault(world, "PostgreSQL: table locked", lambda: locked(first, "pg_a"), others)
            )
        if not short:
            for name, provoke, unaffected in faults(world, first, second, maria, mounted=mounted):
                if only in name:
                    figures.append(fault(world, name, provoke, unaffected))
            world.stop(signal.SIGKILL)
            world.start()
            time.sleep(4 * EVERY)
            assert world.daemon is not None
            world.daemon.send_signal(signal.SIGSTOP)
            time.sleep(3 * EVERY)
            world.daemon.send_signal(signal.SIGCONT)
            time.sleep(3 * EVERY)
        with locked(first, "pg_a") if first is not None else nullcontext():
            time.sleep(2 * EVERY)
            stops.append(world.stop())
        world.start()
        time.sleep(2 * EVERY)
        stops.append(world.stop())
    finally:
        if world.daemon is not None and world.daemon.poll() is None:
            world.daemon.kill()
            world.daemon.wait()
    return summary(world, figures, stops, start_up)


Fault = tuple[str, Callable[[], AbstractContextManager[None]], tuple[str, ...]]
"""Its name, what provokes it, and the sources that it leaves alone."""


def faults(
    world: World, first: str | None, second: str | None, maria: str | None, *, mounted: bool
) -> Iterator[Fault]:
    """The faults of the long profile, in turn."""
    files = ("files_a", "files_b")
    if first is not None:
        yield "PostgreSQL: rights revoked", lambda: revoked(first), (*files, "pg_b", "maria")
        yield "PostgreSQL: login closed", lambda: closed(first), (*files, "pg_b", "maria")
    if second is not None:
        yield "PostgreSQL: server stands still", lambda: frozen(second), (*files, "pg_a", "maria")
        yield "PostgreSQL: server is slow", lambda: slowed(second), (*files, "pg_a", "maria")
        yield "PostgreSQL: connections refused", lambda: down(second), (*files, "pg_a", "maria")
    if maria is not None:
        yield "MariaDB: table locked", lambda: locked_maria(maria), (*files, "pg_a", "pg_b")
    if mounted:
        yield "volume of the store full", lambda: full(world.store.parent), ()
        yield "volume of the anchor full", lambda: full(world.anchor.parent), ()
    yield "clock ahead by twelve years", lambda: shifted(world, 12 * YEAR), ()
    yield "clock behind by a day", lambda: shifted(world, -86_400), ()


def fault(
    world: World,
    name: str,
    provoke: Callable[[], Any],
    others: tuple[str, ...],
    longest: float = 75.0,
) -> Figure:
    """Provoke one fault until its alert has come, and at least for four schedules."""
    began = time.time()
    with provoke():
        while time.time() - began < longest:
            time.sleep(0.2)
            told = [each for each in world.pager.taken if each[0] >= began and _new(each[1])]
            if told and time.time() - began > 4 * EVERY:
                break
        ended = time.time()
    told = [each for each in world.pager.taken if began <= each[0] <= ended and _new(each[1])]
    hit = {each for each in world.sources if each not in {*others, "files_a", "files_b"}}
    gap, _ = world.longest_gap(world.jobs_of(*others), began, ended)
    own, _ = world.longest_gap(world.jobs_of(*(hit if others else world.sources)), began, ended)
    time.sleep(4 * EVERY)
    if not told:
        return Figure(name, "", None, gap, own)
    at, row = told[0]
    return Figure(name, row["event"], round(at - began, 1), gap, own, str(row["reason"])[:120])


def _new(row: dict[str, Any]) -> bool:
    return row["event"] in ("late", "unreadable", "store", "clock")


def summary(
    world: World, figures: list[Figure], stops: list[float], start_up: float
) -> dict[str, Any]:
    """Figures by name, with what the ledger says in the end."""
    database = connect_to_read(world.store)

    def count(sql: str) -> int:
        return int(database.execute(sql).fetchone()[0])

    alerts = [each.seconds_to_alert for each in figures if each.seconds_to_alert is not None]
    lines = (world.home / "releases.jsonl").read_text().splitlines()
    handed = {json.loads(line)["release_id"] for line in lines}
    owed = count("SELECT count(*) FROM outbox WHERE sink = 'file' AND delivered_at IS NULL")
    released = count("SELECT count(*) FROM release")
    verified = subprocess.run(
        [sys.executable, "-m", "streamdp", "verify"], cwd=world.home, capture_output=True
    )
    return {
        "jobs": 4 * len(world.sources),
        "first release of every job, s": round(start_up, 1),
        "releases": released,
        "faults": [vars(each) for each in figures],
        "silent faults": sum(each.is_silent for each in figures),
        "longest time to alert, s": max(alerts, default=None),
        "longest gap of unaffected jobs, schedules": max(
            (each.longest_gap_of_others / EVERY for each in figures), default=0.0
        ),
        "stops, s": [round(each, 1) for each in stops],
        "longest stop, s": max(stops),
        "burnt": count("SELECT count(*) FROM ledger WHERE purpose = 'burn'"),
        "lost": max(released - len(handed) - owed, 0),
        "doubled": count(
            "SELECT count(*) FROM (SELECT 1 FROM release GROUP BY job, batch HAVING count(*) > 1)"
        ),
        "forgotten": count(
            "SELECT count(*) FROM ledger r WHERE purpose = 'reserve' AND NOT EXISTS (SELECT 1 FROM"
            " ledger s WHERE s.reservation = r.seq AND s.purpose IN ('commit', 'burn'))"
        )
        + int(verified.returncode != 0),
    }


def wait(holds: Callable[[], bool], seconds: float) -> None:
    """Wait until something holds, for so long."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with suppress(Exception):
            if holds():
                return
        time.sleep(0.2)


def furnish_postgres(conninfo: str, table: str) -> str:
    """A table that a role may read; returns how that role connects."""
    import psycopg

    with psycopg.connect(conninfo, autocommit=True) as server:
        server.execute(f"CREATE TABLE {table} (at timestamp)")
        with server.cursor().copy(f"COPY {table} FROM STDIN") as copy:
            for row in rows():
                copy.write_row([row])
        server.execute("CREATE ROLE reader LOGIN IN ROLE pg_monitor")
        server.execute("GRANT EXECUTE ON FUNCTION pg_control_system TO reader")
        server.execute(f"GRANT SELECT ON {table} TO reader")
    return conninfo.replace("user=postgres", "user=reader")


def furnish_mariadb(url: str) -> str:
    """A table of the server's only database."""
    with asked(url) as server, server.cursor() as cursor:
        cursor.execute("CREATE TABLE maria (at DATETIME)")
        cursor.executemany("INSERT INTO maria VALUES (%s)", [[row] for row in rows()])
        server.commit()
    return url


@contextmanager
def locked(conninfo: str, table: str) -> Iterator[None]:
    """A table that another session has locked."""
    import psycopg

    with psycopg.connect(conninfo) as server:
        server.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield
        server.rollback()


@contextmanager
def revoked(conninfo: str) -> Iterator[None]:
    """A table that its reader may not read for a while."""
    import psycopg

    with psycopg.connect(conninfo, autocommit=True) as server:
        server.execute("REVOKE SELECT ON pg_a FROM reader")
        yield
        server.execute("GRANT SELECT ON pg_a TO reader")


@contextmanager
def locked_maria(url: str) -> Iterator[None]:
    """A table that another session writes alone."""
    with asked(url) as server, server.cursor() as cursor:
        cursor.execute("LOCK TABLES maria WRITE")
        yield
        cursor.execute("UNLOCK TABLES")


@contextmanager
def closed(conninfo: str) -> Iterator[None]:
    """A role that may not log in for a while; its sessions are ended."""
    import psycopg

    with psycopg.connect(conninfo, autocommit=True) as server:
        server.execute("ALTER ROLE reader NOLOGIN")
        server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'"
        )
        yield
        server.execute("ALTER ROLE reader LOGIN")


@contextmanager
def frozen(conninfo: str) -> Iterator[None]:
    """A server that stands still, with all its sessions, and keeps its sockets."""
    stopped = _processes(conninfo)
    _send(signal.SIGSTOP, stopped)
    try:
        yield
    finally:
        _send(signal.SIGCONT, stopped)


@contextmanager
def slowed(conninfo: str) -> Iterator[None]:
    """A server that works a hundredth of the time."""
    ended = threading.Event()

    def halt() -> None:
        while not ended.is_set():
            stopped = _processes(conninfo)
            _send(signal.SIGSTOP, stopped)
            ended.wait(2.0)
            _send(signal.SIGCONT, stopped)
            ended.wait(0.02)

    thread = threading.Thread(target=halt)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def down(conninfo: str) -> Iterator[None]:
    """A server that is not there: it died, nobody listens, and later it is started again."""
    chief = _chief(conninfo)
    process = Path(f"/proc/{chief}")
    command = process.joinpath("cmdline").read_text().split("\0")[:-1]
    program, owner = process.joinpath("exe").readlink(), process.stat().st_uid
    os.kill(chief, signal.SIGQUIT)
    wait(lambda: _is_over(process), 30)
    yield
    user = None if owner == os.geteuid() else owner
    silent: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    home = _home(conninfo)
    again = [str(program), *command[1:]]
    server = subprocess.Popen(again, cwd=home, user=user, group=user, **silent)
    atexit.register(server.send_signal, signal.SIGQUIT)
    ready(server, conninfo)


def _is_over(process: Path) -> bool:
    """Whether a process has ended, though its parent may not know."""
    try:
        return process.joinpath("stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def _home(conninfo: str) -> Path:
    return Path(conninfo.split("host=")[1].split()[0])


def _chief(conninfo: str) -> int:
    return int((_home(conninfo) / "data" / "postmaster.pid").read_text().split()[0])


def _processes(conninfo: str) -> list[int]:
    """The server's process, and those of its sessions."""
    chief = _chief(conninfo)
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(chief)], capture_output=True, text=True
    )
    return [chief, *map(int, listed.stdout.split())]


def _send(number: signal.Signals, processes: list[int]) -> None:
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


@contextmanager
def shifted(world: World, seconds: int) -> Iterator[None]:
    """The daemon's clock, off by so much."""
    world.shift(seconds)
    yield
    world.shift(0)


@contextmanager
def volume(path: Path) -> Iterator[bool]:
    """A volume with room for a run at a path, where this user may mount one; whether there is."""
    path.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", str(path)], capture_output=True
    )
    try:
        yield made.returncode == 0
    finally:
        if made.returncode == 0:
            subprocess.run(["umount", "-l", str(path)], capture_output=True)


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """A volume filled to its last byte."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    yield
    ballast.unlink()


if __name__ == "__main__":
    main()
