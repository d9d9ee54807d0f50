"""A bought gradient as a person meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from streamdp.cli import cli
from streamdp.config import load
from streamdp.errors import ConfigurationError

DEMO = (Path(__file__).parents[2] / "config.yaml").read_text()
FREE = DEMO.replace("learner: mixture", "learner: online-gradient")
BOUGHT = DEMO.replace("learner: mixture", "private_gradient: 0.2\n      learner: online-gradient")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    return tmp_path / "config.yaml"


def typed(*arguments: str) -> str:
    result = CliRunner().invoke(cli, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_statement_says_what_the_learner_gets(home: Path) -> None:
    """Three days: the price of a release, and the part of it that is for learning."""
    home.write_text(BOUGHT.replace("start: 2013-01-01", "start: 2013-12-29"))
    typed("run", "--once")
    (job,) = json.loads(typed("statement", "--json"))["jobs"]
    assert (job["releases"], job["epsilon_of_one_release"]) == (3, "0.1")
    assert job["of_which_for_its_learner"] == "0.02"
    again = CliRunner().invoke(cli, ["budget", "--recompute"])
    assert "3 charges read again, 0 differ" in again.output
    home.write_text(FREE.replace("start: 2013-01-01", "start: 2013-12-29"))
    assert "of_which_for_its_learner" not in typed("statement", "--json")


def test_simulate_replays_it_beside_those_who_learn_for_free(home: Path) -> None:
    """The option changes the learner that makes use of it, and no other."""
    found = []
    for text in (FREE, BOUGHT):
        home.write_text(text)
        asked = ("simulate", "--truth-may-be-seen", "--length", "6", "--json")
        lines = typed(*asked, "--learners", "online-gradient,last-release").splitlines()
        rows = [json.loads(line) for line in lines]
        found.append({row["learner"]: row["average_error"] for row in rows})
    free, bought = found
    assert free["online-gradient"] != bought["online-gradient"]
    assert {**free, "online-gradient": 0} == {**bought, "online-gradient": 0}
    assert set(free) == {"online-gradient", "last-release", "oracle"}


def test_a_learner_that_buys_nothing_says_so_at_the_line(home: Path) -> None:
    """What, where, and what to do."""
    home.write_text(BOUGHT.replace("online-gradient", "mixture"))
    with pytest.raises(ConfigurationError) as caught:
        load(home)
    assert str(caught.value) == (
        "config.yaml:43:7 releases.air_time.prior.private_gradient: private_gradient is for"
        " the learner online-gradient, and this one is mixture\n  hint: leave it out, or set"
        " learner: online-gradient"
    )
