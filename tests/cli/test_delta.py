"""Deltas as a person meets them: each command, page and file says what it means."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from streamdp.cli import cli
from streamdp.errors import ConfigurationError
from streamdp.log import close
from streamdp.privacy.accountants import epsilon_of_rho
from tests.web.addresses import page_of

CONFIG = """\
store: {path: streamdp.db}
privacy:
  unit: flight
  caps:
    batch: {rho: 0.6}
    lifetime: {rho: 4}
    delta: {batch: 3e-9, lifetime: 9e-9}
sources:
  flights:
    path: demo:flights.parquet
    batches: {column: date, every: 1d, start: 2013-01-01, end: 2013-01-05}
releases:
  carriers: {kind: keys, source: flights, by: carrier, rho: 0.5, delta: 2.5e-9, sinks: [file]}
sinks:
  file: {kind: jsonl, path: releases.jsonl}
log: {path: streamdp.log, level: debug}
"""


def typed(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def lines(*arguments: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in typed(*arguments).stdout.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four days of keys, of which the caps on delta have room for three."""
    path = tmp_path_factory.mktemp("delta")
    (path / "config.yaml").write_text(CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        job, refused, budget = lines("plan", "--json")
        assert job["delta_each"] == 2.5e-9
        assert (refused["batch"], refused["cap"], refused["left"]) == (
            "2013-01-04",
            "lifetime",
            "1.5e-9",
        )
        assert (budget["delta_planned"], budget["delta_left_after"]) == (7.5e-9, 1.5e-9)
        assert typed("run", "--once").exit_code == 3
        close()
    return path


@pytest.fixture(autouse=True)
def _here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(folder)
    yield
    close()


def test_ledger_and_statement_have_the_same_sum_exactly() -> None:
    """In whole units; a figure at a delta leaves the releases theirs, or is refused."""
    with closing(sqlite3.connect("streamdp.db")) as database:
        (sum_,) = database.execute("SELECT sum(delta_atto) FROM ledger").fetchone()
        assert database.execute("SELECT DISTINCT delta FROM v_releases").fetchall() == [(2.5e-9,)]
        assert database.execute("SELECT delta_spent FROM v_budget").fetchall() == [(7.5e-9,)]
    assert sum_ == 7_500_000_000
    (source,) = json.loads(typed("statement", "--delta", "1e-6", "--json").stdout)["sources"]
    assert source["definition"].startswith(
        "zero-concentrated differential privacy, except with chance delta"
    )
    spent = source["spent_for_life"]
    assert spent["delta_of_releases"] == "7.5e-9"
    assert Fraction(spent["delta_of_releases"]) * 10**18 == sum_
    rest = Fraction(1, 10**6) - Fraction(sum_, 10**18)
    assert f"epsilon {spent['epsilon_at_delta']} at delta {spent['delta']}" in spent["to_quote"]
    assert float(spent["epsilon_at_delta"]) == epsilon_of_rho(1_500_000_000, rest) / 1e9
    caps = {(cap["over"], cap["measure"]): cap for cap in source["caps"]}
    assert caps["all batches, for ever", "delta"]["worst_so_far"] == "7.5e-9"
    assert caps["one batch", "delta"]["cap"] == "3e-9"
    assert [each["delta_at_most"] for each in source["differences"]] == [
        "3e-9",
        "(1 + e^epsilon of one step) times 3e-9",
        "2 times 3e-9",
    ]
    refused = typed("statement", "--delta", "7.5e-9")
    assert isinstance(refused.exception, ConfigurationError)
    assert "have spent a delta of 7.5e-9" in str(refused.exception)
    assert typed("verify").exit_code == 0


def test_commands_files_and_pages_tell_delta(folder: Path) -> None:
    """Budget, ledger, claim, records, metrics and the page."""
    total, *windows = lines("budget", "--json")
    assert total["batches_left"] == 0
    assert [(each["window"], each["measure"], each["fullest"]) for each in windows] == [
        ("lifetime", "delta", 7.5e-9),
        ("batch", "delta", 2.5e-9),
    ]
    booked = [row for row in lines("budget", "--ledger", "--json") if row["purpose"] == "reserve"]
    assert [row["delta_exact"] for row in booked] == ["2.5e-9"] * 3
    assert booked[-1]["lifetime_delta_exact"] == "7.5e-9"
    assert typed("budget", "--recompute").exit_code == 0
    written = [json.loads(line) for line in Path("releases.jsonl").read_text().splitlines()]
    assert {(each["delta"], each["delta_exact"]) for each in written} == {(2.5e-9, "2.5e-9")}
    claim = json.loads(typed("show", "carriers", "2013-01-02", "--json").stdout)["claim"]
    assert claim["delta"] == "2.5e-9"
    said = json.loads(typed("statement", "--json").stdout)["sources"][0]["spent_for_life"]
    assert said["delta"] == "1.5e-08"
    with page_of(folder / "config.yaml") as client:
        for page in ("/", "/jobs/carriers", "/statement"):
            assert client.get(page).status_code == 200, page
        assert 'streamdp_delta_left{scope="flights"} 1.5e-09' in client.get("/metrics").text
        assert "ρ 0.5, δ 2.5e-9" in client.get("/jobs/carriers").text
        assert "9e-9" in client.get("/budget").text
        (job,) = client.get("/api/v1/status").json()["jobs"]
        assert (job["delta"]["exact"], job["releases_left"]) == ("2.5e-9", 0)
