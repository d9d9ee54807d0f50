"""The alert `changed` follows from releases: a planted shift is told once, and spends nothing."""

from __future__ import annotations

from contextlib import closing
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from streamdp.cli import cli
from streamdp.config import load
from streamdp.config.model import Changed
from streamdp.daemon.alerts import conditions
from streamdp.log import close
from streamdp.store.migrations import open_to_read

CONFIG = """
store: {path: store.db}
privacy: {unit: row, neighbours: add-remove, caps: {batch: 2, lifetime: 100}}
sources:
  rows:
    path: rows.csv
    types: {x: number, day: date}
    batches: {column: day, every: 1d, start: 2020-01-01, end: 2020-02-11}
releases:
  x: {kind: quantiles, source: rows, column: x, quantiles: quartiles, resolution: 1,
    bounds: [0, 1000], guess: {location: 300, scale: 50}, expected_rows: 120, epsilon: 1}
  n: {kind: statistics, source: rows, epsilon: 0.1, measures: {rows: count}}
sinks:
  pager: {kind: jsonl, path: alerts.jsonl}
alerts: {sink: pager, on: [changed], changed: {quantile: 0.5, by: 10%, sure: 0.99}}
log: {path: streamdp.log}
"""


@pytest.mark.thinned(2)
@pytest.mark.parametrize("by", [0.0, 150.0])
def test_a_shift_is_told_from_releases_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: float
) -> None:
    """Of the job that counts between cuts; of one without a shift nothing."""
    chance = np.random.default_rng(1)
    lines = ["day,x"]
    for day in range(41):
        name = np.datetime64("2020-01-01") + day
        found = chance.normal(300.0 + (by if day >= 34 else 0.0), 40.0, 120)
        lines += [f"{name},{value:.0f}" for value in found]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    (tmp_path / "config.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["run", "--once"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    close()
    configuration = load(Path("config.yaml"))
    section = configuration.alerts
    assert section is not None
    assert section.changed == Changed(quantile=0.5, by=Fraction(1, 10), sure=0.99)
    with closing(open_to_read(configuration.store.path)) as database:
        told = list(conditions(configuration, database, 0, section))
        again = list(conditions(configuration, database, 0, section))
    assert told == again
    if by:
        (alert,) = told
        assert (alert.event, alert.about) == ("changed", "x")
        assert alert.reason == "the quantile 0.5 rose by 10 % or more in the last batches"
    else:
        assert told == []
