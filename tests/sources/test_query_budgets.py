"""The budget of a query is that of its table: no alias, filter or projection opens a fresh one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from streamdp.cli import cli
from streamdp.config import load
from streamdp.errors import ConfigurationError
from streamdp.log import close
from streamdp.sources.section import SourceSection, same_data
from tests.sources.test_databases import DATABASE, RIDES, SERVER, ran, written

TABLE = "table: rides"
ALL = "query: SELECT * FROM rides WHERE seconds < 1000"
SOME = "query: 'SELECT at, rider, seconds, upper(city) AS city FROM main.rides'"


@pytest.fixture
def spent(tmp_path: Path) -> Callable[..., str | None]:
    """Two days are released from a table; then a tool to edit, run, and say what was refused."""
    with duckdb.connect(str(tmp_path / "wh.duckdb")) as connection:
        connection.execute(f"{RIDES} FROM range(400) r(i)")
        connection.execute("CREATE TABLE trips AS FROM rides")
    path = written(tmp_path, DATABASE, "{kind: jsonl, path: out.jsonl}")
    ran(path, "run", "--once")
    text = path.read_text()

    def edited(*edits: tuple[str, str]) -> str | None:
        changed = text
        for old, new in edits:
            assert old in changed
            changed = changed.replace(old, new)
        path.write_text(changed)
        result = CliRunner().invoke(cli, ["run", "--once", "-c", str(path)])
        close()
        assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2
        if result.exit_code == 0:
            return None
        assert isinstance(result.exception, ConfigurationError)
        return str(result.exception)

    return edited


RENAMED = (("  rides: ", "  fresh: "), ("source: rides", "source: fresh"))


@pytest.mark.parametrize("query", [ALL, SOME])
def test_a_table_goes_on_as_a_query_of_it(spent: Callable[..., str | None], query: str) -> None:
    """Under its name nothing is due anew; under another it is refused."""
    if query == ALL:
        assert spent((TABLE, query)) is None
    refused = spent((TABLE, query), *RENAMED)
    assert refused is not None
    assert "budget is that of rides" in refused


def test_a_schema_before_the_name_is_no_other_table(spent: Callable[..., str | None]) -> None:
    """Nor is a name in capitals, or a link to the database."""
    refused = spent((TABLE, "table: main.RIDES"), *RENAMED)
    assert refused is not None
    assert "budget is that of rides" in refused


@pytest.mark.parametrize(
    "query",
    [
        "query: 'SELECT at + INTERVAL 1 DAY AS at, rider, seconds, city FROM rides'",
        "query: 'SELECT booked AS at, rider, seconds, city FROM rides'",
        "query: 'SELECT at, seconds AS rider, seconds, city FROM rides'",
        "query: 'SELECT at, rider % 2 AS rider, seconds, city FROM rides'",
        "query: SELECT * FROM trips",
    ],
)
def test_another_time_unit_or_table_under_the_old_names_takes_a_word(
    spent: Callable[..., str | None], query: str
) -> None:
    """A record would be in another batch, or be somebody else's."""
    refused = spent((TABLE, query))
    assert refused is not None
    assert "--moved" in refused


def test_a_word_is_enough(spent: Callable[..., str | None], tmp_path: Path) -> None:
    """The unit's new column is in the ledger, with who said so."""
    query = "query: 'SELECT at, rider % 7 AS rider, seconds, city FROM rides'"
    assert spent((TABLE, query)) is not None
    ran(tmp_path / "config.yaml", "source", "rides", "--moved", "--operator", "me", "--reason", "r")
    assert spent((TABLE, query)) is None


def test_two_queries_of_one_table_are_one_source(tmp_path: Path) -> None:
    """Even where their conditions leave no record in common: who knows which they leave."""
    for old, new in ((DATABASE, DATABASE), (SERVER, SERVER.replace("public.rides", "RIDES"))):
        name = "table: public.rides" if "public" in old else TABLE
        path = written(tmp_path, old, "{kind: stdout}")
        low = new.replace("table: RIDES", "query: FROM RIDES WHERE rider < 9")
        again = f"  again: {low.replace(name, 'query: FROM Rides WHERE rider < 9')}\nreleases:\n"
        path.write_text(path.read_text().replace("releases:\n", again))
        with pytest.raises(ConfigurationError, match=r"again\.(path|query): this is the same data"):
            load(path, {"PG": "host=h"})


def test_a_sink_into_the_table_of_a_query_is_refused(tmp_path: Path) -> None:
    """Releases among the records would be counted as records."""
    path = written(
        tmp_path, DATABASE.replace(TABLE, ALL), "{kind: duckdb, path: wh.duckdb, table: rides}"
    )
    with pytest.raises(ConfigurationError, match="reads this file"):
        load(path, {})


def claimed(query: str, unit: str | None = "rider") -> object:
    windows = {"column": "at", "every": "1d", "start": "2024-01-01"}
    section = {"path": "/wh.duckdb", "batches": windows}
    return SourceSection.model_validate(section | {"query": query}).identity(unit)


def test_what_is_written_down_of_a_query() -> None:
    """A filter and other columns are nobody's identity; time and unit are, by what they are."""
    table = {"path": "/wh.duckdb#rides", "column": "at", "read": {"zone": "UTC"}}
    assert claimed("FROM Rides") == table
    assert claimed("SELECT at, rider, a + b AS x FROM rides WHERE a > 1") == table
    assert claimed("SELECT t AS at, rider FROM rides") == table | {"column": "t"}
    assert claimed("SELECT at, who AS rider FROM rides") == table | {"unit": "who"}
    assert claimed("SELECT at FROM rides", None) == table
    derived = {"sql": 'DATE_TRUNC(\'HOUR\', "record"."t")'}
    assert claimed("SELECT date_trunc('hour', t) AS at, rider FROM rides") == table | {
        "column": derived
    }


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("/a#t", "/a#main.t", True),
        ("/a#wh.main.t", "/a#t", True),
        ("/a#one.t", "/a#two.t", False),
        ("/a#t", "/b#t", False),
        ("/a#t", "/a#u", False),
        ("/a#b.csv", "/a#c.csv", False),
        ("postgres://h:1/d#t", "postgres://h:1/d#public.t", True),
        ("postgres://h:1/d#t", "postgres://h:2/d#t", False),
    ],
)
def test_one_table_has_several_names(one: str, other: str, same: bool) -> None:
    """With its schema or without; two schemas are two tables."""
    assert same_data({"path": one}, {"path": other}) is same
    assert same_data({"path": other}, {"path": one}) is same
