"""The examples work: each is run over its first weeks."""

from __future__ import annotations

import csv
import importlib
import json
import tomllib
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from streamdp.cli import cli
from streamdp.config import load
from streamdp.daemon.runtime import SystemClock
from streamdp.log import close
from streamdp.types import Json

DEMO = Path(__file__).parents[1] / "streamdp" / "demo" / "flights.parquet"
EXAMPLES = sorted((Path(__file__).parents[1] / "deploy" / "examples").glob("*.yaml"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SystemClock, "wait", lambda self, seconds: None)
    yield tmp_path
    close()


def records(path: Path) -> list[dict[str, Json]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def run(example: str, folder: Path, until: str, *changes: tuple[str, str]) -> None:
    (path,) = (path for path in EXAMPLES if path.stem == example)
    text = path.read_text()
    for said, other in (("end: 2014-01-01", f"end: {until}"), *changes):
        assert said in text
        text = text.replace(said, other)
    (folder / "config.yaml").write_text(text)
    result = CliRunner().invoke(cli, ["run", "--once"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_valid_as_it_stands(path: Path) -> None:
    """Nothing in it is unknown, and no name leads nowhere."""
    load(path)


def test_drift(folder: Path) -> None:
    """Four weeks: few releases, a word for every day, an action for every yes."""
    run("drift", folder, "2013-01-29")
    found = records(folder / "drift.jsonl")
    made = [each for each in found if each["kind"] == "quantiles"]
    assert [each["batch"] for each in found] == [f"2013-01-{day:02d}" for day in range(1, 29)]
    assert len(made) < 10
    actions = folder / "accepted.jsonl"
    told = actions.read_text().count('"kind": "gate"') if actions.exists() else 0
    assert told == len(made) - 1


def test_growing(folder: Path) -> None:
    """Six weeks, 37,000 flights: renewed when they pass 4, 8, 16 and 32 thousand, no oftener."""
    run("growing", folder, "2013-02-15")
    made = [each for each in records(folder / "growing.jsonl") if each["kind"] == "quantiles"]
    assert len(made) == 1 + 4
    assert {each["window_start"] for each in made} == {"2013-01-01T00:00:00Z"}
    lines = CliRunner().invoke(cli, ["budget", "--json"]).output.splitlines()
    budget = json.loads(lines[0])
    assert budget["worst_batch"] == budget["lifetime"] == 0.5
    assert budget["lifetime_cap"] == 1


def test_alarm(folder: Path) -> None:
    """Two weeks: a rule for each day, and one threshold to follow after each."""
    run("alarm", folder, "2013-01-15")
    made = records(folder / "alarm.jsonl")
    rules = [each["rows"] for each in made if each["kind"] == "selection"]
    learned = [each["rows"] for each in made if each["kind"] == "experts"]
    assert len(rules) == len(learned) == 14
    assert all(-20 <= row["minutes"] <= 80 for rows in rules for row in rows)
    assert all(sum(row["chosen"] for row in rows) == 1 for rows in learned)
    assert all(abs(sum(row["weight"] for row in rows) - 1) < 1e-9 for rows in learned)
    assert len(records(folder / "thresholds.jsonl")) == 14


def test_rule(folder: Path) -> None:
    """A rule stands until a day errs too often, as in a blizzard; a program has it at once.

    At the gate's own price the noise hides the blizzard once in some thousand runs.
    """
    louder = (
        ("      epsilon: 1\n", "      epsilon: 3\n"),
        ("{batch: 2, lifetime: 60}", "{batch: 4, lifetime: 120}"),
    )
    run("rule", folder, "2013-02-12", *louder)
    found = [each for each in records(folder / "rule.jsonl") if each["job"] == "rule"]
    made = [each for each in found if each["kind"] == "selection"]
    days = [date(2013, 1, 1) + timedelta(day) for day in range(42)]
    assert [each["batch"] for each in found] == [str(day) for day in days]
    assert 1 < len(made) < 30
    accepted = records(folder / "accepted.jsonl")
    assert [each["batch"] for each in accepted] == [each["batch"] for each in made[1:]]
    told = [each for each in records(folder / "rules.jsonl") if each["kind"] == "selection"]
    assert [each["rows"] for each in told] == [each["rows"] for each in made]
    assert all(-20 <= each["rows"][0]["t"] <= 80 for each in told)


def test_first(folder: Path) -> None:
    """Two weeks: the first good threshold is named, and the run is over for good."""
    run("first", folder, "2013-01-15")
    (told,) = records(folder / "accepted.jsonl")
    (row,) = told["rows"]
    assert row["accepted"] is True
    assert row["minutes"] in range(-20, 30, 5)
    made = [each for each in records(folder / "first.jsonl") if each["kind"] == "selection"]
    assert [each["batch"] for each in made] == ["2013-01-01", told["batch"]]


def test_bound(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is installed beside decides, in the daemon's own run; one bound is named."""
    package = EXAMPLES[0].parent / "first_bound"
    installed = folder / "site" / "first_bound-1.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: first-bound\nVersion: 1\n")
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    ((name, place),) = project["entry-points"]["streamdp.tests"].items()
    (installed / "entry_points.txt").write_text(f"[streamdp.tests]\n{name} = {place}\n")
    monkeypatch.syspath_prepend(str(package))
    monkeypatch.syspath_prepend(str(folder / "site"))
    run("bound", folder, "2013-01-15")
    told = records(folder / "bounds.jsonl")
    assert [each["rows"][0]["bound"] for each in told] in ([120.0], [240.0])


def test_majority(folder: Path) -> None:
    """Three weeks of draws from all days so far: every draw is charged to every record for life."""
    run("majority", folder, "2013-01-22")
    made = records(folder / "majority.jsonl")
    chosen = [each["rows"][0]["t"] for each in made]
    assert len(chosen) == 21
    assert all(-5 <= t <= 60 for t in chosen[7:])
    lines = CliRunner().invoke(cli, ["budget", "--json"]).output.splitlines()
    budget = json.loads(lines[0])
    assert budget["lifetime"] == budget["worst_batch"] == pytest.approx(21 * 0.052**2 / 8, abs=1e-7)


def test_queries(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of a month teach a predictor that errs less on the next two than the better guess."""
    run("queries", folder, "2013-02-01")
    monkeypatch.syspath_prepend(str(EXAMPLES[0].parent))
    learner = importlib.import_module("learn_from_counts")
    evidence = learner.learned("queries.db")
    conditions = {name: f"coalesce({SQL_OF[name]}, false)" for name in learner.CONDITIONS}
    cells = duckdb.execute(
        f"SELECT {', '.join(conditions.values())}, arrival_delay > 15, count(*) FROM '{DEMO}'"
        " WHERE date BETWEEN '2013-02-01' AND '2013-03-31' AND arrival_delay IS NOT NULL"
        " GROUP BY ALL"
    ).fetchall()
    flights = sum(count for *_, count in cells)
    late = sum(count for *_, is_late, count in cells if is_late)
    wrong = sum(
        count
        for *holds, is_late, count in cells
        if learner.foretold(evidence, dict(zip(conditions, holds, strict=True))) != is_late
    )
    assert wrong < 0.6 * min(late, flights - late)
    assert evidence["held"][0] > max(evidence["newark"][0], evidence["evening"][0]) > 0


SQL_OF = {
    "held": "departure_delay >= 20",
    "slow": "departure_delay >= 5",
    "evening": "hour >= 16",
    "newark": "origin = 'EWR'",
}


def test_forecasts(folder: Path) -> None:
    """Two weeks: each day is judged by what was released of the day before, and of none later."""
    run("forecasts", folder, "2013-01-15")
    found = records(folder / "forecasts.jsonl")
    medians = {each["batch"]: each["rows"][0] for each in found if each["job"] == "median"}
    judged = [each for each in found if each["job"] == "best"]
    assert len(medians) == len(judged) == 14
    yesterday = None
    for each in judged:
        raw, smoothed = each["rows"][:2]
        assert raw["forecast"] == (yesterday and yesterday["value"])
        assert smoothed["forecast"] == (yesterday and yesterday["smoothed"])
        assert 0 < raw["loss"] < 1
        yesterday = medians[each["batch"]]


def test_marginals(folder: Path) -> None:
    """Two days: a table of counts each, that agree with each other."""
    run("marginals", folder, "2013-01-03")
    files = sorted((folder / "marginals" / "traffic").glob("*.csv"))
    assert len(files) == 2
    for path in files:
        with path.open() as file:
            rows = list(csv.DictReader(file))
        total = float(rows[0]["value"])
        delays = [float(row["value"]) for row in rows if row["answer"] == "delay"]
        assert sum(delays) == pytest.approx(total, abs=0.1)
        assert all(float(row["lower"]) <= float(row["value"]) for row in rows)


def test_traffic(folder: Path) -> None:
    """A week: every measure of every day, cells that add up, counts that are never negative."""
    run("traffic", folder, "2013-01-08")
    found = records(folder / "traffic.jsonl")
    assert len(found) == 14
    for release in (each for each in found if each["job"] == "day"):
        rows = {(row["measure"], row["cell"]): row for row in release["rows"]}
        assert len(rows) == 8
        delays = [row["consistent"] for row in release["rows"] if row["measure"] == "delays"]
        assert sum(delays) == pytest.approx(rows["flights", ""]["consistent"])
        assert all(row.get("nonnegative", 0) >= 0 for row in release["rows"])
    airports = next(each for each in found if each["job"] == "airports")
    assert {row["origin"] for row in airports["rows"]} == {"JFK", "LGA", "EWR"}


def test_surge(folder: Path) -> None:
    """Six weeks: late days are told of, others not, and carriers are released when they change."""
    run("surge", folder, "2013-02-13")
    found = records(folder / "surge.jsonl")
    made = [each for each in found if each["kind"] == "statistics"]
    assert len(found) == 43
    assert 1 <= len(made) < 22
    told = {each["batch"] for each in records(folder / "late.jsonl")}
    asked = "SELECT date::DATE::TEXT, count(*) FROM ? WHERE arrival_delay > 60 GROUP BY 1"
    late = dict(duckdb.execute(asked.replace("?", f"'{DEMO}'")).fetchall())
    assert "2013-02-11" in told
    assert all(late[day] > 130 for day in told)
    assert {day for day in late if day < "2013-02-13" and late[day] > 190} <= told


def test_online_gradient(folder: Path) -> None:
    """Two weeks: deciles a day from learned priors, and tails on days when delays moved."""
    run("online-gradient", folder, "2013-01-15")
    found = records(folder / "gradient.jsonl")
    daily = [each for each in found if each["job"] == "delay"]
    assert [each["batch"] for each in daily] == [f"2013-01-{day:02d}" for day in range(1, 15)]
    origins = [{row["origin"] for row in each["rows"]} for each in daily]
    assert origins == [{"measured"}] + [{"inferred"}] * 13
    for each in daily:
        values = [row["value"] for row in each["rows"]]
        assert values == sorted(values)
    tails = [each for each in found if each["job"] == "tails" and each["kind"] == "quantiles"]
    assert 1 <= len(tails) < 14


def test_destinations(folder: Path) -> None:
    """Two weeks: none is invented, and groups are those that were known the day before."""
    run("destinations", folder, "2013-01-15")
    made = records(folder / "destinations.jsonl")
    found = [each for each in made if each["kind"] == "keys"]
    delays = [each for each in made if each["kind"] == "statistics"]
    assert len(found) == 14
    first = {row["dest"] for row in found[0]["rows"]}
    known = {row["dest"] for row in found[-1]["rows"]}
    assert first <= known
    real = {dest for (dest,) in duckdb.execute(f"SELECT DISTINCT dest FROM '{DEMO}'").fetchall()}
    assert known <= real
    assert 5 < len(known) < len(real)
    assert [each["batch"] for each in delays] == [f"2013-01-{day:02d}" for day in range(3, 15)]
    for release in delays:
        before = [each for each in found if each["batch"] < release["batch"]][-1]
        counted = {row["dest"] for row in before["rows"] if not row["flag"]}
        groups = {row["dest"] for row in release["rows"]}
        assert groups <= counted
        assert 0 < len(groups) <= 20
    lines = CliRunner().invoke(cli, ["budget", "--json"]).output.splitlines()
    assert json.loads(lines[0])["lifetime"] == 14 + 12
