"""Rollups and conditions, of a working configuration: of quantiles, groups, sums, a workload."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

import streamdp
from streamdp.cli import cli
from streamdp.errors import ConfigurationError
from streamdp.log import close
from streamdp.types import Json

DEMO = Path(__file__).parents[2] / "config.yaml"
MORE = """
  by_origin:
    kind: quantiles
    source: flights
    column: air_time
    by: [origin]
    groups: [JFK, LGA, EWR]
    quantiles: [0.25, 0.5, 0.75]
    resolution: 1
    bounds: [0, 1000]
    guess: {location: 120, scale: 60}
    expected_rows: 300
    epsilon: 0.5
    rollups: [week]
  traffic:
    kind: statistics
    source: flights
    by: [origin]
    groups: [JFK, LGA, EWR]
    epsilon: 1
    measures:
      flights: count
      lengths: {histogram: air_time, cuts: [60, 240]}
      planes: {mean: air_time, resolution: 1, bounds: [0, 1000]}
    rollups: [week]
  cube:
    kind: workload
    source: flights
    expected_rows: 900
    epsilon: 1
    dimensions:
      origin: {values: [JFK, LGA, EWR]}
      length: {column: air_time, cuts: [60, 240]}
    rollups: [week]
    sinks: [table, file]
"""
WEEK = "2013-W02"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two weeks of flights, from a Tuesday on."""
    folder = tmp_path_factory.mktemp("rolled")
    text = DEMO.read_text().replace("end: 2014-01-01", "end: 2013-01-14")
    text = text.replace("batch: 0.3 ", "batch: 3 ").replace("lifetime: 60 ", "lifetime: 100 ")
    text = text.replace(
        "    sinks: [table, file]\n", "    sinks: [table, file]\n    rollups: [week]\n"
    )
    (folder / "config.yaml").write_text(text.replace("\nsinks:", f"{MORE}\nsinks:"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = CliRunner().invoke(cli, ["run", "--once"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    close()
    return folder


@pytest.fixture(autouse=True)
def there(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)


def called(*arguments: str) -> list[Json]:
    result = CliRunner().invoke(cli, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def rows_of(job: str) -> list[Json]:
    (found,) = called("releases", job, "--rollups")
    assert (found["type"], found["batch"], found["epsilon"]) == ("rollup", WEEK, 0)
    return list(found["rows"])


def test_a_rollup_is_the_answer_of_ask_in_table_file_and_store(home: Path) -> None:
    """Nine deciles of the week, as `ask` says them."""
    rows = rows_of("air_time")
    for row in rows[::4]:
        (said,) = called("ask", "air_time", "--quantile", str(row["quantile"]), "--over", WEEK)
        assert [row[each] for each in ("value", "lower", "upper", "batches")] == [
            said[each] for each in ("value", "lower", "upper", "batches")
        ]
    lines = [json.loads(line) for line in (home / "releases.jsonl").read_text().splitlines()]
    assert [
        each["rows"] for each in lines if each["type"] == "rollup" and each["job"] == "air_time"
    ] == [rows]
    with closing(sqlite3.connect(home / "streamdp.db")) as store:
        found = store.execute(
            "SELECT value, lower, upper, revision, current FROM air_time_deciles"
            " WHERE kind = 'rollup' AND job = 'air_time' ORDER BY quantile"
        ).fetchall()
        assert found == [(each["value"], each["lower"], each["upper"], 1, 1) for each in rows]
        view = store.execute("SELECT count(*) FROM v_rollups WHERE job = 'air_time' AND current")
        assert view.fetchone() == (9,)
    with streamdp.open(home / "streamdp.db") as reader:
        assert [each["value"] for each in reader.rollups("air_time", "week")] == [
            each["value"] for each in rows
        ]
        assert len(reader.rollups("air_time", "month")) == 0


def test_groups_and_their_union_agree() -> None:
    """A median of all lies within the intervals of the groups; counts of all are the sum."""
    rows = rows_of("by_origin")
    medians = {each["origin"]: each for each in rows if each["quantile"] == 0.5}
    assert list(medians) == ["JFK", "LGA", "EWR", None]
    groups = [medians[each] for each in ("JFK", "LGA", "EWR")]
    lower, upper = min(each["lower"] for each in groups), max(each["upper"] for each in groups)
    assert lower <= medians[None]["value"] <= upper
    assert lower <= medians[None]["lower"] <= medians[None]["upper"] <= upper
    counts = {(each["measure"], each["cell"], each["origin"]): each for each in rows_of("traffic")}
    means = [counts["planes", "", each]["value"] for each in ("JFK", "LGA", "EWR", None)]
    assert min(means[:3]) < means[3] < max(means[:3])
    for measure, cell in {key[:2] for key in counts if key[0] != "planes"}:
        parts = [counts[measure, cell, each]["value"] for each in ("JFK", "LGA", "EWR")]
        assert counts[measure, cell, None]["value"] == sum(parts)
    assert abs(counts["flights", "", None]["value"] - 6114) < 300


def test_tables_of_a_workload_add_up() -> None:
    """Each table to the number of records, and crossed tables to those of one axis."""
    rows = rows_of("cube")
    (whole,) = (each["value"] for each in rows if each["answer"] == "all records")
    for answer in ("origin", "length", "origin, length"):
        own = [each for each in rows if each["answer"] == answer]
        assert sum(each["value"] for each in own) == pytest.approx(whole, abs=0.01)
        assert all(each["lower"] <= each["value"] <= each["upper"] for each in own)
    for origin in ("JFK", "LGA", "EWR"):
        cells = [each["value"] for each in rows if each.get("origin") == origin]
        assert cells[0] == pytest.approx(sum(cells[1:]), abs=0.01)
    assert abs(whole - 6114) < 300


def test_conditions_count_the_cells_that_rows_show() -> None:
    """Each cell by a condition is the row of it; what a condition leaves is the rest."""
    rows = {(each.get("origin"), each.get("length")): each for each in rows_of("cube")}
    for (origin, length), where in (
        (("JFK", None), "origin = 'JFK'"),
        (("EWR", "< 60"), "origin = 'EWR' and length < 60"),
        (("LGA", ">= 240"), "length >= 240 and origin in ('LGA')"),
    ):
        (said,) = called("ask", "cube", "--records", "--where", where, "--over", WEEK)
        assert said["value"] == pytest.approx(rows[origin, length]["value"], abs=0.01)
        assert said["lower"] < said["value"] < said["upper"]
        assert (said["question"], said["spent"]) == (f"records where {where}", 0)
    one = ("ask", "cube", "--records", "--over", WEEK, "--every", "day")
    parts = [
        [each["value"] for each in called(*one, "--where", f"length {op} 60")] for op in ("<", ">=")
    ]
    (nulls,) = ([each["value"] for each in called(*one, "--where", "length is null")],)
    days = [each["value"] for each in called(*one)]
    assert [sum(each) for each in zip(*parts, nulls, strict=True)] == pytest.approx(days, abs=0.01)


def test_conditions_choose_groups() -> None:
    """Of quantiles, shares, counts and totals: one group by a condition is the group."""
    about = ("--over", WEEK)
    for question in (
        ("by_origin", "--quantile", ".5"),
        ("by_origin", "--above", "120"),
        ("by_origin", "--records"),
        ("traffic", "--total", "flights"),
    ):
        (one,) = called("ask", *question, *about, "--where", "origin = 'LGA'")
        (same,) = called("ask", *question, *about, "--group", "LGA")
        assert {**one, "question": ""} == {**same, "question": ""}
    (two,) = called("ask", "traffic", "--total", "flights", *about, "--where", "origin <> 'LGA'")
    parts = [
        called("ask", "traffic", "--total", "flights", *about, "--group", each)[0]["value"]
        for each in ("JFK", "EWR")
    ]
    assert two["value"] == sum(parts)
    jfk, both, ewr = (
        called("ask", "by_origin", "--quantile", ".5", *about, *which)[0]
        for which in (
            ("--group", "JFK"),
            ("--where", "origin in ('JFK', 'EWR')"),
            ("--group", "EWR"),
        )
    )
    assert min(jfk["lower"], ewr["lower"]) <= both["value"] <= max(jfk["upper"], ewr["upper"])


@pytest.mark.parametrize(
    ("job", "question", "where", "why"),
    [
        ("cube", ("--records",), "length < 61", "no cut of length"),
        ("cube", ("--records",), "carrier = 'AA'", "compare a dimension with constants"),
        ("cube", ("--records",), "origin = 'XXX'", "not among the values"),
        ("cube", ("--records",), "origin = 'JFK' and origin = 'EWR'", "meets"),
        ("cube", ("--quantile", ".5"), "origin = 'JFK'", "counted together here"),
        ("air_time", ("--records",), "origin = 'JFK'", "no groups and no axes"),
        ("traffic", ("--total", "planes"), "origin = 'JFK'", "do not add up"),
    ],
)
def test_conditions_over_what_was_not_counted_are_refused(
    job: str, question: tuple[str, ...], where: str, why: str
) -> None:
    """With the reason."""
    with pytest.raises(ConfigurationError, match=why):
        called("ask", job, *question, "--over", WEEK, "--where", where)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("rollups: [fortnight]", "a rollup is of a"),
        ("rollups: [rolling 28h]", "a rollup is of a"),
        ("rollups: {periods: [week], sinks: [nowhere]}", "not configured"),
        ("rollups: {periods: []}", "periods"),
    ],
)
def test_what_is_no_rollup_is_refused(tmp_path: Path, change: str, why: str) -> None:
    """With the place in the file."""
    text = DEMO.read_text().replace(
        "    sinks: [table, file]\n", f"    sinks: [table, file]\n    {change}\n"
    )
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(ConfigurationError, match=why):
        CliRunner().invoke(
            cli, ["validate", "--config", str(tmp_path / "config.yaml")], catch_exceptions=False
        )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("quantiles: deciles ", "quantiles: [0.5] ", "a single quantile is drawn"),
        ("learner: mixture ", "measure: quantiles ", "every quantile is drawn"),
        ("learner: mixture ", "learner: online-gradient ", None),
        ("learner: mixture ", "learner: none ", "its learner draws"),
        ("expected_rows: 900 ", "expected_rows: 90000 ", "at least 3,000"),
        ("measured_in: minutes ", "measured_in: minutes ", None),
    ],
)
def test_validate_says_of_which_job_no_period_will_have_rows(
    tmp_path: Path, old: str, new: str, said: str | None
) -> None:
    """Where every quantile is drawn; a job that counts is not named."""
    text = DEMO.read_text().replace(
        "    sinks: [table, file]\n", "    sinks: [table, file]\n    rollups: [week]\n"
    )
    assert old in text
    (tmp_path / "config.yaml").write_text(text.replace(old, new))
    found = CliRunner().invoke(cli, ["validate", "--config", str(tmp_path / "config.yaml")])
    assert found.exit_code == 0, found.output
    assert ("releases.air_time.rollups: no period will have a row" in found.stderr) == bool(said)
    assert said is None or said in found.stderr
