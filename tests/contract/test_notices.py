"""What `doctor` says of a source that is served: views that compute, limits, missing privileges."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from streamdp.backends.mariadb import MariaDBBackend, ServerAddress
from streamdp.backends.postgres import PostgresBackend
from streamdp.backends.sql.relation import Relation
from streamdp.cli import cli
from tests.contract.servers import asked as connected
from tests.contract.test_total import FILE


def test_doctor_names_what_burns_charges_in_postgresql(postgres_server: str) -> None:
    """Views, also beneath others, and a role's limit of temporary files."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres_server, autocommit=True) as server:
        server.execute("CREATE TABLE noted (x INT, note TEXT)")
        server.execute("CREATE VIEW plain AS SELECT x, note AS said FROM noted WHERE x > 1")
        server.execute("CREATE VIEW computing AS SELECT x, note::int AS h FROM noted")
        server.execute("CREATE VIEW above AS SELECT x, h FROM computing")
        try:
            for name, told in (("noted", 0), ("plain", 0), ("computing", 1), ("above", 1)):
                backend = PostgresBackend(postgres_server, Relation(name))
                found = backend.notices(FILE)
                backend.close()
                assert len(found) == told, found
                assert all("view computing computes" in each for each in found)
            server.execute("ALTER ROLE postgres SET temp_file_limit = '9MB'")
            backend = PostgresBackend(postgres_server, Relation("plain"))
            assert ["temp_file_limit is 9MB" in each for each in backend.notices(FILE)] == [True]
            backend.close()
        finally:
            server.execute("ALTER ROLE postgres RESET temp_file_limit")
            server.execute("DROP TABLE noted CASCADE")


def test_doctor_names_views_of_duckdb_that_compute(tmp_path: Path) -> None:
    """A cast, a quotient, and a view beneath another; by the command that everybody runs."""
    with duckdb.connect(str(tmp_path / "noted.duckdb")) as database:
        database.execute("CREATE SCHEMA other")
        database.execute("CREATE TABLE noted AS SELECT 1 AS x, '2' AS note, DATE '2024-01-01' AS t")
        for name, select in {
            "plain": "x, note AS said, t FROM noted WHERE x > 1 AND note IS NOT NULL",
            "casting": "CAST(note AS DOUBLE) AS x, t FROM noted",
            "other.dividing": "100 / x AS x, t FROM noted",
            "above": "x, t FROM other.dividing",
        }.items():
            database.execute(f"CREATE VIEW {name} AS SELECT {select}")
    told = {"noted": "", "plain": "", "casting": "casting", "above": "dividing"}
    for name, view in told.items():
        path = tmp_path / "config.yaml"
        path.write_text(f"""
store: {{path: {name}.db}}
privacy: {{unit: record, caps: {{batch: 1, lifetime: 9}}}}
sources:
  s: {{path: noted.duckdb, table: {name},
    batches: {{column: t, every: 1d, start: 2024-01-01, end: 2024-01-02}}}}
releases: {{r: {{kind: statistics, source: s, epsilon: 1, measures: {{n: count}}, sinks: [f]}}}}
sinks: {{f: {{kind: jsonl, path: {name}.jsonl}}}}
""")
        said = " ".join(CliRunner().invoke(cli, ["doctor", "-c", str(path)]).output.split())
        assert "its columns are there" in said, said
        assert (f"the view {view} computes" in said) if view else ("computes" not in said), said


def test_doctor_names_what_burns_charges_in_mariadb(mariadb_server: str) -> None:
    """A view that computes or cannot be looked into, and a number that cannot be asked for."""
    with connected(mariadb_server) as server, server.cursor() as cursor:
        cursor.execute("CREATE TABLE noted (x BIGINT, note TEXT)")
        cursor.execute("CREATE VIEW plain AS SELECT x, note AS said FROM noted WHERE x > 1")
        cursor.execute("CREATE VIEW computing AS SELECT x * x AS h FROM noted")
        cursor.execute("CREATE USER IF NOT EXISTS looker@localhost")
        cursor.execute("GRANT SELECT ON w.* TO looker@localhost")
        try:
            cases = {
                ("root", "noted"): [],
                ("root", "plain"): [],
                ("root", "computing"): ["view w.computing computes"],
                ("looker", "noted"): ["PROCESS"],
                ("looker", "plain"): ["SHOW VIEW", "PROCESS"],
            }
            for (user, name), words in cases.items():
                url = mariadb_server.replace("root@", f"{user}@")
                backend = MariaDBBackend(ServerAddress.of(url), Relation(name))
                found = backend.notices(FILE)
                backend.close()
                assert len(found) == len(words), found
                assert all(word in each for word, each in zip(words, found, strict=True))
        finally:
            cursor.execute("DROP VIEW plain, computing")
            cursor.execute("DROP TABLE noted")
            cursor.execute("DROP USER looker@localhost")
