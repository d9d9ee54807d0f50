"""Selections and experts where the truth is known: streams, errors, and what learning gains."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamdp.config import load
from streamdp.errors import ConfigurationError
from streamdp.kinds.study import ORACLE
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.planning import comparison
from streamdp.simulation.comparison import Trial, TrialSetting
from streamdp.types import Outcome, Sums, TableCounts

HEAD = """
store: {path: store.db}
privacy: {unit: trip, caps: {batch: 9, lifetime: 90}}
sources:
  trips: {path: trips.parquet, batches: {column: at, every: 1d, start: 2024-01-01}}
releases:
  it: {source: trips, epsilon: 0.2, expected_rows: 400, RELEASE}
"""
WINDOWS = "batches: {column: at, every: 1d, start: 2024-01-01}"
GRID = "{sql: 'x >= {t} and y < {a}', t: {from: 0, to: 9}, a: {from: 0, to: 4}}"
PRICE = Fraction(1, 5)
RELEASES = {
    "rules": f"kind: selection, among: {GRID}, score: {{errors: late}}",
    "excess": f"kind: selection, among: {GRID}, score: {{excess: late, over: 1/2}}, top: 2",
    "counts": f"kind: selection, among: {GRID}",
    "conditions": "kind: selection, among: {conditions: {a: x > 1, b: x > 2, c: x > 3}}",
    "experts": f"kind: experts, experts: {{rules: {GRID}, label: late}}",
    "actions": "kind: experts, experts: {losses: {go: x, stay: 1 - x, wait: '0.5'}}",
}


def compared(folder: Path, release: str, stream: str, length: int) -> TrialSetting:
    path = folder / "config.yaml"
    path.write_text(HEAD.replace("RELEASE", RELEASES[release]))
    configuration = load(path)
    section = configuration.releases["it"]
    return comparison.comparison(configuration, section, comparison.Scene(stream, length=length))


def late(made: TrialSetting, variant: str) -> float:
    """Mean error of the second half."""
    errors = made.errors(Trial(variant, PRICE, 1))
    return float(errors[len(errors) // 2 :].mean())


@pytest.mark.parametrize("stream", ["steady", "change"])
@pytest.mark.parametrize("release", RELEASES)
def test_the_truth_has_no_error(tmp_path: Path, release: str, stream: str) -> None:
    """Of any score, kind and stream; other outcomes have one, or are as good."""
    made = compared(tmp_path, release, stream, 4)
    days, study = made.stream(3), made.study
    kind = study.simulated(made.kind(study.variants[0], PRICE, days), days)
    for batch, counts in zip(days.batches, days.counts, strict=True):
        truth = study.truth(kind, counts)
        if truth.rows:
            best = np.array([row["loss"] for row in truth.rows], dtype=float)
            truth = Outcome(truth.rows, (0.5, (best == best.min()) / (best == best.min()).sum()))
        assert study.errors(kind, counts, truth) == pytest.approx(0.0, abs=1e-9)
        drawn = kind.draw(kind.plan(kind.init(), batch), counts, PublicEntropy("study"))
        assert np.all(study.errors(kind, counts, drawn) >= -1e-9)


def test_streams_repeat_by_seed(tmp_path: Path) -> None:
    """And have the records that a release expects."""
    made = compared(tmp_path, "rules", "steady", 5)
    first, again, other = (made.stream(seed).counts for seed in (1, 1, 2))
    assert [shown(each) for each in first] == [shown(each) for each in again]
    assert shown(first[0]) != shown(other[0])
    assert 300 < np.mean([made.study.rows(each) for each in first]) < 500


def test_a_learned_prior_gains_and_the_oracle_gains_more(tmp_path: Path) -> None:
    """On a steady stream."""
    made = compared(tmp_path, "rules", "steady", 80)
    none, learned, oracle = (late(made, each) for each in ("none", "choices", ORACLE))
    assert learned < 0.8 * none
    assert oracle < learned


def test_experts_find_the_best_and_follow_a_change(tmp_path: Path) -> None:
    """What is followed loses little more once they have learned."""
    made = compared(tmp_path, "experts", "steady", 80)
    assert late(made, "experts") < 0.03
    assert late(compared(tmp_path, "experts", "change", 160), "experts") < 0.1


def test_forecasts_are_simulated_on_a_table_with_what_would_have_been_released(
    tmp_path: Path,
) -> None:
    """By group: from the second day on one forecast is known, and it is followed."""
    days = [f"{city},2024-01-{day:02d},{day % 2}" for day in range(1, 9) for city in "ab" * 50]
    table = tmp_path / "other.csv"
    table.write_text("city,at,x\n" + "\n".join(days))
    scene = comparison.Scene("table", str(table), "b", length=8)
    made = forecasts(tmp_path, "source: trips", scene)
    found = [each.values for each in made.stream(1).counts]
    assert found == [(500, 500), *[(-500, 500)] * 7]
    assert late(made, "experts") == 0.0


def test_forecasts_of_another_source_are_refused(tmp_path: Path) -> None:
    """One table is read. On made-up streams the losses of forecasts are made up."""
    table = tmp_path / "other.csv"
    table.write_text("city,at,x\na,2024-01-01,1\n")
    with pytest.raises(ConfigurationError, match="another source"):
        forecasts(tmp_path, "source: cars", comparison.Scene("table", str(table), "b", length=1))
    made_up = forecasts(tmp_path, "source: cars", comparison.Scene("steady", length=40))
    assert late(made_up, "experts") < 0.1


def forecasts(folder: Path, source: str, scene: comparison.Scene) -> TrialSetting:
    """Two forecasts by city: a mean, and one that is never known; unknown ones lose all."""
    groups = "by: [city], groups: [a, b]"
    named = "{right: {job: other, row: {statistic: mean}}, far: {job: other, row: {statistic: no}}}"
    loss = "CASE WHEN {value} IS NULL THEN 1 ELSE 0 END"
    text = HEAD.replace(
        "RELEASE", f"kind: experts, {groups}, experts: {{forecasts: {named}, LOSS}}"
    )
    text = text.replace("LOSS", f"loss: '{loss}', denominator: 10")
    text = text.replace("sources:", f"sources:\n  cars: {{path: cars.parquet, {WINDOWS}}}")
    other = (
        f"  other: {{kind: statistics, {source}, {groups}, epsilon: 1, measures: {{n: MEAN}}}}\n"
    )
    path = folder / "config.yaml"
    path.write_text(text + other.replace("MEAN", "{mean: x, resolution: 1, bounds: [0, 9]}"))
    configuration = load(path)
    return comparison.comparison(configuration, configuration.releases["it"], scene)


def shown(counts: Any) -> Any:
    assert isinstance(counts, TableCounts | Sums)
    return list(counts.values) if isinstance(counts, Sums) else counts.marginals[0].tolist()
