"""Tables of databases as sources and sinks: configured, released, delivered beside each other."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner
from pydantic import SecretStr

from streamdp.backends.postgres import PostgresEngine
from streamdp.cli import cli
from streamdp.config import load
from streamdp.errors import ConfigurationError
from streamdp.log import close
from streamdp.sources.section import SourceSection
from streamdp.sources.windows import Windows

CONFIGURATION = """\
store: {path: s.db}
privacy: {unit: {name: rider, column: rider, rows: 2}, caps: {batch: 1, lifetime: 100}}
sources:
  rides: {SOURCE}
releases:
  minutes:
    {kind: quantiles, source: rides, column: {sql: seconds / 60}, where: "city = 'NYC'",
     quantiles: median, resolution: 1, bounds: [0, 100], epsilon: 0.5, sinks: [kept]}
sinks:
  kept: {SINK}
"""
PAUSES = "streamdp.backends.sql.server.PAUSES"
DAYS = "batches: {column: at, every: 1d, start: 2024-01-01, end: 2024-01-03}"
DATABASE = f"{{path: wh.duckdb, table: rides, {DAYS}}}"
BESIDE = "{kind: duckdb, path: wh.duckdb, table: medians}"
SERVER = f'{{engine: {{kind: postgres, connection: "${{PG}}"}}, table: public.rides, {DAYS}}}'
RIDES = (
    "CREATE TABLE rides AS SELECT i % 40 AS rider, 60.0 * (i % 90) AS seconds,"
    " CASE WHEN i % 2 = 0 THEN 'NYC' ELSE 'SF' END AS city,"
    " TIMESTAMP '2024-01-01 00:00:00' + (i % 48) * INTERVAL '1 hour' AS at"
)


def written(folder: Path, source: str, sink: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(CONFIGURATION.replace("{SOURCE}", source).replace("{SINK}", sink))
    return path


def require_unreached(path: Path) -> None:
    """Run a source whose server is not there: an error, without the password CANARY anywhere."""
    result = CliRunner().invoke(cli, ["run", "--once", "-c", str(path)])
    close()
    assert result.exit_code == 1
    assert "cannot be reached" in result.output
    assert "CANARY" not in result.output
    for file in path.parent.iterdir():
        assert b"CANARY" not in file.read_bytes()


def ran(path: Path, *arguments: str) -> str:
    result = CliRunner().invoke(cli, [*arguments, "-c", str(path)])
    close()
    assert result.exit_code == 0, f"{result.output} {result.exception}"
    return result.output


def test_a_database_holds_records_and_releases(tmp_path: Path) -> None:
    """Two days are read from one table and delivered to another of the same file."""
    with duckdb.connect(str(tmp_path / "wh.duckdb")) as connection:
        connection.execute(f"{RIDES} FROM range(2000) r(i)")
    path = written(tmp_path, DATABASE, BESIDE)
    ran(path, "doctor")
    ran(path, "run", "--once")
    with duckdb.connect(str(tmp_path / "wh.duckdb")) as connection:
        found = connection.execute("SELECT batch, value FROM medians ORDER BY batch").fetchall()
    assert [batch for batch, _ in found] == ["2024-01-01", "2024-01-02"]


def test_two_tables_of_one_database_have_two_budgets_and_a_renamed_one_has_one(
    tmp_path: Path,
) -> None:
    """What a budget belongs to is file and table: another table is other data, a name is not."""
    with duckdb.connect(str(tmp_path / "wh.duckdb")) as connection:
        connection.execute(f"{RIDES} FROM range(100) r(i)")
        connection.execute("CREATE TABLE trips AS FROM rides")
    path = written(tmp_path, DATABASE, "{kind: stdout}")
    text = path.read_text()
    more = f"  trips: {DATABASE.replace('rides', 'trips')}\nreleases:\n"
    path.write_text(text.replace("releases:\n", more))
    ran(path, "run", "--once")
    path.write_text(
        text.replace("  rides: ", "  again: ").replace("source: rides", "source: again")
    )
    result = CliRunner().invoke(cli, ["run", "--once", "-c", str(path)])
    close()
    assert isinstance(result.exception, ConfigurationError)
    assert "rides" in str(result.exception)


def test_a_server_is_remembered_without_its_password() -> None:
    """Of a connection, host, port and database say whose the budget is; the rest is forgotten."""
    pytest.importorskip("psycopg")
    engine = PostgresEngine(
        kind="postgres", connection=SecretStr("postgresql://u:CANARY@db:5433/wh")
    )
    windows = Windows(column="at", every="1d", start="2024-01-01")  # type: ignore[arg-type]
    source = SourceSection(table="Public.Rides", engine=engine, batches=windows)
    assert source.identity() == {
        "path": "postgres://db:5433/wh#public.rides",
        "column": "at",
        "read": {"zone": "UTC"},
    }


REFUSED = [
    ("{kind: stdout}", f"{{table: rides, {DAYS}}}", "do not fit the engine duckdb"),
    ("{kind: stdout}", "{path: wh.duckdb, table: rides, batches: files}", "cut by time"),
    ("{kind: stdout}", f"{{path: wh.duckdb, table: 'a; b', {DAYS}}}", "rides.table"),
    ("{kind: stdout}", SERVER.replace("${PG}", "postgresql://u:pw@h/d"), "a password must not"),
    ("{kind: stdout}", SERVER.replace("${PG}", "host=h password=pw"), "a password must not"),
    ("{kind: stdout}", SERVER.replace("table: public.rides, ", ""), "do not fit"),
    ("{kind: stdout}", SERVER.replace("table:", "path: x.csv, table:"), "do not fit"),
    ("{kind: stdout}", f"{{engine: {{kind: spark}}, path: x.csv, {DAYS}}}", "spark reads Parquet"),
    ("{kind: stdout}", f"{{engine: {{kind: sparc}}, table: x, {DAYS}}}", "engine"),
    (BESIDE.replace("medians", "Rides"), DATABASE, "reads this file"),
]


@pytest.mark.parametrize(("sink", "source", "words"), REFUSED)
def test_what_does_not_fit_is_refused_at_its_line(
    tmp_path: Path, sink: str, source: str, words: str
) -> None:
    """File, line and what to do."""
    with pytest.raises(ConfigurationError, match=r"config\.yaml:\d+:\d+ s") as caught:
        load(written(tmp_path, source, sink), {"PG": "host=h"})
    assert words in str(caught.value)


def test_a_cast_that_postgresql_could_fail_on_is_refused(tmp_path: Path) -> None:
    """The engine of the source decides what an expression may say."""
    path = written(tmp_path, SERVER, "{kind: stdout}")
    load(path, {"PG": "host=h"})
    path.write_text(path.read_text().replace("seconds / 60", "CAST(seconds AS INT)"))
    with pytest.raises(ConfigurationError, match="cast in a view"):
        load(path, {"PG": "host=h"})


def test_one_table_under_two_names_is_refused(tmp_path: Path) -> None:
    """Two sources of one table of one server would be two budgets."""
    path = written(tmp_path, SERVER, "{kind: stdout}")
    again = f"  again: {SERVER.replace('public.rides', 'public.RIDES')}\nreleases:\n"
    path.write_text(path.read_text().replace("releases:\n", again))
    with pytest.raises(ConfigurationError, match="same data") as caught:
        load(path, {"PG": "host=h password=hunter2"})
    assert "hunter2" not in str(caught.value)


def test_a_server_that_is_not_there_is_told_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is spent, and neither error nor log nor store holds the connection."""
    pytest.importorskip("psycopg")
    monkeypatch.setattr(PAUSES, ())
    monkeypatch.setenv("PG", "host=127.0.0.1 port=1 password=CANARY connect_timeout=1")
    require_unreached(written(tmp_path, SERVER, "{kind: stdout}"))


def test_a_postgresql_table_is_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same configuration against a real server; skipped where none can be started."""
    psycopg = pytest.importorskip("psycopg")
    from tests.contract.servers import postgres

    with postgres() as conninfo:
        if conninfo is None:
            pytest.skip("there is no PostgreSQL server to start")
        with psycopg.connect(conninfo, autocommit=True) as connection:
            connection.execute(f"{RIDES} FROM generate_series(0, 1999) r(i)")
        monkeypatch.setenv("PG", conninfo)
        path = written(tmp_path, SERVER, "{kind: jsonl, path: out.jsonl}")
        ran(path, "doctor")
        ran(path, "run", "--once")
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize(("place", "words"), [(0, "sources.engine"), (1, "sinks.kept")])
def test_a_library_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int, words: str
) -> None:
    """What to install, before anything is spent."""
    monkeypatch.setattr("streamdp.errors.find_spec", lambda name: None)
    monkeypatch.setenv("PG", "host=h")
    sinks = ("{kind: stdout}", '{kind: postgres, connection: "${PG}", table: t}')
    path = written(tmp_path, (SERVER, DATABASE)[place], sinks[place])
    result = CliRunner().invoke(cli, ["run", "--once", "-c", str(path)])
    close()
    assert isinstance(result.exception, ConfigurationError)
    assert words in str(result.exception)
    assert "streamdp[postgres]" in str(result.exception)
