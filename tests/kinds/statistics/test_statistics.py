"""Statistics from configuration to rows: labels, truth at a large epsilon, units, groups, ties."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from pydantic import ValidationError

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.config.privacy import Unit
from streamdp.kinds.charging import UnitCharging
from streamdp.kinds.spec import BuildContext
from streamdp.kinds.statistics.build import build
from streamdp.kinds.statistics.kind import Statistics
from streamdp.kinds.statistics.section import StatisticsSection
from streamdp.kinds.statistics.spec import SPEC
from streamdp.privacy.price import Price
from streamdp.types import HARDLY_ANY, Batch, UnitBound
from tests.contract.memory.engine import MemoryBackend
from tests.worlds import ReplayedEntropy

DAY = 86_400
MEASURES: dict[str, Any] = {
    "rows": "count",
    "cities": {"histogram": "g", "values": ["a", "b"], "other": True, "nulls": "cell"}
    | {"adds_up_to": "rows"},
    "sizes": {"histogram": "x", "cuts": [0, 10], "nulls": "cell"},
    "mean": {"mean": "x", "resolution": "1/2", "bounds": [-50, 50]},
    "total": {"sum": "x", "resolution": 1, "bounds": [-50, 50]},
    "spread": {"variance": "x", "resolution": 1, "bounds": [-50, 50]},
}


def section(measures: dict[str, Any] | None = None, **options: Any) -> StatisticsSection:
    about = {"kind": "statistics", "source": "s", "epsilon": 1, "measures": measures or MEASURES}
    return StatisticsSection.model_validate(about | options)


def kind(rows: int = 1, **options: Any) -> Statistics:
    context = BuildContext("add-remove", rows, 1, "duckdb", None)  # type: ignore[arg-type]
    return build(section(**options), context)


def backend(seed: int = 1, size: int = 400) -> MemoryBackend:
    chance = np.random.default_rng(seed)
    return MemoryBackend(
        {
            "g": [("a", "b", "c", None)[i] for i in chance.integers(0, 4, size)],
            "x": [*chance.normal(8, 4, size - 10).tolist(), *[None] * 10],
            "u": chance.integers(0, 50, size).tolist(),
        }
    )


def released(
    made: Statistics, days: int = 3, source: MemoryBackend | DuckDBBackend | None = None
) -> list[list[dict[str, Any]]]:
    """Releases of one batch again and again, as if each were a day."""
    state, entropy = made.init(), ReplayedEntropy()
    found: list[list[dict[str, Any]]] = []
    charging = UnitCharging()
    for day in range(days):
        batch = Batch("s", str(day), day * DAY, (day + 1) * DAY)
        plan = made.plan(state, batch)
        query = charging.bounded(plan.query, batch)
        statistic = (source or backend()).answer(query, batch)
        outcome = made.draw(plan, statistic, entropy)
        state = json.loads(json.dumps(made.learn(state, plan, outcome)))
        found.append([dict(row) for row in made.publish(state, outcome).rows])
    return found


def test_rows_are_near_the_truth_at_a_large_epsilon() -> None:
    """Every statistic, its label, and all columns that the kind declares."""
    made = kind(epsilon=1000)
    rows = released(made, 5)[-1]
    values = {(row["measure"], row["cell"]): row["value"] for row in rows}
    columns = backend().columns
    g, x = columns["g"], [v for v in columns["x"] if v is not None]
    assert values["rows", ""] == 400
    assert [values["cities", c] for c in ("a", "b", "(other)", "(null)")] == [
        g.count(c) for c in ("a", "b", "c", None)
    ]
    cut = [sum(v < 0 for v in x), sum(0 <= v < 10 for v in x), sum(v >= 10 for v in x), 10]
    labels = ("< 0", "0 to < 10", ">= 10", "(null)")
    assert [values["sizes", label] for label in labels] == cut
    assert values["mean", ""] == pytest.approx(np.mean(x), abs=0.2)
    assert values["total", ""] == pytest.approx(sum(x), rel=0.02)
    assert values["spread", ""] == pytest.approx(np.var(x), rel=0.1)
    for row in rows:
        assert set(row) <= {column.name for column in made.columns}
        assert row["lower"] <= row["value"] <= row["upper"]
        assert row["smoothed_lower"] <= row["smoothed"] <= row["smoothed_upper"]


@pytest.mark.parametrize(("bounds", "value"), [((10, 20), 12), ((-20, -10), -12), ((0, 9), 4)])
def test_a_sum_stays_a_sum_release_after_release(bounds: tuple[int, int], value: int) -> None:
    """Also of a column whose bounds leave 0 out: no release sums distances from a bound."""
    measures = {"total": {"sum": "x", "resolution": 1, "bounds": list(bounds)}}
    source = MemoryBackend({"x": [value] * 100})
    for rows in released(kind(epsilon=1000, measures=measures), 4, source):
        assert rows[0]["value"] == pytest.approx(100 * value, abs=1)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("size", [10, 60])
def test_no_moment_lies_outside_what_bounds_allow(size: int) -> None:
    """Few records, wide bounds and much noise: values and their ends are still possible ones."""
    about = {"resolution": 1, "bounds": [-100, 2000]}
    positive = {"resolution": 1, "bounds": [0, 2000]}
    measures: dict[str, Any] = {
        "mean": {"mean": "x", **about},
        "variance": {"variance": "x", **about},
        "sum": {"sum": "x", **positive},
    }
    possible = {"mean": (-100, 2000), "variance": (0, 1050**2), "sum": (0, float("inf"))}
    made = kind(measures=measures, epsilon="0.3", by="g", groups=["a", "b"])
    for seed in range(3):
        for rows in released(made, 6, backend(seed, size)):
            for row in rows:
                low, high = possible[row["measure"]]
                numbers = {each: row[each] for each in row if isinstance(row[each], float)}
                assert all(low <= number <= high for number in numbers.values()), row


@pytest.mark.long
def test_a_mean_of_a_small_group_is_flagged_by_the_count_beside_it() -> None:
    """Its own table is too noisy to tell that a group of forty is empty; the count is not."""
    full: dict[str, list[Any]] = {"g": ["a"] * 400 + ["b"] * 40, "x": [8.0] * 440}
    empty: dict[str, list[Any]] = {"g": ["a"] * 400, "x": [8.0] * 400}
    about = {"resolution": 1, "bounds": [-50, 50]}
    measures: dict[str, Any] = {"mean": {"mean": "x", **about}, "sum": {"sum": "x", **about}}
    for beside, flagged in (({}, False), ({"rows": "count"}, True)):
        made = kind(epsilon=4, measures=beside | measures, by="g", groups=["a", "b"])
        state, entropy = made.init(), ReplayedEntropy()
        for day in range(16):
            batch = Batch("s", str(day), day * DAY, (day + 1) * DAY)
            plan = made.plan(state, batch)
            source = MemoryBackend(full if day < 15 else empty)
            outcome = made.draw(plan, source.answer(plan.query, batch), entropy)
            state = made.learn(state, plan, outcome)
            rows = made.publish(state, outcome).rows
            found = {(row["g"], row["measure"]): row for row in rows}
            if day < 15:
                assert not any(row["flag"] for row in rows)
        assert found["a", "mean"]["flag"] is None
        assert (found["b", "mean"]["flag"] == HARDLY_ANY) == flagged
        assert (found["b", "sum"]["flag"] == HARDLY_ANY) == flagged
        spans = (found["b", "mean"]["lower"], found["b", "mean"]["upper"]) == (-50.0, 50.0)
        assert spans == flagged


def test_an_empty_batch_is_told_from_a_mean_of_nothing() -> None:
    """Its rows are flagged, its mean may lie anywhere, and the next day is as before."""
    about = {"resolution": 1, "bounds": [-50, 50]}
    measures = {
        "rows": "count",
        "mean": {"mean": "x", **about},
        "spread": {"variance": "x", **about},
    }
    made, state, entropy = kind(measures=measures, epsilon=3), None, ReplayedEntropy()
    found: list[dict[str, dict[str, Any]]] = []
    for day in range(16):
        batch = Batch("s", str(day), day * DAY, (day + 1) * DAY)
        plan = made.plan(state or made.init(), batch)
        source = backend(day, 10 if day == 14 else 800)  # of ten, none has a value
        outcome = made.draw(plan, source.answer(plan.query, batch), entropy)
        state = json.loads(json.dumps(made.learn(state or made.init(), plan, outcome)))
        found.append({str(row["measure"]): dict(row) for row in made.publish(state, outcome).rows})
    empty, after = found[14], found[15]
    assert all(row["flag"] is None for rows in (*found[:14], after) for row in rows.values())
    assert empty["mean"]["flag"] == empty["spread"]["flag"] == HARDLY_ANY
    assert (empty["mean"]["lower"], empty["mean"]["upper"]) == (-50.0, 50.0)
    assert (empty["mean"]["smoothed_lower"], empty["mean"]["smoothed_upper"]) == (-50.0, 50.0)
    assert (empty["spread"]["lower"], empty["spread"]["upper"]) == (0.0, 2500.0)
    assert abs(empty["mean"]["smoothed"] - 8.0) < 4.0
    assert abs(after["mean"]["value"] - 8.0) < 1.0
    assert after["mean"]["upper"] - after["mean"]["lower"] < 6.0


def test_where_records_of_a_unit_are_left_out_the_labels_say_so() -> None:
    """A count of at most two records a customer is not called a count of records."""
    made = replace(kind(rows=2), counted=Unit(name="customer", column="u", rows=2).counted())
    said = {row["measure"]: row["statistic"] for row in released(made, 1)[0]}
    assert said["rows"] == "count of records, at most 2 a customer"
    assert said["mean"] == "mean of records, at most 2 a customer"
    assert {row["statistic"] for row in released(kind(), 1)[0]} == {
        "count", "mean", "sum", "variance"
    }  # fmt: skip


def test_totals_agree_with_their_parts() -> None:
    """In a column of their own: what was drawn stays, and so do counts below zero."""
    rows = released(kind(epsilon=Fraction(1, 50)))[-1]
    cities = [row for row in rows if row["measure"] == "cities"]
    (total,) = [row for row in rows if row["measure"] == "rows"]
    assert sum(row["consistent"] for row in cities) == pytest.approx(total["consistent"])
    assert sum(row["value"] for row in cities) != total["value"]
    assert all(row["nonnegative"] == max(row["value"], 0) for row in cities)
    assert all(row["smoothed"] >= 0 for row in cities)


def test_totals_agree_where_noise_vanishes() -> None:
    """A variance that is zero as a double divides nothing."""
    rows = released(kind(epsilon=50_000))[-1]
    assert all(np.isfinite(row["consistent"]) for row in rows if "consistent" in row)


def test_groups_are_released_together() -> None:
    """One row a group and measure, by name, from groups of one scan."""
    measures = {"rows": "count", "mean": {"mean": "x", "resolution": 1, "bounds": [-50, 50]}}
    made = kind(epsilon=1000, measures=measures, by="g", groups=["b", "a", "none"])
    rows = released(made, 4)[-1]
    found = {(row["g"], row["measure"]): row["value"] for row in rows}
    columns = backend().columns
    for group in ("a", "b"):
        x = [v for v, g in zip(columns["x"], columns["g"], strict=True) if g == group]
        assert found[group, "rows"] == len(x)
        known = [v for v in x if v is not None]
        assert found[group, "mean"] == pytest.approx(np.mean(known), abs=0.5)
    assert found["none", "rows"] == 0
    assert SPEC.pools_groups


def test_groups_of_one_text_when_joined_are_smoothed_apart() -> None:
    """The group (a/b, c) and the group (a, b/c) are two series."""
    groups = [["a/b", "c"], ["a", "b/c"]]
    measures = {"rows": "count", "mean": {"mean": "x", "resolution": 1, "bounds": [0, 100]}}
    made = kind(epsilon=1000, measures=measures, by=["g", "h"], groups=groups)
    columns = {"g": ["a/b"] * 500 + ["a"] * 5, "h": ["c"] * 500 + ["b/c"] * 5}
    source = MemoryBackend({**columns, "x": [90] * 500 + [10] * 5})
    batch, state = Batch("s", "0", 0, DAY), made.init()
    plan = made.plan(state, batch)
    outcome = made.draw(plan, source.answer(plan.query, batch), ReplayedEntropy())
    learned = made.learn(state, plan, outcome)
    for series in (learned["rows"], learned["mean"]["count"], learned["mean"]["series"]):
        assert len(series["series"]) == 2


def test_a_unit_pays_for_its_rows() -> None:
    """Draws at epsilon over k for one record, and k times that for a unit."""
    made = kind(4)
    plan = made.plan(made.init(), Batch("s", "0"))
    charge = UnitCharging(UnitBound("u", 4)).charge(plan)
    assert charge.epsilon_nano == 10**9
    assert charge.event["type"] == "group"
    assert made.price == Price(Fraction(1, 4))


@pytest.mark.parametrize("size", [0, 1, 400])
def test_any_batch_is_drawn(size: int) -> None:
    """Nothing there, one record, and values that are all alike."""
    source = MemoryBackend(
        {"g": ["a"] * size, "x": [50.0] * size, "u": [1] * size},
    )
    rows = released(kind(), 4, source)[-1]
    assert all(np.isfinite([v for v in row.values() if isinstance(v, float)]).all() for row in rows)


@pytest.mark.long
def test_the_clip_narrows_to_the_values() -> None:
    """A mean over far too wide bounds is clipped nearer once much of the values is seen."""
    measures = {"mean": {"mean": "x", "resolution": 1, "bounds": [-5000, 5000]}}
    rows = [each[0] for each in released(kind(measures=measures, epsilon=5), 30)][-10:]
    values = np.array([v for v in backend().columns["x"] if v is not None], dtype=float)
    exact = float(np.mean(values))
    of_bounds = 5000 / (0.9 * 5 * len(values))
    assert np.mean([abs(row["value"] - exact) for row in rows]) < 0.5 * of_bounds
    assert all(row["lower"] <= exact <= row["upper"] for row in rows)


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        ({"histogram": "g"}, "values or cuts"),
        ({"histogram": "g", "values": ["a", "a"]}, "twice"),
        ({"histogram": "g", "values": ["(other)"], "other": True}, "name of a cell"),
        ({"histogram": "g", "cuts": [2, 1]}, "increasing"),
        ({"histogram": "g", "values": ["a"], "adds_up_to": "rows"}, "cell for every record"),
        ({"histogram": "g", "cuts": [1], "nulls": "cell", "adds_up_to": "x"}, "no count"),
        ({"mean": "x", "sum": "x", "resolution": 1, "bounds": [0, 1]}, "one of count"),
        ({"mean": "x", "resolution": 1}, "bounds or a guess"),
        ({"count": {"sql": "sum(x) > 1"}}, "aggregate"),
    ],
)
def test_what_is_refused(measure: dict[str, Any], words: str) -> None:
    """With the reason."""
    with pytest.raises(ValidationError, match=words):
        section({"m": measure, "rows": "count"})


def test_a_condition_counts_where_it_is_true_whatever_its_type(tmp_path: Path) -> None:
    """DuckDB takes a number for a condition, as in `where`: its text is none of truth."""
    path = tmp_path / "batch.parquet"
    table = "SELECT i, i > 5 AS b FROM range(10) AS r(i) UNION ALL SELECT NULL, NULL"
    duckdb.sql(f"COPY ({table}) TO '{path}' (FORMAT parquet)")
    measures = {name: {"count": {"sql": name}} for name in ("i", "b")}
    rows = released(kind(epsilon=1000, measures=measures), 1, DuckDBBackend(str(path), "parquet"))
    assert [row["value"] for row in rows[0]] == [9, 4]
