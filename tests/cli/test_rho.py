"""Prices and caps in rho as a person meets them: each command, page and file says what it means."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import streamdp
from streamdp.cli import cli
from streamdp.config import load
from streamdp.log import close
from tests.web.addresses import page_of

CONFIG = """\
store: {path: streamdp.db}
privacy:
  unit: flight
  caps:
    batch: {rho: 0.02}
    lifetime: {epsilon: 2, delta: 1e-9}
    windows: [{batches: 3, rho: 0.03}]
sources:
  flights:
    path: demo:flights.parquet
    batches: {column: date, every: 1d, start: 2013-01-01, end: 2013-01-06}
releases:
  counts:
    {kind: statistics, source: flights, rho: 0.005, expected_rows: 900, sinks: [table, file, csv],
     measures: {records: count, air: {mean: air_time, resolution: 1, bounds: [0, 700]}}}
  middle:
    {kind: quantiles, source: flights, epsilon: 0.1, expected_rows: 900, sinks: [table],
     column: air_time, quantiles: median, resolution: 1, bounds: [0, 1000],
     prior: {learner: last-release}}
sinks:
  table: {kind: table, table: t}
  file: {kind: jsonl, path: releases.jsonl}
  csv: {kind: csv, path: out}
log: {path: streamdp.log, level: debug}
"""


def typed(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def table(*arguments: str) -> list[dict[str, str]]:
    """The first table that a command prints."""
    result = typed(*arguments)
    assert result.exit_code in (0, 3), result.output
    head, *rows = [line.split("\t") for line in result.stdout.splitlines()]
    return [dict(zip(head, row, strict=False)) for row in rows if len(row) == len(head)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five days, released by a job that is paid in rho and one that is paid in epsilon."""
    path = tmp_path_factory.mktemp("rho")
    (path / "config.yaml").write_text(CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        plan = table("plan", "--error", "20")
        assert [row["rho_for_20"] for row in plan] == ["0.00913393", ""]
        assert [row["rho_each"] for row in plan] == ["0.005", "0.00125"]
        assert [row["epsilon_each"] for row in plan] == ["", "0.1"]
        result = typed("run", "--once")
        assert result.exit_code == 0, result.output
        close()
    return path


@pytest.fixture(autouse=True)
def _here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(folder)
    yield
    close()


def test_commands_speak_in_the_measure_of_the_caps() -> None:
    """Budget, status, ledger and statement: rho, and what it is at a delta."""
    (budget,) = table("budget")
    assert budget["measure"] == "rho"
    assert (budget["worst_batch"], budget["lifetime"]) == ("0.00625", "0.03125")
    assert budget["batches_left"] == "3"
    lines = [json.loads(line) for line in typed("status", "--json").stdout.splitlines()]
    jobs = [line for line in lines if line["type"] == "job"]
    assert [(job["measure"], job["spent"]) for job in jobs] == [("rho", 0.025), ("rho", 0.00625)]
    assert "rho 0.025" in typed("status").stdout
    rows = [row for row in table("budget", "--ledger") if row["purpose"] == "reserve"]
    assert {row["epsilon"] for row in rows} == {"no bound", "0.1"}
    assert {row["rho"] for row in rows} == {"0.005", "0.00125"}
    assert typed("budget", "--recompute").exit_code == 0
    said = json.loads(typed("statement", "--delta", "1e-9", "--json").stdout)
    (source,) = said["sources"]
    assert source["definition"].startswith("zero-concentrated differential privacy")
    most = [(each["steps"], each["rho_at_most"]) for each in source["differences"]]
    assert most == [(1, "0.02"), (2, "0.08"), (2, "0.04")]  # more or less, replaced, moved
    spent = source["spent_for_life"]
    assert (spent["epsilon"], spent["by"]) == ("no bound", "zero-concentrated")
    assert f"epsilon {spent['epsilon_at_delta']} at delta {spent['delta']}" in spent["to_quote"]
    assert float(spent["epsilon_at_delta"]) == pytest.approx(1.46, abs=0.01)
    assert float(source["caps"][0]["epsilon_at_delta"]) == pytest.approx(2, abs=1e-6)
    assert {job.get("rho_of_one_release") for job in said["jobs"]} == {"0.005", None}
    assert typed("verify").exit_code == 0


def test_releases_carry_their_price() -> None:
    """In the store, in each sink, and as a claim; a price in epsilon stays what it was."""
    lines = [json.loads(line) for line in Path("releases.jsonl").read_text().splitlines()]
    assert {(line["epsilon"], line["epsilon_exact"]) for line in lines} == {(None, None)}
    assert {(line["rho"], line["rho_exact"]) for line in lines} == {(0.005, "0.005")}
    with closing(sqlite3.connect("streamdp.db")) as database:
        kinds = database.execute(
            "SELECT DISTINCT kind, epsilon, typeof(epsilon), rho FROM t ORDER BY 1"
        ).fetchall()
        views = database.execute(
            "SELECT DISTINCT job, epsilon, rho FROM v_releases ORDER BY 1"
        ).fetchall()
    assert kinds == [
        ("quantiles", 0.1, "real", None),
        ("statistics", None, "null", 0.005),
    ]
    assert views == [("counts", None, 0.005), ("middle", 0.1, None)]
    claim = json.loads(typed("show", "counts", "2013-01-02", "--json").stdout)["claim"]
    assert claim["definition"] == "zero-concentrated differential privacy"
    assert (claim["rho"], claim["caps_in"], claim["batch_cap"]) == ("0.005", "rho", "0.02")
    other = json.loads(typed("show", "middle", "2013-01-02", "--json").stdout)["claim"]
    assert (other["definition"], other["epsilon"]) == ("pure differential privacy", "0.1")
    assert other["caps_in"] == "rho"


def test_pages_metrics_and_library_say_the_same(folder: Path) -> None:
    """No page takes a price in rho for one in epsilon."""
    with page_of(folder / "config.yaml") as client:
        for page in ("/", "/jobs/counts", "/budget", "/statement", "/jobs/counts/sheet"):
            assert client.get(page).status_code == 200, page
        assert "ρ 0.005 each" in client.get("/jobs/counts").text
        assert "ρ 0.03125 of" in client.get("/budget").text
        metrics = client.get("/metrics").text
        assert 'streamdp_rho_spent_total{scope="flights"} 0.03125' in metrics
        assert 'streamdp_epsilon_spent_total{scope="flights"}' not in metrics
        assert 'streamdp_job_rho_of_release{job="counts"} 0.005' in metrics
        assert 'streamdp_job_epsilon_of_release{job="middle"} 0.1' in metrics
        jobs = {each["job"]: each for each in client.get("/api/v1/status").json()["jobs"]}
        assert (jobs["counts"]["epsilon"], jobs["counts"]["rho"]["exact"]) == (None, "0.005")
        assert jobs["counts"]["spent"]["exact"] == "0.025"
        (budget,) = client.get("/api/v1/budget").json()["items"]
        assert (budget["measure"], budget["spent"]["exact"]) == ("rho", "0.03125")
    with streamdp.open(folder / "streamdp.db") as store:
        spent = {row["job"]: (row["measure"], row["spent"]) for row in store.jobs()}
    assert spent == {"counts": ("rho", 0.025), "middle": ("rho", 0.00625)}


def test_the_window_in_rho_refuses_what_pure_jobs_cost_in_it(tmp_path: Path) -> None:
    """A job that is paid in epsilon is held to caps in rho by what its draws cost in it."""
    text = CONFIG.replace(
        "windows: [{batches: 3, rho: 0.03}]", "windows: [{batches: 3, rho: 0.018}]"
    )
    (tmp_path / "config.yaml").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        lines = [json.loads(line) for line in typed("plan", "--json").stdout.splitlines()]
        refused = [line for line in lines if "refused" in line]
        assert [(line["refused"], line["batch"], line["left"]) for line in refused] == [
            ("middle", "2013-01-03", "0.0005")
        ]
        result = typed("run", "--once")
        assert result.output == "9 released, 1 refused by a cap\n"
        close()


@pytest.mark.long
def test_a_price_in_rho_is_simulated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the configured price and at others; more of it errs less."""
    monkeypatch.chdir(folder)
    begin = ("simulate", "counts", "--learners", "none", "--length", "5", "--truth-may-be-seen")
    rows = [each for each in table(*begin) if each["learner"] == "none"]
    assert {float(row["rho"]) for row in rows} == {0.005}
    measures = [row["of"] for row in rows]
    assert len(set(measures)) == len(rows) > 1
    many = [each for each in table(*begin, "--epsilons", "0.0001,1") if each["learner"] == "none"]
    for measure in measures:
        little, much = (float(row["average_error"]) for row in many if row["of"] == measure)
        assert much < little


def test_caps_in_rho_of_a_growing_source_stay_in_rho(tmp_path: Path) -> None:
    """Taken for epsilon they would admit 20 where that costs 50; `cap` finds nothing to change."""
    growing = CONFIG.replace("end: 2013-01-06", "end: 2013-01-06, growing: true")
    (tmp_path / "config.yaml").write_text(growing)
    caps = load(tmp_path / "config.yaml").caps_of("flights")
    assert caps.measure == "rho"
    assert caps.lifetime_nano == caps.batch_nano == 20_000_000
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert "4 released, 2 refused" in typed("run", "--once").output
        unchanged = typed("cap", "flights", "--reason", "none", "--yes")
        assert (unchanged.exit_code, "has these caps" in unchanged.output) == (2, True)
        close()
