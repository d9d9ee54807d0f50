"""The log says what is on the list, and nothing else; it is read back across rotation."""

import json
import logging
import re
import resource
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamdp.errors import ConfigurationError
from streamdp.log import EVENTS, Filter, close, configure, follow, read
from streamdp.types import Log

PRIVATE = {"rows", "count", "counts", "values", "value", "duration", "seconds", "score", "n"}


@pytest.fixture(autouse=True)
def _handlers_closed() -> Iterator[None]:
    yield
    for name in ("streamdp", "apscheduler"):
        for handler in logging.getLogger(name).handlers:
            handler.close()
        logging.getLogger(name).handlers = []


def started(path: Path, size: int = 10_000_000) -> Log:
    return configure(path, "debug", size, 3, "off")


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_an_event_is_one_json_line_with_its_level_and_time(tmp_path: Path) -> None:
    """Bound to job, batch and release."""
    say = started(tmp_path / "s.log")
    say("release.committed", job="j", batch="2013-01-01", release="abc")
    (line,) = lines(tmp_path / "s.log")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(line.pop("timestamp")))
    about = {"job": "j", "batch": "2013-01-01", "release": "abc"}
    assert line == {"event": "release.committed", "level": "info", **about}


@pytest.mark.parametrize("event", ["release.committed", "made.up-4711"])
def test_what_is_not_on_the_list_is_dropped(tmp_path: Path, event: str) -> None:
    """Neither an unknown field nor an unknown event reaches the file."""
    say = started(tmp_path / "s.log")
    say(event, job="j", rows=4711)
    text = (tmp_path / "s.log").read_text()
    assert "4711" not in text
    assert lines(tmp_path / "s.log")[0]["event"] == "log.refused"


def test_no_event_may_carry_what_depends_on_records() -> None:
    """No counts, durations, values or scores are on the list."""
    for name, event in EVENTS.items():
        assert not event.fields & PRIVATE, name


def test_a_library_writes_nothing_into_the_log(tmp_path: Path) -> None:
    """Events alone are written: tracebacks and messages of others quote rows."""
    started(tmp_path / "s.log")
    quoted = "tail number N4711"
    try:
        raise ValueError(quoted)
    except ValueError:
        logging.getLogger("apscheduler.executors").exception("job failed")
    assert lines(tmp_path / "s.log") == []


def test_standard_error_can_have_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For containers: one object a line; or nothing at all."""
    say = configure(None, "info", 10**6, 3, "json")
    say("daemon.started", pid=1)
    say = configure(None, "info", 10**6, 3, "off")
    say("daemon.started", pid=2)
    close()
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["pid"] == 1


def test_a_terminal_obeys_no_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Escapes in the name of a batch are written out."""
    say = configure(None, "info", 10**6, 3, "text")
    say("recovery.burnt", job="j", batch="x\x1b[31m\ny")
    shown = capsys.readouterr().err
    close()
    assert "\x1b" not in shown.split("batch")[1]
    assert "\\x1b" in shown
    assert len(shown.splitlines()) == 1


def test_files_are_the_users_alone_after_rotation_too(tmp_path: Path) -> None:
    """Mode 0600, whatever the umask."""
    path = tmp_path / "s.log"
    say = started(path, size=300)
    for _ in range(10):
        say("daemon.started", pid=1)
    files = sorted(tmp_path.glob("s.log*"))
    assert [file.name for file in files] == ["s.log", "s.log.1", "s.log.2", "s.log.3"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_reading_goes_through_rotated_files_in_order_and_filters(tmp_path: Path) -> None:
    """Oldest first; job, level and time are asked for together."""
    path = tmp_path / "s.log"
    say = started(path, size=400)
    for index in range(8):
        say("release.committed", job=f"j{index % 2}", batch=f"b{index}", release="r")
    found = [line["batch"] for line in read(path, Filter(job="j1"))]
    assert found[-2:] == ["b5", "b7"]
    assert found == sorted(found)
    assert not list(read(path, Filter(level="warning")))
    assert not list(read(path, Filter(since="9999")))
    assert [line["batch"] for line in read(path, Filter(batch="b7"))] == ["b7"]


def test_a_line_of_the_second_that_is_asked_for_is_shown(tmp_path: Path) -> None:
    """Times in the file have fractions of seconds, times that are typed have none."""
    path = tmp_path / "s.log"
    path.write_text(
        '{"timestamp": "2026-01-01T10:00:00.5Z", "level": "critical", "event": "scheduler"}\n\xff'
    )
    assert list(read(path, Filter(since="2026-01-01T10:00:00", level="error")))
    assert not list(read(path, Filter(since="2026-01-01T10:00:01")))


def test_following_loses_no_line_to_a_rotation(tmp_path: Path) -> None:
    """Lines written before and after a rotation between two looks all come, once."""
    path = tmp_path / "s.log"
    say = started(path, size=200)
    say("wake", job="before")
    told = iter(range(0, 15, 5))

    def write_more() -> None:
        first = next(told)
        for index in range(first, first + 5):
            say("wake", job=f"j{index:02}")

    following = follow(path, Filter(), write_more)
    found = [next(following)["job"] for _ in range(15)]
    assert found == [f"j{index:02}" for index in range(15)]
    assert (tmp_path / "s.log.3").exists()


def test_a_log_that_cannot_be_written_is_an_error_with_its_place(tmp_path: Path) -> None:
    """Told before anything is released."""
    with pytest.raises(ConfigurationError):
        started(tmp_path / "no" / "such" / "folder" / "s.log")


def test_a_full_disk_ends_no_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be logged is lost without a word: no exception, no traceback."""
    say, before = started(tmp_path / "log"), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        say("daemon.stopped")
        close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (tmp_path / "log").read_text() == ""
    assert capsys.readouterr().err == ""
