"""Every benchmark still runs: for a moment by default, its whole `--quick` in the long profile."""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.benchmarks import calibration
from tests.benchmarks.report import Row

HERE = Path(__file__).parent

MOMENT = 0.3
"""Seconds that each benchmark gets by default."""

WHOLE = {
    *("daemon", "engines", "gates", "ledger", "many_jobs", "reading", "scale", "sharing"),
    *("sources", "web"),
}
"""Run in the long profile alone: they start servers or daemons, or write large tables."""


def _ends_in_main(path: Path) -> bool:
    return bool(re.search(r"^ +main\([^)]*\brows\b", path.read_text("utf-8"), re.MULTILINE))


def _modules() -> list[str]:
    paths = [path for path in HERE.rglob("*.py") if path.name != "report.py"]
    names = [path.relative_to(HERE).with_suffix("").parts for path in filter(_ends_in_main, paths)]
    return sorted(".".join(part for part in parts if part != "__main__") for parts in names)


MODULES = _modules()


class _OverError(Exception):
    """The moment is over."""


@contextmanager
def _moment(seconds: float) -> Iterator[None]:
    """Interrupts what runs inside; an error of what was interrupted is none of its own."""
    ended: list[bool] = []

    def over(number: int, frame: FrameType | None) -> None:
        ended.append(True)
        raise _OverError

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except Exception:
        if not ended:
            raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _rows(module: Any) -> Iterator[Row]:
    """Rows of the quick profile; further arguments of a benchmark are switches, and off."""
    switches = list(inspect.signature(module.rows).parameters)[1:]
    yield from module.rows(True, **dict.fromkeys(switches, False))


def test_benchmarks_are_found() -> None:
    assert {"calibration", "gates", "streams.recovery"} < set(MODULES)
    assert set(MODULES) > WHOLE


@pytest.mark.parametrize("name", sorted(set(MODULES) - WHOLE))
def test_a_benchmark_begins(name: str) -> None:
    """Its quick profile runs for a moment, up to its third row at most, without an error."""
    if name.startswith("peers."):
        pytest.skip("the peer has an environment of its own")
    within = "" if (HERE / f"{name.replace('.', '/')}.py").exists() else ".__main__"
    module = importlib.import_module(f"tests.benchmarks.{name}{within}")
    with _moment(MOMENT):
        for row in itertools.islice(_rows(module), 3):
            json.dumps(dict(row))


def test_calibration_measures_what_plan_recommends() -> None:
    """The last row of its quick profile, which a moment does not reach."""
    row = calibration.planned(calibration.data()[0], "median", 0.1, 4)
    assert row["coverage"] is not None


@pytest.mark.long
@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_ends(name: str) -> None:
    """Its whole quick profile prints rows, and no error."""
    if name.startswith("peers."):
        pytest.skip("the peer has an environment of its own")
    command = [sys.executable, "-m", f"tests.benchmarks.{name}", "--quick", "--json"]
    ended = subprocess.run(command, cwd=HERE.parents[1], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert all(json.loads(line) for line in ended.stdout.splitlines())
    assert ended.stdout
