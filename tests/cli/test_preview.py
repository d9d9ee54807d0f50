"""What `preview` shows before anything is spent, and that nothing of it is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from streamdp.cli import cli

CANARY = "canary-4711"
ORDERS = """
store: {path: streamdp.db}
privacy: {unit: {name: customer, column: customer, rows: 2}, caps: {batch: 2, lifetime: 100}}
sources:
  orders:
    path: orders.csv
    batches: {column: ordered_at, every: 1d, start: 2024-01-01, end: 2024-01-05}
    types: {ordered_at: "%d.%m.%Y", amount: number}
releases:
  amounts:
    {kind: quantiles, source: orders, column: amount, quantiles: [0.5], resolution: 1,
     bounds: [0, 1000], epsilon: 0.5, by: country, groups: [DE]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Orders of three days out of four, with dates in ISO form and a few odd amounts."""
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(ORDERS)
    rows = [
        f"2024-01-0{day},{20 + number},c{number % (5 * day)},{'DE' if number % 4 else 'FR'}"
        for day in (1, 2, 4)
        for number in range(20)
    ]
    rows += [f"2024-01-01,{CANARY},c1,DE"]
    Path("orders.csv").write_text("ordered_at,amount,customer,country\n" + "\n".join(rows))
    return tmp_path


def said(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["preview", "orders", *arguments])


def tables(*arguments: str) -> list[dict[str, object]]:
    found = said("--truth-may-be-seen", "--json", *arguments)
    assert found.exit_code == 0, found.output
    return [json.loads(line) for line in found.stdout.splitlines()]


def test_nothing_is_shown_without_leave(folder: Path) -> None:
    found = said()
    assert found.exit_code != 0
    assert "--truth-may-be-seen" in str(found.exception)
    assert CANARY not in found.output


def test_a_wrong_form_of_dates_is_seen(folder: Path) -> None:
    """`validate` and `doctor` cannot see that no value is a date of this form."""
    found = said("--truth-may-be-seen")
    assert "100% of ordered_at are no %d.%m.%Y, such as 2024-01-0" in found.stderr
    assert "no batch has a record" in found.stderr


def test_columns_batches_units_and_groups(folder: Path) -> None:
    Path("config.yaml").write_text(ORDERS.replace('"%d.%m.%Y"', "date"))
    rows = tables("--rows", "2")
    assert rows[0] == {
        "ordered_at": "2024-01-01",
        "amount": 20.0,
        "customer": "c0",
        "country": "FR",
    }
    columns = {row["column"]: row for row in rows if "column" in row}
    assert columns["amount"]["became_null"] == round(1 / 61, 4)
    assert columns["amount"]["such_as"] == CANARY
    assert columns["ordered_at"]["became_null"] == 0
    batches = [row for row in rows if "batches" in row]
    assert batches[0]["records"] == 61
    assert batches[0]["empty"] == 1
    assert batches[1]["records"] == "2024-01-03"
    units = {row["rows"]: row for row in rows if "unit" in row}
    assert units[1]["largest"] == 5
    assert units[5]["records_kept"] == 1
    assert units[1]["records_kept"] == round((5 + 10 + 20) / 61, 4)
    groups = [row for row in rows if "not_listed" in row]
    assert groups == [{"release": "amounts", "not_listed": "FR", "records": 15}]


def test_nothing_of_it_is_written(folder: Path) -> None:
    """No store, no log, no file: what was there is there."""
    before = sorted(folder.rglob("*"))
    assert CANARY in said("--truth-may-be-seen").output
    assert sorted(folder.rglob("*")) == before


def test_files_as_batches_and_tables(folder: Path) -> None:
    """The same of files that are batches."""
    text = ORDERS.partition("    batches:")
    Path("config.yaml").write_text(
        text[0] + "    batches: files\n    settle: 0s\n" + text[2].partition("\n")[2]
    )
    (batches,) = [row for row in tables() if "batches" in row]
    assert (batches["batches"], batches["records"], batches["empty"]) == (1, 61, 0)
