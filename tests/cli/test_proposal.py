"""A new user's walk: from a CSV with cities that nobody listed to a table of counts by city."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from streamdp.cli import cli
from streamdp.errors import ConfigurationError
from streamdp.log import close

TRIPS = """
COPY (SELECT TIMESTAMP '2024-01-01' + INTERVAL 1 MINUTE * i AS at, i % 7 AS passengers,
      CASE WHEN i % 2 = 0 THEN 'Basel' WHEN i % 3 = 0 THEN 'Chur' WHEN i % 5000 = 1 THEN 'Me'
      ELSE 'Bern' END AS city FROM range(21 * 1440) AS t(i)) TO 'trips.csv'
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    with duckdb.connect() as connection:
        connection.execute(TRIPS)
    yield tmp_path
    close()


def test_a_csv_becomes_a_table_of_counts_by_city(home: Path) -> None:
    """Three weeks: cities are found in the first, and counted on each day after it."""
    asked = ["init", "--source", "trips.csv", "--by", "city", "--time", "at"]
    days = ["--start", "2024-01-01", "--end", "2024-01-22"]
    result = CliRunner().invoke(cli, [*asked, *days])
    assert result.exit_code == 0, result.output
    result = CliRunner().invoke(cli, ["run", "--once"])
    assert result.exit_code == 0, result.output
    with closing(sqlite3.connect("streamdp.db")) as store:
        found = store.execute("SELECT batch, city, value FROM counts WHERE current").fetchall()
        weeks = store.execute("SELECT batch, city, count FROM found WHERE current").fetchall()
    assert {city for _, city, _ in found} == {"Basel", "Bern", "Chur"}
    assert {batch for batch, _, _ in found} == {f"2024-01-{day:02d}" for day in range(8, 22)}
    assert all(abs(value - 720) < 30 for _, city, value in found if city == "Basel")
    of_basel = {batch: count for batch, city, count in weeks if city == "Basel"}
    assert of_basel.pop("2024-01-07") is None
    assert sorted(of_basel) == ["2024-01-14", "2024-01-21"]
    assert all(abs(count - 7 * 720) < 30 for count in of_basel.values())


def test_files_without_a_time_are_said_to_be_counted_from_the_second_on(home: Path) -> None:
    """One file alone has its keys found, and no counts."""
    CliRunner().invoke(cli, ["init", "--source", "trips.csv", "--by", "city"])
    assert "counted from the next one on" in (home / "config.yaml").read_text()
    assert CliRunner().invoke(cli, ["validate"]).exit_code == 0


def test_days_without_an_end_are_said_to_cost(home: Path) -> None:
    """A file that ends is proposed with its end, or with a line on what empty days cost."""
    asked = ["init", "--source", "trips.csv", "--by", "city", "--time", "at"]
    CliRunner().invoke(cli, [*asked, "--start", "2024-01-01"])
    assert "each day costs, with records or without" in (home / "config.yaml").read_text()
    assert CliRunner().invoke(cli, ["validate"]).exit_code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--by", "town"], "no column 'town'"),
        ([], "which column"),
        (["--by", "city", "--time", "at"], "go together"),
        (["--by", "city", "--end", "2024-01-01"], "no last one"),
        (["--by", "city", "--time", "when", "--start", "2024-01-01"], "no column 'when'"),
    ],
)
def test_what_is_not_clear_is_asked(home: Path, options: list[str], words: str) -> None:
    """Nothing is written."""
    result = CliRunner().invoke(cli, ["init", "--source", "trips.csv", *options])
    assert isinstance(result.exception, ConfigurationError)
    assert words in str(result.exception)
    assert not (home / "config.yaml").exists()


@pytest.mark.parametrize("options", [[], ["--by", "city"]])
def test_a_file_without_a_header_shows_no_record(home: Path, options: list[str]) -> None:
    """Its first line names no column that is asked for; that of a file with one is shown."""
    (home / "plain.csv").write_text("alice,4111111111111111\nbob,43\n")
    for file, is_shown in (("plain.csv", False), ("trips.csv", bool(options))):
        result = CliRunner().invoke(cli, ["init", "--source", file, *options, "--by", "town"])
        assert isinstance(result.exception, ConfigurationError)
        said = f"{result.exception} {result.exception.hint}"
        assert "alice" not in said
        assert "4111" not in said
        assert ("passengers" in said) == is_shown
