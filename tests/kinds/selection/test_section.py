"""What the configuration of a selection refuses, and what it makes of what it takes."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from streamdp.config import load
from streamdp.errors import ConfigurationError
from streamdp.kinds.selection.candidates import Conditions, ThresholdRules
from streamdp.kinds.selection.kind import Selection
from streamdp.kinds.selection.spec import Shortfall
from streamdp.types import Batch, ReleaseKind
from streamdp.wiring import release_kind

HEAD = """
store: {path: store.db}
privacy: {unit: trip, caps: {batch: 1, lifetime: 10}}
sources:
  trips: {path: trips.parquet, batches: {column: at, every: 1d, start: 2024-01-01}}
releases:
  best: {kind: selection, source: trips, epsilon: 0.5, expected_rows: 100, BODY}
"""
GRID = 'among: {sql: "x >= {t} and y < {a}", t: {from: 0, to: 9}, a: {values: [3, 5]}}'


def made(folder: Path, body: str) -> ReleaseKind:
    path = folder / "config.yaml"
    path.write_text(HEAD.replace("BODY", body))
    return release_kind(load(path), "best")


def selection(folder: Path, body: str) -> Selection:
    kind = made(folder, body)
    assert isinstance(kind, Selection)
    return kind


def test_thresholds_are_scored_from_one_table(tmp_path: Path) -> None:
    """Twenty rules, one marginal of label and two axes."""
    kind = selection(tmp_path, GRID + ", score: {errors: late}")
    assert isinstance(kind.candidates, ThresholdRules)
    assert kind.count == 20
    assert [column.name for column in kind.columns] == ["place", "t", "a", "shortfall"]
    assert kind.exponent == Fraction(1, 2)


@pytest.mark.parametrize(
    "body",
    [
        'among: {sql: "x >= {t} or y < {t}", t: {from: 0, to: 9}}',
        GRID + ', score: {sum: "x", bounds: [0, 60]}',
        "among: {conditions: {low: x < 3, high: x >= 3}}",
    ],
)
def test_other_candidates_are_scored_by_sums(tmp_path: Path, body: str) -> None:
    """Rules that are no thresholds, sums, and named conditions."""
    assert isinstance(selection(tmp_path, body).candidates, Conditions)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("among: {column: carrier}", "kind: statistics"),
        ("among: {c: [web, app]}", "among: {conditions: {web: \"c = 'web'\", app: \"c = 'app'\"}}"),
        ("among: {column: c, values: [1, 2]}", "{conditions: {'1': \"c = 1\", '2': \"c = 2\"}}"),
        ("among: {column: c}", "{conditions: {web: \"c = 'web'\", app: \"c = 'app'\"}}"),
        ('among: {sql: "x >= 3"}', "no parameter"),
        ('among: {sql: "x >= {t}"}', "values of t"),
        ('among: {sql: "x >= {t}", t: {from: 0, to: 9}, b: {from: 0, to: 1}}', "no parameter {b}"),
        ('among: {sql: "x >= {t}", t: {from: 9, to: 0}}', "from and to"),
        ('among: {sql: "x >= {t}", t: {from: 0, to: 9, values: [1]}}', "either from and to"),
        ('among: {sql: "x >= {t}", t: {from: 0, to: 1000000}}', "10000 values"),
        ('among: {sql: "x * {t} >= 1", t: {from: 0, to: 900}}', "500"),
        ('among: {sql: "(SELECT 1) >= {t}", t: {from: 0, to: 9}}', "reads other records"),
        ('among: {sql: "x >= {batch}", batch: {from: 0, to: 9}}', "rename"),
        (GRID + ", top: 20", "no choice"),
        (GRID + ", score: {excess: late, over: 2}", "below 1"),
        (GRID + ", score: {sum: x, bounds: [3, 3]}", "below the upper"),
        ("among: {conditions: {only: x > 1}}", "no choice"),
        ("among: {conditions: {some: x > 1, all: 1}}", "must be a text"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, body: str, what: str) -> None:
    """With the reason, before anything is planned."""
    with pytest.raises(ConfigurationError) as refusal:
        made(tmp_path, body)
    assert what in str(refusal.value)


def test_what_is_foretold_shrinks_with_epsilon(tmp_path: Path) -> None:
    """Half the shortfall at twice the price, and the price for a wanted shortfall."""
    kind = selection(tmp_path, GRID)
    expected = Shortfall().expected(kind)
    within = expected["shortfall_95"]
    assert within is not None
    assert expected["error_rate_95"] == pytest.approx(within / 100)
    assert Shortfall().price_for(kind, within / 2).amount == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (GRID + ", guess: {a: 5, t: 3}", 7),
        ('among: {sql: "x >= {t} or y < {t}", t: {from: 0, to: 9}}, guess: {t: 4}', 4),
        ("among: {conditions: {low: x < 3, high: x >= 3}}, guess: high", 1),
    ],
)
def test_a_guess_has_the_largest_prior(tmp_path: Path, body: str, place: int) -> None:
    """The candidate is the one named, whatever the order of parameters; it is paid for by none."""
    for learner in ("choices", "none"):
        kind = selection(tmp_path, f"{body}, learner: {learner}")
        plan = kind.plan(kind.init(), Batch("trips", "1"))
        bonuses = list(plan.mechanism)
        assert bonuses[place] == max(bonuses) > min(bonuses)
        guessed = kind.candidates.row(place)
        assert set(guessed.values()) in ({3.0, 5.0}, {4.0}, {"high"})
        plain = selection(tmp_path, body.partition(", guess")[0])
        assert plan.event == plain.plan(plain.init(), Batch("trips", "1")).event


def test_the_form_that_is_advised_is_taken(tmp_path: Path) -> None:
    """What the refusal of `among: {channel: [...]}` says can be written instead."""
    with pytest.raises(ConfigurationError) as refusal:
        made(tmp_path, "among: {channel: [web, app, it's]}")
    advised = "{" + str(refusal.value).partition("among: {")[2].partition("}}")[0] + "}}"
    candidates = selection(tmp_path, f"among: {advised}").candidates
    assert isinstance(candidates, Conditions)
    assert candidates.conditions == tuple(
        f"\"channel\" = '{each}'" for each in ("web", "app", "it''s")
    )


@pytest.mark.parametrize(
    ("score", "unit", "step"),
    [
        ("count", "records", 1.0),
        ("{excess: late, over: 1/5}", "records", 1.0),
        ("{sum: x, bounds: [0, 60], resolution: 1/2}", "unit of the sum", 60.0),
        ("{sum: x, bounds: [0, 60], resolution: 30}", "unit of the sum", 60.0),
    ],
)
def test_the_shortfall_is_in_the_unit_of_its_reader(
    tmp_path: Path, score: str, unit: str, step: float
) -> None:
    """Whatever integers the score is counted in: so much as one record may add, over epsilon."""
    kind = selection(tmp_path, f"{GRID}, score: {score}, learner: none")
    assert kind.columns[-1].unit == unit
    largest = 0.8 if "excess" in score else step
    assert kind.shortfall() == pytest.approx(largest * np.log(20 / 0.05) / 0.5)
    assert Shortfall().expected(kind)["error_rate_95"] == pytest.approx(
        kind.shortfall() / (100 * largest)
    )


@pytest.mark.parametrize(
    ("guess", "what"),
    [("{t: 3}", "each parameter: t, a"), ("{t: 3, a: 4}", "none of the"), ("low", "each")],
)
def test_a_guess_is_a_candidate(tmp_path: Path, guess: str, what: str) -> None:
    """Else it is refused."""
    with pytest.raises(ConfigurationError, match=what):
        selection(tmp_path, f"{GRID}, guess: {guess}")
