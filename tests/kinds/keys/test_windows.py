"""A window is read at once and paid once, whatever happens; groups follow from what was found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.cli import cli
from streamdp.config import load
from streamdp.errors import ConfigurationError
from streamdp.log import close
from streamdp.store.database import connect_to_read
from streamdp.store.release_rows import ROWS_OF_RELEASE
from streamdp.types import Json, KeyCounts

CONFIG = """
store: {path: s.db}
privacy:
  unit: trip
  caps: {batch: 4, lifetime: 900, delta: {batch: 1e-8, lifetime: 1e-6}}
sources:
  trips:
    path: trips.parquet
    batches: {column: at, every: 1d, start: 2024-01-01, end: 2024-01-13}
releases:
  sizes:
    {kind: statistics, source: trips, by: city, groups: {from: cities, most: 3}, epsilon: 1,
     measures: {n: count}}
  cities: {kind: keys, source: trips, by: city, epsilon: 1, delta: 1e-9, window: 4}
"""

TRIPS = """
COPY (SELECT TIMESTAMP '2024-01-01' + INTERVAL 1 HOUR * (i % 288) AS at,
      CASE WHEN i % 2 = 0 THEN 'Basel' WHEN i % 3 = 0 THEN 'Chur' ELSE 'Bern' END AS city
      FROM range(9000) AS t(i)) TO 'trips.parquet' (FORMAT parquet)
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    with duckdb.connect() as connection:
        connection.execute(TRIPS)
    yield tmp_path
    close()


def said(*command: str) -> list[dict[str, Json]]:
    result = CliRunner().invoke(cli, [*command, "--json"])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.output.splitlines() if line.startswith("{")]


def rows(statement: str) -> list[tuple[Any, ...]]:
    with closing(connect_to_read(Path("s.db"))) as store:
        return store.execute(statement).fetchall()


def run() -> None:
    CliRunner().invoke(cli, ["run", "--once"])
    close()


def test_a_window_is_paid_once_and_counts_against_each_of_its_batches(home: Path) -> None:
    """Three windows of four days; groups of a day were found in a window before it."""
    run()
    found = said("releases", "cities", "--last", "9")
    assert sorted(each["batch"] for each in found) == ["2024-01-04", "2024-01-08", "2024-01-12"]
    days = sorted(each["batch"] for each in said("releases", "sizes", "--last", "20"))
    assert days == [f"2024-01-{day:02d}" for day in range(5, 13)]
    spent = rows("SELECT sum(epsilon_nano), sum(delta_atto) FROM ledger WHERE job = 'cities'")
    assert spent == [(3 * 10**9, 3 * 10**9)]
    joined = rows("SELECT batch FROM ledger WHERE job = 'cities' AND purpose = 'join'")
    assert len(joined) == 9
    (budget,) = (each for each in said("budget") if "lifetime_cap" in each)
    assert budget["lifetime"] == 3 + 8
    assert budget["worst_batch"] == 2
    assert "Bern" in CliRunner().invoke(cli, ["learned", "sizes"]).output


def test_records_of_all_batches_of_a_window_are_counted_and_no_others(home: Path) -> None:
    """The second window's counts are those of its four days: 1500 trips to Basel in four days."""
    run()
    last = max(said("releases", "cities", "--last", "9"), key=lambda each: str(each["batch"]))
    counts = {row["city"]: row["count"] for row in last["rows"]}
    assert set(counts) == {"Basel", "Bern", "Chur"}
    assert abs(counts["Basel"] - 1500) < 30
    assert {row["batches"] for row in last["rows"]} == {4}


def test_a_window_that_fails_burns_its_charge_and_is_asked_anew(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The charge stays, against each of its batches; the next try pays again."""
    answer, failed = DuckDBBackend.answer, list[str]()

    def fails_once(self: DuckDBBackend, query: Any, batch: Any) -> Any:
        found = answer(self, query, batch)
        if isinstance(found, KeyCounts) and not failed:
            failed.append(batch.key)
            raise MemoryError
        return found

    monkeypatch.setattr(DuckDBBackend, "answer", fails_once)
    run()
    run()
    assert failed == ["2024-01-04"]
    spent = rows("SELECT sum(epsilon_nano), sum(delta_atto) FROM ledger WHERE job = 'cities'")
    assert spent == [(4 * 10**9, 4 * 10**9)]
    of_day = "SELECT count(*) FROM ledger WHERE job = 'cities' AND batch = '2024-01-02'"
    assert rows(of_day + " AND purpose = 'join'") == [(2,)]
    assert len(said("releases", "cities", "--last", "9")) == 3
    assert CliRunner().invoke(cli, ["verify"]).exit_code == 0


def test_a_job_waits_for_groups_uncharged_and_says_so(home: Path) -> None:
    """Nothing is found of at_least a million: no release, no charge, a problem in the status."""
    text = CONFIG.replace("window: 4", "window: 4, at_least: 1000000")
    (home / "config.yaml").write_text(text)
    run()
    assert said("releases", "sizes") == []
    assert rows("SELECT count(*) FROM ledger WHERE job = 'sizes'") == [(0,)]
    assert "no group was found" in CliRunner().invoke(cli, ["status"]).output


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("from: cities", "from: towns", "no release that finds groups"),
        ("from: cities", "from: sizes", "no release that finds groups"),
        (
            "kind: keys, source: trips, by: city",
            "kind: keys, source: trips, by: town",
            "finds other",
        ),
        ("most: 3", "at_least: 3", "most"),
        ("delta: 1e-9", "delta: 2", "chance"),
        (", delta: {batch: 1e-8, lifetime: 1e-6}", "", "the caps have none"),
        ("window: 4", "public: ['=1']", "begins like a formula"),
        ("window: 4", "groups: [a]", "keys are found"),
    ],
)
def test_what_does_not_hang_together_is_refused(home: Path, old: str, new: str, words: str) -> None:
    """At its line, before anything runs."""
    assert old in CONFIG
    (home / "config.yaml").write_text(CONFIG.replace(old, new))
    with pytest.raises(ConfigurationError, match=words):
        load(home / "config.yaml")


def test_the_statement_says_what_is_published_for_ever(home: Path) -> None:
    """How many records a text has, and who may write it."""
    run()
    told = CliRunner().invoke(cli, ["statement", "--delta", "1e-6"]).output
    assert "none that fewer than 5 records of a window of 4 batches hold is ever found" in told
    assert "a found text is public for ever; one person who writes a text often enough" in told


FILES = """
store: {path: s.db}
privacy: {unit: trip, caps: {batch: 3, lifetime: 900, delta: {batch: 1e-8, lifetime: 1e-6}}}
sources:
  trips: {path: "drops/*.csv", types: {city: text}, batches: files, settle: 0s}
releases:
  sizes:
    {kind: statistics, source: trips, by: city, groups: {from: cities, most: 3}, epsilon: 1,
     measures: {n: count}}
  cities: {kind: keys, source: trips, by: city, epsilon: 2, delta: 1e-9}
"""


def test_files_have_no_order_and_pay_for_keys_and_counts(home: Path) -> None:
    """Keys that another file's release names may come of this file, which has paid for both."""
    (home / "config.yaml").write_text(FILES)
    (home / "drops").mkdir()
    for name, cities in {"a": "Bern", "b": "Bern Chur", "c": "Bern Thun"}.items():
        lines = "\n".join(city for city in cities.split() for _ in range(60))
        (home / "drops" / f"{name}.csv").write_text(f"city\n{lines}\n")
    run()
    groups = dict(rows(f"SELECT batch, {ROWS_OF_RELEASE} FROM release r WHERE job = 'sizes'"))
    assert [row["city"] for row in json.loads(groups["a.csv"])] == ["Bern", "Thun"]
    paid = rows(
        "SELECT batch, sum(epsilon_nano), sum(delta_atto) FROM ledger WHERE purpose = 'reserve'"
        " GROUP BY batch ORDER BY batch"
    )
    assert paid == [(f"{name}.csv", 3 * 10**9, 10**9) for name in "abc"]
