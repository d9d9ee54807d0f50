"""Statistics are simulated on streams and tables, from the same fine counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import streamdp
from streamdp.cli import cli
from streamdp.kinds.spec import BuildContext
from streamdp.kinds.statistics.build import build
from streamdp.kinds.statistics.kind import Statistics
from streamdp.kinds.statistics.section import StatisticsSection
from streamdp.kinds.statistics.study import StatisticsStudy
from streamdp.kinds.study import ORACLE, Stream
from streamdp.log import close
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.simulation.comparison import replay
from streamdp.types import FloatArray, Json

DEMO = Path(streamdp.__file__).parent / "demo" / "flights.parquet"
STUDY = StatisticsStudy()
MEASURES = {
    "n": "count",
    "city": {"histogram": "city", "values": [f"c{i}" for i in range(20)]},
    "long": {"mean": "x", "resolution": 1, "guess": {"location": 100, "scale": 20}},
    "wide": {"variance": "x", "resolution": 1, "bounds": [0, 400]},
    "all": {"sum": "x", "resolution": 1, "bounds": [0, 400]},
}


def section(epsilon: float, measures: Json = MEASURES) -> StatisticsSection:
    about = {"kind": "statistics", "source": "s", "epsilon": epsilon, "measures": measures}
    return StatisticsSection.model_validate(about)


def kind(variant: str, epsilon: float, stream: Stream, measures: Json = MEASURES) -> Statistics:
    varied = STUDY.variant(section(epsilon, measures), variant, 1000)
    context = BuildContext("add-remove", 1, 1, "duckdb", None)  # type: ignore[arg-type]
    return STUDY.simulated(build(varied, context), stream)


def errors(variant: str, stream: str, epsilon: float, measures: Json = MEASURES) -> FloatArray:
    """Mean errors of the rows, after the first third."""
    made = STUDY.synthetic(section(epsilon, measures), stream, 3, 90)
    one = kind(variant, epsilon, made, measures)
    shown = one if variant == ORACLE else None
    steps = replay(STUDY, one, made, PublicEntropy("statistics"), shown)
    late: FloatArray = np.array([step.errors for step in steps])[30:]
    return np.asarray(late.mean(axis=0))


@pytest.mark.long
def test_without_noise_the_released_is_the_truth() -> None:
    """At an epsilon of a million: counts are exact, moments within what is clipped."""
    found = errors("none", "stable", 1e6)
    assert found[:21].max() == 0.0
    assert found[21] < 0.5
    assert found[22] < 20.0


@pytest.mark.thinned(3)
@pytest.mark.parametrize("stream", STUDY.streams)
def test_smoothing_helps_and_the_oracle_more(stream: str) -> None:
    """Of twenty cities at a small epsilon, on every stream."""
    measures = {"city": MEASURES["city"]}
    raw, smoothed, oracle = (
        float(errors(each, stream, 0.05, measures).mean()) for each in ("none", "smoothed", ORACLE)
    )
    assert smoothed < 0.8 * raw
    assert oracle < 1.05 * smoothed


CONFIG = """
store: {path: store.db}
privacy: {unit: flight, caps: {batch: 3, lifetime: 90}}
sources:
  trips: {path: live.parquet,
          batches: {column: date, every: 1d, start: 2013-01-01, end: 2013-01-20}}
releases:
  traffic:
    {kind: statistics, source: trips, epsilon: 1, where: air_time > 20, by: origin,
     groups: [JFK, LGA],
     measures: {n: count, long: {mean: air_time, resolution: 1, bounds: [0, 700]}}}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    (tmp_path / "config.yaml").write_text(CONFIG)
    yield tmp_path
    close()


def simulated(*arguments: str) -> list[Json]:
    result = CliRunner().invoke(cli, ["simulate", "traffic", *arguments, "--json"])
    assert result.exit_code == 0, (result.output, result.exception)
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.long
def test_a_table_and_a_stream_are_simulated_by_the_command(home: Path) -> None:
    """One group of a table, with its condition; and a synthetic stream."""
    table = simulated("--table", str(DEMO), "--group", "JFK", "--length", "60")
    stream = simulated("--stream", "shift", "--length", "60")
    for found in (table, stream):
        assert {row["learner"] for row in found} == {"smoothed", "none", "oracle"}
        assert all(0 < row["average_error"] < 30 for row in found)
