"""Gates as a person sees them: refused, planned, run, shown, armed again."""

from __future__ import annotations

import importlib.metadata
import json
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from streamdp.cli import cli
from streamdp.daemon.runtime import SystemClock
from streamdp.errors import ConfigurationError
from streamdp.log import close
from streamdp.mechanisms.sparse_vector.thresholding import Runs
from streamdp.types import CellCounts, Entropy, Grid, Json, Past

DEMO = Path(__file__).parents[2] / "config.yaml"
GATE = """    gate:
      test: {kind: drift, absolute: 20, quantiles: [0.5]}
      epsilon: 1
      horizon: 20
"""


def typed(*arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(cli, arguments, input=answer)


def rows(*arguments: str) -> list[dict[str, Json]]:
    return [json.loads(line) for line in typed(*arguments, "--json").output.splitlines()]


def configured(folder: Path, gate: str = GATE, more: str = "") -> None:
    text = DEMO.read_text().replace("end: 2014-01-01", "end: 2013-01-09")
    text = text.replace("batch: 0.3 ", "batch: 3 ").replace("    schedule:", gate + "    schedule:")
    (folder / "config.yaml").write_text(text + more)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with eight days and a gate, where slots take no time."""
    configured(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SystemClock, "wait", lambda self, seconds: None)
    monkeypatch.setattr(SystemClock, "now", lambda self: int(time.time()) - 60)
    yield tmp_path
    close()


def test_a_year_of_five_lines(home: Path) -> None:
    """The first day is released; later ones only if they drift; every day is accounted for."""
    assert "8" in typed("plan", "--days", "1").output
    result = typed("run", "--once")
    assert result.exit_code == 0, result.output
    found = rows("status")
    job, gate = found[1], found[2]
    assert gate["gate"] == "air_time.gate"
    assert gate["asked"] == 7
    assert job["releases"] == 1 + gate["accepted"]
    exported = [json.loads(line) for line in (home / "releases.jsonl").read_text().splitlines()]
    assert [each["batch"] for each in exported] == [f"2013-01-{day:02d}" for day in range(1, 9)]
    assert sum(each["kind"] == "quantiles" for each in exported) == job["releases"]
    assert {each["epsilon"] for each in exported if each["kind"] == "standing"} <= {0}


def test_a_release_that_stands_is_shown_as_such(home: Path) -> None:
    """With a tolerance nobody leaves, the first day stands to the last, and is shown for it."""
    configured(home, GATE.replace("absolute: 20", "absolute: 900"))
    typed("run", "--once")
    (line,) = rows("releases")
    assert (line["batch"], line["stands_to"]) == ("2013-01-01", "2013-01-08")
    assert rows("status")[1]["stands_to"] == "2013-01-08"
    shown = json.loads(typed("show", "air_time", "2013-01-05", "--json").output)
    assert (shown["batch"], shown["stands_for"]) == ("2013-01-01", "2013-01-05")


def test_a_gate_that_waits_is_armed_by_a_person(home: Path) -> None:
    """`rearm` names the price, refuses what does not wait, and the next round asks again."""
    gates = (
        "gates:\n  busy:\n    source: flights\n    column: air_time\n    resolution: 1\n"
        "    bounds: [0, 1000]\n    test: {kind: growth, start: 100, factor: 1.01}\n"
        "    epsilon: 1\n    horizon: 20\n    rearm: manual\n    sinks: [file]\n"
    )
    configured(home, "", gates)
    assert typed("run", "--once").exit_code == 0
    gate = rows("status")[-1]
    assert (gate["state"], gate["asked"], gate["accepted"]) == ("rearm it", 1, 1)
    assert "costs 1" in typed("rearm", "busy", answer="n").output
    assert typed("rearm", "busy", answer="y").exit_code == 0
    assert isinstance(typed("rearm", "busy", "--yes").exception, Exception)
    typed("run", "--once")
    assert rows("status")[-1]["accepted"] == 2
    lines = (home / "releases.jsonl").read_text().splitlines()
    assert "gate" in {json.loads(line)["kind"] for line in lines}


def test_hidden_state_is_in_no_output(home: Path) -> None:
    """Whatever a person types, the threshold and the count of tests are not in it."""
    from streamdp.store.database import connect_to_read

    configured(home, GATE.replace("absolute: 20", "absolute: 900"))
    typed("run", "--once")
    database = connect_to_read(home / "streamdp.db")
    (hidden,) = database.execute("SELECT hidden FROM gate_run WHERE hidden NOT NULL").fetchone()
    (secret,) = json.loads(hidden).values()
    for command in (
        *(["status"], ["releases"], ["show", "air_time", "2013-01-05"], ["budget"]),
        *(["budget", "--ledger"], ["logs"], ["outbox"], ["plan"], ["doctor"]),
    ):
        for form in ([], ["--json"]):
            assert str(secret) not in typed(*command, *form).output
    assert (home / "streamdp.db").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        (GATE.replace("absolute: 20", "absolute: 20, ranks: 0.1"), "one tolerance"),
        (GATE.replace("epsilon: 1", "epsilon: 0.01"), "records beyond the tolerance"),
        (GATE.replace("[0.5]", "[0.55]"), "does not release this quantile"),
        (GATE.replace("horizon: 20", "horizon: 0"), "1 or more"),
        (GATE + "      sinks: [nowhere]\n", "not configured"),
        (GATE.replace("epsilon: 1", "epsilon: 2.95"), "cap is 3"),
        (GATE.replace("drift, absolute: 20, quantiles: [0.5]", "custom, name: x"), "no installed"),
        (GATE.replace("absolute: 20", "ranks: 0.1") + "      test_epsilon: 0.05\n", "counts"),
        (GATE + "      test_epsilon: 1e-7\n", "computed well enough"),
        (GATE.replace("drift", "drought"), "drought"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_spent(
    home: Path, gate: str, words: str
) -> None:
    """`validate` says what is wrong, with the numbers, and `run` spends nothing."""
    configured(home, gate)
    for command in (["validate"], ["run", "--once"]):
        failure = typed(*command).exception
        assert isinstance(failure, ConfigurationError), command
        assert words in str(failure)
    spent = rows("budget") if (home / "streamdp.db").exists() else []
    assert all(row["lifetime"] == "0" for row in spent)


def test_a_gated_job_is_not_backfilled(home: Path) -> None:
    """What it releases is for the gate to say."""
    failure = typed("backfill", "air_time", "--from", "2013-01-01", "--to", "2013-01-05").exception
    assert isinstance(failure, ConfigurationError)


@dataclass(frozen=True)
class Coin:
    """A test that says yes with a chance it was made with."""

    chance: float

    def describe(self) -> Json:
        return {"kind": "coin", "chance": self.chance}

    def test(self, past: Past, statistic: CellCounts) -> Runs:
        def heads(count: int, entropy: Entropy) -> int:
            limit = int(self.chance * 2**30)
            return sum(entropy.bits(30) < limit for _ in range(count))

        return heads


def coin(grid: Grid, epsilon: Fraction, chance: float) -> Coin:
    return Coin(chance)


@dataclass(frozen=True)
class Point:
    name: str

    def load(self) -> object:
        return coin


CUSTOM = """    gate:
      test: {kind: custom, name: coin, options: {chance: 0.0}}
      epsilon: 1
      horizon: 20
"""


@pytest.fixture
def offered(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, and a package that offers a test called coin."""
    others = importlib.metadata.entry_points

    def found(group: str) -> Sequence[object]:
        return [Point("coin")] if group == "streamdp.tests" else tuple(others(group=group))

    monkeypatch.setattr("importlib.metadata.entry_points", found)
    return home


@pytest.mark.parametrize(("chance", "accepted"), [(0.0, 0), (1.0, 7)])
def test_a_test_of_another_package_decides(offered: Path, chance: float, accepted: int) -> None:
    """A black box that always says yes lets every day through, one that never does none."""
    configured(offered, CUSTOM.replace("chance: 0.0", f"chance: {chance}"))
    assert typed("run", "--once").exit_code == 0
    assert rows("status")[2]["accepted"] == accepted


STEPPED = """    gate:
      test: {kind: custom, name: coin, options: {chance: 0.9}}
      epsilon: 20
      test_epsilon: 0.2
      horizon: 8
      success: LEVEL
      success_steps: [STEP]
      success_by: BY
"""


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("level", "step", "by", "said"),
    [
        ("0.5", "0.99", "acceptance", "ynnnnnn"),
        ("0.99", "0.5", "acceptance", "nnnnnnn"),
        ("0.5", "0.99", "test", "yyyyyyy"),
        ("0.99", "0.5", "test", "nynynyn"),
    ],
)
def test_the_wanted_chance_follows_answers_or_tests_of_a_run(
    offered: Path, level: str, step: str, by: str, said: str
) -> None:
    """A box that says yes nine times in ten passes at a half and not at .99; each run costs 20."""
    gate = STEPPED.replace("LEVEL", level).replace("STEP", step).replace("BY", by)
    configured(offered, gate)
    text = Path("config.yaml").read_text().replace("batch: 3 ", "batch: 30 ")
    Path("config.yaml").write_text(re.sub(r"lifetime: [0-9.]+", "lifetime: 400", text))
    result = typed("run", "--once")
    assert result.exit_code == 0, result.output
    database = sqlite3.connect("streamdp.db")
    found = database.execute("SELECT answer FROM v_gates ORDER BY batch").fetchall()
    assert "".join(answer[0] for (answer,) in found) == said
    runs = said.count("y") + (said[-1] == "n")
    (spent,) = database.execute("SELECT sum(epsilon) FROM v_runs").fetchone()
    assert spent == pytest.approx(20 * runs)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("      test_epsilon: 0.9\n", "runs"),
        ("      test_epsilon: 1.5\n", "far below"),
    ],
)
def test_too_many_draws_are_refused_with_numbers(offered: Path, change: str, words: str) -> None:
    """The noise would multiply the draws: say by how much, and what to change."""
    configured(offered, CUSTOM + change)
    failure = typed("validate").exception
    assert isinstance(failure, ConfigurationError)
    assert words in str(failure)


def test_options_it_does_not_know_are_refused(offered: Path) -> None:
    """A factory that refuses says so under the name of the gate."""
    configured(offered, CUSTOM.replace("chance: 0.0", "chances: 1"))
    failure = typed("validate").exception
    assert isinstance(failure, ConfigurationError)
    assert "air_time.gate" in str(failure)


COUNTED = """  carriers:
    kind: statistics
    source: flights
    measures: {n: count, by: {histogram: carrier, values: [UA, B6]}, long: {mean: air_time,
      resolution: 1, bounds: [0, 700]}}
    epsilon: 0.5
    gate: {test: {TEST}, epsilon: 1, horizon: 20}
"""


@pytest.mark.parametrize(
    ("test", "words"),
    [
        ("kind: count, measure: by", "give one of above"),
        ("kind: count, measure: by, above: 1, below: 2", "give one of above"),
        ("kind: count, measure: by, above: -1", "0 or more"),
        ("kind: count, measure: long, above: 1", "there are: n, by"),
        ("kind: count, above: 1", "there are: n, by"),
        ("kind: count, measure: by, cells: [AA], above: 1", "has no cell 'AA'"),
        ("kind: count, measure: n, above: 1, where: air_time > 3", "condition is that of"),
        ("kind: count, measure: n, below: 20", "at most 20 can be there"),
        ("kind: count, measure: n, above: 20, where: now() > 3", "now"),
        ("kind: drift, absolute: 3", "cannot read releases of kind statistics"),
        ("kind: growth, start: 3, factor: 2", "cannot read releases of kind statistics"),
    ],
)
def test_what_a_count_cannot_be_is_refused(home: Path, test: str, words: str) -> None:
    """At its line, with what there is."""
    text = DEMO.read_text().replace("batch: 0.3 ", "batch: 3 ")
    text = text.replace("\nsinks:", "\n" + COUNTED.replace("TEST", test) + "\nsinks:", 1)
    (home / "config.yaml").write_text(text)
    failure = typed("validate").exception
    assert isinstance(failure, ConfigurationError), failure
    assert words in str(failure)


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        ("test: {kind: count, absolute: 3}", "from a release"),
        ("test: {kind: count, measure: n, above: 3}", "are of a release"),
        ("test: {kind: count, above: 3}, column: air_time", "records are counted"),
        ("test: {kind: count, above: 3, where: nothing(}", "where"),
    ],
)
def test_what_a_count_that_stands_alone_cannot_be_is_refused(
    home: Path, gate: str, words: str
) -> None:
    """It has no release to compare with, and no values."""
    more = f"gates:\n  busy: {{source: flights, sinks: [file], epsilon: 1, horizon: 9, {gate}}}\n"
    configured(home, "", more)
    failure = typed("validate").exception
    assert isinstance(failure, ConfigurationError), failure
    assert words in str(failure)


def test_a_count_decides_a_release(home: Path) -> None:
    """Far above in every batch: each is released; never below: the first day stands."""
    for test, released in (("above: 100", 8), ("below: 100", 1)):
        configured(home, "")
        text = (home / "config.yaml").read_text()
        section = COUNTED.replace("TEST", f"kind: count, measure: n, {test}")
        text = text.replace("\nsinks:", "\n" + section + "\nsinks:", 1)
        text = text.replace("streamdp.db", f"{released}.db").replace("batch: 3", "batch: 5")
        (home / "config.yaml").write_text(text)
        assert typed("run", "--once").exit_code == 0
        made = [row for row in rows("releases", "carriers") if row.get("kind") != "standing"]
        assert len(made) == released
        close()
