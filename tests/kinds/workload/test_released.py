"""Releases of a workload through configuration, engine, ledger and command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner

from streamdp.cli import cli
from streamdp.daemon.runtime import SystemClock
from streamdp.log import close
from streamdp.privacy.events import epsilon_of
from streamdp.store.database import connect_to_read
from streamdp.store.ledger.chain import Events
from streamdp.types import Json

EXAMPLE = (Path(__file__).parents[3] / "deploy" / "examples" / "marginals.yaml").read_text()
TWO_DAYS = EXAMPLE.replace("end: 2014-01-01", "end: 2013-01-03")
GROUPS = "    by: origin\n    groups: [EWR, JFK]\n    expected_rows: 300\n"
AXIS = "      origin: {values: [EWR, JFK, LGA]}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SystemClock, "wait", lambda self, seconds: None)
    yield tmp_path
    close()


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    return result.output


VARIANTS = {
    "records are units": (TWO_DAYS, 1, 1),
    "substitute": (
        TWO_DAYS.replace("unit: flight", "unit: flight\n  neighbours: substitute"),
        1,
        1,
    ),
    "units of three rows": (
        TWO_DAYS.replace("unit: flight", "unit: {name: plane, column: tail_number, rows: 3}"),
        3,
        1,
    ),
    "groups": (
        TWO_DAYS.replace(AXIS, "").replace("    expected_rows: 900\n", GROUPS),
        1,
        2,
    ),
}


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", VARIANTS)
def test_a_release_costs_its_epsilon_and_can_be_asked(folder: Path, name: str) -> None:
    """Whatever units and groups are: the ledger is charged 0.3 a day, once."""
    text, size, groups = VARIANTS[name]
    (folder / "config.yaml").write_text(text)
    run("run", "--once")
    made = [json.loads(line) for line in run("releases", "--json").splitlines()]
    assert [each["batch"] for each in made] == ["2013-01-01", "2013-01-02"]
    assert {str(each["epsilon"]) for each in made} == {"0.3"}
    event = _events(folder)[0]
    assert epsilon_of(event) == Fraction(3, 10)
    assert ('"type": "group"' in json.dumps(event)) == (size > 1)
    assert ('"type": "parallel"' in json.dumps(event)) == (groups > 1)
    asked = run("ask", "traffic", "2013-01-02", "count where delay < 0", "--json")
    answers = [json.loads(line) for line in asked.splitlines()]
    assert len(answers) == groups
    for answer in answers:
        published = _summed(made[1]["rows"], answer)
        assert answer["value"] == pytest.approx(published, rel=0.01, abs=0.5)


def _events(folder: Path) -> list[Json]:
    with closing(connect_to_read(folder / "marginals.db")) as store:
        found = store.execute("SELECT event FROM ledger WHERE purpose = 'reserve' ORDER BY seq")
        events = Events(store)
        return [json.loads(events.whole(event)) for (event,) in found]


def _summed(rows: list[Json], answer: Json) -> float:
    below = ("< -20", "[-20, -10)", "[-10, 0)")
    return sum(
        float(row["value"])
        for row in rows
        if row["answer"] == "delay"
        and row["delay"] in below
        and row.get("origin") == answer.get("origin")
    )


def test_a_release_is_asked_with_the_configuration_it_was_made_with(folder: Path) -> None:
    """Names are the same: only the digest of the axes, predicates and records tells another."""
    (folder / "config.yaml").write_text(TWO_DAYS)
    run("run", "--once")
    asking = ["ask", "traffic", "2013-01-02", "count where delay < 0"]
    run(*asking)
    for old, new in (
        ("delay >= 30", "delay >= 10"),
        ("values: [EWR, JFK, LGA]", "values: [EWR, JFK, LGA, HPN]"),
        ("    expected_rows: 900\n", "    expected_rows: 900\n    where: distance > 500\n"),
    ):
        assert old in TWO_DAYS
        (folder / "config.yaml").write_text(TWO_DAYS.replace(old, new))
        result = CliRunner().invoke(cli, asking)
        assert result.exit_code != 0
        assert "was made with other axes" in str(result.exception or result.output)


def test_other_kinds_cannot_be_asked(folder: Path) -> None:
    """They say so."""
    demo = Path(__file__).parents[3] / "config.yaml"
    (folder / "config.yaml").write_text(demo.read_text())
    result = CliRunner().invoke(cli, ["ask", "air_time", "2013-01-01", "count"])
    assert result.exit_code != 0
    assert "answer no further questions" in str(result.exception or result.output)
