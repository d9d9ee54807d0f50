"""Tables of MariaDB as sources: released, paid from one budget, reached over TLS, nothing told."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from pydantic import SecretStr

from streamdp.backends.mariadb import MariaDBEngine
from streamdp.cli import cli
from streamdp.config import load
from streamdp.errors import ConfigurationError
from streamdp.log import close
from streamdp.sources.section import SourceSection
from streamdp.sources.windows import Windows
from tests.contract.servers import asked, mariadb
from tests.sources.test_databases import DAYS, PAUSES, ran, require_unreached, written
from tests.sources.test_spellings import RECORDS, WINDOWS, tried

pytest.importorskip("pymysql")

SERVER = f'{{engine: {{kind: mariadb, connection: "${{MARIA}}"}}, table: rides, {DAYS}}}'
RIDES = (
    "CREATE TABLE rides AS SELECT seq % 40 AS rider, 60e0 * (seq % 90) AS seconds,"
    " IF(seq % 2 = 0, 'NYC', 'SF') AS city,"
    " TIMESTAMP '2024-01-01 00:00:00' + INTERVAL seq % 48 HOUR AS at FROM seq_0_to_1999"
)
USERS = (
    "CREATE USER reader IDENTIFIED BY 'CANARY'",
    "GRANT SELECT ON w.* TO reader",
    "GRANT PROCESS ON *.* TO reader",
    "CREATE USER other",
    "GRANT SELECT ON *.* TO other",
)


def told(url: str, *statements: str) -> None:
    with asked(url) as server, server.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with mariadb() as url:
        if url is None:
            pytest.skip("no MariaDB here: install mariadb-server of the distribution")
        told(url, RIDES, *USERS)
        yield url


def test_a_table_is_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str) -> None:
    """By a user who may SELECT, whose password stands in no file and no output."""
    monkeypatch.setenv("MARIA", server.replace("root@", "reader:CANARY@"))
    path = written(tmp_path, SERVER, "{kind: jsonl, path: out.jsonl}")
    said = [ran(path, *words) for words in (["validate"], ["plan"], ["doctor"], ["run", "--once"])]
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2
    assert "CANARY" not in "".join(said)
    for file in tmp_path.iterdir():
        assert b"CANARY" not in file.read_bytes()


def test_one_table_is_paid_from_one_budget(tmp_path: Path, server: str) -> None:
    """Users, sockets, databases in the name or in the URL, another case, a rename."""
    rows = "SELECT TIMESTAMP '2024-01-01 05:00' AS t, 10 * seq AS x FROM seq_0_to_"
    told(server, f"CREATE TABLE one AS {rows}{RECORDS - 1}")
    socket = server.partition("socket=")[2]
    folder = tmp_path / "home"
    folder.mkdir()
    (tmp_path / "link").symlink_to(socket)

    def source(user: str, base: str, where: str, name: str) -> str:
        url = f"mariadb://{user}@localhost/{base}?socket={where}"
        return f'engine: {{kind: mariadb, connection: "{url}"}}, table: {name}, {WINDOWS}'

    first = source("root", "w", socket, "one")
    assert tried(folder, {"first": first}).charged == {"first"}
    users = ("root", "other")
    places = (
        socket,
        str(tmp_path / "link"),
        socket.replace("/s", "/./s"),
        f"{socket}&sslmode=disable",
    )
    names = [("w", "one"), ("w", "w.one"), ("mysql", "w.one"), ("information_schema", "w.one")]
    spellings = [(u, b, p, n) for u in users for p in places for b, n in names]
    assert len(spellings) >= 30
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    assert tried(fresh, {"second": source(*spellings[-1])}).charged == {"second"}
    for spelling in spellings:
        second = source(*spelling)
        assert tried(folder, {"second": second}).charged == {"first"}, second
    told(server, "RENAME TABLE one TO other")
    second = source("root", "w", socket, "other")
    assert tried(folder, {"second": second}).charged == {"first"}


def test_a_server_that_is_reached_otherwise_is_the_same(tmp_path: Path, open_folder: Path) -> None:
    """By a socket and, after a start with another port and number, by TCP, by another user."""
    from tests.ports import free_port

    rows = "SELECT TIMESTAMP '2024-01-01 05:00' AS t, 10 * seq AS x FROM seq_0_to_9"
    listening = ("--skip-networking=0", "--bind-address=127.0.0.1")
    for user in ("root", "other"):
        port = free_port()
        with mariadb(*listening, f"--port={port}", "--server-id=7", home=open_folder) as url:
            if url is None:
                pytest.skip("no MariaDB here")
            if user == "root":
                told(url, f"CREATE TABLE one AS {rows}", *USERS)
            way = url if user == "root" else f"mariadb://other@127.0.0.1:{port}/w"
            source = f'engine: {{kind: mariadb, connection: "{way}"}}, table: one, {WINDOWS}'
            assert tried(tmp_path, {user: source}).charged == {"root"}


def test_a_server_is_remembered_without_user_and_password() -> None:
    """Host, port and database say whose the budget is."""
    url = SecretStr("mariadb://u:CANARY@db:3307/wh?sslmode=disable")
    windows = Windows(column="at", every="1d", start="2024-01-01")  # type: ignore[arg-type]
    engine = MariaDBEngine(kind="mariadb", connection=url)
    source = SourceSection(table="Rides", engine=engine, batches=windows)
    assert source.identity() == {
        "path": "mariadb://db:3307/wh#rides",
        "column": "at",
        "read": {"zone": "UTC"},
    }


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (SERVER.replace("${MARIA}", "mariadb://u:pw@h/d"), "a password must not be"),
        (SERVER.replace("table: rides, ", ""), "do not fit"),
        (SERVER.replace("table:", "path: x.csv, table:"), "do not fit"),
    ],
)
def test_what_does_not_fit_is_refused_at_its_line(tmp_path: Path, source: str, words: str) -> None:
    """File, line and what to do."""
    with pytest.raises(ConfigurationError, match=r"config\.yaml:\d+:\d+ s") as caught:
        load(written(tmp_path, source, "{kind: stdout}"), {"MARIA": "mariadb://u@h/d"})
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "host=h password=CANARY",
        "mysql://u:CANARY@h/d",
        "mariadb://u:CANARY@h",
        "mariadb://u:CANARY@h/d?sslmode=prefer",
        "mariadb://u:CANARY@h:x/d",
        "mariadb://u:CANARY@h/d?ssl=1",
        "mariadb://u:CANARY@[h/d",
    ],
)
def test_what_is_no_connection_is_told_without_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """It may hold a password."""
    monkeypatch.setenv("MARIA", url)
    path = written(tmp_path, SERVER, "{kind: stdout}")
    result = CliRunner().invoke(cli, ["run", "--once", "-c", str(path)])
    close()
    assert isinstance(result.exception, ConfigurationError)
    assert "mariadb://reader@db:3306/warehouse" in str(result.exception)
    assert "CANARY" not in f"{result.output} {result.exception}"


def test_a_server_that_is_not_there_is_told_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is spent, and neither error nor log nor store holds the connection."""
    monkeypatch.setattr(PAUSES, ())
    monkeypatch.setenv("MARIA", "mariadb://u:CANARY@127.0.0.1:1/w")
    require_unreached(written(tmp_path, SERVER, "{kind: stdout}"))


def test_a_library_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What to install, before anything is spent."""
    monkeypatch.setattr("streamdp.errors.find_spec", lambda name: None)
    monkeypatch.setenv("MARIA", "mariadb://u@h/d")
    path = written(tmp_path, SERVER, "{kind: stdout}")
    result = CliRunner().invoke(cli, ["run", "--once", "-c", str(path)])
    close()
    assert isinstance(result.exception, ConfigurationError)
    assert "streamdp[mariadb]" in str(result.exception)


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate of its own authority for a host, and its key."""
    paths = folder / f"{name}.pem", folder / f"{name}.key"
    named = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
    made = ["-out", str(paths[0]), "-keyout", str(paths[1])]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *named, *made],
        check=True,
        capture_output=True,
    )
    for path in paths:
        path.chmod(0o644)
    return paths


def test_a_server_is_asked_over_tls_that_names_it(open_folder: Path) -> None:
    """Another name, another authority, or none at all: nothing is sent to it."""
    from streamdp.backends.mariadb import MariaDBBackend, ServerAddress
    from streamdp.backends.sql.relation import Relation
    from streamdp.errors import SourceError
    from streamdp.types import Batch
    from tests.ports import free_port

    chain, key = certificate(open_folder, "localhost")
    foreign, _ = certificate(open_folder, "other")
    port = free_port()
    listening = ("--skip-networking=0", "--bind-address=127.0.0.1", f"--port={port}")
    with mariadb(*listening, f"--ssl-cert={chain}", f"--ssl-key={key}") as url:
        if url is None:
            pytest.skip("no MariaDB here")
        told(url, RIDES, *USERS, "ALTER USER reader REQUIRE SSL")
        base = f"mariadb://reader:CANARY@localhost:{port}/w"
        good = f"{base}?sslmode=verify-full&sslrootcert={chain}"
        bad = (
            base,
            f"{base}?sslmode=verify-full",
            f"{base}?sslmode=verify-full&sslrootcert={foreign}",
            f"{base}?sslmode=verify-full&sslrootcert={open_folder / 'nothing'}",
            good.replace("localhost", "127.0.0.1"),
        )
        batch = Batch("s", "b")

        def origins(address: str) -> tuple[str, ...]:
            backend = MariaDBBackend(
                ServerAddress.of(address), Relation("rides"), sleep=lambda _: None
            )
            try:
                return backend.origins(batch)
            finally:
                backend.close()

        assert len(origins(good)) == 4
        for each in bad:
            with pytest.raises(SourceError, match=r"cannot be reached|does not admit") as caught:
                origins(each)
            assert "CANARY" not in str(caught.value)
