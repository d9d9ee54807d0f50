"""Every form a release can be configured in makes releases, learns, and is charged as planned."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from streamdp import wiring
from streamdp.config import load
from streamdp.kinds.charging import UnitCharging
from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.kinds.quantiles.section import PriorSection
from streamdp.learning.mixture.mixture import BayesianMixture
from streamdp.sources.windows import DAY
from streamdp.types import Batch, Json
from tests.worlds import START, MemoryBackend, ReplayedEntropy

DEMO = (Path(__file__).parents[2] / "config.yaml").read_text()

VARIANTS = {
    "the demonstration": (),
    "last release": (("learner: mixture", "learner: last-release"),),
    "online gradient": (("learner: mixture", "learner: online-gradient"),),
    "private gradient": (
        ("learner: mixture", "private_gradient: 0.2\n      learner: online-gradient"),
    ),
    "private gradient, features and public rows": (
        (
            "learner: mixture ",
            "features: [weekday, trend]\n      private_gradient: 1/3\n"
            "      public: {path: public.csv, column: minutes}\n      learner: online-gradient ",
        ),
    ),
    "no learning, auto": (("learner: mixture", "learner: none"),),
    "no rows expected": (
        ("    expected_rows: 900 ", "    # "),
        ("learner: mixture", "learner: none"),
    ),
    "features": (
        (
            "learner: mixture ",
            "features: [weekday, month, season, hour, trend]\n      holidays: [2013-07-04]\n"
            "      learner: mixture ",
        ),
    ),
    "substitute": (("neighbours: add-remove", "neighbours: substitute"),),
    "joint": (
        ("    epsilon: 0.1 ", "    mechanism: {branching: 10, node: joint}\n    epsilon: 0.1 "),
        ("learner: mixture", "learner: none"),
    ),
    "joint with shapes": (
        (
            "    epsilon: 0.1 ",
            "    mechanism: {branching: 4, node: joint, shapes: true, level_power: 5}\n"
            "    epsilon: 0.1 ",
        ),
        ("learner: mixture", "learner: none"),
    ),
    "edge": (("    epsilon: 0.1 ", "    mechanism: {restriction: edge}\n    epsilon: 0.1 "),),
    "uniform without a guess": (
        ("    guess: {location: 120, scale: 60}\n", ""),
        ("robust: cauchy ", "robust: uniform "),
    ),
    "mixture": (
        (
            "robust: cauchy ",
            "robust: {mixture: [{family: cauchy, location: 9, scale: 9},"
            " {family: laplace, location: 120, scale: 30, weight: 2}]} ",
        ),
    ),
    "public rows": (
        (
            "learner: mixture ",
            "public: {path: public.csv, column: minutes}\n      learner: mixture ",
        ),
    ),
    "public rows, tabulated, no learning": (
        (
            "learner: mixture ",
            "public: {path: public.csv, column: minutes, tabulate: true}\n      learner: none ",
        ),
    ),
    "public rows, online gradient": (
        (
            "learner: mixture ",
            "public: {path: public.csv, column: minutes}\n      learner: online-gradient ",
        ),
    ),
    "public rows, last release": (
        (
            "learner: mixture ",
            "public: {path: public.csv, column: minutes}\n      learner: last-release ",
        ),
    ),
    "public table": (
        (
            "learner: mixture ",
            "table: {path: public.csv, key: day, columns: [minutes]}\n      learner: mixture ",
        ),
    ),
    "no bounds": (("    bounds: [0, 1000] ", "    # "),),
}


def configured(folder: Path, variant: str) -> Quantiles:
    text = DEMO
    for old, new in VARIANTS[variant]:
        assert old in text, old
        text = text.replace(old, new)
    (folder / "config.yaml").write_text(text)
    public = [f"2013-01-{1 + i % 30:02},{30 + (7 * i) % 280}" for i in range(600)]
    (folder / "public.csv").write_text("\n".join(["day,minutes", *public]))
    kind = wiring.jobs(load(folder / "config.yaml"))["air_time"].kind
    assert isinstance(kind, Quantiles)
    return kind


def released(kind: Quantiles, days: int) -> tuple[list[Json], Json]:
    """Rows of some days of the same 900 records, and the last state."""
    backend = MemoryBackend({"k": [(7 * i) % 300 for i in range(900)]})
    state, rows = kind.init(), []
    for day in range(days):
        batch = Batch("s", "k", START + day * DAY, START + (day + 1) * DAY)
        plan = kind.plan(state, batch)
        counts = backend.answer(plan.query, batch)
        outcome = kind.draw(plan, counts, ReplayedEntropy(f"{day}"))
        state = json.loads(json.dumps(kind.learn(state, plan, outcome)))
        rows.append([dict(row) for row in kind.publish(state, outcome).rows])
    return rows, state


@pytest.mark.thinned(3)
@pytest.mark.parametrize("variant", VARIANTS)
def test_it_releases_and_learns(tmp_path: Path, variant: str) -> None:
    """Four days: values in order and on the grid, states that survive JSON, the planned price."""
    kind = configured(tmp_path, variant)
    rows, state = released(kind, 4)
    for day in rows:
        values = [row["value"] for row in day]
        assert values == sorted(values)
        assert all(float(value).is_integer() for value in values)
    plan = kind.plan(state, Batch("s", "k", START, START + DAY))
    assert UnitCharging().charge(plan).epsilon_nano == 10**8
    assert json.dumps(kind.signature())


@pytest.mark.thinned(3)
@pytest.mark.parametrize("variant", VARIANTS)
def test_an_empty_batch_is_drawn_like_any_other(tmp_path: Path, variant: str) -> None:
    """No records: nine values, no error."""
    kind = configured(tmp_path, variant)
    plan = kind.plan(kind.init(), Batch("s", "k", START, START + DAY))
    empty = MemoryBackend().answer(plan.query, Batch("s", "k"))
    assert len(kind.draw(plan, empty, ReplayedEntropy()).rows) == 9


def test_the_smoothed_series_is_in_order_and_can_be_left_out(tmp_path: Path) -> None:
    """Points and ends do not cross over the quantiles; `smoothed: false` publishes raw alone."""
    kind = configured(tmp_path, "the demonstration")
    rows, _ = released(kind, 6)
    for column in ("smoothed", "smoothed_lower", "smoothed_upper"):
        series = [row[column] for row in rows[-1]]
        assert series == sorted(series)
    for row in rows[-1]:
        assert row["smoothed_lower"] <= row["smoothed"] <= row["smoothed_upper"]
        assert row["smoothed_lower"] >= 0
        assert row["smoothed_upper"] <= 1000
    raw, _ = released(replace(kind, smooth=False), 2)
    assert "smoothed" not in raw[-1][0]


def test_other_features_are_another_signature(tmp_path: Path) -> None:
    """A state learned with features is not read without them."""
    with_features = configured(tmp_path, "features").signature()
    assert with_features != configured(tmp_path, "the demonstration").signature()


@pytest.mark.parametrize(("quantiles", "parts"), [("median", 2), ("quartiles", 3), ("deciles", 4)])
def test_branching_auto_is_that_of_the_paper(tmp_path: Path, quantiles: str, parts: int) -> None:
    """K = ceil(exp(sqrt(ln 2 · ln(m + 1)))), for one to nine quantiles."""
    text = DEMO.replace("learner: mixture", "learner: none").replace("deciles", quantiles)
    text = text.replace("    epsilon: 0.1 ", "    mechanism: {branching: auto}\n    epsilon: 0.1 ")
    (tmp_path / "config.yaml").write_text(text)
    kind = wiring.release_kind(load(tmp_path / "config.yaml"), "air_time")
    assert isinstance(kind, Quantiles)
    assert kind.tree().branching == parts


def test_public_rows_stay_beside_what_is_learned(tmp_path: Path) -> None:
    """The default learner has a prior of each quantile from them, and none without."""
    learners = [configured(tmp_path, name).learner for name in ("public rows", "edge")]
    public = [each.public for each in learners if isinstance(each, BayesianMixture)]
    assert [len(each) for each in public] == [9, 0]


def test_the_learner_mixture_is_known_by_its_old_name() -> None:
    """A configuration that says `experts` is one that says `mixture`."""
    prior = {"learner": "experts"}
    assert PriorSection.model_validate(prior) == PriorSection(learner="mixture")
