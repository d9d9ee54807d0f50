"""Secrets of the configuration are in nothing that any command says or writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from streamdp.cli import COMMANDS, cli
from streamdp.log import close

DEMO = Path(__file__).parents[2] / "config.yaml"
CANARIES = ("CANARY-IN-ADDRESS", "CANARY-IN-ENVIRONMENT", "CANARY-IN-FILE")

SINKS = """\
sinks:
  open: {kind: webhook, url: "${HOOK_URL}", secret: "${HOOK_KEY}", timeout: 1s}
  filed: {kind: webhook, url: "http://127.0.0.1:1/CANARY-IN-ADDRESS", secret: {file: key.txt}}
"""

ARGUMENTS = {
    "run": ["--once"],
    "release": ["air_time"],
    "backfill": ["air_time", "--from", "2013-01-01", "--to", "2013-01-09", "--yes"],
    "pause": ["air_time"],
    "resume": ["air_time"],
    "show": ["air_time", "2013-01-01"],
    "logs": ["--level", "debug"],
    "budget": ["--ledger"],
    "simulate": ["nobody"],
    "completion": ["bash"],
    "web": ["--until-eof"],
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The demonstration of five days, owed to two webhooks where nobody listens."""
    text = DEMO.read_text().replace("end: 2014-01-01", "end: 2013-01-06")
    text = text.replace("sinks: [table, file]", "sinks: [open, filed]").replace("info", "debug")
    text = text.replace("learner: mixture", "learner: last-release").replace("sinks:\n", SINKS, 1)
    (tmp_path / "config.yaml").write_text(text)
    (tmp_path / "key.txt").write_text("CANARY-IN-FILE of some length\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOOK_URL", "http://127.0.0.1:1/CANARY-IN-ADDRESS")
    monkeypatch.setenv("HOOK_KEY", "CANARY-IN-ENVIRONMENT of some length")
    yield tmp_path
    close()


def shown(name: str, *more: str) -> str:
    """All that a command says, and the error it ends in, whatever that is."""
    ran = CliRunner().invoke(cli, [name, *ARGUMENTS.get(name, []), *more], input="n\n")
    return f"{ran.output} {ran.exception} {ran.exception!r}"


def found_in(text: str) -> list[str]:
    return [canary for canary in CANARIES if canary in text]


def test_no_command_says_or_writes_a_secret(home: Path) -> None:
    """Every command, before and after releases that no webhook takes; then every byte written."""
    own = {home / "key.txt", home / "config.yaml"}
    said = {name: shown(name) for name in COMMANDS}
    assert "cannot be reached" in said["run"]
    assert {name: found_in(text) for name, text in said.items() if found_in(text)} == {}
    written = [path for path in home.rglob("*") if path.is_file() and path not in own]
    assert any(path.name == "streamdp.log" for path in written)
    leaks = [path.name for path in written if found_in(path.read_bytes().decode("latin-1"))]
    assert leaks == []


@pytest.mark.parametrize("bad", ["CANARY-IN-ADDRESS", "ftp://CANARY-IN-ADDRESS"])
def test_a_bad_secret_is_refused_by_every_command_unseen(
    home: Path, monkeypatch: pytest.MonkeyPatch, bad: str
) -> None:
    """Each that reads the configuration names the place alone."""
    monkeypatch.setenv("HOOK_URL", bad)
    for name in ("validate", "doctor", "plan", "run", "status", "budget"):
        text = shown(name)
        assert "sinks.open.url" in text, name
        assert found_in(text) == []


def test_a_secret_file_that_is_gone_is_named_not_guessed(home: Path) -> None:
    """The run ends before anything is spent, and says which file."""
    (home / "key.txt").unlink()
    assert "key.txt" in shown("run")
    assert "reserve" not in shown("budget")
    assert "key.txt" in shown("doctor")
