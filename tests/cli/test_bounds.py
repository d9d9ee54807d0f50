"""What a person types or configures is bounded: an error with its place, never a traceback."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from streamdp.config import load
from streamdp.errors import ConfigurationError

CONFIG = """
store: {path: s.db}
privacy: {unit: row, caps: {batch: 0.3, lifetime: 60}}
sources:
  s:
    path: "*.csv"
    types: {x: number, t: timestamp}
    batches: {column: t, every: 1d, start: 2013-01-01, end: 2013-01-03, lateness: 6h}
releases:
  q: {kind: quantiles, source: s, column: x, quantiles: [0.5], resolution: 1, bounds: [0, 10],
      epsilon: 0.1, sinks: []}
"""
MEMORY = 1_500_000_000
"""Of address space, which libraries fill for the most part."""


def streamdp(*arguments: str | bytes, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command as a process, within bounds of memory and time."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    return subprocess.run(
        [sys.executable, "-m", "streamdp", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=600,
        preexec_fn=limited,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "a.csv").write_text("x,t\n1,2013-01-01T01:00:00\n3,2013-01-02T01:00:00\n")
    return tmp_path


def edited(home: Path, old: str, new: str) -> None:
    text = CONFIG.replace(old, new)
    assert text != CONFIG
    (home / "config.yaml").write_text(text)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("lifetime: 60", "lifetime: 1e10", "at most 1000000"),
        ("lifetime: 60", "lifetime: 1000001", "at most 1000000"),
        ("batch: 0.3, lifetime: 60", "batch: {rho: 1}, lifetime: {rho: 1e29}", "at most 1000000"),
        ("lifetime: 60", "lifetime: 60, windows: [{time: 1d, epsilon: 1e9}]", "at most 1000000"),
        ("lateness: 6h", "lateness: 999999999w", "100 years"),
        ("start: 2013-01-01", "start: 0001-01-01", "of the years"),
        ("start: 2013-01-01", "start: 0001-01-01T00:00:00+14:00", "of the years"),
        ("unit: row", 'unit: "\\uD800"', "surrogate"),
        ("sources:\n  s:", 'sources:\n  "\\uDFFF":', "surrogate"),
    ],
)
def test_values_are_bounded(home: Path, old: str, new: str, said: str) -> None:
    """What could not be run does not validate."""
    edited(home, old, new)
    with pytest.raises(ConfigurationError, match=said):
        load(home / "config.yaml")


@pytest.mark.long
def test_a_price_is_bounded_though_large_ones_are_admitted(home: Path) -> None:
    """Its square is in the ledger too."""
    text = CONFIG.replace(
        "caps: {batch: 0.3, lifetime: 60}", "allow_large_epsilon: true, caps: {B}"
    )
    text = text.replace("{B}", "{batch: 1000000, lifetime: 1000000}")
    for epsilon, code in (("1001", 2), ("1000", 0)):
        (home / "config.yaml").write_text(text.replace("epsilon: 0.1", f"epsilon: {epsilon}"))
        assert streamdp("run", "--once", folder=home).returncode == code
    assert streamdp("budget", folder=home).returncode == 0


@pytest.mark.long
def test_windows_that_come_late_for_a_century_can_stall(home: Path) -> None:
    """The longest lateness and the last moment, and an alert that adds to them."""
    edited(home, "lateness: 6h", "lateness: 36500d")
    text = (home / "config.yaml").read_text().replace("end: 2013-01-03", "end: 9000-01-01")
    text += "alerts: {sink: j, on: [stalled]}\nsinks: {j: {kind: jsonl, path: j.jsonl}}\n"
    (home / "config.yaml").write_text(text)
    for command in (["run", "--once"], ["plan", "--days", "3"]):
        ran = streamdp(*command, folder=home)
        assert ran.returncode == 0, (command, ran.stderr)


@pytest.mark.parametrize("command", ["show", "cap"])
def test_a_name_that_is_no_text(home: Path, command: str) -> None:
    """Bytes that no terminal shows are an error of the command line."""
    found = streamdp(command, b"q\xff", folder=home)
    assert found.returncode == 2
    assert "UTF-8" in found.stderr
    assert "Traceback" not in found.stderr


def test_an_environment_that_is_no_text(home: Path) -> None:
    """A variable of bytes is named, not shown."""
    edited(home, "unit: row", 'unit: "${WHO}"')
    with pytest.raises(ConfigurationError, match="WHO that is no UTF-8"):
        load(home / "config.yaml", {"WHO": os.fsdecode(b"q\xff")})


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _long(path: Path) -> None:
    with path.open("w") as file:
        file.truncate(5_000_000_000)


def _many(path: Path) -> None:
    path.write_text("a: [" + "1," * 1_500_000 + "]")


@pytest.mark.thinned(3)
@pytest.mark.parametrize("made", [_fifo, _zeros, _long, _many])
def test_what_is_read_as_a_configuration_is_bounded(
    home: Path, made: Callable[[Path], None]
) -> None:
    """Neither waits for ever nor fills the memory."""
    made(home / "odd.yaml")
    found = streamdp("validate", "-c", "odd.yaml", folder=home)
    assert found.returncode == 2, found.stderr
    assert "Traceback" not in found.stderr
    assert "memory" not in found.stderr
