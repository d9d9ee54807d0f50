"""Commands over many jobs make the kind of each once: their time grows with the number of jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from streamdp.backends.duckdb.instance import Instance
from streamdp.cli import cli
from streamdp.kinds import configured

JOBS = 7

HEAD = """
store: {path: streamdp.db}
privacy: {unit: flight, caps: {batch: 2, lifetime: 60}}
sources:
  flights:
    path: demo:flights.parquet
    batches: {column: date, every: 1d, start: 2013-01-01, end: 2013-01-03}
releases:
"""
JOB = (
    "  job_{number}: {{kind: quantiles, source: flights, column: air_time, quantiles: [0.5],"
    " resolution: 1, bounds: [0, 1000], epsilon: 0.1, expected_rows: 900, schedule: {{every: 1d}},"
    " prior: {{learner: none}}}}\n"
)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A folder with many jobs; the column of each kind that is built, and each engine's start."""
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(HEAD + "".join(JOB.format(number=n) for n in range(JOBS)))
    found: list[str] = []
    kind, start = configured.kind, Instance._start

    def counted(section: Any, *rest: Any) -> Any:
        found.append("kind")
        return kind(section, *rest)

    def started(self: Instance) -> Any:
        found.append("engine")
        return start(self)

    monkeypatch.setattr(configured, "kind", counted)
    monkeypatch.setattr(Instance, "_start", started)
    return found


@pytest.mark.parametrize("command", ["plan", "doctor", "validate"])
def test_each_kind_is_made_once(made: list[str], command: str) -> None:
    """Of seven jobs seven kinds; `doctor` starts one engine for the source that all read."""
    ended = CliRunner().invoke(cli, [command])
    assert ended.exit_code == 0, ended.output
    assert made.count("kind") == JOBS
    assert made.count("engine") == (command == "doctor")
