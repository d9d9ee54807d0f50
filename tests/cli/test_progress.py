"""Long work in a pipe says how far it is, once every few seconds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from streamdp.cli.run import _lines


def test_a_line_every_few_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    """A hundred batches of a tenth of a second each: one line."""
    seconds = iter(range(10_000))
    show = _lines(lambda: next(seconds) / 20)
    job: Any = SimpleNamespace(name="daily")
    for done in range(101):
        show(job, done, 100)
    lines = capsys.readouterr().err.splitlines()
    assert 1 <= len(lines) <= 3
    assert lines[0].startswith("daily: ")
    assert lines[0].endswith(" of 100 batches")


def test_a_backlog_of_a_gate_says_how_long_its_slots_take(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """364 tests in slots of a second are 22 seconds; three are not worth a word."""
    for total in (364, 3):
        gate: Any = SimpleNamespace(name="air.gate", slot=1)
        _lines(lambda: 0.0)(gate, 0, total)
    said = capsys.readouterr().err
    about = "364 batches in slots of 1 s, about 23 s and 1 s for each yes"
    assert said == f"air.gate: {about}\n"
