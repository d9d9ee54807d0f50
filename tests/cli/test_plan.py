"""`streamdp plan` of many jobs: equal ones are simulated once, and turns are those of a round."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from streamdp.cli import cli
from streamdp.engine.runner import TURN
from streamdp.kinds.quantiles import accuracy as told
from streamdp.log import close
from streamdp.mechanisms.quantile_tree.planning import accuracy
from streamdp.planning import costs

HEAD = """
store: {{path: streamdp.db}}
privacy: {{unit: flight, caps: {{batch: 2, lifetime: {lifetime}}}}}
sources:
  flights:
    path: demo:flights.parquet
    batches: {{column: date, every: 1d, start: 2013-01-01, end: 2013-02-01}}
releases:
"""
JOB = (
    "  {name}: {{kind: quantiles, source: flights, column: {column}, quantiles: [0.5],"
    " resolution: 1, bounds: [0, 1000], epsilon: {epsilon}, expected_rows: 900,"
    " schedule: {{every: 1d}}, prior: {{learner: none}}}}\n"
)


@pytest.fixture
def simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A folder to work in, and the trees that were simulated."""
    monkeypatch.chdir(tmp_path)
    found: list[Any] = []

    def stays_under(tree: Any, *rest: object) -> float:
        found.append(tree)
        return 0.25

    monkeypatch.setattr(accuracy, "stays_under", stays_under)
    told._stays_under.cache_clear()  # other tests of this process found errors of the same trees
    return found


def _write(jobs: dict[str, tuple[str, float]], lifetime: float = 900) -> None:
    text = "".join(
        JOB.format(name=name, column=column, epsilon=epsilon)
        for name, (column, epsilon) in jobs.items()
    )
    Path("config.yaml").write_text(HEAD.format(lifetime=lifetime) + text)


def _rows(*arguments: str) -> tuple[list[dict[str, Any]], str]:
    result = CliRunner().invoke(cli, ["plan", "--json", *arguments])
    assert result.exit_code in (0, 3), result.output
    return [json.loads(line) for line in result.stdout.splitlines()], result.stderr


def test_equal_jobs_are_simulated_once(simulated: list[Any]) -> None:
    """Jobs of other columns at the same price have the same figures."""
    columns = ("air_time", "arrival_delay", "departure_delay")
    _write({f"{c}_{e}": (c, e / 1000) for c in columns for e in (101, 102)})
    rows, _ = _rows()
    assert [row["rank_error_95"] for row in rows[:-1]] == [0.25] * 6
    assert len(simulated) == 2


def test_many_jobs_are_simulated_by_name(simulated: list[Any]) -> None:
    """Without names nothing is simulated and it is said; named ones are, and shown alone."""
    _write({f"job_{number}": ("air_time", (51 + number) / 1000) for number in range(21)})
    rows, said = _rows()
    assert (len(rows), simulated) == (22, [])
    assert all("rank_error_95" not in row for row in rows)
    assert "21 releases" in said
    rows, said = _rows("job_3", "job_1")
    assert [row.get("job") for row in rows] == ["job_1", "job_3", None]
    assert [row["rank_error_95"] for row in rows[:-1]] == [0.25, 0.25]
    assert (len(simulated), said) == (2, "")


def test_the_end_of_a_budget_is_where_turns_put_it(simulated: list[Any]) -> None:
    """The plan names the batches at which a run then stops."""
    _write({"a": ("air_time", 0.1), "b": ("arrival_delay", 0.1)}, lifetime=0.1 * (2 * TURN + 5))
    rows, _ = _rows()
    refused = {row["refused"]: row["batch"] for row in rows if "refused" in row}
    CliRunner().invoke(cli, ["run", "--once"])
    found = CliRunner().invoke(cli, ["releases", "--json", "--last", "99"]).stdout.splitlines()
    released = [json.loads(line) for line in found]
    for job, batches in (("a", TURN + 5), ("b", TURN)):
        own = sorted({row["batch"] for row in released if row["job"] == job})
        assert len(own) == batches
        assert refused[job] == f"2013-01-{batches + 1:02d}"


def test_a_gate_that_never_ran_has_no_tests_left() -> None:
    """Every window of its plan needs a run of its own to be in."""
    assert costs.tests_left(None, "gate", 5) == 0


def test_errors_are_told_in_the_unit_of_the_column(simulated: list[Any]) -> None:
    """A quarter of the ranks of values around 500, spread by 100, is some ten of them."""
    _write({"air": ("air_time", 0.1)})
    (row, budget), _ = _rows()
    assert 10 < row["value_error_95"] < 500
    assert budget["batches_left_after"] == int((900 - 31 * 0.1) / 0.1 + 1e-9)
    assert budget["lasts_until"] == "the source ends before"
    said = CliRunner().invoke(cli, ["plan"]).stderr
    assert "errors are those of a first release" in said


def test_every_measure_has_an_error_and_a_cap_is_named(simulated: list[Any]) -> None:
    """Counts, sums and means in their units; a price that the batch cap forbids says so."""
    job = (
        "  day: {kind: statistics, source: flights, epsilon: 0.5, schedule: {every: 1d}, measures:"
        " {flights: count, late: {count: {sql: arrival_delay > 30}},"
        " total: {sum: air_time, resolution: 1, bounds: [0, 1000]},"
        " mean: {mean: air_time, resolution: 1, bounds: [0, 1000]}}}\n"
    )
    Path("config.yaml").write_text(HEAD.format(lifetime=900) + job)
    (row, _), _ = _rows("--error", "1")
    errors = {name: value for name, value in row.items() if "error_95" in name}
    assert list(errors) == [
        *("flights error_95", "late error_95"),
        *("total error_95", "mean error_95 times records"),
    ]
    assert all(value > 1 for value in errors.values())
    assert row["epsilon_for_1"].endswith("above the batch cap of 2")


def test_plan_and_budget_name_the_same_last_batch(
    simulated: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However far the plan looks ahead: the day of the last batch that there is room for."""
    now = 1_359_700_000  # 2013-02-01, in the morning
    for clock in ("time.time", "streamdp.daemon.runtime.SystemClock.now"):
        monkeypatch.setattr(clock, lambda *_: now)
    _write({"air": ("air_time", 0.5)}, lifetime=30)
    path = Path("config.yaml")
    path.write_text(path.read_text().replace(", end: 2013-02-01", ", lateness: 6h"))
    assert CliRunner().invoke(cli, ["run", "--once"]).exit_code == 0
    close()
    said = CliRunner().invoke(cli, ["budget", "--json"]).stdout.splitlines()
    (until,) = {row["until"] for row in map(json.loads, said) if "until" in row}
    planned = {_rows("--days", days)[0][-1]["lasts_until"] for days in ("1", "2", "9")}
    assert planned == {until[:10]} == {"2013-03-01"}
