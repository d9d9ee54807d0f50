"""`streamdp preview` shows the same of a table, whatever server it is in."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from streamdp.cli import cli
from tests.contract.engines import Column, Engine, MariaDB, Postgres

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.parametrize("engine", ["postgres", "mariadb"], indirect=True),
]

CONFIG = """
store: {path: streamdp.db}
privacy: {unit: {name: customer, column: Who, rows: 2}, caps: {batch: 2, lifetime: 100}}
sources:
  orders:
    engine: {kind: KIND, connection: "CONNECTION"}
    table: t
    batches: {column: at, every: 1d, start: 2024-01-01, end: 2024-01-05}
releases:
  amounts:
    {kind: quantiles, source: orders, column: amount, quantiles: [0.5], resolution: 1,
     bounds: [0, 1000], epsilon: 0.5, by: country, groups: [DE]}
"""


def test_a_table_of_a_server_is_shown(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Types, shares of nulls, records a batch and a unit, and groups that are not listed."""
    assert isinstance(engine, Postgres | MariaDB)
    monkeypatch.chdir(tmp_path)
    days = [0] * 20 + [1] * 20 + [3] * 20
    start = datetime(2024, 1, 1, 12, tzinfo=UTC)
    table = {
        "at": Column("TIMESTAMPTZ", [start + timedelta(days=day) for day in days]),
        "amount": Column("BIGINT", [None if i % 10 == 0 else i for i in range(60)]),
        "Who": Column("VARCHAR", [f"c{i % 5}" for i in range(60)]),
        "country": Column("VARCHAR", ["DE" if i % 4 else "FR" for i in range(60)]),
    }
    engine.load(table)
    kind, at = (
        ("postgres", engine.conninfo) if isinstance(engine, Postgres) else ("mariadb", engine.url)
    )
    Path("config.yaml").write_text(CONFIG.replace("KIND", kind).replace("CONNECTION", at))
    refused = CliRunner().invoke(cli, ["preview", "orders"])
    assert "--truth-may-be-seen" in str(refused.exception)
    result = CliRunner().invoke(cli, ["preview", "orders", "--truth-may-be-seen", "--json"])
    assert result.exit_code == 0, result.exception
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    columns = {row["column"]: row for row in rows if "column" in row}
    assert set(columns) == set(table)
    assert columns["amount"]["missing"] == 0.1
    assert columns["Who"]["missing"] == 0
    assert next(row for row in rows if "batches" in row)["records"] == 60
    assert {"batches": "empty ones", "records": "2024-01-03"} in rows
    units = [row for row in rows if "unit" in row]
    assert {row["rows"]: row["records_kept"] for row in units} == {1: 0.25, 2: 0.5, 4: 1.0}
    (group,) = (row for row in rows if "not_listed" in row)
    assert group == {"release": "amounts", "not_listed": "FR", "records": 15}
    assert sum("amount" in row for row in rows if "country" in row) == 5
    assert not Path("streamdp.db").exists()
