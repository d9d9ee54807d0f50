"""A command sink as the configuration names it."""

from pathlib import Path

import pytest

from streamdp.config import load
from streamdp.errors import ConfigurationError
from streamdp.sinks.command import CommandSink
from streamdp.sinks.section import SinkContext
from tests.sinks.test_sinks import release
from tests.worlds import HandClock

DEMO = Path(__file__).parents[2] / "config.yaml"


def configured(folder: Path, line: str) -> Path:
    text = DEMO.read_text().replace("  file: {", f"  script: {{kind: command, {line}}}\n  file: {{")
    (folder / "config.yaml").write_text(text)
    return folder / "config.yaml"


def test_it_runs_in_the_folder_of_the_configuration(tmp_path: Path) -> None:
    """A relative program is found there, and gets the variables it was given."""
    (tmp_path / "note.sh").write_text("#!/bin/sh\necho $WORD > noted\n")
    (tmp_path / "note.sh").chmod(0o700)
    path = configured(tmp_path, "argv: [./note.sh], environment: {WORD: '${GIVEN}'}")
    section = load(path, {"GIVEN": "secret"}).sinks["script"]
    made = section.sink("script", SinkContext(HandClock()))
    assert isinstance(made, CommandSink)
    made.deliver(release(1))
    assert (tmp_path / "noted").read_text() == "secret\n"


@pytest.mark.parametrize(
    "line", ["argv: []", "argv: ['']", "argv: ls -l", "argv: [ls], attempts: 0", "argv: [ls], x: 1"]
)
def test_a_bad_section_is_refused(tmp_path: Path, line: str) -> None:
    """No program, a line for a shell, no attempt, an unknown key."""
    with pytest.raises(ConfigurationError):
        load(configured(tmp_path, line))
