"""`plan --rows`: what each bound on the records of a unit costs in noise and leaves out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from streamdp.cli import cli

ORDERS = """
store: {path: streamdp.db}
privacy: {unit: UNIT, caps: {batch: 200, lifetime: 1000}}
sources:
  orders:
    path: orders.csv
    batches: {column: ordered_at, every: 1d, start: 2024-01-01, end: 2024-01-02}
    types: {ordered_at: timestamp}
releases:
  daily:
    {kind: statistics, source: orders, epsilon: 1, by: country, groups: [DE, FR],
     measures: {orders: count, customers: units}}
  shoppers:
    {kind: statistics, source: orders, epsilon: 20,
     measures: {customers: units, each: {records_a_unit: [2, 3, 5]}}}
"""
SIZES = {1: 60, 2: 20, 4: 10}
"""How many customers have so many orders."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    unit = "{name: customer, column: customer, rows: 2}"
    Path("config.yaml").write_text(ORDERS.replace("UNIT", unit))
    rows = [
        f"2024-01-01T10:00:00,c{size}-{number},DE"
        for size, customers in SIZES.items()
        for number in range(customers)
        for _ in range(size)
    ]
    Path("orders.csv").write_text("ordered_at,customer,country\n" + "\n".join(rows) + "\n")
    return tmp_path


def bounds(*arguments: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(cli, ["plan", "--json", *arguments])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return [row for row in rows if "left_out" in row]


def test_noise_grows_with_the_bound_and_what_is_left_out_falls(folder: Path) -> None:
    """Before there is a release it is noise alone, and says so."""
    before = bounds("daily", "--rows", "1,2,4")
    assert {row["left_out"] for row in before} == {
        "not told: no release has `records_a_unit` of this source"
    }
    assert [row["orders error_95"] for row in before] == sorted(
        {row["orders error_95"] for row in before}
    )
    assert before[1]["customers error_95"] == before[2]["customers error_95"]  # of two groups
    assert CliRunner().invoke(cli, ["run", "--once"]).exit_code == 0
    after = bounds("daily", "--rows", "1,2,4,5,7")
    assert [row["told_by"] for row in after] == ["shoppers"] * 5
    shares = [row["left_out"] for row in after]
    records = sum(size * customers for size, customers in SIZES.items())
    for text, bound in zip(shares[:2], (1, 2), strict=True):
        truth = sum(max(size - bound, 0) * many for size, many in SIZES.items()) / records
        lower, upper = (
            float(each) / 100 for each in text.split("(")[1].rstrip("%)").split("% to ")
        )
        assert lower <= truth <= upper
        assert upper - lower < 0.25
    assert shares[2].startswith("0.0% to ")
    assert shares[3] == "0.0% (0.0% to 0.0%)"
    assert shares[4] == "of at most 5 a unit, nothing"


@pytest.mark.parametrize(
    ("unit", "rows", "what"),
    [("order", "1,2", "no bound to choose"), ("{name: c, column: customer}", "0,x", "no list")],
)
def test_what_cannot_be_asked_is_said(folder: Path, unit: str, rows: str, what: str) -> None:
    Path("config.yaml").write_text(ORDERS.replace("UNIT", unit))
    result = CliRunner().invoke(cli, ["plan", "--rows", rows])
    assert result.exit_code != 0
    assert what in str(result.exception)
