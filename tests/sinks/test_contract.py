"""What every sink that keeps releases promises: all of a release or nothing, and once."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from streamdp.types import Column
from tests.sinks.targets import TARGETS, release, wanted

ROOT = Path(__file__).parents[2]

FULL = """
import resource, sys
from pathlib import Path
from streamdp.errors import SinkError
from tests.sinks.targets import TARGETS, release
kind, folder, limit = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
target = TARGETS[kind]
target.sink(folder).deliver(release(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    target.sink(folder).deliver(release(2, 5000))
except SinkError as error:
    print(error.code)
"""


@pytest.mark.parametrize("kind", TARGETS)
def test_a_second_delivery_changes_nothing(tmp_path: Path, kind: str) -> None:
    """Twice by one process, then by another, others between them: each line once."""
    target = TARGETS[kind]
    first, second = release(1), release(2)
    for _ in range(2):
        sink = target.sink(tmp_path)
        for each in (first, first, second, first):
            sink.deliver(each)
    assert target.kept(tmp_path) == wanted(first, second)


@pytest.mark.parametrize("kind", ["table", "duckdb"])
def test_a_job_of_integers_rounds_no_number_of_another(tmp_path: Path, kind: str) -> None:
    """A table is widened by whoever brings numbers, whoever came first and comes again."""
    target, columns = (
        TARGETS[kind],
        (Column("quantile", "number", "label"), Column("value", "integer", "value")),
    )
    whole = replace(release(1), columns=columns, rows=({"quantile": 0.5, "value": 7},))
    columns = (columns[0], Column("value", "number", "value"))
    broken = replace(release(2), columns=columns, rows=({"quantile": 0.5, "value": 7.75},))
    again = replace(whole, id="id3", batch="b3")
    for each in (whole, broken, again):
        target.sink(tmp_path).deliver(each)
    assert target.kept(tmp_path) == wanted(whole, broken, again)


@pytest.mark.thinned(5)
@pytest.mark.parametrize("kind", TARGETS)
def test_a_kill_at_any_line_loses_and_doubles_nothing(tmp_path: Path, kind: str) -> None:
    """Killed while it delivers, at every fourth line, and started again."""
    points, bad = _swept(tmp_path, kind, 4)
    assert points > 4
    assert not bad


@pytest.mark.long
@pytest.mark.parametrize("kind", TARGETS)
def test_a_kill_at_every_line(tmp_path: Path, kind: str) -> None:
    """The same at every line."""
    points, bad = _swept(tmp_path, kind, 1)
    assert points > 15
    assert not bad


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", TARGETS)
def test_a_full_disk_is_told_and_mended(tmp_path: Path, kind: str) -> None:
    """A file that cannot grow: a sink error, nothing half, and all of it once there is room."""
    limit = str(min(_largest(tmp_path, kind) + 20_000, 300_000))
    command = [sys.executable, "-c", FULL, kind, str(tmp_path), limit]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.stdout.split() == ["sink"], ran.stderr
    target, first, second = TARGETS[kind], release(1), release(2, 5000)
    assert {name for name, _ in target.kept(tmp_path)} <= {first.id, second.id}
    target.sink(tmp_path).deliver(second)
    assert target.kept(tmp_path) == wanted(first, second)


def _largest(folder: Path, kind: str) -> int:
    """Size of the largest file after a first release."""
    TARGETS[kind].sink(folder).deliver(release(1))
    return max(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _swept(folder: Path, kind: str, every: int) -> tuple[int, list[int]]:
    command = [sys.executable, "-m", "tests.sinks.crash", kind, str(folder), str(every)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    points, bad = json.loads(ran.stdout)
    return points, bad
