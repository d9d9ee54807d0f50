"""Every sink against a hostile place: the daemon goes on, and no foreign byte is lost.

Beside each such sink stands a healthy one, which must get every release. What stood in the place
before must stand there afterwards, and the log must say why the sink took nothing. A sink that can
work in its place all the same may do so.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.children import in_child
from tests.crash.home import BATCHES, CONFIG, DEBTS, Home, folder

FOREIGN = {
    "no newline": b"important, no newline",
    "a number": b"5\n",
    "text": b"remember the milk\nand the bread\n",
    "other JSON": b'{"id": 1}\n{"id": 2}\n',
    "bytes": bytes(range(256)) * 20,
    "zeros": bytes(5000),
    "half a release": b'{"release_id": "0123456789',
}
"""What somebody else may have in the file of a sink."""

FILES = ("jsonl", "csv", "parquet", "duckdb")
NOBODY = 65534

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Case:
    """A sink in a place.

    Args:
        kind: Of the sink.
        place: What is wrong with it.
        section: The sink in the configuration.
        prepare: Makes the place, in the folder of the installation.
        limit: Done in the process that works, before it does.
        works: Whether the sink may take what it is owed.
    """

    kind: str
    place: str
    section: str
    prepare: Callable[[Path], object] = lambda path: None
    limit: Callable[[], object] = lambda: None
    works: bool = False


def cases() -> Iterator[Case]:
    """Every sink in every place."""
    for kind in FILES:
        yield from _of_files(kind)
    yield from _of_tables()
    yield from _of_programs()
    yield from _of_addresses()


def violations(case: Case) -> Iterator[str]:
    """What went wrong with a sink in a place."""
    with folder() as root:
        root.chmod(0o755)
        home = Home.furnish(root / "home", _config(case))
        case.prepare(home.path)
        before = _foreign(home.path)
        ending = in_child(lambda: _work(home, case))
        wrong = [f"the daemon ended with {ending.code}: {ending.trace[-300:]}"] * bool(ending.code)
        if ending.code == 0:
            wrong += _unsaid(home, case)
        after = _foreign(home.path)
        wrong += [f"{name} was changed" for name in before if after.get(name) != before[name]]
    yield from (f"{case.kind} at {case.place}: {each}" for each in wrong)


def _config(case: Case) -> str:
    plain = CONFIG.replace("file: {kind: jsonl, path: out.jsonl}", f"{_HEALTHY}{case.section}")
    return plain.replace("[table, file]", "[table, file, hostile]")


_HEALTHY = "file: {kind: jsonl, path: out.jsonl}\n  hostile: "


def _work(home: Home, case: Case) -> int:
    """Two rounds: one that meets the place, and one that meets it again."""
    os.chdir(home.path)
    case.limit()
    return sum(home.live(seed, rounds=2).released for seed in ("first", "second"))


def _unsaid(home: Home, case: Case) -> list[str]:
    """What the healthy sink and the log lack."""
    wrong = []
    if len(home.published()) != BATCHES:
        wrong.append("the healthy sink was not given all releases")
    with closing(sqlite3.connect(home.store)) as database:
        owed = "SELECT count(*) FROM outbox WHERE delivered_at IS NULL AND sink"
        (healthy,) = database.execute(f"{owed} != 'hostile'").fetchone()
        (hostile,) = database.execute(f"{owed} = 'hostile'").fetchone()
        reasons = database.execute("SELECT count(*) FROM outbox WHERE reason NOT NULL").fetchone()
        (delivered,) = database.execute(
            "SELECT count(*) FROM outbox WHERE delivered_at NOT NULL"
        ).fetchone()
    if healthy or delivered < DEBTS:
        wrong.append("a debt to the healthy sinks is left")
    log = [json.loads(line) for line in (home.path / "streamdp.log").read_text().splitlines()]
    told = [line for line in log if line["event"] in ("sink.failed", "sink.gave-up")]
    if hostile and not (reasons[0] and told and all(line.get("reason") for line in told)):
        wrong.append("the reason is not told")
    if not case.works and not hostile:
        wrong.append("the sink says that it has taken what it cannot have")
    return wrong


def _foreign(path: Path) -> dict[str, bytes]:
    """What stands in the folders of other people, and links as they are."""
    found = {}
    for root in (path / "foreign", path / "place"):
        for file in [root, *sorted(root.rglob("*"))] if root.exists() or root.is_symlink() else []:
            name = str(file.relative_to(path))
            if file.is_symlink():
                found[f"{name} (link)"] = os.readlink(file).encode()
            elif file.is_file():
                found[name] = file.read_bytes()
    return found


def _of_files(kind: str) -> Iterator[Case]:
    """Sinks that write files: the path is `place`, or below it."""
    table = ", table: medians" if kind == "duckdb" else ""

    def at(path: str) -> str:
        return f"{{kind: {kind}, path: {path}{table}}}"

    if kind in ("csv", "parquet"):
        for name, content in FOREIGN.items():
            yield Case(kind, f"a file with {name}", at("place"), _writes(content))
        yield Case(kind, "a file for a job", at("place"), _job_is_a_file)
    else:
        for name, content in FOREIGN.items():
            yield Case(kind, f"a file with {name}", at("place"), _writes(content))
        yield Case(kind, "a folder", at("place"), _makes_folder)
    yield Case(kind, "below a file", at("place/below"), _writes(b"a file"))
    yield Case(kind, "below nothing", at("/proc/none/out"))
    yield Case(kind, "a link to a foreign file", at("place"), _links(b"foreign\n"))
    yield Case(kind, "a link to nothing below a file", at("place"), _links_below_a_file)
    yield Case(kind, "a link to itself", at("place"), lambda path: _link(path, "place"))
    yield Case(kind, "a pipe", at("place"), lambda path: os.mkfifo(path / "place"))
    yield Case(kind, "a device", at("/dev/full"))
    if can_mount():
        yield Case(kind, "a full disk", at("place/out"), _makes_folder, _no_space)
    if os.geteuid() == 0:
        yield Case(kind, "no permission", at("place/out"), _another_users, _without_rights)
        yield Case(kind, "another user's link", at("place"), _planted)


def _of_tables() -> Iterator[Case]:
    """Sinks that write tables."""
    made = "CREATE TABLE foreign_ (release_id BLOB NOT NULL CHECK (0), row ANY)"
    section = "{kind: table, table: foreign_}"
    yield Case("table", "another table", section, lambda path: _in_store(path, made))
    yield Case("duckdb", "a view", "{kind: duckdb, path: wh.duckdb, table: d}", _duckdb_view)
    yield Case("postgres", "no server", _postgres("host=127.0.0.1 port=1 connect_timeout=2"))
    yield Case("postgres", "a wrong address", _postgres("host=nowhere.invalid connect_timeout=2"))


def _of_programs() -> Iterator[Case]:
    """Commands that cannot be run."""

    def runs(program: str, words: str = "") -> str:
        return f"{{kind: command, argv: [{program}{words}], attempts: 2}}"

    yield Case("command", "a folder", runs("./place"), _makes_folder)
    yield Case("command", "no program", runs("./place"))
    yield Case("command", "a text", runs("./place"), _writes(b"remember the milk\n"))
    yield Case("command", "a link to itself", runs("./place"), lambda path: _link(path, "place"))
    yield Case("command", "a failure", runs("/bin/false"))
    yield Case(
        "command", "no folder", "{kind: command, argv: [/bin/true], path: place, attempts: 2}"
    )


def _of_addresses() -> Iterator[Case]:
    """Webhooks to which nobody listens, or somebody else."""
    section = "{kind: webhook, url: '%s', secret: {file: key}, timeout: 2s, attempts: 2}"
    for place, url in {
        "nobody": "http://127.0.0.1:1/",
        "no name": "https://nowhere.invalid/",
        "a server without TLS": f"https://127.0.0.1:{_talker()}/",
        "a server of other words": f"http://127.0.0.1:{_talker()}/",
    }.items():
        yield Case(
            "webhook", place, section % url, lambda path: (path / "key").write_text("k" * 32)
        )


def _writes(content: bytes) -> Callable[[Path], object]:
    return lambda path: (path / "place").write_bytes(content)


def _makes_folder(path: Path) -> None:
    (path / "place").mkdir()


def _job_is_a_file(path: Path) -> None:
    (path / "place").mkdir()
    (path / "place" / "daily").write_bytes(b"foreign")


def _link(path: Path, to: str) -> None:
    (path / "place").symlink_to(to)


def _links(content: bytes) -> Callable[[Path], object]:
    def prepare(path: Path) -> None:
        (path / "foreign").mkdir()
        (path / "foreign" / "file").write_bytes(content)
        _link(path, "foreign/file")

    return prepare


def _links_below_a_file(path: Path) -> None:
    (path / "foreign").mkdir()
    (path / "foreign" / "file").write_bytes(b"foreign")
    _link(path, "foreign/file/below")


def _planted(path: Path) -> None:
    """A link that another user has made, to an empty file of this one."""
    _links(b"")(path)
    os.lchown(path / "place", NOBODY, NOBODY)


def _another_users(path: Path) -> None:
    (path / "place").mkdir(mode=0o755)
    os.chown(path / "place", NOBODY, NOBODY)


def _without_rights() -> None:
    """Root that may no longer write what is another's."""
    head, none = struct.pack("Ii", 0x20080522, 0), bytes(24)
    if _libc.capset(head, none):
        raise OSError(ctypes.get_errno(), "rights cannot be given up")


def _no_space() -> None:
    """A full disk of its own in `place`, which goes with the process that has mounted it."""
    place = (Path.cwd() / "place").as_posix().encode()
    full = b"size=4k,mode=777"
    if (
        _libc.unshare(0x20000)
        or _libc.mount(b"none", b"/", None, 0x44000, None)
        or _libc.mount(b"tmpfs", place, b"tmpfs", 0, full)
    ):
        raise OSError(ctypes.get_errno(), "nothing can be mounted")
    (Path.cwd() / "place" / "full").write_bytes(bytes(4096))


def can_mount() -> bool:
    """Whether a child may mount a disk of its own."""
    with folder() as root:
        (root / "place").mkdir()

        def work() -> None:
            os.chdir(root)
            _no_space()

        return in_child(work).code == 0


def _in_store(path: Path, statement: str) -> None:
    """Let somebody make something in the store, once it is there."""
    home = Home(path)
    text = (path / "config.yaml").read_text()
    (path / "config.yaml").write_text(text.replace("end: 2023-11-18", "end: 2023-11-16"))
    in_child(lambda: home.live("before").released).require(0)
    (path / "config.yaml").write_text(text)
    with closing(sqlite3.connect(path / "store.db", isolation_level=None)) as database:
        database.execute("DROP TABLE IF EXISTS foreign_")
        database.execute(statement)


def _duckdb_view(path: Path) -> None:
    import duckdb

    with duckdb.connect(str(path / "wh.duckdb")) as connection:
        connection.execute("CREATE VIEW d AS SELECT 1 AS release_id, 2 AS row")


def _postgres(connection: str) -> str:
    return f"{{kind: postgres, connection: '{connection}', table: medians}}"


def _talker() -> int:
    """Port of a server that says something that is no HTTP, to a few callers."""
    import threading

    server = socket.create_server(("127.0.0.1", 0))

    def talk() -> None:
        for _ in range(20):
            with suppress(OSError):
                caller, _ = server.accept()
                caller.sendall(b"SSH-2.0-hello\r\n")
                caller.close()

    threading.Thread(target=talk, daemon=True).start()
    return int(server.getsockname()[1])
