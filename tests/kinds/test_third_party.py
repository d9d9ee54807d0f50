"""A kind of another package, found by its entry point: it goes wherever those of streamdp go."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from streamdp.cli import cli
from streamdp.errors import ConfigurationError
from streamdp.kinds.spec import KINDS
from streamdp.log import close
from streamdp.types import Json

CONFIG = """
store: {path: store.db, anchor: anchor}
privacy:
  unit: {name: person, column: who, rows: 2}
  neighbours: add-remove
  caps: {batch: 2, lifetime: 100}
sources:
  trips:
    path: trips.csv
    types: {at: timestamp, x: number}
    batches: {column: at, every: 1d, start: 2023-11-15, end: 2023-11-18}
releases:
  whole: {kind: noisy-count, source: trips, column: x, epsilon: 1, sinks: SINKS}
  parts:
    {kind: noisy-count, source: trips, column: x, by: city, groups: [a, b], epsilon: 0.5,
     sinks: SINKS}
sinks:
  table: {kind: table, table: counts}
  csv: {kind: csv, path: csv}
  parquet: {kind: parquet, path: parquet}
  jsonl: {kind: jsonl, path: out.jsonl}
  warehouse: {kind: duckdb, path: warehouse.duckdb, table: counts}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package on the path, and a configuration that uses it."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "third_party"))
    KINDS.forget()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    sinks = "[table, csv, parquet, jsonl, warehouse]"
    (tmp_path / "config.yaml").write_text(CONFIG.replace("SINKS", sinks))
    records = [f"2023-11-{15 + i % 3}T12:00:00,{i},{'abc'[i // 100]},p{i // 3}" for i in range(300)]
    for name in ("trips.csv", "public.csv"):
        (tmp_path / name).write_text("\n".join(["at,x,city,who", *records]))
    yield tmp_path
    close()
    KINDS.forget()


def said(*arguments: str) -> list[Json]:
    result = CliRunner().invoke(cli, [*arguments, "--json"])
    assert result.exit_code == 0, (result.output, result.exception)
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_it_goes_from_the_configuration_to_every_sink(home: Path) -> None:
    """Validated, planned, run, shown, stated and simulated; five sinks hold the same rows."""
    assert [row["job"] for row in said("validate")] == ["whole", "parts"]
    planned = said("plan", "--error", "0.5")
    assert [row.get("error_95") for row in planned[:2]] == [6.0, 12.0]
    assert [row.get("epsilon_for_0.5") for row in planned[:2]] == [
        "7.32712, above the batch cap of 2"
    ] * 2
    ran = CliRunner().invoke(cli, ["run", "--once"])
    assert ran.exit_code == 0, (ran.output, ran.exception)
    whole = said("releases", "whole")
    assert len(whole) == 3
    assert all(40 < row["value"] < 160 for release in whole for row in release["rows"])
    (shown,) = said("show", "parts", "2023-11-15")
    assert [row["city"] for row in shown["rows"]] == ["a", "b"]
    assert all(isinstance(row["value"], int) for row in shown["rows"])
    (stated,) = said("statement")
    assert {job["job"] for job in stated["jobs"]} == {"whole", "parts"}
    simulated = said("simulate", "whole", "--table", "public.csv")
    assert [row["learner"] for row in simulated] == ["plain", "oracle"]
    assert all(0 <= row["average_error"] < 60 for row in simulated)
    landed(home)


def landed(home: Path) -> None:
    """What each sink holds: nine rows of two jobs."""
    wanted = sorted(
        (line["release_id"], row.get("city"), row["value"])
        for line in map(json.loads, (home / "out.jsonl").read_text().splitlines())
        for row in line["rows"]
    )
    assert len(wanted) == 3 + 3 * 2
    asked = "SELECT release_id, city, value FROM counts"
    with closing(sqlite3.connect(home / "store.db")) as store:
        assert sorted(store.execute(asked).fetchall()) == wanted
    with duckdb.connect(str(home / "warehouse.duckdb")) as warehouse:
        assert sorted(warehouse.execute(asked).fetchall()) == wanted
        files = str(home / "parquet" / "parts" / "*.parquet")
        found = warehouse.execute("SELECT city, value FROM read_parquet(?)", [files])
        assert sorted(found.fetchall()) == sorted(row[1:] for row in wanted if row[1])
        types = warehouse.execute("DESCRIBE SELECT value FROM counts").fetchone()
    assert types is not None
    assert types[1] == "BIGINT"
    rows = [
        line
        for path in home.glob("csv/*/*.csv")
        for line in csv.DictReader(path.read_text().splitlines())
    ]
    assert sorted(int(row["value"]) for row in rows) == sorted(value for *_, value in wanted)


def test_its_own_check_its_keys_and_the_common_ones_are_refused_at_their_line(home: Path) -> None:
    """Errors name file, line and key; an unknown kind is told the nearest."""
    text = (home / "config.yaml").read_text()
    for old, new, words in (
        ("neighbours: add-remove", "neighbours: substitute", ":13:11 releases.whole.kind"),
        ("column: x, epsilon: 1", "colum: x, epsilon: 1", "did you mean 'column'"),
        ("kind: noisy-count, source: trips, column: x, eps", "kind: noisy, eps", "noisy-count"),
        ("by: city", "by: value", "by names a column twice"),
    ):
        (home / "config.yaml").write_text(text.replace(old, new))
        refused = CliRunner().invoke(cli, ["validate"])
        assert isinstance(refused.exception, ConfigurationError), refused.output
        assert words in str(refused.exception), refused.exception


def test_the_schema_has_its_keys(home: Path) -> None:
    """One union of sections, told apart by kind."""
    schema = json.loads(CliRunner().invoke(cli, ["schema"]).stdout)
    (release,) = schema["properties"]["releases"]["patternProperties"].values()
    assert set(release["discriminator"]["mapping"]) >= {"noisy-count", "quantiles"}
    assert "NoisyCountSection" in schema["$defs"]


def test_a_package_that_cannot_be_imported_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What it is, and where it says so; others go on working."""
    folder = tmp_path / "broken-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[streamdp.kinds]\nbroken = nowhere:SPEC\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    KINDS.forget()
    assert "noisy-count" in KINDS.names()
    with pytest.raises(ConfigurationError, match="broken"):
        KINDS.find("broken")
