"""Sinks at hostile places: the daemon goes on, nothing foreign is lost."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamdp.disk import followed
from streamdp.sinks.jsonl import JsonLinesSink
from tests.crash import hostile
from tests.crash.hostile import Case

CASES = {f"{case.kind} at {case.place}": case for case in hostile.cases()}


def every_place() -> Iterator[Any]:
    """Every case; those of every other sink at a place, in turn, are of the long profile."""
    places: dict[str, list[str]] = {}
    for name, case in CASES.items():
        places.setdefault(case.place, []).append(name)
    for number, names in enumerate(places.values()):
        short = names[number % 2 :: 2] or names
        for name in names:
            yield pytest.param(name, marks=[] if name in short else pytest.mark.long)


@pytest.mark.thinned(5)
@pytest.mark.parametrize("name", list(every_place()))
def test_a_sink_at_a_hostile_place(name: str) -> None:
    """What stood there stands there, the reason is told, the other sinks have everything."""
    assert list(hostile.violations(CASES[name])) == []


def test_a_sink_that_cuts_foreign_lines_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Power: half a line that somebody else wrote, taken for one of its own."""

    def cut(self: JsonLinesSink, file: int) -> None:
        whole = self._path.read_bytes()
        os.truncate(file, whole.rfind(b"\n") + 1)

    monkeypatch.setattr(JsonLinesSink, "_read", cut)
    assert _found("jsonl at a file with no newline")


def test_a_sink_that_ends_the_daemon_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Power: an error that is no sink error, let through."""
    monkeypatch.setattr("streamdp.engine.deliver._try", lambda sink, release: sink.deliver(release))
    assert _found("csv at below a file")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can plant another user's link")
def test_a_planted_link_that_is_followed_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Power: another user's link, taken for one of this user."""
    monkeypatch.setattr("streamdp.disk.followed", lambda path: Path(os.path.realpath(path)))
    assert _found("jsonl at another user's link")
    assert followed(Path("/nowhere")) == Path("/nowhere")


def _found(name: str) -> Iterator[str] | list[str]:
    case: Case = CASES[name]
    return list(hostile.violations(case))
