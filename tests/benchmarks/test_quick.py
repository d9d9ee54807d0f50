"""Every benchmark still runs: for a moment by default, its whole `--quick` in the long profile."""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import calibration
from tests.benchmarks.report import Row

HERE = Path(__file__).parent

MOMENT = 0.3
"""Seconds that each benchmark gets by default."""

WHOLE = {
    *("daemon", "engines", "gates", "ledger", "many_jobs", "reading", "scale", "sharing"),
    *("reports", "sources", "web"),
}
"""Run in the long profile alone: they start servers or daemons, or write large tables."""


def _ends_in_main(path: Path) -> bool:
    return bool(re.search(r"^ +main\([^)]*\brows\b", path.read_text("utf-8"), re.MULTILINE))


def _modules() -> list[str]:
    paths = [path for path in HERE.rglob("*.py") if path.name != "report.py"]
    names = [path.relative_to(HERE).with_suffix("").parts for path in filter(_ends_in_main, paths)]
    return sorted(".".join(part for part in parts if part != "__main__") for parts in names)


MODULES = _modules()


FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.benchmarks.calibration_kinds.__main__"])
"""A benchmark is forked from a process that has imported what most of them import."""


def _begins(name: str, folder: Path) -> None:
    """Run one benchmark in a process of its own, which the system ends when the moment is over.

    Nothing is raised at the end of the moment, so that no finaliser of what runs can swallow it.
    """
    os.setsid()
    tempfile.tempdir = str(folder)
    warnings.simplefilter("error")
    sys.stderr = (folder / "stderr").open("w", encoding="utf-8", buffering=1)
    within = "" if (HERE / f"{name.replace('.', '/')}.py").exists() else ".__main__"
    module = importlib.import_module(f"tests.benchmarks.{name}{within}")
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, MOMENT)
    for row in itertools.islice(_rows(module), 3):
        json.dumps(dict(row))


def _told(name: str, folder: Path) -> str:
    """What a benchmark says on stderr that failed within the moment; else nothing."""
    process = FORKS.Process(target=_begins, args=(name, folder))
    process.start()
    process.join()
    assert process.pid
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.exitcode in {0, -signal.SIGALRM}:
        return ""
    return (folder / "stderr").read_text("utf-8") or f"exit code {process.exitcode}"


def _rows(module: Any) -> Iterator[Row]:
    """Rows of the quick profile; further arguments of a benchmark are switches, and off."""
    switches = list(inspect.signature(module.rows).parameters)[1:]
    yield from module.rows(True, **dict.fromkeys(switches, False))


def test_benchmarks_are_found() -> None:
    assert {"calibration", "gates", "streams.recovery"} < set(MODULES)
    assert set(MODULES) > WHOLE


@pytest.mark.parametrize("name", sorted(set(MODULES) - WHOLE))
def test_a_benchmark_begins(name: str, tmp_path: Path) -> None:
    """Its quick profile runs for a moment, up to its third row at most, without an error."""
    if name.startswith("peers."):
        pytest.skip("the peer has an environment of its own")
    assert _told(name, tmp_path) == ""


def test_an_error_within_the_moment_is_told(tmp_path: Path) -> None:
    assert "no_such_benchmark" in _told("no_such_benchmark", tmp_path)


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
