"""Commands whose standard streams are closed or full."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from streamdp.cli import cli
from streamdp.cli.streams import secure
from tests.children import in_child

DEMO = Path(__file__).parents[2] / "config.yaml"
COMMAND = f"{sys.executable} -m streamdp"
COMMANDS = ("status", "releases --csv", "releases", "budget", "logs")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    text = DEMO.read_text().replace("end: 2014-01-01", "end: 2013-01-04")
    (folder / "config.yaml").write_text(text)
    ran = shell(folder, "run --once 2>/dev/full")
    assert (ran.returncode, ran.stderr) == (0, "")
    return folder


def shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    command = f"{COMMAND} {line}"
    return subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True)


@pytest.mark.long
def test_work_goes_on_without_a_place_for_messages(home: Path) -> None:
    """Standard error closed: the work is done, and its result is the exit code."""
    (home / "config.yaml").write_text(
        (home / "config.yaml").read_text().replace("2013-01-04", "2013-01-06")
    )
    ran = shell(home, "run --once 2>&-")
    assert (ran.returncode, ran.stdout) == (0, "")
    shown = shell(home, "releases --json")
    assert len(shown.stdout.splitlines()) == 5


@pytest.mark.thinned(5)
@pytest.mark.parametrize(
    ("command", "where", "why"),
    [
        *((each, ">/dev/full", "No space left") for each in COMMANDS),
        *((each, ">&-", "closed") for each in COMMANDS[:2]),
    ],
)
def test_a_result_that_cannot_be_shown_is_an_error(
    home: Path, command: str, where: str, why: str
) -> None:
    """One message, no traceback, exit code 1."""
    ran = shell(home, f"{command} {where}")
    assert ran.returncode == 1
    assert len(ran.stderr.splitlines()) == 1
    assert why in ran.stderr


def test_no_file_takes_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    """What is opened after standard error was closed is not standard error."""

    def work() -> int:
        import os

        os.close(2)
        secure()
        return os.open(tmp_path / "store", os.O_CREAT | os.O_RDWR)

    assert in_child(work).require(0) > 2


@pytest.mark.parametrize("command", ["validate", "status", "releases --last 1", "budget --ledger"])
def test_every_command_writes_times_alike(
    home: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In RFC 3339, which programs and SQL read: never with a blank, and never without a zone."""
    monkeypatch.chdir(home)
    said = CliRunner().invoke(cli, [*command.split(), "--json"]).stdout
    assert re.search(r'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"', said)
    assert not re.search(r'"\d{4}-\d\d-\d\d \d\d', said)
