"""Memory that runs out: said in our words, charged at most once, and gone on from."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from streamdp.errors import OutOfMemoryError
from streamdp.store.sqlite import SqliteStore
from tests.crash import memory
from tests.crash.every_kind import ALL, DAYS, EveryKind
from tests.crash.home import Home, folder
from tests.invariants import violations

MEGABYTE = 2**20


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Home:
    if memory.starver is None:
        pytest.skip("this interpreter cannot let its allocations fail")
    path = tmp_path_factory.mktemp("memory")
    home = Home.furnish(path / "template")
    home.copy(path / "warm").live()
    return home


def test_any_allocation_may_fail(template: Home) -> None:
    """The daemon goes on; what was reserved is burnt or released; all is done in the end."""
    assert [wrong for case in memory.cases(12) for wrong in memory.violations(template, case)] == []


def test_a_daemon_that_forgets_a_charge_for_lack_of_memory_is_caught(
    template: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power: a store that neither burns nor recovers leaves the charge open."""
    monkeypatch.setattr(SqliteStore, "recover", lambda self, now: ())
    monkeypatch.setattr(SqliteStore, "burn", lambda self, reservation, now: None)
    cases = ((first, 5000) for first in range(2000, 40_000, 1300))
    assert any(wrong for case in cases for wrong in memory.violations(template, case))


def run(path: Path, megabytes: int | None = None) -> subprocess.CompletedProcess[str]:
    """`streamdp run --once` in a process of its own, with so much address space."""

    def limit() -> None:
        if megabytes is not None:
            resource.setrlimit(resource.RLIMIT_AS, (megabytes * MEGABYTE,) * 2)

    command = [sys.executable, "-m", "streamdp", "run", "--once"]
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        command, cwd=path, capture_output=True, text=True, env=env, preexec_fn=limit, check=False
    )


@pytest.mark.long
def test_processes_with_little_memory_say_so() -> None:
    """No traceback; with enough of it the next does what is left; each burns one charge a job.

    Whether the process or its engine is the first to lack memory is a matter of the machine: an
    engine that does fails one question, and the next job asks its own.
    """
    sizes = (500, 900)
    with folder() as place:
        home = EveryKind.furnish(place / "home")
        for megabytes in sizes:
            starved = run(home.path, megabytes)
            assert "Traceback" not in starved.stderr
            if starved.returncode in (0, OutOfMemoryError.exit_code):
                # OpenBLAS may end the process itself, in its own words.
                assert starved.returncode == 0 or "memory" in starved.stderr.lower()
        whole = run(home.path)
        assert (whole.returncode, whole.stderr) == (0, "") or "released" in whole.stderr
        facts = home.facts()
        assert len(facts["release"]) == (len(ALL) - 1) * len(DAYS) + 1  # one asks both days
        burns = Counter(row[4] for row in facts["ledger"] if row[2] == "burn")
        assert max(burns.values(), default=0) <= len(sizes)
        assert violations(home.store) == []


def test_an_engine_without_memory_burns_one_charge_and_says_why(tmp_path: Path) -> None:
    """The others are released, the exit code is that of a failed source, and its job rests."""
    home = EveryKind.furnish(tmp_path / "home")
    rows = "".join(f"2023-11-15T12:00:00,{number},a\n" for number in range(300_000))
    (home.path / "large.csv").write_text("at,x,note\n" + rows)
    text = (home.path / "config.yaml").read_text()
    large = """  large:
    path: large.csv
    engine: {kind: duckdb, memory: 12 MB, threads: 1}
    types: {at: timestamp, x: number}
    batches: {column: at, every: 1d, start: 2023-11-15, end: 2023-11-16}
releases:
  starved: {source: large, kind: quantiles, column: x, quantiles: [0.5], resolution: 1,
    bounds: [0, 1000000], epsilon: 0.1, sinks: [file]}
"""
    (home.path / "config.yaml").write_text(text.replace("releases:\n", large, 1))
    ended = run(home.path)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    facts = home.facts()
    assert {row[1] for row in facts["release"]} == set(ALL)
    assert [row[4] for row in facts["ledger"] if row[2] == "burn"] == ["starved"]
    assert "memory" in (home.path / "streamdp.log").read_text()
