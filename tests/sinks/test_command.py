"""A program gets each release on its input, little environment, and no more time than told."""

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from streamdp.errors import SinkError
from streamdp.sinks.command import CommandSink
from tests.sinks.test_sinks import release


def command(folder: Path, code: str, timeout: int = 600) -> CommandSink:
    return CommandSink("c", (sys.executable, "-c", code), folder, timeout, 3, {"GIVEN": "word"})


def test_it_gets_the_release_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record on standard input; of the environment only what the configuration gives."""
    monkeypatch.setenv("SECRET", "CANARY")
    code = (
        "import json, os, sys; found = {'record': json.load(sys.stdin), 'known': dict(os.environ)};"
        " json.dump(found, open('found.json', 'w'))"
    )
    command(tmp_path, code).deliver(release(1))
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["record"]["release_id"] == "id1"
    assert found["record"]["rows"][0] == {"quantile": 0.5, "value": 1.0}
    assert {"PATH", "LANG", "STREAMDP_RELEASE_ID", "GIVEN"} >= found["known"].keys() - {"LC_CTYPE"}
    assert found["known"]["STREAMDP_RELEASE_ID"] == "id1"


def test_there_is_no_shell(tmp_path: Path) -> None:
    """An argument full of shell is an argument."""
    sink = CommandSink("c", ("/bin/echo", "; touch gone", "$(touch gone)"), tmp_path, 600, 3, {})
    sink.deliver(release(1))
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        ((sys.executable, "-c", "raise SystemExit(7)"), "code 7"),
        (("no-such-program-at-all",), "cannot be started"),
        (("/bin/cat", "/etc/hostname", "CANARY"), "code 1"),
    ],
)
def test_a_failure_is_a_sink_error_in_our_words(
    tmp_path: Path, argv: tuple[str, ...], word: str
) -> None:
    """What the program printed is not repeated; the code is."""
    with pytest.raises(SinkError, match=word) as failure:
        CommandSink("c", argv, tmp_path, 600, 3, {}).deliver(release(1))
    assert "CANARY" not in str(failure.value)


def test_a_program_that_hangs_is_killed_with_all_it_started(tmp_path: Path) -> None:
    """Its child, which would outlive it, is dead too when the error comes."""
    code = "sleep 600 & echo $! > child; wait"
    sink = CommandSink("c", ("/bin/sh", "-c", code), tmp_path, 4, 3, {})
    with pytest.raises(SinkError, match="killed"):
        sink.deliver(release(1))
    child = int((tmp_path / "child").read_text())
    assert _ends(child)


def test_a_program_that_does_not_read_is_no_failure(tmp_path: Path) -> None:
    """Its input may be larger than a pipe, and be left unread."""
    large = replace(release(1), rows=({"value": "x" * 300_000},))
    command(tmp_path, "pass").deliver(large)


def _ends(pid: int) -> bool:
    """Whether a killed process is gone, or waits for nobody but init."""
    for _ in range(2000):
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False
