"""Every way of naming a file or a table: its records are counted once and paid from one budget.

By brute force: a source is released, then each spelling is tried as a source of its own, beside the
first one and in its place. Whatever the configuration, the store and the engine say, no second
budget is ever charged for the records, and a batch of the spelling has them once or not at all.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from streamdp import wiring
from streamdp.config import Configuration, load
from streamdp.engine.job import EngineContext, Job
from streamdp.engine.runner import Runner
from streamdp.errors import StreamdpError
from streamdp.store.sqlite import SqliteStore
from tests.contract import conftest
from tests.worlds import EventLog, HandClock, ListSink, ReplayedEntropy

CONFIGURATION = """\
store: {path: s.db}
privacy: {unit: trip, caps: {batch: 1, lifetime: 100}}
sources:
{SOURCES}
releases:
{RELEASES}
sinks: {kept: {kind: stdout}}
"""
WINDOWS = "batches: {column: t, every: 1d, start: 2024-01-01, end: 2024-01-02}"
FILES = "batches: files, settle: 0s"
RECORDS = 3
CLOCK = HandClock(1_704_067_200 + 40 * 86_400)


def configured(folder: Path, sources: dict[str, str]) -> Configuration:
    releases = "\n".join(
        f"  of_{name}: {{kind: quantiles, source: {name}, column: x, quantiles: median,"
        " resolution: 1, bounds: [0, 100], epsilon: 0.5, sinks: [kept]}"
        for name in sources
    )
    said = "\n".join(f"  {name}: {{{place}}}" for name, place in sources.items())
    path = folder / "config.yaml"
    path.write_text(CONFIGURATION.replace("{SOURCES}", said).replace("{RELEASES}", releases))
    return load(path)


@dataclass
class Outcome:
    """Who was charged, and how many records each batch of a source has."""

    charged: set[str]
    counts: list[int]


def tried(folder: Path, sources: dict[str, str], *, count: bool = False) -> Outcome:
    """Release what can be released; what is refused is refused."""
    store, log, sink = SqliteStore.open(folder / "s.db", CLOCK.now()), EventLog(), ListSink("kept")
    counts: list[int] = []
    jobs: dict[str, Job] = {}
    try:
        configuration = configured(folder, sources)
        wiring.declare(configuration, store, CLOCK.now(), log)
        jobs = wiring.jobs(configuration)
        around = EngineContext(store, ReplayedEntropy(), CLOCK, log)
        Runner(around, {"kept": sink}).round(jobs.values())
        for job in jobs.values() if count else ():
            counts += list(_counted(job))
    except StreamdpError:
        pass
    finally:
        wiring.hang_up(jobs.values())
    spent = "SELECT DISTINCT scope FROM ledger WHERE purpose = 'reserve'"
    charged = {scope for (scope,) in store.database.execute(spent)}
    store.close()
    return Outcome(charged, counts)


def _counted(job: Job) -> Iterator[int]:
    for batch in job.source.batches(CLOCK.now()):
        query = job.kind.plan(job.kind.init(), batch).query
        try:
            job.backend.check(query, batch)
        except StreamdpError:
            continue
        yield int(job.backend.answer(query, batch).counts.sum())


PATHS = (
    *("data/rides.parquet", "./data/rides.parquet", "data//rides.parquet", "data/./rides.parquet"),
    *("data/../data/rides.parquet", "{HOME}/data/rides.parquet", "{HOME}//data/rides.parquet"),
    *("{HOME}/../{NAME}/data/rides.parquet", "/proc/self/root{HOME}/data/rides.parquet"),
    *("/proc/self/cwd{HOME}/data/rides.parquet", "data/*.parquet", "data/r*.parquet", "data/*"),
    *("data/*rides.parquet", "data/ride?.parquet", "data/[r]ides.parquet", "data/[!q]ides.parquet"),
    *("data/[a-z]ides.parquet", "data/rides.parque[t]", "*/rides.parquet", "*/*.parquet"),
    *("d*/r*.parquet", "**/rides.parquet", "**/*.parquet", "data/**/*.parquet", "data/**"),
    *("data", "data/", "data/rides.parquet/", "data/{rides,zzz}.parquet", "{data,q}/rides.parquet"),
    *(
        "data/rides{.parquet,.q}",
        "link.parquet",
        "hard.parquet",
        "chain.parquet",
        "folder/*.parquet",
    ),
    *("folder/rides.parquet", "data/.hidden.parquet", ".data/*.parquet", "data/.*.parquet"),
    *("data\\\\rides.parquet", "data\\\\*.parquet", ".\\\\data\\\\rides.parquet"),
    *(
        "data/rides\\\\.parquet",
        "DATA/rides.parquet",
        "data/RIDES.PARQUET",
        "file:data/rides.parquet",
    ),
    *("file://{HOME}/data/rides.parquet", "data/rides.parquet ", " data/rides.parquet"),
    *(
        "data/rides.parquet#",
        "data/rides.parquet?",
        "data/%72ides.parquet",
        "~root/../{HOME}/*.parquet",
    ),
    *("data/rides.parquet,data/rides.parquet", "data/rides.parquet\\0", "'data/rides.parquet'"),
)
"""Paths and patterns that name the file, in some engine's opinion or another's."""


def furnished(folder: Path) -> Path:
    """One file of records, and links to it by every way there is."""
    (folder / "data").mkdir(parents=True)
    (folder / ".data").mkdir()
    file = folder / "data" / "rides.parquet"
    select = f"SELECT TIMESTAMP '2024-01-01 05:00' AS t, 10 * i AS x FROM range({RECORDS}) r(i)"
    duckdb.execute(f"COPY ({select}) TO '{file}' (FORMAT parquet)")
    os.symlink("data/rides.parquet", folder / "link.parquet")
    os.symlink("link.parquet", folder / "chain.parquet")
    os.symlink("data", folder / "folder")
    for name in ("hard.parquet", "data/.hidden.parquet", ".data/r.parquet", "data/latest.parquet"):
        os.link(file, folder / name)
    return folder


@pytest.mark.thinned(2)
@pytest.mark.parametrize("cut", [WINDOWS, FILES], ids=["windows", "files"])
@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.long)])
def test_one_file_is_paid_from_one_budget_however_it_is_spelt(
    tmp_path: Path, cut: str, step: int
) -> None:
    """More than forty spellings, each in three ways; files as one batch are not one in windows."""
    made = iter(range(10_000))
    wrong: list[str] = []
    for spelling in PATHS[::step]:

        def make() -> Path:
            return furnished(tmp_path / str(next(made)))

        def place(folder: Path, spelling: str = spelling) -> str:
            named = spelling.replace("{HOME}", str(folder)).replace("{NAME}", folder.name)
            return f'path: "{named}", format: parquet, {cut}'

        wrong += _violations_in(make, place, cut)
    assert len(PATHS) > 50
    assert wrong == []


def _violations_in(make: Callable[[], Path], place: Callable[[Path], str], cut: str) -> list[str]:
    """As `violations`, where a spelling names the folder it is tried in."""
    found: list[str] = []
    first = f"path: data/rides.parquet, {cut}"
    folder = make()
    assert tried(folder, {"first": first}).charged == {"first"}
    for sources in ({"first": first, "second": place(folder)}, {"third": place(folder)}):
        charged = tried(folder, sources).charged
        if charged != {"first"}:
            found.append(f"{place(folder)}: paid by {sorted(charged)}")
    folder = make()
    if len(tried(folder, {"first": first, "second": place(folder)}).charged) > 1:
        found.append(f"{place(folder)} from the start: two budgets")
    folder = make()
    counts = tried(folder, {"second": place(folder)}, count=cut == WINDOWS).counts
    if [each for each in counts if each not in (0, RECORDS)]:
        found.append(f"{place(folder)}: {counts} records counted of {RECORDS}")
    return found


TABLES = ("rides", "main.rides", "RIDES", "Main.Rides", "records.main.rides", "records.rides")
"""Names of one table of a DuckDB database."""

DATABASES = (
    "w.duckdb",
    "./w.duckdb",
    "link.duckdb",
    "hard.duckdb",
    "{HOME}/w.duckdb",
    "q/../w.duckdb",
)
READS = ("table: {T}", "query: SELECT * FROM {T}", "query: SELECT t, x FROM {T} WHERE x < 1000")


@pytest.mark.long
def test_one_table_is_paid_from_one_budget_however_it_is_spelt(tmp_path: Path) -> None:
    """Databases, names and queries: 108 spellings of one DuckDB table."""
    spellings = [(d, r.replace("{T}", t)) for d in DATABASES for t in TABLES for r in READS]
    assert len(spellings) == 108
    folder = tmp_path / "home"
    (folder / "q").mkdir(parents=True)
    with duckdb.connect(str(folder / "w.duckdb")) as connection:
        rows = f"SELECT TIMESTAMP '2024-01-01 05:00' AS t, 10 * i AS x FROM range({RECORDS}) r(i)"
        connection.execute(f"CREATE TABLE rides AS {rows}")
    os.symlink("w.duckdb", folder / "link.duckdb")
    os.link(folder / "w.duckdb", folder / "hard.duckdb")
    first = f"path: w.duckdb, table: rides, {WINDOWS}"
    assert tried(folder, {"first": first}).charged == {"first"}
    for number, (place, reads) in enumerate(spellings):
        other = f"path: {place.replace('{HOME}', str(folder))}, {reads}, {WINDOWS}"
        for sources in ({"first": first, f"beside{number}": other}, {f"alone{number}": other}):
            assert tried(folder, sources).charged == {"first"}, other


def test_a_renamed_table_of_duckdb_opens_no_second_budget(tmp_path: Path) -> None:
    """Also where another takes its name; a table that was beside it from the start is its own."""
    rows = f"SELECT TIMESTAMP '2024-01-01 05:00' AS t, 10 * i AS x FROM range({RECORDS}) r(i)"
    with duckdb.connect(str(tmp_path / "w.duckdb")) as connection:
        for table in ("rides", "trips"):
            connection.execute(f"CREATE TABLE {table} AS {rows}")

    def source(table: str) -> str:
        return f"path: w.duckdb, table: {table}, {WINDOWS}"

    assert tried(tmp_path, {"first": source("rides")}).charged == {"first"}
    with duckdb.connect(str(tmp_path / "w.duckdb")) as connection:
        connection.execute("ALTER TABLE rides RENAME TO old")
    assert tried(tmp_path, {"second": source("old")}).charged == {"first"}
    with duckdb.connect(str(tmp_path / "w.duckdb")) as connection:
        connection.execute(f"CREATE TABLE rides AS {rows}")
    assert tried(tmp_path, {"third": source("old")}).charged == {"first"}
    assert tried(tmp_path, {"fourth": source("trips")}).charged == {"first", "fourth"}


@pytest.mark.long
def test_one_table_of_a_server_is_paid_from_one_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users, hosts, ports, URLs, schemas, a rename: the server itself says which it is."""
    psycopg = pytest.importorskip("psycopg")
    from tests.contract.servers import postgres

    with postgres() as conninfo:
        if conninfo is None:
            pytest.skip("there is no PostgreSQL server to start")
        with psycopg.connect(conninfo, autocommit=True) as connection:
            rows = "SELECT TIMESTAMP '2024-01-01 05:00' AS t, 10 * i AS x"
            rows += f" FROM generate_series(0, {RECORDS - 1}) r(i)"
            connection.execute(f"CREATE TABLE rides AS {rows}")
            connection.execute("CREATE ROLE other LOGIN")
            connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO other")
        host = conninfo.split()[0].removeprefix("host=")
        quoted = host.replace("/", "%2F")
        ways = [
            f"host={host} user={user} dbname=postgres{more}"
            for user in ("postgres", "other")
            for more in (
                "",
                " port=5432",
                " application_name=x",
                " connect_timeout=9",
                " options='-c search_path=public'",
                " target_session_attrs=any",
            )
        ]
        ways += [
            f"{scheme}://{user}@/postgres?host={h}{port}"
            for scheme in ("postgresql", "postgres")
            for user in ("postgres", "other")
            for h in (quoted, f"{quoted}%2F.")
            for port in ("", "&port=5432")
        ]
        names = ("rides", "public.rides", "postgres.public.rides")
        first = f'engine: {{kind: postgres, connection: "{ways[0]}"}}, table: rides, {WINDOWS}'
        folder = tmp_path / "home"
        folder.mkdir()
        assert tried(folder, {"first": first}).charged == {"first"}
        spellings = [(way, name) for way in ways for name in names]
        assert len(spellings) >= 40
        for number, (way, name) in enumerate(spellings):
            other = f'engine: {{kind: postgres, connection: "{way}"}}, table: {name}, {WINDOWS}'
            assert tried(folder, {f"other{number}": other}).charged == {"first"}, other
        for who in ("PUBLIC", "other"):
            with psycopg.connect(conninfo, autocommit=True) as connection:
                connection.execute(f"REVOKE EXECUTE ON FUNCTION pg_control_system() FROM {who}")
            for user in ("postgres", "other"):
                way = f"host={host}/data user={user} dbname=postgres"
                other = f'engine: {{kind: postgres, connection: "{way}"}}, table: rides, {WINDOWS}'
                assert tried(folder, {user: other}).charged == {"first"}, other
        with psycopg.connect(conninfo, autocommit=True) as connection:
            connection.execute("ALTER TABLE rides RENAME TO trips")
        renamed = first.replace("table: rides", "table: trips")
        assert tried(folder, {"renamed": renamed}).charged == {"first"}


def test_a_restored_cluster_of_postgresql_has_the_budget_of_its_origin(open_folder: Path) -> None:
    """Its files under another folder and socket: they keep the number of the cluster."""
    psycopg = pytest.importorskip("psycopg")
    from tests.contract.servers import postgres

    def source(conninfo: str) -> str:
        return f'engine: {{kind: postgres, connection: "{conninfo}"}}, table: rides, {WINDOWS}'

    folder = open_folder / "home"
    folder.mkdir()
    (open_folder / "one").mkdir()
    with postgres(home=open_folder / "one") as conninfo:
        if conninfo is None:
            pytest.skip("there is no PostgreSQL server to start")
        with psycopg.connect(conninfo, autocommit=True) as connection:
            rows = "SELECT TIMESTAMP '2024-01-01 05:00' AS t, 10 * i AS x"
            connection.execute(f"CREATE TABLE rides AS {rows} FROM generate_series(1, 3) r(i)")
        assert tried(folder, {"first": source(conninfo)}).charged == {"first"}
    shutil.copytree(open_folder / "one", open_folder / "two")
    with postgres(home=open_folder / "two") as conninfo:
        assert conninfo is not None
        assert tried(folder, {"second": source(conninfo)}).charged == {"first"}
        with psycopg.connect(conninfo, autocommit=True) as connection:
            connection.execute("CREATE TABLE trips AS SELECT * FROM rides")
        copied = source(conninfo).replace("table: rides", "table: trips")
        assert tried(folder, {"third": copied}).charged == {"first", "third"}


@pytest.mark.long
@pytest.mark.parametrize("way", ["pg_upgrade", "pg_basebackup"])
def test_an_upgraded_and_a_replicated_cluster_have_the_budget_of_their_origin(
    open_folder: Path, way: str
) -> None:
    """An upgrade gives a new number at the old address, a replica the old number at another."""
    psycopg = pytest.importorskip("psycopg")
    from tests.contract import servers

    def source(conninfo: str) -> str:
        return f'engine: {{kind: postgres, connection: "{conninfo}"}}, table: rides, {WINDOWS}'

    def run(home: Path, *command: str) -> None:
        found = servers.binaries()
        assert found is not None
        own = home / "server" / "bin"
        place = own if own.exists() else found
        user = servers._unprivileged(home)
        words = [
            str(place / command[0]),
            *(each.replace("BIN", str(place)) for each in command[1:]),
        ]
        ran = subprocess.run(
            words, cwd=home, user=user, group=user, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stdout[-900:] + ran.stderr[-900:]

    one, two, folder = (open_folder / each for each in ("one", "two", "home"))
    for each in (one, two, folder):
        each.mkdir()
    with servers.postgres(home=one) as conninfo:
        if conninfo is None:
            pytest.skip("there is no PostgreSQL server to start")
        with psycopg.connect(conninfo, autocommit=True) as connection:
            rows = "SELECT TIMESTAMP '2024-01-01 05:00' AS t, 10 * i AS x"
            connection.execute(f"CREATE TABLE rides AS {rows} FROM generate_series(1, 3) r(i)")
        assert tried(folder, {"first": source(conninfo)}).charged == {"first"}
        if way == "pg_basebackup":
            run(two, way, "-h", str(one), "-U", "postgres", "-D", str(two / "data"), "-R")
            (two / "data" / ".s.PGSQL.5432.lock").unlink()  # of the socket in the copied folder
            with servers.postgres(home=two) as replica:
                assert replica is not None
                with psycopg.connect(replica) as connection:
                    follows = connection.execute("SELECT pg_is_in_recovery()").fetchone()
                assert follows == (True,)
                assert tried(folder, {"second": source(replica)}).charged == {"first"}
            return
    create = ["-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"]
    run(one, "initdb", "-D", str(one / "new"), *create)
    clusters = ["-b", "BIN", "-B", "BIN", "-d", str(one / "data"), "-D", str(one / "new")]
    run(one, way, *clusters, "-U", "postgres", "-s", str(one))
    (one / "data").rename(one / "old")
    (one / "new").rename(one / "data")
    with servers.postgres(home=one) as upgraded:
        assert upgraded is not None
        assert tried(folder, {"second": source(upgraded)}).charged == {"first"}


SPARK = 'engine: {kind: spark, master: "local[2]"}'
SPARK_TABLES = (
    *("rides", "RIDES", "default.rides", "DEFAULT.Rides", "spark_catalog.default.rides"),
    *("Spark_Catalog.Default.RIDES", "same_place", "default.same_place", "a_view", "trips"),
)
"""Names of one table of Spark's catalog; one is another table over its files, one a new name."""


spark_session = conftest.spark_session


@pytest.fixture
def spark(spark_session: None, tmp_path: Path) -> Iterator[None]:
    """A session with a table, a view of it and a table in the same place."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    place = furnished(tmp_path / "stored") / "data"
    (place / "latest.parquet").unlink()
    for table in ("rides", "same_place"):
        session.sql(f"CREATE TABLE {table} USING parquet LOCATION '{place}'")
    session.conf.set("spark.sql.ansi.enabled", "false")  # else the view would be refused
    session.sql("CREATE VIEW a_view AS SELECT * FROM rides")
    yield
    session.sql("DROP VIEW a_view")
    for table in ("rides", "trips", "same_place"):
        session.sql(f"DROP TABLE IF EXISTS {table}")


@pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.long)])
def test_one_table_of_spark_is_paid_from_one_budget(tmp_path: Path, spark: None, step: int) -> None:
    """Names in any case, catalogs, a view, another table of the same place, the files, a rename."""
    from pyspark.sql import SparkSession

    folder = tmp_path / "home"
    folder.mkdir()
    first = f"{SPARK}, table: rides, {WINDOWS}"
    assert tried(folder, {"first": first}).charged == {"first"}
    for number, table in enumerate(SPARK_TABLES):
        if table == "trips":
            SparkSession.builder.getOrCreate().sql("ALTER TABLE rides RENAME TO trips")
        for reads in READS[number % step :: step]:
            other = f"{SPARK}, {reads.replace('{T}', table)}, {WINDOWS}"
            name = f"other{number}{READS.index(reads)}"
            assert tried(folder, {name: other}).charged == {"first"}, other
    for name, engine in (("spark", SPARK), ("duckdb", "engine: {kind: duckdb}")):
        files = f"{engine}, path: {tmp_path}/stored/data/*.parquet, {WINDOWS}"
        assert tried(folder, {name: files}).charged == {"first"}, files


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning")
def test_one_file_that_spark_reads_is_counted_once(tmp_path: Path, spark_session: None) -> None:
    """Every spelling, read by Spark where DuckDB has read the file, and alone."""
    wrong: list[str] = []
    counted = 0
    for number, spelling in enumerate(PATHS):
        folder = furnished(tmp_path / str(number))
        named = spelling.replace("{HOME}", str(folder)).replace("{NAME}", folder.name)
        second = f'{SPARK}, path: "{named}", format: parquet, {WINDOWS}'
        counts = tried(folder, {"second": second}, count=True).counts
        counted += RECORDS in counts
        wrong += [f"{second}: {counts}"] * any(each not in (0, RECORDS) for each in counts)
        folder = furnished(tmp_path / f"{number} paid")
        first = f"path: data/rides.parquet, {WINDOWS}"
        named = spelling.replace("{HOME}", str(folder)).replace("{NAME}", folder.name)
        second = f'{SPARK}, path: "{named}", format: parquet, {WINDOWS}'
        assert tried(folder, {"first": first}).charged == {"first"}
        charged = tried(folder, {"second": second}).charged
        wrong += [f"{second}: paid by {sorted(charged)}"] * (charged != {"first"})
    assert len(PATHS) > 50
    assert counted > 20
    assert wrong == []
