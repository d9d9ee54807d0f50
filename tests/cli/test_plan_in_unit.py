"""`plan --value-error`: the price of an error in the reader's unit, of every part of a release."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from streamdp.cli import cli

CONFIG = """
store: {path: streamdp.db}
privacy: {unit: flight, caps: {batch: 1, lifetime: 90}}
sources:
  flights:
    path: demo:flights.parquet
    batches: {column: date, every: 1d, start: 2013-01-01, end: 2013-02-01}
releases:
  air:
    {kind: quantiles, source: flights, column: air_time, quantiles: [0.5], resolution: 1,
     bounds: [0, 1000], guess: {location: 150, scale: 90}, epsilon: 0.5, expected_rows: 900}
  day:
    kind: statistics
    source: flights
    epsilon: 0.2
    expected_rows: 900
    measures:
      n: count
      m: {mean: air_time, resolution: 1, bounds: [0, 1000], guess: {location: 150, scale: 90}}
      v: {variance: air_time, resolution: 1, bounds: [0, 1000]}
  table:
    {kind: workload, source: flights, epsilon: 0.2, expected_rows: 900, marginals: 1,
     dimensions: {carrier: {values: [AA, UA, B6]}, air_time: {cuts: [60, 240], nulls: cell}}}
"""


@pytest.mark.long
def test_every_part_has_an_error_and_a_price_in_its_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Minutes of a quantile, mean and variance, records of a count and of each axis; and caps."""
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(CONFIG)
    result = CliRunner().invoke(cli, ["plan", "--value-error", "2", "--json"])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    found = {row["job"]: row for row in rows if "job" in row}
    air, day, table = (found[name] for name in ("air", "day", "table"))
    assert air["value_error_95"] < 2
    assert 0.1 < float(air["epsilon_for_value_within_2"]) < 0.5
    assert day["n error_95"] > 2
    assert day["n error_95"] > day["m error_95"]
    assert day["v error_95"] > 1000
    assert day["epsilon_for_n_within_2"].endswith("above the batch cap of 1")
    assert day["epsilon_for_m_within_2"].endswith("above the batch cap of 1")
    assert day["epsilon_for_v_within_2"] is None
    assert table["carrier records_off"] > 2
    assert table["air_time records_off"] > 2
    assert "above the batch cap" in table["epsilon_for_cells_within_2"]
    (budget,) = (row for row in rows if "scope" in row)
    assert budget["batches_left_after"] > 0
    assert budget["lasts_until"]
